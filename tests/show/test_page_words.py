"""Pages speak the renderers' words: every kind of cell, tone and look is one that they know, whatever the command."""

from collections.abc import Iterator
from typing import Any

import pytest
from running import ended

from glm_kvplan.show import text
from glm_kvplan.show.cells import NUMBERS
from glm_kvplan.show.drawing_style import COLOURS
from glm_kvplan.show.page import Page

KINDS = {*NUMBERS, "text", "code", "fixed", "note", "share", ""}  # as cells.py lists them
TONES = {"", "strong", "muted", "good", "careful", "bad"}
LOOKS = {"latent", "index", "states", "other", "loaded", "free", "alarm", "cap"}  # as chart.py lists them

VLLM = ("--engine", "vllm-0.33.0", "--gpu", "h200", "--tensor-parallel-size", "4")
SGLANG = ("--engine", "0.5.23", "--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "NEXTN")
HOST = ("--gpu", "h200", "--tp-size", "8", "--enable-hierarchical-cache", "--host-gib", "2000")
ASKED = ("--context", "64k", "--concurrency", "16")
COMMANDS = [
    *((command, *flags) for command in ("estimate", "solve", "pools", "resolve") for flags in (SGLANG, VLLM)),
    *(("explain", topic, *SGLANG) for topic in ("row", "slot", "token", "where", "tail", "loads")),
    *(("explain", topic, *VLLM) for topic in ("block", "request", "dtype", "memory")),
    *(("advise", *flags, *ASKED) for flags in (SGLANG, VLLM)),
    ("solve", *HOST), ("advise", *HOST, *ASKED), ("validate", *SGLANG, "--device", "meta"),
    ("sweep", "--gpu", "h200", "--over", "tp_size=4,8"), ("solve", "--prices", *SGLANG),
    ("solve", "--prices", *VLLM), ("info", "engines"), ("info", "gpus"), ("info", "model"),
]  # fmt: skip


def words_of(value: Any) -> Iterator[tuple[str, str]]:
    """Every kind, tone and look in a page, depth first."""
    if isinstance(value, tuple):
        for name, inner in zip(getattr(value, "_fields", ("",) * len(value)), value, strict=True):
            if name in ("kind", "tone", "look") and isinstance(inner, str):
                yield name, inner
            elif name == "looks":
                yield from (("look", look) for look, _ in inner)
            else:
                yield from words_of(inner)


def unknown(page: Page) -> list[tuple[str, str]]:
    """What of them no renderer knows."""
    known = {"kind": KINDS, "tone": TONES | LOOKS, "look": LOOKS}
    return [(name, word) for name, word in words_of(page) if word not in known[name]]


def test_every_look_has_a_colour() -> None:
    assert COLOURS.keys() > LOOKS


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_word_of_a_page_is_known(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[Page] = []
    monkeypatch.setattr(text, "print_page", lambda page, *_, **__: pages.append(page))
    assert ended(*words) in (0, 1)
    assert pages
    assert [word for page in pages for word in unknown(page)] == []
