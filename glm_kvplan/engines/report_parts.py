"""Parts of a report that are the same for every engine: flags with their reasons, how the page was made, its foot."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.flag import Choice
from glm_kvplan.show.format import shown
from glm_kvplan.show.page import Code, Column, Section, Table, rows
from glm_kvplan.show.said import Text, say


class Made(NamedTuple):
    """How a report came to be: the command as typed, and the day (`2026-11-29`)."""

    command: str
    day: str


def gpus_said(head: Head) -> str:
    """`8 × H200`: those of the whole deployment."""
    return f"{head.gpus} × {head.gpu.name}"


def flags_section(choices: tuple[Choice, ...]) -> Section:
    """Every resolved flag with its reason and source."""
    found = rows(
        *(
            (choice.flag, shown(choice.value), say("given" if choice.given else "engine"), choice.reason, choice.source)
            for choice in choices
        )
    )
    columns = tuple(map(Column, (say("flag"), say("value"), say("from"), say("reason"), say("source"))))
    table = Table(columns, found, folded=say("{count} flags", count=len(found)))
    return Section("flags", (table,), say("The resolved flags, with reasons"))


def made_section(head: Head, made: Made) -> Section:
    intro = say("Made with kvplan {version} on {day} by:", version=head.kvplan, day=made.day)
    return Section("made", (Code(made.command, intro),), say("How this page was made"))


def footer(head: Head) -> tuple[Text, ...]:
    return (
        say(
            "GB are 10⁹ bytes, GiB are 2³⁰ bytes. ~ marks what is estimated; everything else follows from the "
            "engine's own formulas, whole bytes."
        ),
        f"kvplan {head.kvplan}",
    )
