"""Every `$ kvplan ...` block of README and docs is run, and what it prints is compared with what stands there.

`python tests/test_docs.py` writes the present output into the documents instead.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
_BLOCK = re.compile(r"(?ms)^```console\n(\$ kvplan .*?)^```$")
_COMMAND = re.compile(r"\$ (kvplan (?:[^\n]*\\\n)*[^\n]*)\n")


def run(command: str) -> str:
    """What a shell prints for `command`, standard output and error together, at 80 columns, without colours."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1", "HF_HUB_OFFLINE": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def blocks(document: Path) -> list[str]:
    return _BLOCK.findall(document.read_text(encoding="utf-8"))


def command_of(block: str) -> str:
    found = _COMMAND.match(block)
    assert found is not None, f"no command in {block[:60]!r}"
    return found[1]


CASES = [(document, block) for document in DOCUMENTS for block in blocks(document)]


@pytest.mark.parametrize(("document", "block"), CASES, ids=lambda part: getattr(part, "name", str(part)[:60]))
def test_block(document: Path, block: str) -> None:
    command = command_of(block)
    assert block == f"$ {command}\n{run(command)}"


def test_there_are_blocks_in_the_readme() -> None:
    assert blocks(ROOT / "README.md")


def test_local_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def refresh() -> None:
    """Write what every block's command prints now into its document."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        new = _BLOCK.sub(lambda found: f"```console\n$ {(c := command_of(found[1]))}\n{run(c)}```", text)
        if new != text:
            document.write_text(new, encoding="utf-8")
            print(f"refreshed {document.relative_to(ROOT)}")


if __name__ == "__main__":
    refresh()
