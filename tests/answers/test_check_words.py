"""The words of a check's findings: in the terminal, in an annotation, and as CI formats take them."""

from typing import Any

import pytest

from glm_kvplan.answers.check.check_answer import CheckAnswer, ErrorShown, FileChecked
from glm_kvplan.answers.check.check_page import check_page
from glm_kvplan.answers.check.finding_words import (
    advice,
    amount,
    binding,
    caused,
    changes,
    comes_out,
    judged,
    outcome,
    sentence,
    summary,
    title,
)
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.engines.expectations import Change
from glm_kvplan.show.judged import Place
from glm_kvplan.show.page import Cell, Line, Section, Table

SLOTS = Change({"max_mamba_cache_size": 640}, "--max-mamba-cache-size 640")
GPUS = Change({"tp_size": 8}, "--tp-size 8 on 8 GPUs, not 4", then_short=("headroom", "min_context"))


def finding(status: Any = "fails", **fields: Any) -> Finding:
    usual: dict[str, Any] = {"name": "min_context", "line": 5, "wanted": 307_200, "found": 262_144,
                             "limit": "context_length", "why": "the server admits 262,144 tokens"}  # fmt: skip
    return Finding(status=status, **(usual | fields))


WARNING = finding("warns", name="assumed_gpu", wanted=None, found=None, limit="", why="no gpu is named")
TOLERATED = finding("tolerated", note="bought already")


def checked(*findings: Finding, verdict: str = "falls short", error: ErrorShown | None = None, **fields: Any) -> Any:
    usual: dict[str, Any] = {
        "path": "a.yaml",
        "source": None,
        "plan": None,
        "sizes": None,
        "certainty": None,
        "notes": (),
    }
    return FileChecked(verdict=verdict, error=error, findings=findings, **(usual | fields))


UNUSABLE = checked(verdict="unusable", error=ErrorShown(2, "unknown key 'flgs'", Place("serve.sh", 3)))


def answer(*files: FileChecked) -> CheckAnswer:
    return CheckAnswer("1.0", 0, files)


@pytest.mark.parametrize(
    ("name", "value", "estimated", "text"),
    [
        ("min_context", 307_200, False, "307,200 tokens"),
        ("min_context", 307_255, True, "~307,000 tokens"),
        ("min_total_tokens", 64, False, "64 tokens"),
        ("min_concurrency", 1_064, False, "1,064 requests"),
        ("max_running_requests", 64, False, "64 requests"),
        ("headroom", 1.5, False, "1.5 GiB"),
        ("headroom", 1.25, True, "~1.2 GiB"),
        ("headroom", 20, False, "20 GiB"),
        ("headroom", "fits", False, "fits"),
        ("boots", 1, False, "1"),
        ("min_context", None, True, ""),
    ],
)
def test_a_value_has_its_unit(name: str, value: Any, estimated: bool, text: str) -> None:
    assert amount(name, value, estimated) == text


def test_what_comes_of_an_expectation() -> None:
    assert comes_out(finding()) == "262,144 tokens"
    assert comes_out(finding(at_most=True)) == "at most 262,144 tokens"
    assert comes_out(finding(estimated=True)) == "~262,000 tokens"
    assert outcome(finding()) == "wanted 307,200 tokens, comes out 262,144 tokens"
    assert outcome(WARNING) == "no gpu is named"
    titles = {"holds": "holds", "fails": "falls short", "tolerated": "is tolerated"}
    assert [title(finding(status)) for status in titles] == [f"min_context {words}" for words in titles.values()]
    assert title(WARNING) == "assumed_gpu"


def test_what_binds() -> None:
    assert str(binding(finding())) == "bound by context_length: the server admits 262,144 tokens"
    for one in (finding(name="boots", limit="weights"), finding(limit="")):
        assert str(binding(one)) == "the server admits 262,144 tokens"


def test_what_would_help() -> None:
    both = finding(changes=(SLOTS, GPUS))
    assert [*map(str, changes(both))] == [
        SLOTS.text,
        f"{GPUS.text} (but then headroom and min_context would fall short)",
    ]
    assert [*map(str, advice(both))] == [f"would hold with {SLOTS.text}", f"or with {changes(both)[1]}"]
    assert [*map(str, advice(finding()))] == ["no single flag makes it hold"]
    assert advice(finding(limit="")) == []
    together = finding(changes=(SLOTS._replace(together=True),))
    assert [*map(str, advice(together))] == [f"no single flag makes it hold; together these do: {SLOTS.text}"]
    assert caused(finding()) == ()
    assert [*map(str, caused(finding(cause=Place("serve.sh", 12))))] == ["in serve.sh, line 12"]


def test_a_finding_in_one_line() -> None:
    wanted = "wanted 307,200 tokens, comes out 262,144 tokens"
    assert sentence(finding("holds")) == wanted
    bound = f"{wanted}; {binding(finding())}"
    assert sentence(finding(changes=(SLOTS, GPUS))) == f"{bound}; would hold with {SLOTS.text}"
    assert sentence(TOLERATED) == f"{bound}; no single flag makes it hold; tolerated: bought already"
    assert sentence(WARNING) == "no gpu is named"


def test_a_summary_counts() -> None:
    holds, short = checked(finding("holds"), verdict="holds"), checked(finding())
    assert str(summary(answer(holds))) == "1 file: 1 holds, 0 fall short, 0 unusable"
    assert str(summary(answer(holds, holds, short))) == "3 files: 2 hold, 1 falls short, 0 unusable"
    warned = checked(WARNING, WARNING, verdict="holds")
    text = "4 files: 1 holds, 2 fall short, 1 unusable; 2 warnings"
    assert str(summary(answer(UNUSABLE, short, short, warned))) == text
    assert str(summary(answer(checked(WARNING, verdict="holds")))).endswith("; 1 warning")


def test_findings_as_ci_takes_them() -> None:
    found = judged(
        answer(checked(finding(changes=(SLOTS, GPUS), cause=Place("s.sh", 1)), WARNING, TOLERATED), UNUSABLE)
    )
    assert (found.tool, found.version, found.summary) == (
        "kvplan check",
        "1.0",
        str(summary(answer(checked(WARNING), UNUSABLE))),
    )
    assert {"unusable", "min_context", "assumed_gpu"} <= found.meanings.keys()
    first, warning, tolerated = found.files[0].found
    assert first[:6] == ("min_context", "fails", 5, True, "min_context falls short", outcome(finding()))
    assert first.details == (
        str(binding(finding())), f"would hold with {SLOTS.text}", f"or with {changes(finding(changes=(GPUS,)))[0]}",
        "in s.sh, line 1",
    )  # fmt: skip
    assert first.cause == Place("s.sh", 1) and first.reason == "" and first.sentence.endswith(SLOTS.text)
    assert (warning.status, warning.expected) == ("warns", False) and warning.sentence == "no gpu is named"
    assert (tolerated.status, tolerated.reason) == ("tolerated", "bought already")
    (unusable,) = found.files[1].found
    message = "unknown key 'flgs'"
    assert unusable == (
        "unusable", "unusable", 2, False, "unusable deployment file", message, (), message, "", Place("serve.sh", 3),
    )  # fmt: skip


# --- the page --------------------------------------------------------------------------------------------------------


def section(*findings: Finding, **fields: Any) -> Section:
    (found,) = check_page(answer(checked(*findings, **fields))).sections
    return found


def told(*findings: Finding) -> list[tuple[str, str]]:
    return [(str(block.text), block.tone) for block in section(*findings).blocks if isinstance(block, Line)]


def test_a_row_an_expectation_with_its_mark() -> None:
    marks = {"holds": ("holds", "good"), "fails": ("FAILS", "bad"), "warns": ("warns", "careful"),
             "tolerated": ("tolerated", "muted")}  # fmt: skip
    findings = [finding(status) for status in marks]
    (table,) = (block for block in section(*findings, WARNING).blocks if isinstance(block, Table))
    assert [column.kind for column in table.columns] == ["text", "code", "text", "text"]
    assert len(table.rows) == 4
    for row, mark in zip(table.rows, marks.values(), strict=True):
        cell, *rest = row.cells
        assert isinstance(cell, Cell) and (str(cell.value), cell.tone) == mark
        assert rest == ["min_context", "307,200 tokens", "262,144 tokens"]


def test_details_of_what_does_not_hold() -> None:
    assert told(finding("holds")) == []
    assert told(WARNING) == [("warning, assumed_gpu: no gpu is named", "careful")]
    short = finding(changes=(SLOTS,), cause=Place("s.sh", 1))
    assert told(short) == [
        (f"min_context: {binding(short)}", ""), (f"  would hold with {SLOTS.text}", ""), ("  in s.sh, line 1", ""),
    ]  # fmt: skip
    assert told(TOLERATED) == [("tolerated, min_context: bought already", "muted")]
    known = finding("tolerated", name="assumed_gpu", wanted=None, note="on purpose")
    assert told(known) == [("tolerated, assumed_gpu: on purpose", "muted")]
    assert told(finding("warns")) == told(finding())  # an expectation that nobody wrote down


def test_a_section_a_file() -> None:
    found = section(finding("holds"), verdict="holds", notes=("n",))
    assert (str(found.title), found.tone) == ("a.yaml: holds", "good")
    assert [str(block.text) for block in found.blocks if isinstance(block, Line)] == ["note: n"]
    assert (str(section(finding()).title), section(finding()).tone) == ("a.yaml: falls short", "bad")
    page = check_page(answer(UNUSABLE))
    (unusable,) = page.sections
    assert (str(unusable.title), unusable.tone) == ("a.yaml:2: unusable", "bad")
    assert [str(block.text) for block in unusable.blocks] == ["  unknown key 'flgs'"]
    assert page.quiet and page.lead == ()


def test_several_files_have_a_summary() -> None:
    holds = checked(verdict="holds")
    for files, tone in (((holds, holds), "good"), ((holds, UNUSABLE), "bad"), ((checked(finding()), holds), "bad")):
        (line,) = check_page(answer(*files)).lead
        assert (str(line.text), line.tone) == (str(summary(answer(*files))), tone)
