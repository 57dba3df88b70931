"""What an explanation is made of, whatever the engine: topics, sentences, the right number beside the wrong one."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.errors import InputError
from glm_kvplan.show.page import Kind

Unit = Literal["B", "B/token", "tokens", "blocks", "states"]


class Figure(NamedTuple):
    """One number under one reading."""

    reading: Literal["right", "wrong"]
    says: str
    value: int
    unit: Unit


class SideRow(NamedTuple):
    """One of several choices, or one of several ledgers. `here`: it is what this deployment has; `note`: say of it."""

    name: str
    values: tuple[int, ...]
    here: bool = False
    note: str = ""


class SideBySide(NamedTuple):
    """Choices or loads beside each other. `columns` name the values, `kinds` how they are written (show/cells.py)."""

    title: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: tuple[SideRow, ...]


class Explanation(NamedTuple):
    """One topic's answer: a few sentences, the right number beside the wrong one, the formula and its source."""

    title: str
    lines: tuple[str, ...]
    figures: tuple[Figure, ...]
    formula: str
    numbers: str  # the formula with its values
    source: str
    table: SideBySide | None = None


class TopicsAnswer(NamedTuple):
    """Each topic's title by its name."""

    topics: Mapping[str, str]


class ExplainAnswer(NamedTuple):
    """One topic: sentences, the right number beside the wrong one, the formula and its source."""

    head: Head
    topic: str
    title: str
    lines: tuple[str, ...]
    figures: tuple[Figure, ...]
    formula: str
    numbers: str
    source: str
    table: SideBySide | None


def refuse_other_topic(topic: str, titles: Iterable[str]) -> None:
    """Raise InputError, naming the nearest, for what is no topic."""
    names = list(titles)
    if topic in names:
        return
    from difflib import get_close_matches

    near = get_close_matches(topic.lower(), names)
    hint = f"did you mean {near[0]}?" if near else f"topics are: {', '.join(names)}"
    raise InputError(f"explain {topic!r}: no such topic; {hint}")


def plural(number: int, noun: str) -> str:
    """`1 layer`, `11 layers`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def right(says: str, value: int, unit: Unit) -> Figure:
    return Figure("right", says, value, unit)


def wrong(says: str, value: int, unit: Unit) -> Figure:
    return Figure("wrong", says, value, unit)
