"""`kvplan reconcile` of vLLM logs: public boots to the last digit, and what would explain others."""

import io
import json
import sys
from pathlib import Path

import pytest
import yaml
from paths import DATA
from vllm_boots import read_boot

from glm_kvplan.cli import main
from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.vllm.boot_fits import BootFit, fit_boot, plan_document
from glm_kvplan.engines.vllm.boot_lines import ANCHORS, ERROR_NUMBERS, LINES
from glm_kvplan.engines.vllm.boot_reader import LogReader
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.given import MemoryGiven

LOGS = DATA / "vllm_logs"
NAMES = {"h200x4-tp4": 3791, "h200x4-tp4-mtp3": 3311, "h200x4-tp4-mtp3-6gib": 440, "h200x8-tp8": 11802}
SIZE = (
    "(EngineCore pid=9) INFO 09-03 10:13:01 [kv_cache_utils.py:1148] GPU KV cache size: {tokens:,} tokens, Maximum "
    "concurrency for {context:,} tokens per request: {concurrency}x\n"
)


def text_of(name: str) -> str:
    return (LOGS / f"{name}.log").read_text(encoding="utf-8")


def fitted(text: str, **beside: object) -> BootFit:
    return fit_boot(read_boot(text), BesideLog(**beside))  # type: ignore[arg-type]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(["reconcile", *words])
    found = capsys.readouterr()
    return int(left.value.code or 0), found.out, found.err


@pytest.mark.parametrize("name", NAMES)
def test_public_boots_are_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(LOGS / f"{name}.log")
    code, out, err = run(capsys, log)
    assert (code, err) == (0, "")
    assert "explained to the last digit" in out
    code, out, _ = run(capsys, log, "--json")
    document = json.loads(out)
    assert (code, document["schema"], document["engine"]) == (0, "glm-kvplan/reconcile", "vllm-0.30.0")
    assert document["num_blocks"] == NAMES[name]
    verdicts = {row["verdict"] for row in document["rows"]}
    assert verdicts <= {"same", "within"}
    if "available" in text_of(name).lower():
        assert document["gpu"]["name"] == "H200"


@pytest.mark.parametrize(
    ("flags", "tokens", "context", "concurrency", "count", "needed"),
    [
        # prefix caching off, H100 x8 (doc id 71464252074); TP2 with MTP3, bf16 and fp8 (vllm#55221); 5 drafts
        ("-tp 8 --no-enable-prefix-caching --max-model-len 262144", 2618281, 262144, "9.99", 4145, 415),
        ("-tp 2 --speculative-config '{M}'", 2532577, 1048576, "2.42", 1140, 472),
        ("-tp 2 --kv-cache-dtype fp8 --speculative-config '{M}'", 4503445, 1048576, "4.29", 1078, 251),
        ("-tp 4 --max-model-len 131072 --speculative-config '{5}'", 3191024, 131072, "24.35", 3311, 136),
    ],
)
def test_a_log_without_arguments_and_its_launch(
    flags: str,
    tokens: int,
    context: int,
    concurrency: str,
    count: int,
    needed: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = SIZE.format(tokens=tokens, context=context, concurrency=concurrency)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    flags = flags.replace("{M}", '{"method": "mtp", "num_speculative_tokens": 3}')
    flags = flags.replace("{5}", '{"method": "mtp", "num_speculative_tokens": 5}')
    launch = f"vllm serve zai-org/GLM-5.3-Flash --max-num-seqs 64 {flags}"
    code, out, err = run(capsys, "-", "--json", "--engine", "vllm-0.30.0", "--", launch)
    document = json.loads(out)
    assert code == 0, (document["verdict"], err)
    assert document["num_blocks"] == count
    assert any(f"{needed} a request" in row["explanation"] for row in document["rows"])


def test_the_release_that_fits_is_found() -> None:
    text = "".join(line for line in text_of("h200x4-tp4-mtp3").splitlines(True) if "version" not in line)
    found = fitted(text.replace(" (v0.30.0)", ""))
    assert found.explained and found.chosen == "fits best"
    assert found.plan.profile.release in ("0.30.0", "0.31.0")
    assert {fit.engine for fit in found.fits} == {"0.30.0", "0.31.0", "0.32.0", "0.33.0"}


def test_what_would_explain_it_is_named() -> None:
    wrong = fitted(text_of("h200x4-tp4-mtp3"), engine="vllm-0.33.0")
    assert not wrong.explained
    assert wrong.causes[0] == "the engine is 0.30.0 or 0.31.0: under it every number is explained"
    config = {"method": "mtp", "num_speculative_tokens": 5}
    drafts = fitted(SIZE.format(tokens=3191024, context=131072, concurrency="24.35"), engine="vllm-0.30.0", flags={
        "tensor_parallel_size": 4, "max_model_len": 131072, "max_num_seqs": 64,
        "speculative_config": {**config, "num_speculative_tokens": 3},
    })  # fmt: skip
    assert not drafts.explained
    assert any(cause.startswith("5 draft tokens") for cause in drafts.causes)


def test_the_card_is_read_from_its_memory() -> None:
    text = text_of("h200x4-tp4")
    assert (fitted(text).plan.gpu.name, fitted(text).gpu_unknown) == ("H200", False)
    unknown = fitted(text.replace("139.79", "60.00"))
    assert unknown.gpu_unknown and unknown.explained
    assert fitted(text, gpu="h20-3e").plan.gpu.name == "H20 141GB"


def test_what_the_engine_says_of_itself_stands_in_for_arguments() -> None:
    text = "".join(line for line in text_of("h200x8-tp8").splitlines(True) if "non-default args" not in line)
    found = fitted(text)
    assert found.explained and found.plan.deployment.tensor_parallel_size == 8
    drafting = text_of("h200x4-tp4-mtp3").replace(
        "config: model=",
        "config: speculative_config=SpeculativeConfig(method='mtp', model='zai-org/GLM-5.3-Flash', num_spec_tokens=3),"
        " model=",
    )
    drafting = "".join(line for line in drafting.splitlines(True) if "non-default args" not in line)
    assert fitted(drafting).explained


def test_several_boots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "server.log"
    log.write_text(text_of("h200x4-tp4") + text_of("h200x4-tp4-mtp3"))
    code, out, _ = run(capsys, str(log))
    assert code == 0 and "boot 2 of 2, line 12" in out and "3,311 blocks" in out
    code, out, _ = run(capsys, str(log), "--boot", "1")
    assert code == 0 and "3,791 blocks" in out
    code, out, err = run(capsys, str(log), "--boot", "3")
    assert (code, out) == (2, "") and "the log holds 2" in err


@pytest.mark.parametrize("wrap", ["docker", "kubernetes", "compose", "colour"])
def test_wrapped_lines_read_the_same(wrap: str) -> None:
    def wrapped(line: str) -> str:
        if wrap == "docker":
            return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-09-03T10:11:12Z"})
        if wrap == "kubernetes":
            return f"2026-09-03T10:11:12.123456789Z stderr F {line}"
        return f"vllm-1  | {line}" if wrap == "compose" else f"\x1b[32m{line}\x1b[0m"

    plain = text_of("h200x4-tp4-mtp3")
    assert read_boot("\n".join(map(wrapped, plain.splitlines()))) == read_boot(plain)


def test_a_busy_server_keeps_no_line() -> None:
    reader = LogReader()
    for number, line in enumerate(text_of("h200x4-tp4").splitlines(), 1):
        reader.read(number, line)
    before = reader.boots
    for number in range(10_000):
        reader.read(number, b"INFO 09-03 loggers.py:264] Engine 000: Avg prompt throughput: 1, GPU KV cache usage: 3%")
    assert reader.boots == before


def test_every_line_holds_an_anchor() -> None:
    for line in (*LINES, *ERROR_NUMBERS):
        words = line.pattern.pattern
        assert any(anchor.replace("(", r"\(") in words or anchor in words for anchor in ANCHORS), words


def test_the_saved_plan_starts_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for name, count in NAMES.items():
        found = fitted(text_of(name))
        document = plan_document(found, f"{name}.log")
        memory = document.get("memory", {})
        assert isinstance(memory, dict)
        again = plan(document["flags"], gpu="h200", engine=str(document["engine"]))  # type: ignore[arg-type]
        assert begin(again, MemoryGiven(available_gib=memory.get("available_gib"))).start.count == count
    code, out, _ = run(capsys, str(LOGS / "h200x4-tp4-mtp3.log"), "--save", "-")
    assert code == 0
    saved = yaml.safe_load(out)
    assert saved["flags"]["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 3}
    assert saved["memory"]["available_gib"] == 45.07


@pytest.mark.parametrize(
    ("text", "beside", "said"),
    [
        (SIZE.format(tokens=1, context=1, concurrency="1.00"), {}, "prints no arguments; give its launch command"),
        (text_of("h200x4-tp4").replace("zai-org/GLM-5.3-Flash", "Qwen/Qwen3-8B"), {}, "is another model"),
        (text_of("h200x4-tp4").replace("0.30.0", "0.21.0"), {}, "the first that does is 0.30.0"),
        (text_of("h200x4-tp4"), {"gpu": "mi300x"}, "ROCm is not planned"),
        (text_of("h200x4-tp4"), {"draft": "x.json"}, "--draft-config"),
    ],
)  # fmt: skip
def test_what_cannot_be_held_is_one_line(text: str, beside: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        fitted(text, **beside)
    assert "\n" not in str(raised.value)


def test_a_release_that_refuses_the_flags_says_so_where_it_is_named() -> None:
    text = text_of("h200x4-tp4").replace("'tensor_parallel_size': 4", "'pipeline_parallel_size': 2")
    with pytest.raises(RefusedError, match="pipeline"):
        fitted(text, engine="vllm-0.30.0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--url", "http://localhost:1", "--engine", "vllm"), "does not tell its blocks"),
        ((str(LOGS / "h200x4-tp4.log"), "--engine", "0.5.21"), "no boot of SGLang was found"),
        ((str(LOGS / "README.md"),), "no boot of SGLang or vLLM was found"),
        ((str(DATA / "logs" / "mi355x-nospec.log"), "--engine", "vllm"), "no boot of vLLM was found"),
    ],
)
def test_the_other_engines_log_is_exit_2(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err and len(err.splitlines()) == 1


def test_a_log_of_both_engines_asks_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "both.log"
    log.write_bytes((DATA / "logs" / "mi355x-nospec.log").read_bytes() + text_of("h200x4-tp4").encode())
    code, _, err = run(capsys, str(log))
    assert code == 2 and "boots of several engines" in err
    code, _, _ = run(capsys, str(log), "--engine", "vllm")
    assert code == 0
    assert [engine_named(name).log_reader().boots for name in ("sglang", "vllm")] == [[], []]
