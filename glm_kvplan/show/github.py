"""Workflow commands of GitHub that annotate what was found at its line: the launch's own, or the deployment file's."""

from collections.abc import Iterator

from glm_kvplan.show.judged import Judged, JudgedFiles, Place
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
    at, sentence = Place(path, found.line), found.sentence
    if found.cause is not None:
        at, sentence = found.cause, f"{sentence} (for {path}, line {found.line})"
    place = f"file={github_property(at.path)},line={at.line},title={github_property(found.title)}"
    return f"::{_LEVELS[found.status]} {place}::{github(sentence)}"
