"""README and docs, executed: what a command prints is compared with what stands there.

Every ```console block is run, command by command: a line that starts with `$ ` is one, and a backslash continues it.
Every ```pycon block is run as a doctest. A command whose output differs from run to run stands under
`<!-- output varies -->`: it must run, and is not compared. `python tests/project/test_docs.py [DOCUMENT...]` writes the
present output into the documents.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]  # not from paths: this file is a script, too
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
ALLOWED = ("kvplan", "python", "cat", "sed")
_BLOCK = re.compile(r"(?ms)^(<!-- output varies -->\n+)?```console\n(.*?)^```$")
_STEP = re.compile(r"(?m)^\$ ((?:[^\n]*\\\n)*[^\n]*)\n((?:(?!\$ ).*\n)*)")
_PYTHON = re.compile(r"(?ms)^```pycon\n(.*?)^```$")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]+)?\)")


class Step(NamedTuple):
    """One command of a document and what stands under it."""

    document: Path
    command: str
    output: str
    compared: bool


SHELL = re.compile(r"[|&;<>()$`*?~#!]")  # a command with one of these needs a shell of its own
ENVIRONMENT = {"COLUMNS": "80", "LINES": "24", "NO_COLOR": "1", "PYTHONUTF8": "1", "HF_HUB_OFFLINE": "1"}


@cache  # a command that several documents show
def run(command: str) -> str:
    """What a shell prints for `command`, standard output and error together, at 80 columns, without colours."""
    first, bar, rest = command.replace("\\\n", " ").partition("|")
    if first.startswith("kvplan ") and not SHELL.search(first):
        from running import kvplan

        done = kvplan(*shlex.split(first)[1:], folder=ROOT, together=not bar, **ENVIRONMENT)
        printed = done.stderr + run_in_shell(rest, done.stdout) if bar else done.stdout
    else:
        printed = run_in_shell(command)
    assert "Traceback (most recent call last)" not in printed, f"$ {command}\n{printed}"
    return "".join(line.rstrip() + "\n" for line in printed.splitlines())


def run_in_shell(command: str, standard_input: str = "") -> str:
    environment = {**os.environ, **ENVIRONMENT}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        input=standard_input,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def steps(document: Path) -> Iterator[Step]:
    for varies, block in _BLOCK.findall(document.read_text(encoding="utf-8")):
        assert block.startswith("$ "), f"{document.name}: a console block starts with a command: {block[:60]!r}"
        for command, output in _STEP.findall(block):
            assert command.startswith(ALLOWED), f"{document.name}: {command[:60]!r} is none of {', '.join(ALLOWED)}"
            yield Step(document, command, output, not varies)


STEPS = [step for document in DOCUMENTS for step in steps(document)]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.document.stem}-{step.command[:50]}")
def test_command(step: Step) -> None:
    printed = run(step.command)
    if step.compared:
        assert step.output == printed
    else:
        assert printed


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if "```pycon" in d.read_text(encoding="utf-8")], ids=str)
def test_python(document: Path) -> None:
    for number, code in enumerate(_PYTHON.findall(document.read_text(encoding="utf-8"))):
        test = doctest.DocTestParser().get_doctest(code, {}, f"{document.name}[{number}]", str(document), 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        told: list[str] = []
        assert runner.run(test, out=told.append).failed == 0, "".join(told)


def test_the_readmes_show_real_output() -> None:
    for name in ("README.md", "README.zh.md"):
        assert len([step for step in STEPS if step.document == ROOT / name and step.compared]) >= 3


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_install_line_runs_the_command_shown_under_it(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    line = re.search(r"(?m)^pip install \. && (kvplan .+)$", text)
    shown = next(step.command for step in STEPS if step.document == ROOT / name)
    assert line is not None and line[1].split() == shown.replace("\\\n", " ").split()
    assert re.search(r"(?m)^python3 -m venv \.venv && \. \.venv/bin/activate$", text)  # where pip is the system's
    assert re.search(r"(?m)^pip install -c constraints\.txt '\.\[test\]' && pytest$", text)


def anchors(document: Path) -> set[str]:
    """The anchors that a Markdown reader makes of the headings."""
    text = re.sub(r"(?ms)^```.*?^```$", "", document.read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#+ +(.+?) *$", text)
    return {"#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", document.read_text(encoding="utf-8"))
    for target, anchor in _LINK.findall(text):
        found = document.parent / target if target else document
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{target}{anchor}"


def test_the_map_names_every_document() -> None:
    index = ROOT / "docs" / "index.md"
    named = {(index.parent / target).resolve() for target, _ in _LINK.findall(index.read_text(encoding="utf-8"))}
    for document in (ROOT / "docs").rglob("*.md"):
        assert document == index or document.resolve() in named, document.relative_to(ROOT)


def test_every_file_names_the_same_version() -> None:
    from glm_kvplan import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[1] == __version__  # type: ignore[index]


def refresh(documents: list[Path]) -> None:
    """Write what every command prints now into its document."""
    compared = [step.command for document in documents for step in steps(document) if step.compared]
    printed = {command: run(command) for command in compared}

    def step_text(found: re.Match[str]) -> str:
        return f"$ {found[1]}\n{printed.get(found[1], found[2])}"

    def block_text(found: re.Match[str]) -> str:
        body = found[2] if found[1] else _STEP.sub(step_text, found[2])
        return f"{found[1] or ''}```console\n{body}```"

    for document in documents:
        text = document.read_text(encoding="utf-8")
        new = _BLOCK.sub(block_text, text)
        if new != text:
            document.write_text(new, encoding="utf-8")
            print(f"refreshed {document.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    refresh([Path(name).resolve() for name in sys.argv[1:]] or DOCUMENTS)
