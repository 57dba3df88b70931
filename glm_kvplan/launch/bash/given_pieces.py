"""Text of a script that an outer shell made: what is not known of it is set apart, a number in its place."""

import re
from collections.abc import Mapping, Sequence

from glm_kvplan.launch.marked_words import Piece

# A character of no script, before and after the number of a piece that an outer shell worked out.
GIVEN = "\ufdd0"
PLACE = re.compile(rf"{GIVEN}([0-9]{{1,8}}){GIVEN}")


def nested(value: Sequence[Piece]) -> tuple[str, Mapping[int, Piece]]:
    """A script's text that an outer shell made, with what is not known of it set apart."""
    given = {at: piece for at, piece in enumerate(value) if piece.mark is not None}
    return "".join(f"{GIVEN}{at}{GIVEN}" if at in given else piece.text for at, piece in enumerate(value)), given


def pieces_in(text: str, given: Mapping[int, Piece]) -> list[Piece]:
    """A text with the pieces put back that were set apart in it."""
    found: list[Piece] = []
    end = 0
    for match in PLACE.finditer(text):
        if int(match[1]) in given:
            found += [Piece(text[end : match.start()]), given[int(match[1])]]
            end = match.end()
    return [*found, Piece(text[end:])]
