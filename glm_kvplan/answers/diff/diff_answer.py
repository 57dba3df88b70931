"""What changes between two servers: the answer of `kvplan diff`."""

from typing import NamedTuple

from glm_kvplan.answers.diff.starts import Side, alike, one_engine, start_changes
from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.by_name import head_of
from glm_kvplan.engines.changes import Change
from glm_kvplan.show.said import Text, say


class SideShown(NamedTuple):
    label: str
    head: Head
    certainty: Certainty  # of its sizes, requests and free bytes


class DiffAnswer(NamedTuple):
    """Both plans, and the changes from `a` to `b`, the most bytes first; requests are of `context` tokens.

    `same_engine`: everything is compared; of two engines the measures that both have, and what ends their requests.
    `equal_numbers` and `equal_flags` are how many of those measures and of one engine's resolved flags are the same.
    """

    a: SideShown
    b: SideShown
    context: int
    same_engine: bool
    changes: tuple[Change, ...]
    equal_numbers: int
    equal_flags: int | None
    warnings: tuple[Text, ...]


def answer_diff(a: Side, b: Side) -> DiffAnswer:
    noted = dict.fromkeys(note for side in (a, b) for note in side.start.notes)
    return DiffAnswer(
        side_shown(a),
        side_shown(b),
        a.start.context,
        one_engine(a, b),
        start_changes(a, b),
        *alike(a, b),
        tuple(noted),
    )


def side_shown(side: Side) -> SideShown:
    """One side without its memory."""
    return SideShown(side.label, head_of(side.plan.given), side.start.certainty)


def notes_of(answer: DiffAnswer) -> tuple[Text, ...]:
    """How the two inputs were read, each said whose it is."""
    sides = (("A", answer.a), ("B", answer.b))
    return tuple(say("{side}: {note}", side=name, note=note) for name, side in sides for note in side.head.notes)
