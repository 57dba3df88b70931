"""Values of shell variables in pieces: what is known of them, and what is not and why; two branches joined."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from glm_kvplan.launch.marked_words import Mark, Piece, Word
from glm_kvplan.reading.secret_words import key_like

_SHOWABLE = re.compile(r"[\w.,/:@%+-]{1,24}")


Scalar: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True)
class Array:
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Table:
    """An associative array."""

    values: Mapping[str, Scalar]


@dataclass(frozen=True)
class Unset:
    """A variable that the script has taken away."""


UNSET = Unset()
# None: never assigned, so whatever the environment says.
Value: TypeAlias = Scalar | Array | Table | Unset | None


def scalar_of(word: Word) -> Scalar:
    return (Piece(word.text, word.mark),)


def plain(text: str) -> Scalar:
    return (Piece(text),)


def missing(name: str) -> Scalar:
    """The value of a variable that is not defined here: its name stands for it."""
    return (Piece(name, Mark(name)),)


NOT_RUN = missing("$(...)")  # what a command prints that is not run


def text_of(scalar: Iterable[Piece]) -> str:
    return "".join([piece.text for piece in scalar])


def mark_of(scalar: Iterable[Piece]) -> Mark | None:
    return next((piece.mark for piece in scalar if piece.mark is not None), None)


def known_text(scalar: Scalar) -> str | None:
    """The text, or None where part of it is not known."""
    return text_of(scalar) if mark_of(scalar) is None else None


def uncounted(values: Iterable[Scalar]) -> bool:
    """Whether one of the words may be none, or several."""
    return any(piece.mark is not None and piece.mark.several for value in values for piece in value)


def is_empty(scalar: Scalar) -> bool | None:
    """Whether nothing stands there; None where that is not known."""
    if any(piece.text for piece in scalar if piece.mark is None):
        return False
    return True if mark_of(scalar) is None else None


def first_of(value: Value, name: str) -> Scalar:
    """The value as `$name` gives it; of a list, its first."""
    return missing(f"${name}") if value is None else next(iter(elements(value)), ())


def elements(value: Value) -> tuple[Scalar, ...]:
    """The values of a list, in order; the only one of a variable that is none."""
    match value:
        case Array(values):
            return values
        case Table(values):
            return tuple(values.values())
        case None | Unset():
            return ()
        case _:
            return (value,)


def weight(value: Value) -> int:
    """How many pieces a value has."""
    return sum(map(len, elements(value)))


def _same(one: Value, other: Value) -> bool:
    return one is other or _bare(one) == _bare(other)


def _bare(value: Value) -> object:
    """A value without the lines it was written in."""
    match value:
        case Array(values):
            return tuple(map(_bare, values))
        case Table(values):
            return {key: _bare(scalar) for key, scalar in values.items()}
        case None | Unset():
            return value
        case _:
            return text_of(value), tuple((piece.text, piece.mark) for piece in value if piece.mark is not None)


def joined(values: Sequence[Value], name: str, mark: Mark) -> Value:
    """One value for those of several branches: what they share is known, the rest is marked."""
    found = _joined(values, name, mark)
    if not key_like(name) or not isinstance(found, tuple):
        return found
    return tuple(one._replace(mark=one.mark and one.mark._replace(answers=())) for one in found)  # a secret is not told


def _joined(values: Sequence[Value], name: str, mark: Mark) -> Value:
    first = values[0]
    if all(_same(value, first) for value in values[1:]):
        return first
    if mark.empty and mark.name == f"${name}":  # [ -z "$X" ] && X=8 gives a default, as ${X:-8} does
        given = [value for value in values if value is not None]
        if len(given) == 1:
            return given[0]
    if any(isinstance(value, Table) for value in values):
        if any(isinstance(value, Array) for value in values):
            return (Piece(f"${name}", mark),)
        keys = [key for value in values if isinstance(value, Table) for key in value.values]
        return Table(
            {
                key: _join([value.values.get(key, ()) if isinstance(value, Table) else () for value in values], mark)
                for key in dict.fromkeys(keys)
            }
        )
    if any(isinstance(value, Array) for value in values):
        lists = [(missing(f"${name}"),) if value is None else elements(value) for value in values]
        return Array(_join_words(lists, mark))
    return _join([first_of(value, name) for value in values], mark)


def _join_words(lists: Sequence[tuple[Scalar, ...]], mark: Mark) -> tuple[Scalar, ...]:
    shared = 0
    while all(len(words) > shared and _same(words[shared], lists[0][shared]) for words in lists):
        shared += 1
    rests = [words[shared:] for words in lists]
    marked = mark._replace(answers=_answers(" ".join(map(text_of, rest)) for rest in rests))
    several = len({len(rest) for rest in rests}) > 1
    if all(len(rest) == 1 and not text_of(rest[0]).startswith("-") for rest in rests):
        rests = rests[:1]  # one value, whichever it is
    words = [all_marked(word, marked) for rest in rests for word in rest]
    return (*lists[0][:shared], *(map(_uncounted, words) if several else words))


def _uncounted(scalar: Scalar) -> Scalar:
    return tuple(
        piece if piece.mark is None else piece._replace(mark=piece.mark._replace(several=True)) for piece in scalar
    )


def _join(scalars: Sequence[Scalar], mark: Mark) -> Scalar:
    first = scalars[0]
    if all(_same(scalar, first) for scalar in scalars[1:]):
        return first
    shared = 0
    while all(len(scalar) > shared and scalar[shared][:2] == first[shared][:2] for scalar in scalars):
        shared += 1
    before, rests = list(first[:shared]), [list(scalar[shared:]) for scalar in scalars]
    if all(rest[0].mark is None for rest in rests if rest):  # within a piece, at a blank
        common = _common([rest[0].text if rest else "" for rest in rests])
        if common:
            before.append(rests[0][0]._replace(text=common) if rests[0] else Piece(common))
            rests = [[rest[0]._replace(text=rest[0].text[len(common) :]), *rest[1:]] if rest else [] for rest in rests]
    texts = [text_of(rest) for rest in rests]
    marked = mark._replace(answers=_answers(texts), ways=() if before else tuple(scalars))
    if all(text and " " not in text and not text.startswith("-") for text in texts):
        return (*before, Piece(texts[0], marked, rests[0][0].line))
    after: list[Piece] = []
    for rest in rests:
        pieces = all_marked(tuple(rest), marked)
        if text_of(pieces):
            after += [Piece(" ", marked), *pieces] if after else pieces
    return (*before, *(after or [Piece("", marked)]))


def _common(texts: Sequence[str]) -> str:
    """What all texts begin with, up to a blank where one of them goes on."""
    shortest = min(texts, key=len)
    end = next((at for at, char in enumerate(shortest) if any(text[at] != char for text in texts)), len(shortest))
    if all(len(text) == end or text[end] == " " for text in texts):
        return shortest[:end]
    return shortest[: shortest.rfind(" ", 0, end) + 1]


def all_marked(scalar: Scalar, mark: Mark) -> Scalar:
    """The value, of which nothing is known for certain."""
    found = tuple(piece if piece.mark is not None else piece._replace(mark=mark) for piece in scalar)
    return found or (Piece("", mark),)


def _answers(texts: Iterable[str]) -> tuple[str, ...]:
    """What a message may say of the branches' values: nothing where one of them is long."""
    shown = tuple(dict.fromkeys(text.strip() or "nothing" for text in texts))
    return shown if all(_SHOWABLE.fullmatch(text) for text in shown) else ()
