"""A command typed into this process: how it ended, and what it printed."""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

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


def kvplan(
    *words: str, stdin: str = "", folder: Path | None = None, together: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What a process of its own would come to, in that folder and with these variables beside the test's.

    `together`: errors are written to standard output.
    """
    written = (io.BytesIO(), io.BytesIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(written[0], encoding="utf-8"))
        patch.setattr(sys, "stderr", io.TextIOWrapper(written[not together], encoding="utf-8", line_buffering=True))
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(tempfile, "tempdir", None)
        patch.chdir(folder or Path.cwd())
        code = ended(*words)
        sys.stdout.flush()
        return subprocess.CompletedProcess(words, code, *(stream.getvalue().decode() for stream in written))
