"""`$X` and `${X:-default}` in a text that no shell runs, read as in a here-document; and a text split into words."""

import re
import shlex
from collections.abc import Sequence

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.given_pieces import nested, pieces_in
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.statement_reader import parts_of_text
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import Scalar, mark_of, text_of
from glm_kvplan.launch.marked_words import Piece, Word


def interpolated(text: str, around: Surroundings) -> Scalar:
    """The text with the variables of `around` put in. Raises InputError for `${` that is never closed."""
    if "$" not in text:
        return (Piece(text),)
    shell = Interpreter(around, lambda command, shell: None)
    try:
        return shell.expander.scalar(parts_of_text(text), 0)
    except InputError as error:
        raise InputError(re.sub("^line [0-9]+: ", "", str(error))) from None


def split_words(text: Scalar, place: str) -> list[Word]:
    """The words of a text as a shell's quotes split it. Raises InputError for a quote that is never closed."""
    whole, given = nested(text)
    try:
        words = shlex.split(whole)
    except ValueError:
        raise InputError(f"{place}: a quote is never closed") from None
    return [word_of(pieces_in(word, given), place) for word in words]


def word_of(value: Sequence[Piece], place: str) -> Word:
    return Word(text_of(value), place, mark_of(value))
