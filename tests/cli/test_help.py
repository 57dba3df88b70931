"""`--help` and shell completion as a user meets them."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import running

from glm_kvplan.cli import COMMANDS, PANELS
from glm_kvplan.engines.sglang.flags import FLAGS

KVPLAN = str(Path(sys.executable).with_name("kvplan"))


def kvplan(*words: str, **environment: str) -> str:
    done = running.kvplan(*words, COLUMNS="80", NO_COLOR="1", **environment)
    assert done.returncode == 0
    return done.stdout


@cache
def helps() -> dict[str, str]:
    return {name: kvplan(name, "--help") for name in COMMANDS}


def test_the_first_help_lists_every_command_on_one_line() -> None:
    text = kvplan("--help")
    assert max(len(line) for line in text.splitlines()) <= 80
    for panel, commands in PANELS.items():
        assert f"\n{panel}:\n" in text
        for name, short in commands.items():
            assert len(short) <= 64
            assert re.search(rf"(?m)^  {name} +{re.escape(short)}$", text)


def test_without_words_help_is_shown() -> None:
    assert kvplan() == kvplan("--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_reads_at_80_columns(name: str) -> None:
    text = helps()[name]
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    assert text.startswith(f"Usage: kvplan {name} ")
    example = text.partition("\nExample:\n")[2].partition("\n\n")[0]
    assert f"kvplan {name}" in example


@pytest.mark.parametrize("name", ["estimate", "solve", "advise", "sweep", "report", "resolve"])
def test_every_engine_flag_is_named_in_its_group(name: str) -> None:
    text = helps()[name]
    for flag in FLAGS:
        group = text.partition(f"\n{flag.group}:\n" if name == "resolve" else f"\n  {flag.group}\n")[2]
        assert re.search(rf"(?<!\S){flag.options[0]}(?![\w-])", group), flag.name


def test_resolve_explains_every_engine_flag() -> None:
    words = " ".join(helps()["resolve"].split())
    for flag in FLAGS:
        shown = f"{flag.help[0].upper()}{flag.help[1:]}."
        assert " ".join(shown.split()) in words, flag.name


@pytest.mark.parametrize("name", ["solve", "sweep"])
def test_an_examples_command_can_be_pasted(name: str) -> None:
    lines = helps()[name].partition("\nExample:\n")[2].partition("\n\n")[0]
    done = subprocess.run(
        ["bash", "-c", lines.replace("kvplan", KVPLAN, 1)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout


def completed(words: str, position: int) -> list[str]:
    return kvplan(COMP_WORDS=words, COMP_CWORD=str(position), _KVPLAN_COMPLETE="complete_bash").split()


def test_completion_of_a_command() -> None:
    assert completed("kvplan est", 1) == ["estimate"]
    assert completed("kvplan ", 1) == list(COMMANDS)


def test_completion_of_an_option() -> None:
    assert completed("kvplan estimate --tp-", 2) == ["--tp-size"]
    assert set(completed("kvplan solve --speculative-num-", 2)) == {
        "--speculative-num-steps",
        "--speculative-num-draft-tokens",
    }


def test_completion_of_a_value() -> None:
    assert completed("kvplan solve --gpu b2", 3) == ["b200"]
    assert "0.5.21" in completed("kvplan solve --engine ", 3)
    assert "where" in completed("kvplan explain ", 2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script(shell: str) -> None:
    assert "_KVPLAN_COMPLETE=complete_" in kvplan(_KVPLAN_COMPLETE=f"source_{shell}")
