"""Holds every `file:line at release` against the unpacked wheels, moves numbers and releases, stores fingerprints.

    python upkeep/refind_citations.py --sglang FOLDER --vllm FOLDER            # check, store what is new
    python upkeep/refind_citations.py --sglang FOLDER --vllm FOLDER --newest   # cite the newest that says the same

A folder holds one folder a release with the wheel's files (`unzip -d FOLDER/0.5.23 sglang-0.5.23-*.whl '*.py'`), all
releases that are cited. `KVPLAN_SGLANG_WHEELS` and `KVPLAN_VLLM_WHEELS` stand for the options. With --newest, lines
whose text changed on the way are listed with the place where they are likely to be, and left alone; read them, and run
again with --changed to take them. `tests/data/citations.jsonl` holds the result: no line of the engines, only
fingerprints. The documents' executed blocks are written anew by tests/project/test_docs.py.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "upkeep")]

from citations import ON_PURPOSE, STORED, Citation, all_citations, engine_of  # noqa: E402
from engine_files import Found, Wheel, bounds, refound, spelt  # noqa: E402


class Wheels:
    """The wheels at hand, by engine and release."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.of = {
            engine: {path.name: Wheel(path) for path in sorted(folder.iterdir(), key=_version) if _is_release(path)}
            for engine, folder in folders.items()
        }

    def newest(self, release: str) -> str:
        """The newest release of the same engine."""
        return list(self.of[engine_of(release)])[-1]

    def problem(self, citation: Citation) -> str:
        """Why a citation cannot be followed; empty where it can."""
        if not citation.release:
            return "names no release"
        wheel = self.of[engine_of(citation.release)].get(citation.release)
        if wheel is None:
            return f"{citation.release} is not among the wheels"
        file = wheel.file(citation.file)
        if file is None:
            meant = " or ".join(wheel.named_like(citation.file))
            return f"no such file{f'; {meant} is meant' if meant else ''}"
        if citation.lines and not file.fingerprint(citation.lines):
            return f"the file has {len(file.lines)} lines"
        return ""

    def elsewhere(self, citation: Citation, release: str) -> Found:
        """The cited lines in another release."""
        wheels = self.of[engine_of(release)]
        old, new = wheels[citation.release].file(citation.file), wheels[release].file(citation.file)
        assert old is not None
        if not citation.lines:
            return Found("gone" if new is None else "same", "")
        return refound(old, citation.lines, new)

    def record(self, citation: Citation) -> dict[str, object]:
        """What is stored of a citation."""
        wheels = self.of[engine_of(citation.release)]
        file = wheels[citation.release].file(citation.file)
        assert file is not None
        return {
            "cites": citation.key,
            "within": file.within(citation.lines) if citation.lines else "",
            "fingerprint": file.fingerprint(citation.lines) if citation.lines else "",
            "elsewhere": {
                release: " ".join(self.elsewhere(citation, release)).strip()
                for release in wheels
                if release != citation.release
            },
        }

    def moved(self, citation: Citation, fingerprint: str) -> str:
        """The lines of the stored fingerprint in the cited release, where they are no longer those of the numbers."""
        file = self.of[engine_of(citation.release)][citation.release].file(citation.file)
        assert file is not None
        first, last = bounds(citation.lines)
        height = last - first
        starts = sorted(range(1, len(file.lines) - height + 1), key=lambda start: abs(start - first))
        places = (spelt(start, start + height) for start in starts)
        return next((place for place in places if file.fingerprint(place) == fingerprint), "")


class Edit(NamedTuple):
    """Text of a source to be replaced."""

    at: tuple[int, int]
    text: str


def _version(path: Path) -> list[int]:
    return [int(part) for part in path.name.split(".")] if _is_release(path) else []


def _is_release(path: Path) -> bool:
    return path.is_dir() and all(part.isdigit() for part in path.name.split("."))


def renewed(wheels: Wheels, shared: list[Citation], changed: bool) -> tuple[list[Edit], list[str]]:
    """The edits that bring citations of one release to the newest that says the same, all or none; and what hinders."""
    newest = wheels.newest(shared[0].release)
    if shared[0].said is None or shared[0].release == newest or any(citation.key in ON_PURPOSE for citation in shared):
        return [], []
    edits, hindered = [Edit(shared[0].said, newest)], []
    for citation in shared:
        found = wheels.elsewhere(citation, newest)
        if found.how == "gone" or (found.how == "near" and not changed):
            guess = f"; at {newest} they are likely {found.lines}" if found.lines else f"; not found at {newest}"
            hindered.append(f"{citation.place}: {citation.key}: the lines changed{guess}")
        elif citation.lines:
            edits.append(Edit(citation.at, found.lines))
    return ([], hindered) if hindered else (edits, [])


def write(edits: dict[Path, list[Edit]]) -> None:
    """Write the edits, last first, so that places hold."""
    for source, rows in edits.items():
        text = source.read_text(encoding="utf-8")
        for edit in sorted(set(rows), reverse=True):
            text = text[: edit.at[0]] + edit.text + text[edit.at[1] :]
        source.write_text(text, encoding="utf-8")


def store(wheels: Wheels, cited: Iterable[Citation], before: dict[str, dict[str, Any]]) -> int:
    """Write the fingerprints of all citations; how many there are. What is stored and holds stays."""
    once = {citation.key: citation for citation in cited}
    rows = []
    for key in sorted(once):
        row, others = before.get(key), set(wheels.of[engine_of(once[key].release)]) - {once[key].release}
        known = row is not None and set(row["elsewhere"]) == others
        rows.append(json.dumps(row if known else wheels.record(once[key])))
    STORED.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return len(rows)


def stored() -> dict[str, dict[str, Any]]:
    """What is stored, by citation."""
    if not STORED.exists():
        return {}
    rows = (json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines())
    return {row["cites"]: row for row in rows}


def main() -> int:
    """Exit code 1 where a citation cannot be followed; nothing is stored then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sglang", type=Path, default=os.environ.get("KVPLAN_SGLANG_WHEELS"))
    parser.add_argument("--vllm", type=Path, default=os.environ.get("KVPLAN_VLLM_WHEELS"))
    parser.add_argument("--newest", action="store_true", help="cite the newest release that says the same")
    parser.add_argument("--changed", action="store_true", help="with --newest: also where the text changed a little")
    asked = parser.parse_args()
    if asked.sglang is None or asked.vllm is None:
        parser.error("name the folders of unpacked wheels with --sglang and --vllm")
    wheels = Wheels({"sglang": Path(asked.sglang), "vllm": Path(asked.vllm)})

    before, edits, said = stored(), defaultdict[Path, list[Edit]](list), 0
    groups: dict[object, list[Citation]] = defaultdict(list)
    for citation in all_citations():
        problem = wheels.problem(citation)
        if problem:
            print(f"{citation.place}: {citation.key.removesuffix(' at ')}: {problem}")
            said += 1
            continue
        fingerprint = before[citation.key]["fingerprint"] if citation.key in before else ""
        file = wheels.of[engine_of(citation.release)][citation.release].file(citation.file)
        if fingerprint and file is not None and file.fingerprint(citation.lines) != fingerprint:
            place = wheels.moved(citation, fingerprint)
            print(f"{citation.place}: {citation.key}: the lines {f'are at {place}' if place else 'are gone: read it'}")
            edits[citation.source] += [Edit(citation.at, place)] if place else []
            said += not place
            continue
        groups[(citation.source, citation.said or citation.at)].append(citation)
    if asked.newest:
        for shared in groups.values():
            rows, hindered = renewed(wheels, shared, asked.changed)
            edits[shared[0].source] += rows
            for line in hindered:
                print(line)
    write(edits)
    if said:
        print(f"{said} citations cannot be followed: nothing stored")
        return 1
    print(f"{store(wheels, all_citations(), before)} citations stored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
