"""What people type by guess: help in every spelling, commands that there are not, several cards, percentages."""

import pytest

from glm_kvplan.cli import main
from glm_kvplan.contexts import parse_contexts


def run(*words: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code


@pytest.mark.parametrize("words", [("-h",), ("help",), ("solve", "-h"), ("help", "solve")])
def test_help_in_every_spelling(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: kvplan solve" if "solve" in words else "Usage: kvplan COMMAND")


@pytest.mark.parametrize(
    ("word", "said"),
    [("plan", "kvplan solve"), ("fit", "--gpus"), ("init", "--save FILE"), ("compare", "diff"), ("solv", "solve")],
)
def test_commands_that_there_are_not(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(word) == 2
    assert said in capsys.readouterr().err


def test_several_cards_in_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("8xh200", "8 x H200", "8*h200"):
        assert run("solve", "--gpu", name) == 2
        assert "kvplan advise --gpus 8" in capsys.readouterr().err
    assert run("solve", "--gpu", "8xnothing") == 2
    assert "is not known" in capsys.readouterr().err


def test_shares_in_percent() -> None:
    assert parse_contexts("80%:8k,20%:128k") == parse_contexts("0.8:8k,0.2:128k")
    assert parse_contexts("33.3%:1k,66.7%:2k").weights == (667, 333)
