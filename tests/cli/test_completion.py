"""What a shell completes, asked as a shell asks it: every option that has choices, on every command that has it."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from glm_kvplan.cli import COMMANDS
from glm_kvplan.cli.app import _named, app
from glm_kvplan.cli.option_groups import FlagOption
from glm_kvplan.engines.by_name import NAMES, engine_named

# Of kvplan's own options: something that each completes.
CHOICES = {
    "--engine": "vllm-0.33.0",
    "--gpu": "b200",
    "--env": "SGLANG_MAMBA_CONV_DTYPE=",
    "--checkpoint": "nvfp4",
    "--confidence": "mean",
    "--lang": "zh",
    "--format": {"check": "sarif", "diff": "md", "report": "svg", "sweep": "parquet"},
    "--chart": "frontier",
    "--over": "tp_size=",
    "--sort": "served:desc",
    "--frontier": "context,concurrency",
    "--try": "kv-cache-dtype=bfloat16",
    "--device": "meta",
    "--with": "vllm",
}
# Numbers, files, names that only the user knows: the shell's own completion of file names is left to work.
OPEN = {
    *("--model", "--revision", "--launch", "--set", "--container", "--root", "--save", "--launch-out", "--output"),
    *("--calibrate", "--draft-config", "--url", "--timeout", "--boot", "--base", "--where", "--best", "--limit"),
    *(
        "--context",
        "--concurrency",
        "--beside",
        "--prefix-states",
        "--prompt",
        "--gpus",
        "--gpus-per-host",
        "--keep-free",
    ),
    *("--host-gib", "--pod-gib", "--pre-gib", "--available-gib", "--weights-gib", "--draft-weights-gib", "--pp-rank"),
}


@cache
def options(command: str) -> list[Any]:
    """The options of a command that take a value."""
    context = typer.Context(typer.main.get_command(app))
    return [one for one in _named(command, context).params if one.param_type_name == "option" and not one.is_flag]


def completed(words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash is told for the word behind `words`."""
    monkeypatch.setenv("_KVPLAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    shown = io.StringIO()
    with redirect_stdout(shown), pytest.raises(SystemExit):
        app(args=[], prog_name="kvplan", obj=None)
    return shown.getvalue().split("\n")


def long_name(option: Any) -> str:
    return next(name for name in option.opts if name.startswith("--"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_with_choices_is_completed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for option in options(command):
        name = long_name(option)
        if isinstance(option, FlagOption) or name in OPEN:
            continue
        expected: Any = CHOICES[name]  # an option that neither names: say which it is
        found = completed(f"kvplan {command} {name}", monkeypatch)
        assert (expected if isinstance(expected, str) else expected[command]) in found, name


@pytest.mark.parametrize("engine", NAMES)
def test_every_flag_with_choices_is_completed(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_launch = {"sglang": "-- sglang serve m", "vllm": "-- vllm serve m"}
    for flag in engine_named(engine).flags:
        if flag.choices:
            for spelled in (f"--engine {engine} {flag.option}", f"--engine={engine} {flag.option}"):
                assert set(flag.choices) <= {*completed(f"kvplan solve {spelled}", monkeypatch)}, flag.name
    flag = next(flag for flag in engine_named(engine).flags if flag.choices)
    assert set(flag.choices) <= {*completed(f"kvplan solve {of_launch[engine]} {flag.option}", monkeypatch)}


def test_words_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {*COMMANDS} <= {*completed("kvplan", monkeypatch)}
    assert {*COMMANDS} <= {*completed("kvplan help", monkeypatch)}
    assert {*COMMANDS} <= {*completed("kvplan --lang zh", monkeypatch)}
    assert {"engines", "gpus", "model", "schema"} <= {*completed("kvplan info", monkeypatch)}
    assert "0.5.21" in completed("kvplan info engines", monkeypatch)
    assert "0.5.21" not in completed("kvplan info gpus", monkeypatch)
    assert "mtp" in completed("kvplan explain", monkeypatch)
    assert "boot-line" in completed("kvplan explain --engine vllm", monkeypatch)
    assert "max_num_seqs=" in completed("kvplan sweep --engine vllm --over", monkeypatch)


@pytest.mark.parametrize("words", ["kvplan foo --x", "kvplan solve --nothing-like-it", "kvplan solve vllm serve"])
def test_a_shell_is_told_no_errors(words: str) -> None:
    asked = {"_KVPLAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()))}
    command = [str(Path(sys.executable).with_name("kvplan"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **asked})
    assert done.stderr == ""
