"""Engine files in unpacked wheels: the file a citation means, its lines' fingerprint, the same lines elsewhere."""

import ast
import hashlib
import re
from bisect import bisect_right
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple


class Found(NamedTuple):
    """Cited lines in a release: "same" text, "near" (changed, or the best guess), or "gone" without lines."""

    how: str
    lines: str


class Wheel:
    """One release's package folder: FOLDER/RELEASE/sglang or FOLDER/RELEASE/vllm, as unzipped from its wheel."""

    def __init__(self, folder: Path) -> None:
        self.roots = [root for root in (folder / "sglang" / "srt", folder / "sglang", folder / "vllm") if root.is_dir()]
        self._texts: dict[str, EngineFile | None] = {}

    def file(self, name: str) -> "EngineFile | None":
        """The file that a citation names, from the package's folder (SGLang: from srt) on; None where there is none."""
        if name not in self._texts:
            paths = [root / name for root in self.roots if (root / name).is_file()]
            self._texts[name] = EngineFile(paths[0].read_text(encoding="utf-8")) if paths else None
        return self._texts[name]

    @lru_cache  # noqa: B019 - a handful of wheels, for one run
    def named_like(self, name: str) -> tuple[str, ...]:
        """Files that end in a name: what a citation without its folder may have meant."""
        root = self.roots[0]
        return tuple(
            str(path.relative_to(root)) for path in root.rglob(Path(name).name) if str(path).endswith(f"/{name}")
        )


class EngineFile:
    """A file's lines, and what defines them."""

    def __init__(self, text: str) -> None:
        self.lines = [re.sub(r"\s+", " ", line).strip() for line in text.split("\n")]
        self._scopes: list[tuple[int, int, str]] | None = None
        self._text = text

    def shown(self, lines: str) -> list[str]:
        """The cited lines; none where they lie past the end of the file."""
        first, last = bounds(lines)
        return self.lines[first - 1 : last] if 1 <= first <= last <= len(self.lines) else []

    def fingerprint(self, lines: str) -> str:
        """Of the cited lines without their blanks: the same wherever they stand. Empty where there are none.

        A last line that only opens a bracket (`raise ValueError(`) says nothing: the next one counts with it.
        """
        shown = self.shown(lines)
        if shown and shown[-1].endswith(("(", "[", "{")):
            shown = shown + self.lines[bounds(lines)[1] : bounds(lines)[1] + 1]
        return fingerprint(shown)

    def within(self, lines: str) -> str:
        """The dotted name of the function or class that holds the first of the lines; empty at the module's level."""
        if self._scopes is None:
            self._scopes = sorted(scopes(ast.parse(self._text)))
        first, _ = bounds(lines)
        holding = [
            name
            for start, end, name in self._scopes[: bisect_right(self._scopes, (first, 1 << 30, ""))]
            if first <= end
        ]
        return holding[-1] if holding else ""


def scopes(tree: ast.AST, outer: str = "") -> list[tuple[int, int, str]]:
    """First line, last line and dotted name of every class and function."""
    found = []
    for node in ast.iter_child_nodes(tree):
        name = outer
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{outer}.{node.name}" if outer else node.name
            found.append((node.lineno, node.end_lineno or node.lineno, name))
        found += scopes(node, name)
    return found


def bounds(lines: str) -> tuple[int, int]:
    """First and last of "616-647", or of one line."""
    first, _, last = lines.partition("-")
    return int(first), int(last or first)


def fingerprint(lines: list[str]) -> str:
    """Sixteen hex digits of the lines that are not blank; empty without any."""
    words = [line for line in lines if line]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16] if words else ""


def spelt(first: int, last: int) -> str:
    """A range of lines as citations write it."""
    return f"{first}-{last}" if last > first else str(first)


@cache
def _blocks(old: EngineFile, new: EngineFile) -> list[tuple[int, int, int]]:
    matcher = SequenceMatcher(None, old.lines, new.lines, autojunk=False)
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


def refound(old: EngineFile, lines: str, new: EngineFile | None) -> Found:
    """Where a file's lines stand in another release of it."""
    if new is None:
        return Found("gone", "")
    first, last = bounds(lines)
    wanted = old.fingerprint(lines)
    kept = [
        (a + shift + 1, b + shift + 1)
        for a, b, size in _blocks(old, new)
        for shift in range(size)
        if first <= a + shift + 1 <= last and old.lines[a + shift]
    ]
    name = old.within(lines)
    height = last - first
    if kept:
        start = max(1, kept[0][1] - (kept[0][0] - first))
        guess = spelt(start, max(start, min(len(new.lines), kept[-1][1] + (last - kept[-1][0]))))
        if new.fingerprint(guess) == wanted:
            return Found("same", guess)
    alike = [
        spelt(start, start + height)
        for start in range(1, len(new.lines) - height + 1)
        if new.lines[start - 1] == old.lines[first - 1] and new.fingerprint(spelt(start, start + height)) == wanted
    ]
    alike = [place for place in alike if new.within(place) == name]
    if len(alike) == 1:
        return Found("same", alike[0])
    share = sum(1 for _ in kept) / max(1, sum(1 for line in old.shown(lines) if line))
    if kept and share >= 0.5 and new.within(guess).rpartition(".")[2] == name.rpartition(".")[2]:
        return Found("near", guess)
    return Found("gone", "")
