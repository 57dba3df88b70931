"""Options of kvplan's own that every command shares."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from running import kvplan

from glm_kvplan.cli import COMMANDS
from glm_kvplan.cli.app import _named, app
from glm_kvplan.cli.option_groups import FlagOption

KVPLAN = str(Path(sys.executable).with_name("kvplan"))


def ledgers(*words: str) -> dict[str, dict[str, int]]:
    done = kvplan("estimate", "--json", *words)
    assert done.returncode == 0, done.stderr
    return {entry["name"]: entry for entry in json.loads(done.stdout)["stages"][0]["ledgers"]}


def test_the_row_layout_of_a_patched_build() -> None:
    assert ledgers("--kv-row-layout", "fp8_scaled")["latent_kv"]["bytes_per_unit"] == 5808
    assert ledgers("--kv-row-layout", "fp8_raw")["latent_kv"]["bytes_per_unit"] == 5632


def test_a_switch_of_the_server() -> None:
    # ENGINE_MODEL 1.4: an fp32 convolution window doubles the 147,456 bytes of each of 34 layers
    plain = ledgers()["kda_state"]["bytes_per_unit"]
    wide = ledgers("--env", "SGLANG_MAMBA_CONV_DTYPE=float32")["kda_state"]["bytes_per_unit"]
    assert wide - plain == 34 * 147456


def test_reserve_and_payload_of_the_indexer_are_two_numbers() -> None:
    index = ledgers()["indexer"]
    assert (index["bytes_per_unit"], index["written_bytes_per_unit"]) == (1452, 363)


@pytest.mark.parametrize("words", [("--env", "HOME=/root"), ("--env", "SGLANG_USE_AITER"), ("--kv-row-layout", "x")])
def test_what_cannot_be_used_is_one_line(words: tuple[str, ...]) -> None:
    done = kvplan("estimate", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tp-size", "x"), "--tp-size 'x' is not accepted; it takes a whole number"),
        (("--tp-size", "0"), "--tp-size 0 is not accepted; it takes a whole number from 1 to 65536"),
        (("--cuda-graph-bs-decode", "1,x"), "--cuda-graph-bs-decode 'x' is not accepted; it takes whole numbers"),
        (("--kv-row-layout", "x"), "--kv-row-layout 'x' is not accepted; it takes one of bf16, fp8_scaled, fp8_raw"),
        (("--max-total-tokens", "1Kb"), "such as 128Ki"),
        (("--tp-sise", "4"), "--tp-size"),
        (("--enable-pd-role-switch", "--engine", "0.5.20"), "does not exist in 0.5.20; leave it out"),
    ],
)
def test_a_wrong_value_says_what_is_accepted(words: tuple[str, ...], says: str) -> None:
    assert says in kvplan("estimate", *words).stderr


def test_an_option_is_the_same_thing_on_every_command() -> None:
    """Of kvplan's own options: the same kind of value wherever the name stands, and no second name for it."""
    kinds: dict[str, set[object]] = {}
    names: dict[str, set[str]] = {}
    context = typer.Context(typer.main.get_command(app))
    for command in COMMANDS:
        for option in _named(command, context).params:
            if option.param_type_name == "option" and not isinstance(option, FlagOption):
                long = next(name for name in option.opts if name.startswith("--"))
                kinds.setdefault(long, set()).add((option.metavar, option.is_flag))
                names.setdefault(str(option.name), set()).add(long)
    differing = {name for name, found in kinds.items() if len(found) > 1}
    assert differing == {"--format", "--context"}  # a file beside the form; explain takes one length, the others a mix
    assert {name: found for name, found in names.items() if len(found) > 1} == {}


def test_without_the_script() -> None:
    for command in ([sys.executable, "-m", "glm_kvplan"], [KVPLAN]):
        done = subprocess.run([*command, "info", "gpus"], capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, kvplan("info", "gpus").stdout, "")


def test_notes_come_after_the_answer_and_not_before_an_error() -> None:
    """Standard error of bad input is its one line; of an answer, and of a refused start, notes stand there too."""
    noted = ("--tp-size", "8", "--hicache-size", "5")  # without --enable-hierarchical-cache: a note
    said = "kvplan: note: --hicache-size builds no host pool"
    done = kvplan("solve", *noted, "--concurrency", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and "note" not in done.stderr
    together = subprocess.run(
        [KVPLAN, "solve", *noted], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=True
    )
    lines = together.stdout.splitlines()
    assert lines[-1].startswith(said) and sum(line.startswith("kvplan: note") for line in lines) == 1


def test_a_value_for_words_that_a_shell_has_split_is_refused(tmp_path: Path) -> None:
    """--set counts in text alone: a command in quotes, a script inside one, a file."""
    launch = "sglang serve --model-path zai-org/GLM-5.3-Flash --tp $TP"
    for words in ((*launch.split(),), (*launch.replace("$TP", "8").split(),)):
        done = kvplan("resolve", "--set", "TP=4", "--", *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "put the whole command in quotes" in done.stderr
    script = tmp_path / "serve.sh"
    script.write_text(launch)
    for words in (("--", launch), ("--", "bash", "-c", launch), ("--launch", str(script))):
        done = kvplan("resolve", "--json", "--set", "TP=4", *words)
        assert {c["flag"]: c["value"] for c in json.loads(done.stdout)["choices"]}["tp_size"] == 4


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "--gpu", "LONG"),
        ("solve", "--LONG"),
        ("LONG",),
        ("solve", "--launch", "LONG"),
        ("solve", "--model", "LONG"),
        ("solve", "--engine", "LONG"),
        ("check", "LONG.yaml"),
        ("diff", "LONG.yaml", "b.yaml"),
        ("reconcile", "LONG"),
        ("explain", "LONG"),
        ("solve", "--", "sglang", "serve", "LONG"),
        ("solve", "--", "sglang", "serve", "--LONG", "1", "--tp", "LONG"),
    ],
)
@pytest.mark.parametrize("long", ["x" * 5000, "x/" * 2500, "x y " * 1250])
def test_a_name_without_an_end_is_not_echoed_whole(words: tuple[str, ...], long: str) -> None:
    done = kvplan(*(word.replace("LONG", long) for word in words))
    assert done.returncode == 2 and len(done.stderr) + len(done.stdout) < 3300, done.stderr
    assert (done.stderr + done.stdout).count("\n") <= 2


def test_prefill_graphs_without_a_batch_are_a_server_that_captures_none() -> None:
    """cuda_graph_setup.py:563 at 0.5.23 warns and goes on; of decode the engine takes the largest, and fails."""
    config = '{"PHASE": {"bs": []}}'
    done = kvplan("resolve", "--json", "--cuda-graph-config", config.replace("PHASE", "prefill"))
    plain = kvplan("resolve", "--json")
    choices, usual = ({c["flag"]: c["value"] for c in json.loads(o.stdout)["choices"]} for o in (done, plain))
    for name in ("mem_fraction_static", "prefill_graph", "prefill_graph_max_bs"):
        assert choices[name] == usual[name]
    done = kvplan("resolve", "--cuda-graph-config", config.replace("PHASE", "decode"))
    assert done.returncode == 2 and "decode.bs is empty" in done.stderr
