"""The small mistakes that a file offers: one expression changed, by the file's syntax tree."""

import ast
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

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
    function: int  # the first line of the function that holds it, 0 outside of one: what only an import runs

    @property
    def text(self) -> str:
        """The file with the mistake in it, each line where it was."""
        raw = self.path.read_bytes()
        lines = self.old.count("\n") - self.new.count("\n")
        return (raw[: self.start] + self.new.encode() + b"\n" * lines + raw[self.end :]).decode()

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
        self.function = 0

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
            self.found.append(Mutant(self.path, node.lineno, kind, old, new, first, last, self.function))

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

    def visit_keyword(self, node: ast.keyword) -> None:
        """`zip(strict=True)` asserts what is so; without it the answer is the same."""
        if node.arg != "strict":
            self.generic_visit(node)

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
        outer = self.function
        self.function = outer or min([node.lineno, *(one.lineno for one in node.decorator_list)])
        for child in node.body:
            self.visit(child)
        self.function = outer

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not isinstance(node.slice, ast.Constant):
            self.visit(node.slice)


def mutants_of(path: Path) -> list[Mutant]:
    """Every change that a file offers, in its order."""
    finder = _Finder(path)
    finder.visit(ast.parse(finder.raw))
    return finder.found


def drawn(places: Sequence[str], without: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Mutants of these files and folders, but not of `without`, at random; the same for the same seed."""
    files = [file for place in places for file in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]]
    files = [file for file in files if str(file.relative_to(ROOT)) not in without]
    offered = [mutant for file in files for mutant in mutants_of(file)]
    return random.Random(seed).sample(offered, min(count, len(offered)))
