"""`kvplan reconcile`: the saved plan, the command, its exit codes and what it never prints."""

import json
from pathlib import Path

import pytest
import yaml
from boots import LOGS, PUBLISHED, SECRETS, SERVER_INFO, held, read_log, serving

from glm_kvplan.cli import main
from glm_kvplan.engines.log_stream import read_file
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.saved_plan import save, to_yaml
from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS
from glm_kvplan.engines.sglang.boot_log.plan_file import plan_document
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.engines.sglang.boot_log.server_info import boot_of
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.errors import InputError


def test_the_saved_plan_gives_the_same_sizes() -> None:
    for name in ("b200x4-mtp6-frac80", "b200x4-mtp4-slots700", "example-a-0.5.22", "example-b-0.5.23"):
        answer = held(name)
        document = yaml.safe_load(to_yaml(plan_document(answer, f"{name}.log")))
        assert document.keys() == {"model", "engine", "gpu", "nodes", "flags", "memory", "expect"}
        again = plan(
            document["flags"],
            gpu=document["gpu"],
            engine=document["engine"],
            environment=document.get("environment"),
        )
        assert again.deployment == answer.plan.deployment
        memory = document["memory"]
        solution = attempt(again, memory["pre_gib"], memory["available_gib"])
        assert solution.sizes == answer.sizing.sizes
        workers = again.deployment.attn_dp_size
        assert document["expect"]["min_total_tokens"] == solution.tokens * workers


@pytest.mark.parametrize("name", PUBLISHED)
def test_kvplan_check_holds_what_was_saved(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    save(str(path), to_yaml({**plan_document(held(name), f"{name}.log"), "model": "zai-org/GLM-5.3-Flash"}))
    with pytest.raises(SystemExit) as done:
        main(["check", str(path)])
    out = capsys.readouterr().out
    assert done.value.code == 0, out


def test_the_saved_file_holds_what_the_log_printed() -> None:
    b200 = plan_document(held("b200x4-mtp6-frac80"), "x.log")
    memory = b200["memory"]
    assert isinstance(memory, dict) and memory.keys() >= {"pre_gib", "available_gib", "source"}
    weights = (memory["target_weights_gib"], memory["draft_weights_gib"])
    assert (memory["pre_gib"], *weights, memory.get("graphs_gib")) == (176.25, 44.76, 3.81, None)
    assert b200["model"] == "nvidia/GLM-5.3-Flash-NVFP4"
    assert isinstance(b200["expect"], dict) and b200["expect"]["min_total_tokens"] == 7289664
    h200 = plan_document(held("example-a-0.5.20"), "x.log")  # eight workers
    assert h200["expect"] == {"min_total_tokens": 8 * 2076032, "max_running_requests": 8 * 31}
    assert isinstance(h200["memory"], dict) and h200["memory"]["target_weights_gib"] == 54.50
    assert "draft_weights_gib" not in h200["memory"]
    assert isinstance(h200["flags"], dict) and (h200["nodes"], h200["flags"].get("nnodes")) == (1, None)


def test_the_saved_plan_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, str(LOGS / "b200x4-mtp6-frac80.log"), "--save", "-")
    assert (code, err) == (0, "")
    assert yaml.safe_load(out)["memory"]["pre_gib"] == 176.25


def test_the_plan_of_a_log_that_is_not_explained_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    code, _, err = run(capsys, str(LOGS / "b200x4-mtp6-frac80.log"), "--engine", "0.5.22", "--save", str(path))
    assert code == 1
    assert "not every number is explained" in err


def test_a_running_servers_plan_is_saved_by_its_budget() -> None:
    answer = reconcile(boot_of(SERVER_INFO, "http://host"))
    document = plan_document(answer, "http://host")
    memory = document["memory"]
    assert isinstance(memory, dict)
    assert "no memory printed" in memory["source"]
    again = answer.plan
    assert attempt(again, memory["pre_gib"], memory["available_gib"]).sizes == (2076032, 159, 31)


def test_saving_is_whole_and_never_over_another_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    save(str(path), "model: a\n")
    with pytest.raises(InputError, match="--force"):
        save(str(path), "model: b\n")
    assert path.read_text(encoding="utf-8") == "model: a\n"
    save(str(path), "model: b\n", force=True)
    assert path.read_text(encoding="utf-8") == "model: b\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.yaml"]
    for place in ("/dev/null", str(tmp_path)):
        with pytest.raises(InputError, match="is not a file"):
            save(place, "model: a\n", force=True)
    with pytest.raises(InputError, match="cannot be written"):
        save(str(tmp_path / "missing" / "plan.yaml"), "model: a\n")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["reconcile", *words])
    out, err = capsys.readouterr()
    assert isinstance(done.value.code, int)
    return done.value.code, out, err


@pytest.mark.parametrize("name", PUBLISHED)
def test_command(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan_file = tmp_path / "plan.yaml"
    code, out, err = run(capsys, str(LOGS / f"{name}.log"), "--save", str(plan_file))
    assert code == 0
    assert "explained to rounding" in out
    assert max(map(len, out.splitlines())) <= 80
    saved = plan_file.read_text(encoding="utf-8")
    assert not any(secret in text for secret in SECRETS for text in (out, err, saved))
    code, out, err = run(capsys, str(LOGS / f"{name}.log"), "--json")
    document = json.loads(out)
    assert (code, document["explained"], document["schema"]) == (0, True, "glm-kvplan/reconcile")
    assert not any(secret in out for secret in SECRETS)


def test_command_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = str(LOGS / "b200x4-mtp6-frac80.log")
    code, out, _ = run(capsys, log, "--engine", "0.5.22")
    assert code == 1
    assert "not explained: page_size: predicted 256, printed 64" in out
    assert "likely: the engine is 0.5.20 or 0.5.21" in out
    other = tmp_path / "other.txt"
    other.write_text("hello\n", encoding="utf-8")
    bad = (
        (str(other),),
        (str(tmp_path),),
        (log, "--boot", "2"),
        (log, "--url", "http://host"),
        (),
        ("--url", "http://127.0.0.1:9", "--timeout", "0.5"),
        (log, "--engine", "0.4.0"),
        (log, "--gpu", "abacus"),
    )
    for words in bad:
        code, out, err = run(capsys, *words)
        assert code == 2, words
        assert not out
        assert len(err.splitlines()) == 1, err
        assert err.startswith("kvplan: ")


def test_command_on_a_running_server(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan_file = tmp_path / "plan.yaml"
    with serving(json.dumps(SERVER_INFO).encode()) as url:
        code, out, err = run(capsys, "--url", url, "--save", str(plan_file))
    assert code == 0
    assert "SGLang 0.5.21 (the server says 0.5.21)" in " ".join(out.split())
    assert not any(secret in text for secret in SECRETS for text in (out, err, plan_file.read_text(encoding="utf-8")))


def test_command_with_a_launch_command_behind_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    lines = (LOGS / "example-b-0.5.21.log").read_text(encoding="utf-8").splitlines(keepends=True)
    log.write_text("".join(lines[1:]), encoding="utf-8")
    launch = (
        "sglang",
        "serve",
        "--model-path",
        "zai-org/GLM-5.3-Flash",
        "--tp",
        "4",
        "--speculative-algorithm",
        "EAGLE",
    )
    code, out, _ = run(capsys, str(log), "--gpu", "b200", "--engine", "0.5.21", "--", *launch)
    assert code == 0, out
    code, _, err = run(capsys, str(log), "--gpu", "b200")
    assert code == 2
    assert "no server_args line" in err


def test_one_of_several_boots(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    names = ("b200x4-mtp6-frac80", "example-b-0.5.23")
    log.write_text("".join((LOGS / f"{name}.log").read_text(encoding="utf-8") for name in names), encoding="utf-8")
    assert "boot 2 of 2" in run(capsys, str(log))[1]
    code, out, _ = run(capsys, str(log), "--boot", "1")
    assert code == 0
    assert "boot 1 of 2" in out
    assert "7289664" in out


def test_reading_a_file_is_reading_its_lines() -> None:
    path = LOGS / "example-b-0.5.23.log"
    assert read_log(read_file(str(path), ANCHORS)) == read_log(path.read_text(encoding="utf-8").splitlines())
