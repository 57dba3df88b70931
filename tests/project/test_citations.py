"""Every `file:line at release` of the package and the documents is one that was held against the engine's own files.

The files themselves are not needed: `upkeep/refind_citations.py` looked, and tests/data/citations.jsonl holds what it
saw. A citation that is new or was changed by hand fails here until the script has seen it.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from citations import ON_PURPOSE, REWRITE, STORED, Citation, all_citations, citations, engine_of
from paths import ROOT

from glm_kvplan.engines.sglang import profile as sglang
from glm_kvplan.engines.vllm import profile as vllm

NEWEST = {"sglang": sglang.releases()[-1], "vllm": vllm.releases()[-1]}
OPEN = "not in this release"


@cache
def cited() -> tuple[Citation, ...]:
    return tuple(all_citations())


@cache
def stored() -> dict[str, dict[str, Any]]:
    rows = (json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines())
    return {row["cites"]: row for row in rows}


def test_every_citation_names_its_release() -> None:
    bare = [f"{citation.place}: {citation.key.removesuffix(' at ')}" for citation in cited() if not citation.release]
    assert not bare, f"write `at RELEASE` behind: {', '.join(bare)}"


def test_every_citation_was_seen_in_the_engine_s_files() -> None:
    unseen = [f"{citation.place}: {citation.key}" for citation in cited() if citation.key not in stored()]
    assert not unseen, f"not among {STORED.name}; run {REWRITE}: {', '.join(unseen)}"


def test_nothing_is_stored_that_nobody_cites() -> None:
    assert not set(stored()) - {citation.key for citation in cited()}, f"run {REWRITE}"


def test_every_citation_has_a_fingerprint_and_its_place_in_every_other_release() -> None:
    releases = {"sglang": set(sglang.releases()), "vllm": set(vllm.releases())}
    for key, row in stored().items():
        release = key.rpartition(" at ")[2]
        assert set(row["elsewhere"]) | {release} == releases[engine_of(release)], key
        assert re.fullmatch(r"[0-9a-f]{16}", row["fingerprint"]) or ":" not in key, key
        assert all(re.fullmatch(r"(same|near) [\d-]+|gone|same", found) for found in row["elsewhere"].values()), key


def test_the_newest_release_that_says_it_is_the_one_cited() -> None:
    """Where the newest has the very same lines; profiles speak of their own release."""
    for citation in cited():
        newest = NEWEST[engine_of(citation.release)]
        if citation.said is not None and citation.release != newest and citation.key not in ON_PURPOSE:
            found = stored()[citation.key]["elsewhere"][newest]
            assert not found.startswith("same"), (
                f"{citation.place}: {citation.key} is {found} at {newest}: run with --newest"
            )


@pytest.mark.parametrize("release", sglang.releases())
def test_every_field_of_a_profile_says_where(release: str) -> None:
    text = (sglang.PROFILES / f"{release}.toml").read_text(encoding="utf-8")
    for line in text.splitlines():
        if re.match(r"(?!release|absent_checks)\w+ =", line):
            assert re.search(rf"  # (\S+\.py:[\d-]+|{OPEN})$", line), line


def in_text(text: str) -> list[str]:
    return [citation.key for citation in citations(ROOT / "docs" / "x.md", text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Source: a/b.py:1-2 at 0.5.23.", ["a/b.py:1-2 at 0.5.23"]),
        ("(a.py:1, 5-6 and b.py:7 at 0.5.23)", ["a.py:1 at 0.5.23", "a.py:5-6 at 0.5.23", "b.py:7 at 0.5.23"]),
        ('"a.py:1, "\n    "b.py:2 at 0.33.0"', ["a.py:1 at 0.33.0", "b.py:2 at 0.33.0"]),
        ("a.py:1 at 0.5.20, :3 at 0.5.23", ["a.py:1 at 0.5.20", "a.py:3 at 0.5.23"]),
        ("a.py, b.py:2 at 0.5.23", ["a.py at 0.5.23", "b.py:2 at 0.5.23"]),
        ("a.py:1 says so, as b.py:2 at 0.5.23", ["a.py:1 at ", "b.py:2 at 0.5.23"]),
        ("our own planner.py says nothing at 0.5.23", []),
        ("at 0.5.23 a.py:1\n  at 0.5.22", ["a.py:1 at 0.5.22"]),
        ("run `tests/*.py` at 12:30, a.py::test", []),
    ],
)
def test_a_citation_is_read_as_it_is_written(text: str, found: list[str]) -> None:
    assert in_text(text) == found


# -- the script's own search, on files made up here --------------------------------------------------------------------

OLD = """\
class Pool:
    def room(self, slots):
        if slots < 0:
            raise ValueError(
                "no slots"
            )
        return slots * 2

    def rest(self):
        return None
"""


@pytest.fixture
def files() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "upkeep"))
    import engine_files

    yield engine_files
    sys.path.remove(str(ROOT / "upkeep"))


@pytest.mark.parametrize(
    ("new", "lines", "how"),
    [
        (OLD, "2-7", "same 2-7"),
        ("import os\n\n\n" + OLD, "2-7", "same 5-10"),
        ("import os\n" + OLD.replace("slots * 2", "slots * 3"), "2-7", "near 3-8"),
        (OLD.replace("no slots", "none left"), "4", "near 4"),  # the line opens a bracket: what it holds counts
        (OLD.replace("        return None\n", "        return slots\n"), "10", "gone"),
        ("x = 1\n", "2-7", "gone"),
    ],
)
def test_lines_are_found_again_where_they_went(files: Any, new: str, lines: str, how: str) -> None:
    assert " ".join(files.refound(files.EngineFile(OLD), lines, files.EngineFile(new))).strip() == how


def test_a_wheel_says_which_file_a_short_name_means(files: Any, tmp_path: Path) -> None:
    (tmp_path / "sglang" / "srt" / "cache").mkdir(parents=True)
    (tmp_path / "sglang" / "srt" / "cache" / "pool.py").write_text(OLD)
    wheel = files.Wheel(tmp_path)
    assert wheel.file("pool.py") is None
    assert wheel.named_like("pool.py") == ("cache/pool.py",)
    assert wheel.file("cache/pool.py").within("7") == "Pool.room"
    assert wheel.file("cache/pool.py").fingerprint("900") == ""
