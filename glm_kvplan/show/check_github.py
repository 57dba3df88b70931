"""`kvplan check --format github`: workflow commands that annotate the file at the line of the expectation."""

from collections.abc import Iterator, Sequence

from glm_kvplan.answers.check.checking import Checked
from glm_kvplan.show.check_words import sentence, summary, title


def lines(checked: Sequence[Checked]) -> Iterator[str]:
    """One annotation a failure, warning and unusable file, then the summary."""
    for one in checked:
        if one.error is not None:
            yield _annotation("error", one.path, one.line, "unusable deployment file", one.error)
        for finding in one.of("fails"):
            yield _annotation("error", one.path, finding.line, title(finding), sentence(finding))
        for finding in one.of("warns"):
            yield _annotation("warning", one.path, finding.line, title(finding), sentence(finding))
    yield summary(checked)


def _annotation(level: str, path: str, line: int, heading: str, message: str) -> str:
    return f"::{level} file={_property(path)},line={line},title={_property(heading)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
