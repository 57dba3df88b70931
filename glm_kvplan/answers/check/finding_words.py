"""The findings of a check in words, the same in every form, and as CI formats take them."""

from glm_kvplan.answers.check.check_answer import CheckAnswer, FileChecked
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.engines.expectations import KINDS
from glm_kvplan.show.format import count, three_digits
from glm_kvplan.show.judged import Judged, JudgedFile, JudgedFiles
from glm_kvplan.show.said import Said, say

_UNUSABLE = "unusable"
_UNITS = {
    "min_context": "tokens",
    "min_concurrency": "requests",
    "min_total_tokens": "tokens",
    "max_running_requests": "requests",
    "headroom": "GiB",
}


def amount(name: str, value: int | float | str | None, estimated: bool = False) -> str:
    """A wanted or found value with its unit: `307,200 tokens`, `fits`; of an estimate `~307,000 tokens`."""
    if value is None or isinstance(value, str):
        return value or ""
    if estimated:
        number = f"~{three_digits(value) if isinstance(value, int) else f'{value:.1f}'}"
    else:
        number = f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return f"{number} {_UNITS[name]}" if name in _UNITS else number


def comes_out(finding: Finding) -> str:
    """What was found, with its unit; of an upper bound `at most 307,200 tokens`."""
    found = amount(finding.name, finding.found, finding.estimated)
    return f"at most {found}" if finding.at_most else found


def title(finding: Finding) -> str:
    """`min_context falls short`."""
    ending = {"holds": "holds", "fails": "falls short", "warns": "", "tolerated": "is tolerated"}[finding.status]
    return f"{finding.name} {ending}".strip()


def outcome(finding: Finding) -> str:
    """`wanted 307,200 tokens, comes out 262,144 tokens`; of a warning what it warns of."""
    if finding.wanted is None:
        return finding.why
    return f"wanted {amount(finding.name, finding.wanted)}, comes out {comes_out(finding)}"


def binding(finding: Finding) -> Said:
    """`bound by context_length: the server admits 262,144 tokens a request`; of a refused start the refusal."""
    if finding.name == "boots" or not finding.limit:
        return say("{why}", why=finding.why)
    return say("bound by {limit}: {why}", limit=say(finding.limit), why=finding.why)


def changes(finding: Finding) -> list[Said]:
    """Each change as one would type it, the smallest first, with what it would break."""
    lines = []
    for change in finding.changes:
        template = "{change} (but then {names} would fall short)" if change.then_short else "{change}"
        values = {"names": " and ".join(change.then_short)} if change.then_short else {}
        lines.append(say(template, change=change.text, **values))
    return lines


def advice(finding: Finding) -> list[Said]:
    """`would hold with --max-mamba-cache-size 640`, `or with ...`; empty where the start is what fails."""
    found = changes(finding)
    if not found:
        return [say("no single flag makes it hold")] if finding.limit else []
    if finding.changes[0].together:
        return [say("no single flag makes it hold; together these do: {change}", change=found[0])]
    return [
        say("or with {change}" if number else "would hold with {change}", change=change)
        for number, change in enumerate(found)
    ]


def caused(finding: Finding) -> tuple[Said, ...]:
    """`in serve.sh, line 12`: the line of the launch's own file, where one does it."""
    cause = finding.cause
    return () if cause is None else (say("in {path}, line {line}", path=cause.path, line=cause.line),)


def sentence(finding: Finding) -> str:
    """Everything in one line, for annotations."""
    parts = [outcome(finding)]
    if finding.wanted is not None and finding.status != "holds":
        parts.append(str(binding(finding)))
        parts += map(str, advice(finding)[:1])
    if finding.note:
        parts.append(f"tolerated: {finding.note}")
    return "; ".join(part for part in parts if part)


def summary(answer: CheckAnswer) -> Said:
    """`11 files: 10 hold, 1 falls short, 0 unusable; 3 warnings`."""
    files = answer.files
    unusable = sum(file.error is not None for file in files)
    short = sum(file.verdict == "falls short" for file in files)
    warnings = sum(len(file.of("warns")) for file in files)
    holding = len(files) - unusable - short
    template = "{files}: {holding} holds" if holding == 1 else "{files}: {holding} hold"
    template += ", {short} falls short" if short == 1 else ", {short} fall short"
    template += ", {unusable} unusable"
    text = say(template, files=count(len(files), "file"), holding=holding, short=short, unusable=unusable)
    return say("{text}; {warnings}", text=text, warnings=count(warnings, "warning")) if warnings else text


def judged(answer: CheckAnswer) -> JudgedFiles:
    """The answer as CI formats take it."""
    meanings = {**KINDS, _UNUSABLE: "the deployment file can be read and planned"}
    files = tuple(JudgedFile(file.path, tuple(_judged(file))) for file in answer.files)
    return JudgedFiles("kvplan check", answer.kvplan, files, str(summary(answer)), meanings)


def _judged(file: FileChecked) -> list[Judged]:
    if file.error is not None:
        line, message, cause = file.error
        return [Judged(_UNUSABLE, _UNUSABLE, line, False, "unusable deployment file", message, (), message, "", cause)]
    return [
        Judged(
            finding.name,
            finding.status,
            finding.line,
            finding.wanted is not None,
            title(finding),
            outcome(finding),
            (str(binding(finding)), *map(str, (*advice(finding), *caused(finding)))),
            sentence(finding),
            finding.note,
            finding.cause,
        )
        for finding in file.findings
    ]
