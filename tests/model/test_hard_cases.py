"""Input that nobody plans for: what must come of it is one line, exit code 2 and nothing else; never half an answer."""

import json
import os
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from running import run

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.sglang.explain import topics
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.budget import memory_budget
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.units import parse_count, parse_size

KVPLAN = Path(sys.executable).with_name("kvplan")
ENDLESS = "9" * 5000
CONFIG = json.loads((Path(kv.__file__).parent / "model/data/glm-5.3-flash.config.json").read_text(encoding="utf-8"))
CARDS = ("--pre-gib", "138", "--available-gib", "90")


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def refused(capsys: pytest.CaptureFixture[str], *words: str, exit_code: int = 2) -> str:
    """The one line, once it is sure that there is one and nothing else. 2: bad input; 1: the engine's own refusal."""
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (exit_code, "", 1), (code, out[:200], err)
    assert err.startswith("kvplan: ")
    return err


def config(tmp_path: Path, **text: Any) -> str:
    """A copy of the published config with other keys in its text part (`top_` before a name: beside it)."""
    changed = deepcopy(CONFIG)
    for name, value in text.items():
        if name.startswith("top_"):
            changed[name.removeprefix("top_")] = value
        elif name in changed["text_config"]["linear_attn_config"]:
            changed["text_config"]["linear_attn_config"][name] = value
        else:
            changed["text_config"][name] = value
    path = tmp_path / "other.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    return str(path)


# --- one line, and nothing half written -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("estimate", "--context", ENDLESS),
        ("estimate", "--concurrency", ENDLESS),
        ("estimate", "--engine", ENDLESS),
        ("estimate", "--gpu", f"h200:{ENDLESS}"),
        ("advise", "--tp-size", "8", "--context", ENDLESS),
        ("advise", "--tp-size", "8", "--context", f"0.{ENDLESS}:8k,0.1:1k"),
        ("advise", "--tp-size", "8", "--context", f"0.5:{ENDLESS},0.5:1k"),
        ("validate", "--device", "meta", "--keep-free", ENDLESS),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_endless_numbers(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert len(refused(capsys, *words)) < 400


@pytest.mark.parametrize("command", ["estimate", "pools", "solve", "advise", "resolve", "validate", "explain"])
@pytest.mark.parametrize(
    "flags",
    [
        ("--gpu", "h200:10000", "--tp-size", "64"),
        ("--gpu", "h200:1"),
        ("--gpu", "gb300", "--chunked-prefill-size", "1000000"),
        ("--gpu", "b200", "--cuda-graph-max-bs-decode", "100000"),
    ],
    ids=lambda flags: " ".join(flags),
)
def test_a_card_without_memory_for_pools(
    capsys: pytest.CaptureFixture[str], command: str, flags: tuple[str, ...]
) -> None:
    """The engine's own reserve is more than the card: every command says so before it prints anything."""
    assert "left for weights and pools" in refused(capsys, command, *flags, exit_code=1)


def test_a_card_smaller_than_its_driver() -> None:
    placed = Placement()
    for name in ("h200:900", "gb10:3000"):
        with pytest.raises(InputError, match="is no larger than what"):
            memory_budget(placed, gpu=find_gpu(name), weights_gib=0.1)


@pytest.mark.parametrize("name", ["", " ", ":80000"])
def test_a_gpu_without_a_name_is_not_the_assumed_one(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "names no card" in refused(capsys, "estimate", "--gpu", name)


@pytest.mark.parametrize("layers", [0, 2])
@pytest.mark.parametrize("command", ["estimate", "solve", "pools", "explain", "validate"])
def test_speculation_wants_one_draft_layer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, layers: int
) -> None:
    """models/glm5_next.py:1551-1560: "Only 1 nextn layer" is an assertion of the engine's loader."""
    model = config(tmp_path, num_nextn_predict_layers=layers)
    said = refused(capsys, command, "--model", model, "--speculative-algorithm", "NEXTN", exit_code=1)
    assert f"this one has {layers}" in said and "glm5_next.py" in said
    assert run(capsys, "estimate", "--model", model)[0] == 0  # without speculation it is none of its business


def test_closed_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in refused(capsys, "estimate", "--launch", "-")


def test_commands_are_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean estimate?" in refused(capsys, "estimte")
    assert "commands are: estimate" in refused(capsys, "xyzzy")


# --- units and names ------------------------------------------------------------------------------------------------


def test_counts_read_alike_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_contexts("1.5k").lengths == (parse_count("1.5k", "--context"),) == (1536,)
    for text in ("0", "x", "1:x", "0.5:2"):
        with pytest.raises(InputError, match=r"^--context"):
            parse_contexts(text)
    with pytest.raises(InputError, match="is not a size"):
        parse_size("1 GB of it", "--keep-free")
    said = refused(capsys, "explain", "--tp-size", "8", "--context", "2m")
    assert "--context-length" in said and "context_length" not in said


ONE = r"\b1 (?:requests|tokens|slots|rows|ranks|layers|conversations|flags|running requests|state slots)\b"


@pytest.mark.parametrize(
    "words",
    [
        ("estimate", "--context", "1", "--disable-radix-cache"),
        ("estimate", "--pp-size", "45", "--context", "1"),
        ("pools", "--disable-radix-cache", "--pp-size", "45"),
        ("validate", "--device", "meta", "--disable-radix-cache"),
        ("advise", "--tp-size", "8", *CARDS),
        ("explain", "tail", "--pp-size", "8"),
        ("explain", "pools", "--pp-size", "8"),
        ("explain", "page", "--pp-size", "8"),
    ],
    ids=" ".join,
)
def test_one_is_singular(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    _, out, err = run(capsys, *words)
    assert out and not re.search(ONE, " ".join(out.split())), re.search(rf".*{ONE}.*", " ".join(out.split()))
    assert "0-0" not in out and "44-44" not in out
    del err


def test_one_flag_touches(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "estimate", "--", "sglang", "serve", "--tp", "8", "--trust-remote-code")
    assert "1 flag of the launch command touches no memory" in err


# --- numbers that must agree ----------------------------------------------------------------------------------------


def _value(formula: str, terms: dict[str, int]) -> object:
    return eval(formula, {"__builtins__": {}}, terms)


@pytest.mark.parametrize(
    "flags", [{}, {"speculative_algorithm": "EAGLE"}, {"speculative_algorithm": "EAGLE", "kv_cache_dtype": "fp8_e4m3"}]
)
@pytest.mark.parametrize("release", ["0.5.21", "0.5.23"])
def test_the_token_formula_is_the_token_price(release: str, flags: dict[str, object]) -> None:
    """`explain token` writes out every pool a token is in: worked out by the terms it is the number beside it."""
    made = kv.plan(flags, engine=release)
    found = topics.ground(made, kv.Workload(131_072, 1))
    terms = {name: value for ledger in found.ledgers.values() for name, value in ledger.terms}
    formula = topics.explain(found, "token").formula.partition("token_bytes = ")[2]
    assert _value(formula, terms) == found.token_bytes


def test_no_tail_is_called_none(tmp_path: Path) -> None:
    for change in ({"index_kpool": 1}, {"top_indexer_types": ["shared"] * 45}):
        made = kv.plan({}, model=config(tmp_path, **change))
        told = topics.explain(topics.ground(made, kv.Workload(1000, 1)), "tail")
        assert "There is no compress tail" in told.lines[0] and told.figures == ()
    one = kv.plan({}, model=config(tmp_path, index_topk_pattern="F" * 4 + "S" * 41))
    assert "in each of 1 layer," in topics.explain(topics.ground(one, kv.Workload(1000, 1)), "tail").lines[0]


def test_prices_of_an_estimate_have_three_digits(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "solve", "--tp-size", "8", "--prices")
    table = out.partition("prices:")[2]
    numbers = re.findall(r" ([+-][\d,]{5,}) ", table)
    assert len(numbers) > 4 and all(re.fullmatch(r"[+-]\d{1,3}[0,]*", n) or n.count("0") >= 1 for n in numbers)
    assert all(len(n.strip("+-").replace(",", "").rstrip("0")) <= 3 for n in numbers)
    assert not re.search(r"[+-]0(\.0+)?\b(?!\.)", table)


# --- terminals and streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [20, 30, 40, 60, 69])
def test_narrow_terminals_cut_no_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for words, figures in (
        (("explain", "where", "--tp-size", "8"), ("4,194,320", "18,452,480", "11,264", "22,528")),
        (("estimate", "--all", "--tp-size", "8", "--context", "1"), ("18,452,480", "4,194,320")),
    ):
        _, out, _ = run(capsys, *words)
        assert all(len(line) <= width for line in out.splitlines())
        for figure in figures:
            assert re.search(rf"(?<![\d,]){figure}(?![\d,])", out), (figure, out)
    assert re.search(r"compress tails\*\s+66\.0 KiB", out)


def test_columns_of_zero_is_no_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    _, out, _ = run(capsys, "estimate")
    assert "KDA state" in out


def shell(script: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", "KVPLAN": str(KVPLAN)}
    return subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("words", ["resolve", "estimate --json"])
def test_a_reader_that_leaves(words: str) -> None:
    """Exit codes 0 and 1 are answers; a pipe that closes is none."""
    done = shell(f'"$KVPLAN" {words} | true; echo "${{PIPESTATUS[0]}}"')
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["estimate", "info gpus --json"])
def test_a_full_disk(words: str) -> None:
    done = shell(f'"$KVPLAN" {words} > /dev/full')
    assert done.returncode == 2
    assert done.stderr == "kvplan: the answer cannot be written: No space left on device\n"


def test_closed_streams() -> None:
    assert shell('"$KVPLAN" estimate >&-').stderr == ""
    done = shell('"$KVPLAN" estimate --context x 2>&-')
    assert (done.returncode, done.stdout) == (2, "")


def test_errors_keep_their_kind() -> None:
    with pytest.raises(RefusedError):
        kv.plan({"chunked_prefill_size": 1_000_000}, gpu="gb300")
    with pytest.raises(InputError):
        load_profile(ENDLESS)


# --- what the server would not take, and what nobody reads ----------------------------------------------------------


@pytest.mark.parametrize("command", ["estimate", "pools", "explain", "validate"])
def test_contexts_beyond_the_server(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert "more than the server accepts (1048576" in refused(capsys, command, "--context", "2m")
    assert "server accepts (4096" in refused(capsys, command, "--context", "8k", "--context-length", "4096")
    assert "server accepts (1048576" in refused(capsys, "solve", "--tp-size", "8", "--prompt", "2m")


def test_the_default_context_is_one_the_server_takes(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "advise", "--tp-size", "8", "--context-length", "4096", *CARDS)
    assert "contexts of 4,096 tokens" in out


@pytest.mark.parametrize("command", ["info gpus", "info engines", "info model"])
def test_commands_that_read_no_launch(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert "reads no launch command" in refused(capsys, *command.split(), "--", "sglang", "serve", "--tp", "8")


def test_a_stage_without_token_pools(capsys: pytest.CaptureFixture[str]) -> None:
    """Stages of a deep pipeline hold one layer: the fullest may have no full-attention layer, and no token price."""
    words = ("--pp-size", "45", "--tp-size", "2", "--context", "1", "--concurrency", "64")
    _, out, _ = run(capsys, "explain", "pools", *words)
    assert "keep nothing per token" in out and "// 0" not in out


def test_a_tensor_beyond_counting(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = config(tmp_path, num_heads=1 << 20, head_dim=1 << 20)
    assert "larger than torch can count" in refused(capsys, "validate", "--device", "meta", "--model", model)


# --- launch scripts that mean several things ------------------------------------------------------------------------

_LAUNCH = "python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp $TP"


@pytest.mark.parametrize(
    ("script", "decides"),
    [
        ("if [ $X = big ]; then TP=8; else TP=4; fi", "$X of line 1"),
        ("TP=4\n[ $BIG = 1 ] && TP=8", "$BIG of line 2"),
        ("TP=4\ncase $GPU in\n h100) TP=8 ;;\nesac", "$GPU of line 2"),
        ("if grep -q H200 /proc/gpus; then TP=8; else TP=4; fi", "`grep` of line 1"),
    ],
)
def test_branches_that_differ_are_not_guessed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, script: str, decides: str
) -> None:
    path = tmp_path / "launch.sh"
    path.write_text(f"{script}\n{_LAUNCH}\n", encoding="utf-8")
    said = refused(capsys, "estimate", "--launch", str(path))
    assert "--tp-size is given 8 or 4, as" in said and decides in said


@pytest.mark.parametrize(
    "script", ["if [ -z $TP ]; then TP=8; fi", "TP=4\nTP=8", "if x; then TP=2; fi\nTP=8", "TP=8\nif x; then TP=8; fi"]
)
def test_one_value_is_read(script: str) -> None:
    assert kv.plan(launch=f"{script}\n{_LAUNCH}").deployment.tp_size == 8


def test_the_environment_of_a_systemd_unit() -> None:
    unit = f'[Service]\nEnvironment="SGLANG_MAMBA_SSM_DTYPE=bfloat16" TP=8\nExecStart=-/opt/{_LAUNCH} \\\n  --dp 2\n'
    deployment = kv.plan(launch=unit).deployment
    assert (deployment.mamba_ssm_dtype, deployment.tp_size, deployment.dp_size) == ("bfloat16", 8, 2)


def test_a_unit_whose_value_stands_elsewhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "glm.service"
    path.write_text(f"[Service]\nEnvironmentFile=/etc/glm.env\nExecStart=/opt/{_LAUNCH}\n", encoding="utf-8")
    assert "$TP" in refused(capsys, "estimate", "--launch", str(path))


# --- estimates that look like estimates -----------------------------------------------------------------------------


def test_pools_of_an_estimate_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "solve", "--all", "--tp-size", "8", "--speculative-algorithm", "EAGLE")
    for name in ("state slots", "latent KV", "index K", "draft KV", r"draft-layer state slab\*"):
        assert re.search(rf"^{name} +~[\d.]+\.\d GiB", out, re.M), name
    assert re.search(r"^verify snapshots +\d\.\d\d GiB", out, re.M)  # 48 requests, whatever the memory
    assert re.search(r"~[\d.]+ GiB stay free", " ".join(out.split()))
    _, out, _ = run(capsys, "solve", "--all", "--tp-size", "8", *CARDS)
    assert not re.search(r"^(state slots|latent KV|free) +~", out, re.M)
    assert not re.search(r"~[\d.]+ GiB stay free", " ".join(out.split()))


def test_a_page_of_one_token(capsys: pytest.CaptureFixture[str]) -> None:
    """ROCm without aiter before 0.5.21."""
    _, out, _ = run(capsys, "explain", "page", "--gpu", "mi355x", "--engine", "0.5.20")
    told = " ".join(out.split())
    assert "a page is 1 token;" in told and "smaller than a group of index_kpool 4" in told and " 0 groups" not in told


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "is null; it must be a whole number"), (True, "is true;"), (0, "is 0; it must be greater than or equal")],
)
def test_configs_are_quoted_as_they_are_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, value: object, said: str
) -> None:
    assert f"text_config.kv_lora_rank {said}" in refused(
        capsys, "info", "model", "--model", config(tmp_path, kv_lora_rank=value)
    )
