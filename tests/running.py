"""A command typed into this process: how it ended, and what it printed."""

import pytest

from glm_kvplan.cli import main


def ended(*words: str) -> int:
    """The exit status; what is printed stays where the test looks for it."""
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return int(left.value.code or 0)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit status, and what the command alone wrote to standard output and standard error."""
    capsys.readouterr()
    return ended(*words), *capsys.readouterr()
