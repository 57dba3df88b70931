"""What came of every deployment file: the answer of `kvplan check`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from glm_kvplan import __version__
from glm_kvplan.answers.check.checking import Checked, exit_code
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.by_name import head_of
from glm_kvplan.show.judged import Place
from glm_kvplan.show.said import Text


class ErrorShown(NamedTuple):
    """`cause` is the line of the launch's own file that it speaks of."""

    line: int
    message: str
    cause: Place | None = None


class FileChecked(NamedTuple):
    """`plan` and what follows are None where the file cannot be used, or the engine refuses its flags."""

    path: str
    verdict: str
    error: ErrorShown | None
    source: str | None
    plan: Head | None
    sizes: Any
    certainty: str | None
    findings: tuple[Finding, ...]
    notes: tuple[Text, ...]

    def of(self, *statuses: str) -> tuple[Finding, ...]:
        """The findings with one of these statuses."""
        return tuple(finding for finding in self.findings if finding.status in statuses)


class CheckAnswer(NamedTuple):
    """`exit_code` is the command's: 0 all hold, 1 something falls short, 2 a file is unusable."""

    kvplan: str
    exit_code: int
    files: tuple[FileChecked, ...]


def answer_check(checked: Sequence[Checked], strict: bool = False) -> CheckAnswer:
    return CheckAnswer(__version__, exit_code(checked, strict), tuple(_file(one) for one in checked))


def _file(one: Checked) -> FileChecked:
    started = one.answer if one.answer is not None and one.answer.failure is None else None
    return FileChecked(
        path=one.path,
        verdict=one.verdict,
        error=None if one.error is None else ErrorShown(one.line, one.error, one.cause),
        source=None if one.file is None else one.file.content.source,
        plan=None if one.plan is None else head_of(one.plan),
        sizes=None if started is None else started.sizes,
        certainty=None if started is None else started.certainty,
        findings=one.found,
        notes=one.notes,
    )
