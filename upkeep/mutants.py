"""Draws random small mistakes in the package and sees whether the tests that are in charge notice.

    python upkeep/mutants.py resolve --count 40 --seed 1
    python upkeep/mutants.py --file glm_kvplan/engines/sglang/resolve/attention.py --line 237 --all

A mutant is one change of one expression: a comparison, a constant, a truth value, an operator, a call left out. The
tests of `PARTS` run in a fork of this process that has the mutant in place of the file, until the first failure; no
file is written. It prints the survivors by kind, and the score of each part. A survivor is a missing test, or no
mistake at all: docs/contributing/mutants.md says how to tell.
"""

import argparse
import ast
import importlib.machinery
import io
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SGLANG, VLLM = "glm_kvplan/engines/sglang", "glm_kvplan/engines/vllm"
HERE, THERE = "tests/engines/sglang", "tests/engines/vllm"
# What is changed, and which tests judge it: those that run in one process, quickest first.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "resolve": (
        (f"{SGLANG}/resolve",),
        tuple(
            f"{HERE}/test_{name}.py"
            for name in (
                "resolve_rules",
                "deployment",
                "start",
                "skipped_checks",
                "draft_model",
                "resolve",
                "launch_oracle",
            )
        ),
    ),
    "vllm": (
        (VLLM,),
        tuple(
            f"{THERE}/test_vllm_{name}.py"
            for name in ("flags", "memory", "log", "requests", "solve", "refusals", "plans", "public", "random")
        ),
    ),
    "launch": (
        ("glm_kvplan/launch", f"{SGLANG}/launch_command.py"),
        (
            *(
                f"tests/launch/test_{name}.py"
                for name in ("shell", "command", "command_rules", "launch_file", "branches")
            ),
            f"{HERE}/test_log_launch.py",
        ),
    ),
    "boot_log": (
        (f"{SGLANG}/boot_log",),
        tuple(
            f"{HERE}/test_{name}.py"
            for name in (
                "easily_missed",
                "likely_card",
                "log_launch",
                "bootlog",
                "reconcile",
                "reconcile_layouts",
                "bootlog_files",
            )
        ),
    ),
    "answers": (
        ("glm_kvplan/answers", f"{SGLANG}/answers", f"{SGLANG}/checks", f"{SGLANG}/sizing/remedies.py"),
        (
            *(f"tests/answers/test_{name}.py" for name in ("check", "check_file", "diff", "sweep_axes", "sweep")),
            *(f"{HERE}/test_{name}.py" for name in ("remedies", "needs")),
        ),
    ),
    "formats": (
        ("glm_kvplan/engines/weight_format.py",),
        (f"{HERE}/test_easily_missed.py", f"{HERE}/test_weight_format.py"),
    ),
}
PRELOADED = ("_pytest.assertion.rewrite", "hypothesis", "pydantic", "rich.console", "yaml", "typer", "numpy")

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_COUNTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
}


class Mutant(NamedTuple):
    """One change of a file."""

    path: Path
    line: int
    kind: str
    old: str
    new: str
    start: int  # bytes of the file's text that `new` stands for
    end: int

    @property
    def shown(self) -> str:
        """Where and what, on one line."""
        place = f"{self.path.relative_to(ROOT)}:{self.line}"
        return f"{place}: {self.kind}: {' '.join(self.old.split())[:80]} -> {' '.join(self.new.split())[:80]}"


class _Finder(ast.NodeVisitor):
    """The changes that a file offers."""

    def __init__(self, path: Path) -> None:
        self.path, self.raw = path, path.read_bytes()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _text(self, node: Any) -> str:
        return self.raw[
            self._at(node.lineno, node.col_offset) : self._at(node.end_lineno, node.end_col_offset)
        ].decode()

    def _add(self, node: Any, kind: str, new: str, start: int | None = None, end: int | None = None) -> None:
        first = self._at(node.lineno, node.col_offset) if start is None else start
        last = self._at(node.end_lineno, node.end_col_offset) if end is None else end
        old = self.raw[first:last].decode()
        if old != new:
            self.found.append(Mutant(self.path, node.lineno, kind, old, new, first, last))

    def _between(self, left: Any, right: Any, old: str, new: str, kind: str, node: Any) -> None:
        start, end = self._at(left.end_lineno, left.end_col_offset), self._at(right.lineno, right.col_offset)
        at = self.raw[start:end].decode().find(old)
        if at >= 0:
            self._add(node, kind, new, start + at, start + at + len(old))

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            self._between(left, right, *_COMPARED[type(operator)], "comparison", node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        words = isinstance(node.left, ast.Constant | ast.JoinedStr) and not isinstance(
            getattr(node.left, "value", ""), int | float
        )
        if type(node.op) in _COUNTED and not words:
            self._between(node.left, node.right, *_COUNTED[type(node.op)], "arithmetic", node)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, old, new, "boolean", node)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, "boolean", self._text(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, "constant", str(not node.value))
        elif isinstance(node.value, int | float):
            self._add(node, "constant", repr(node.value + 1 if isinstance(node.value, int) else node.value * 1.03))
        elif isinstance(node.value, str) and node.value and " " not in node.value and ".py:" not in node.value:
            self._add(node, "constant", repr(node.value + "x"))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words of messages are not changed."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(node, "dropped call", "None")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "dropped raise", "pass")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
            self.visit(default)
        for child in node.body:
            self.visit(child)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not isinstance(node.slice, ast.Constant):
            self.visit(node.slice)


def mutants_of(path: Path) -> list[Mutant]:
    """Every change that a file offers, in its order."""
    finder = _Finder(path)
    finder.visit(ast.parse(finder.raw))
    return finder.found


def _in_place(mutant: Mutant | None) -> None:
    """Let the import of the mutant's file give the mutant."""
    if mutant is None:
        return
    raw = mutant.path.read_bytes()
    text = raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :]
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if Path(self.path) == mutant.path:
            return compile(text, self.path, "exec")
        return usual(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def judged(mutant: Mutant | None, tests: tuple[str, ...], seconds: int, conftest: str = "") -> str:
    """ "killed", "survived" or "endless", by the tests in a fork; "broken" where it is no Python."""
    child = os.fork()
    if child:
        return {0: "survived", 1: "killed", 3: "broken"}.get(
            os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "endless"
        )
    code = 3
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        _in_place(mutant)
        import pytest

        with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
            status = pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *tests])
        code = 0 if status == 0 else 1
        if mutant is None and code:
            os.write(2, out.getvalue()[-3000:].encode())
    except SyntaxError:
        code = 3
    except BaseException:
        code = 1
    os._exit(code)


def drawn(part: str, count: int, seed: int) -> Iterator[Mutant]:
    """Mutants of a part at random; the same for the same seed."""
    files = [file for place in PARTS[part][0] for file in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]]
    offered = [mutant for file in files for mutant in mutants_of(file)]
    yield from random.Random(seed).sample(offered, min(count, len(offered)))


def main() -> int:
    """Exit code 0; the score is what is printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all without any")
    parser.add_argument("--count", type=int, default=40, help="mutants a part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120, help="of CPU for one mutant's tests")
    parser.add_argument("--file", type=Path, help="mutants of this file only")
    parser.add_argument("--line", type=int, help="with --file: of this line only")
    parser.add_argument("--tests", nargs="*", help="these tests judge")
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT)]
    sys.dont_write_bytecode = True
    for name in PRELOADED:
        try:
            __import__(name)
        except ImportError:
            continue
    score: dict[str, Counter[str]] = {}
    survivors: list[Mutant] = []
    for part in asked.parts or PARTS:
        tests = tuple(asked.tests or PARTS[part][1])
        chosen = drawn(part, asked.count, asked.seed)
        if asked.file is not None:
            chosen = (m for m in mutants_of(asked.file.resolve()) if asked.line in (None, m.line))
        began = time.monotonic()
        if judged(None, tests, asked.seconds * 4) != "survived":
            print(f"{part}: its tests fail without any mutant", file=sys.stderr)
            return 1
        print(f"{part}: the tests take {time.monotonic() - began:.0f} s", flush=True)
        score[part] = Counter()
        for mutant in chosen:
            verdict = judged(mutant, tests, asked.seconds)
            score[part][verdict] += 1
            print(f"  {verdict:8} {mutant.shown}", flush=True)
            survivors += [mutant] if verdict == "survived" else []
    for part, counts in score.items():
        total = sum(counts.values()) - counts["broken"]
        print(f"{part}: {total - counts['survived']} of {total} noticed")
    for kind, number in Counter(mutant.kind for mutant in survivors).most_common():
        print(f"survivors, {kind}: {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
