"""Every sentence of a page is one that the house knows, whatever the command."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, get_args

import pytest
from paths import DATA, ROOT
from running import ended
from test_language import PHRASES, needs_words

from glm_kvplan.cli import report
from glm_kvplan.show import cells, text
from glm_kvplan.show.chart import Look
from glm_kvplan.show.drawing_style import COLOURS
from glm_kvplan.show.languages import load_words
from glm_kvplan.show.page import Kind, Page
from glm_kvplan.show.said import Said

VLLM = ("--engine", "vllm-0.33.0", "--gpu", "h200", "--tensor-parallel-size", "4")
SGLANG = ("--engine", "0.5.23", "--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "NEXTN")
HOST = ("--gpu", "h200", "--tp-size", "8", "--enable-hierarchical-cache", "--host-gib", "2000")
EXAMPLE = str(ROOT / "examples" / "h200-tp8-dp8.kvplan.yaml")
ASKED = ("--context", "64k", "--concurrency", "16")
COMMANDS = [
    *((command, *flags) for command in ("estimate", "solve", "pools", "resolve") for flags in (SGLANG, VLLM)),
    *(("explain", topic, *SGLANG) for topic in ("row", "slot", "token", "where", "tail", "loads")),
    *(("explain", topic, *VLLM) for topic in ("block", "request", "dtype", "memory")),
    *(("advise", *flags, *ASKED) for flags in (SGLANG, VLLM)),
    ("solve", *HOST), ("advise", *HOST, *ASKED), ("validate", *SGLANG, "--device", "meta"),
    ("sweep", "--gpu", "h200", "--over", "tp_size=4,8"), ("solve", "--prices", *SGLANG),
    ("solve", "--prices", *VLLM), ("info", "engines"), ("info", "gpus"), ("info", "model"),
    *(("report", "-o", "-", "--format", "md", *flags, *ASKED) for flags in (SGLANG, VLLM, HOST)),
    ("solve", *SGLANG, "--mem-fraction-static", "0.3"), ("solve", *VLLM, "--gpu-memory-utilization", "0.2"),
    ("advise", *SGLANG, "--context", "128k", "--concurrency", "900"), ("advise", *VLLM, "--concurrency", "9000"),
    ("advise", "--gpu", "h200", "--gpus", "4,8", *ASKED), ("advise", *VLLM[:4], "--gpus", "4,8", *ASKED),
    *(("reconcile", str(DATA / "logs" / f"{name}.log")) for name in ("b200x4-mtp6-frac80", "mi355x-nospec")),
    *(("reconcile", str(DATA / "vllm_logs" / f"{name}.log")) for name in ("h200x4-tp4-mtp3", "h200x8-tp8")),
    ("diff", EXAMPLE, "--engine", "0.5.21", "--engine", "0.5.23"), ("check", EXAMPLE),
]  # fmt: skip


def kept(pages: list[Page], shown: Callable[..., Any], page: Page, *given: Any, **named: Any) -> Any:
    """Show a page as ever, and keep it."""
    pages.append(page)
    return shown(page, *given, **named)


def said_in(value: Any) -> Iterator[str]:
    """The templates of every sentence in a page, and of those within them."""
    if isinstance(value, Said):
        yield value.template
        yield from said_in(tuple(inner for _, inner in value.values))
    elif isinstance(value, tuple):
        for inner in value:
            yield from said_in(inner)


def unknown(page: Page) -> set[str]:
    """The sentences of a page that have no Chinese."""
    plain = load_words("zh").plain
    return {one for one in said_in(page) if needs_words(one) and one not in PHRASES and plain(one) == one}


def test_every_kind_is_written_and_every_look_has_a_colour() -> None:
    written = re.findall(r"\w+", " ".join(re.findall(r"^\| ([\w, ]+) \|", cells.__doc__ or "", re.M)))
    assert {*written, ""} - {"kind", "written"} == {*get_args(Kind), ""}
    assert {*get_args(Look)} < COLOURS.keys()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_sentence_of_a_page_is_one_of_ours(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are put together where the source does not spell them: names of parts, of limits, of units."""
    pages: list[Page] = []
    for module, name in ((text, "print_page"), (report, "page_bytes")):
        keep = partial(kept, pages, getattr(module, name))
        monkeypatch.setattr(module, name, keep)
    assert ended(*words) in (0, 1)
    assert pages
    assert {one for page in pages for one in unknown(page)} == set()
