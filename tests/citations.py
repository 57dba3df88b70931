"""Where the package and its documents say `file:line at release` of an engine; no engine is needed to find it.

A citation is a file of the engine, its lines, and the release: `mem_cache/memory_pool.py:616-647 at 0.5.23`. Several
may share a release (`a.py:1-2, 5 and b.py:7 at 0.5.23`), and one file may be cited at two (`a.py:1 at 0.5.20, :3 at
0.5.23`). In a release's own profile the release is the file's.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from paths import DATA, ROOT

STORED = DATA / "citations.jsonl"
REWRITE = "python upkeep/refind_citations.py --sglang FOLDER --vllm FOLDER"

# Cited at an older release although a newer one has the text, or nearly: it is the older one's rule.
ON_PURPOSE = {
    "layers/attention/dsa/dsa_indexer_kpool.py:881-945 at 0.5.20",  # newer releases bound it
    "mem_cache/kv_cache_configurator.py:1113-1121 at 0.5.20",  # newer releases know the model's KDA layers
    "arg_groups/speculative_hook.py:565-568 at 0.5.20",  # newer releases take a PD prefill server
    "mem_cache/pool_host/mamba.py:55-58 at 0.5.20",  # newer releases never hand this layout to the state pool
}
_RANGE = r"\d+(?:-\d+)?"
_LINES = rf"{_RANGE}(?:,\s+{_RANGE}(?![\w.-]))*"
_TOKEN = re.compile(
    rf"(?<![\w/.*-])(?P<file>(?:\w+/)*\w+\.py)(?::(?P<lines>{_LINES}))?(?![\w:])"
    rf"|(?<=[\s(]):(?P<more>{_LINES})(?![\w:])"
    r"|\bat\s+(?P<release>0\.\d+\.\d+)(?!\.?\d)"
)
# Between a citation and the release it shares with the next: other citations, and what joins them in text and strings.
_JOINT = re.compile(r"""(?:[\s,;"'()#`]|\band\b)*\Z""")


class Citation(NamedTuple):
    """One range of lines (or a whole file) that a source names; `at` is where the lines stand in the source's text."""

    source: Path
    line: int
    file: str
    lines: str  # "616-647", "1188", or empty for the whole file
    release: str  # empty where none can be told
    at: tuple[int, int]
    said: tuple[int, int] | None = None  # where its release stands in the text, which several may share

    @property
    def key(self) -> str:
        """As a reader would look it up."""
        return f"{self.file}:{self.lines} at {self.release}" if self.lines else f"{self.file} at {self.release}"

    @property
    def place(self) -> str:
        """Where it is said."""
        return f"{self.source.relative_to(ROOT)}:{self.line}"


def sources() -> list[Path]:
    """The files whose citations are held: the package's and the documents'."""
    package, docs = ROOT / "glm_kvplan", ROOT / "docs"
    described = docs / "contributing" / "citations.md"  # its examples are nobody's lines
    texts = {*docs.rglob("*.md"), *ROOT.glob("README*.md")}
    return sorted({*package.rglob("*.py"), *package.rglob("*.toml"), *texts} - {described})


def citations(source: Path, text: str | None = None) -> Iterator[Citation]:
    """Every citation of a file, in its order. A file named without lines counts only where a release follows."""
    text = source.read_text(encoding="utf-8") if text is None else text
    own = source.stem if source.parent.name == "profiles" else ""
    waiting: list[Citation] = []
    file, end = "", 0
    for token in _TOKEN.finditer(text):
        if waiting and not _JOINT.match(text[end : token.start()]):
            yield from (citation for citation in waiting if citation.lines)
            waiting = []
        end = token.end()
        if token["release"]:
            yield from (citation._replace(release=token["release"], said=token.span("release")) for citation in waiting)
            waiting = []
            continue
        file = token["file"] or file
        group = "lines" if token["lines"] else "more" if token["more"] else "file"
        row = text.count("\n", 0, token.start()) + 1
        if group == "file":
            waiting.append(Citation(source, row, file, "", own, token.span("file")))
        else:
            start = token.start(group)
            for part in re.finditer(_RANGE, token[group]):
                span = (start + part.start(), start + part.end())
                waiting.append(Citation(source, row, file, part[0], own, span))
    yield from (citation for citation in waiting if citation.lines)


def all_citations() -> Iterator[Citation]:
    """Every citation of the package and the documents."""
    for source in sources():
        yield from citations(source)


def engine_of(release: str) -> str:
    """The engine that a release is of: SGLang counts 0.5, vLLM 0.30 and up."""
    return "sglang" if release.startswith("0.5.") else "vllm"
