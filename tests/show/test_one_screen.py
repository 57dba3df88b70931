"""One screen of an answer: verdict first, what does not fit behind --all, no warning hidden, other forms whole."""

import io

import pytest

from glm_kvplan.cli import main
from glm_kvplan.show.html import html
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.page import Line, Page, Section, Verdict
from glm_kvplan.show.said import ENGLISH
from glm_kvplan.show.terminal import Screen
from glm_kvplan.show.text import brief_lines, page_lines

SGLANG = ("--gpu", "h200", "--tp-size", "8")
VLLM = ("--engine", "vllm-0.33.0", "--gpu", "h200", "--tensor-parallel-size", "8")
MIX = "0.8:8k,0.2:128k"
EAGLE = ("--speculative-algorithm", "EAGLE")
DECODE = ("--dp-size", "8", "--enable-dp-attention", "--disaggregation-mode", "decode", "--max-running-requests", "256")
SCREENS = (
    ("solve", *SGLANG),
    ("solve", "--gpu", "b200", "--tp-size", "4", *EAGLE),
    ("solve", *SGLANG, "--context", MIX),
    ("solve", "--gpu", "h100", "--tp-size", "4"),  # refused
    ("solve", *SGLANG, *DECODE),
    ("solve", *SGLANG, "--enable-hierarchical-cache", "--host-gib", "150"),
    ("solve", *VLLM),
    ("solve", *VLLM, "--context", MIX),
    ("solve", *VLLM[:-1], "1"),  # refused
    ("advise", *SGLANG, "--context", "128k", "--concurrency", "40"),
    ("advise", *SGLANG, "--context", MIX, "--concurrency", "200"),  # not all
    ("advise", *SGLANG, *DECODE[:3], "--context", MIX, "--concurrency", "200"),
    ("advise", *SGLANG, "--context", MIX, "--concurrency", "100", "--enable-hierarchical-cache", "--host-gib", "1500"),
    ("advise", "--gpu", "h100", "--tp-size", "4", "--context", "128k", "--concurrency", "40"),  # none
    ("advise", *VLLM, "--context", "128k", "--concurrency", "40"),
    ("advise", *VLLM, "--context", MIX, "--concurrency", "170"),
    ("advise", "--gpu", "h200", "--gpus", "8,16", "--context", MIX, "--concurrency", "200"),
    ("advise", "--gpu", "h200", "--gpus", "8", "--context", MIX, "--concurrency", "200", *EAGLE),
    ("advise", "--gpu", "h200", "--gpus", "8,16", "--context", MIX, "--concurrency", "2000"),  # none
    ("estimate", *SGLANG, "--context", "128k", "--concurrency", "40"),
    ("estimate", *SGLANG, "--pp-size", "2", "--context", "128k", "--concurrency", "140"),  # too much
    ("estimate", "--gpu", "b200", "--tp-size", "4", *EAGLE, "--context", MIX, "--concurrency", "40"),
    ("estimate", *SGLANG, "--concurrency", "40", "--enable-hierarchical-cache", "--host-gib", "1500"),
    ("estimate", *VLLM, "--context", "128k", "--concurrency", "40"),
    ("estimate", *VLLM, "--context", MIX, "--concurrency", "400"),  # too much
)


def printed(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> list[str]:
    with pytest.raises(SystemExit) as left:
        main([*words])
    assert left.value.code in (0, 1)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_an_answer_fits_one_screen(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    lines = printed(capsys, words)
    assert len(lines) <= 24
    whole = printed(capsys, (*words, "--all"))
    assert lines[-1].startswith("--all shows") or lines[-2].startswith("--all shows") or lines == whole
    told = next(n for n, line in enumerate(lines) if line.startswith(("Yes", "No", "At most", "It starts")))
    assert not any("GiB" in line or " GB" in line for line in lines[:told])  # the verdict comes before bytes


PAGE = Page(
    "A page",
    (),
    (
        Section((Line("kept"),), "Kept"),
        Section((Line("first"),) * 5, "First", quiet=True, spare=2),
        Section((Line("second"),) * 5, "Second", quiet=True, spare=1),
    ),
    ("one",),
    footer=("a word is explained",),
    verdict=Verdict("Yes", "good", ("but",)),
)


def said(page: Page, height: int, width: int = 40) -> list[str]:
    screen = Screen(io.StringIO(), width, height=height)
    return ["".join(text for text, _ in pieces) for pieces in brief_lines(page, screen)]


def test_what_a_screen_has_no_place_for_goes_by_its_number() -> None:
    whole = ["".join(text for text, _ in pieces) for pieces in page_lines(PAGE, Screen(io.StringIO(), 40))]
    assert said(PAGE, len(whole) + 1) == whole  # one line stays for the shell's prompt
    first = said(PAGE, len(whole))
    assert first[-2:] == ["a word is explained", "--all shows more: Second"] and "first" in first
    least = said(PAGE, 5)
    assert least[-1] == "--all shows more: First, Second"
    assert least == ["A page", "Yes", "but", "", "Kept", "kept", "", "! one", least[-1]]  # words are the last to go


def test_a_warning_is_shortened_only_where_it_must_and_never_left_out() -> None:
    page = PAGE._replace(warnings=("what a long warning says at length in many words",) * 3, footer=())
    assert said(page, 99) == ["".join(t for t, _ in line) for line in page_lines(page, Screen(io.StringIO(), 40))]
    short = said(page, 5)
    assert [line for line in short if line.startswith("!")] == ["! what a long warning says at length..."] * 3
    alone = said(page._replace(sections=()), 5)
    assert alone[-1] == "--all shows the warnings whole"
    fits = page._replace(sections=PAGE.sections[:1], warnings=("short",))
    assert "--all" not in "".join(said(fits, 3))  # too long, and nothing to leave out


def test_other_forms_leave_nothing_out() -> None:
    for text in (markdown(PAGE, ENGLISH), html(PAGE)):
        assert all(word in text for word in ("kept", "first", "second", "one"))
