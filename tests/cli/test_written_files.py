"""SECURITY.md says what is written and where: nothing in the home folder, nothing beside the file that is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytest.importorskip("matplotlib")


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_report_writes_its_file_and_nothing_else(tmp_path: Path) -> None:
    home, work, temporary = tmp_path / "home", tmp_path / "work", tmp_path / "tmp"
    for folder in (home, work, temporary):
        folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MPL", "XDG_"))}
    env = {**kept, "PYTHONPATH": str(ROOT), "HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["report", "-o", "plan.svg", "--tp-size", "8", "--context", "8k", "--concurrency", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "glm_kvplan", *words],
        cwd=work, env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr
    assert files_in(work) == ["plan.svg"]
    assert files_in(home) == [] and files_in(temporary) == []
