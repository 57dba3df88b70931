"""`kvplan check --format markdown`: for job summaries and pull request comments."""

from collections.abc import Iterator, Sequence

from glm_kvplan.answers.check.checking import Checked
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.show.check_words import advice, amount, binding, summary
from glm_kvplan.show.headline import headline
from glm_kvplan.show.printable import markdown as plain

_MARK = {"holds": "holds", "fails": "**falls short**", "warns": "warning", "tolerated": "tolerated"}


def lines(checked: Sequence[Checked]) -> Iterator[str]:
    """A heading and a table a file, then what falls short in words."""
    yield "## kvplan check"
    yield ""
    yield summary(checked)
    for one in checked:
        yield ""
        yield f"### `{one.path.replace('`', '')}`: {one.verdict}"
        yield ""
        if one.error is not None:
            yield f"line {one.line}: {plain(one.error)}"
            continue
        if one.plan is not None:
            yield plain(headline(one.plan))
            yield ""
        yield "| expectation | wanted | comes out | |"
        yield "| --- | ---: | ---: | --- |"
        for finding in one.found:
            if finding.wanted is not None:
                cells = (amount(finding.name, finding.wanted), amount(finding.name, finding.found))
                yield f"| `{finding.name}` | {' | '.join(map(plain, cells))} | {_MARK[finding.status]} |"
        for finding in one.found:
            yield from _details(finding)


def _details(finding: Finding) -> Iterator[str]:
    if finding.status == "holds":
        return
    yield ""
    if finding.status == "tolerated":
        yield f"- tolerated, `{finding.name}`: {plain(finding.note)}"
    elif finding.wanted is None:
        yield f"- warning, `{finding.name}`: {plain(finding.why)}"
    else:
        yield f"- `{finding.name}`: {plain(binding(finding))}"
        for text in advice(finding):
            yield f"  - {plain(text)}"
