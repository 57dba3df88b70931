"""Workflow commands of GitHub that annotate a file at the line of what was found."""

from collections.abc import Iterator

from glm_kvplan.show.judged import Judged, JudgedFiles
from glm_kvplan.show.printable import github, github_property, terminal

_LEVELS = {"unusable": "error", "fails": "error", "warns": "warning"}


def github_lines(judged: JudgedFiles) -> Iterator[str]:
    """One annotation a failure, warning and unusable file, errors first, then the summary."""
    for file in judged.files:
        for status in _LEVELS:
            for found in file.found:
                if found.status == status:
                    yield _annotation(file.path, found)
    yield terminal(judged.summary)


def _annotation(path: str, found: Judged) -> str:
    place = f"file={github_property(path)},line={found.line},title={github_property(found.title)}"
    return f"::{_LEVELS[found.status]} {place}::{github(found.sentence)}"
