"""Parameters of a script's words: `$name`, `${name[index]}`, `${name:-word}` and their kin, as segments of a word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.leaving import Leave
from glm_kvplan.launch.bash.lists import element, in_order, index_of, of_any_length
from glm_kvplan.launch.bash.parameter_changes import slice_of, transformed
from glm_kvplan.launch.bash.syntax import Parameter
from glm_kvplan.launch.bash.values import (
    UNSET,
    Array,
    Scalar,
    Table,
    Unset,
    Value,
    elements,
    first_of,
    is_empty,
    joined,
    known_text,
    mark_of,
    missing,
    plain,
    uncounted,
)
from glm_kvplan.launch.bash.word_splitting import Segment
from glm_kvplan.launch.marked_words import Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.expansion import Expander
    from glm_kvplan.launch.bash.interpreter import Interpreter

_ALL = ("@", "*")
_CHOOSES = ("-", "=", "+", "?")  # the ends of operators that give the value or another word


def parameter(expander: "Expander", part: Parameter, line: int) -> Iterator[Segment]:
    """The segments of one parameter expansion."""
    shell = expander.shell
    sign = part.name if part.name in _ALL else index_of(shell, part.subscript, line)
    if part.prefix == "!":
        if sign in _ALL:
            yield from _many(expander, _keys(shell, part.name), part, sign)
            return
        name = known_text(first_of(element(shell, part.name, sign), part.name))
        if name is None or not re.fullmatch(r"[A-Za-z_]\w*|[0-9]{1,9}", name):
            yield Segment(missing(f"${{!{part.name}}}")[0], not part.quoted)
            return
        part, sign = replace(part, name=name, prefix="", subscript=None), None
    if sign in _ALL:
        yield from _list(expander, part, sign, line)
        return
    found = element(shell, part.name, sign)
    if part.prefix == "#":
        text = known_text(first_of(found, part.name))
        length = missing(f"${{#{part.name}}}")[0] if text is None else Piece(str(len(text)), None, line)
        yield Segment(length, not part.quoted)
        return
    if part.operator.endswith(_CHOOSES):
        chosen = _chosen(expander, part, found, line)
        if chosen is not None:
            yield from chosen
            return
    elif isinstance(found, Unset) and shell.scope.option("nounset") is True:
        found = _stopped(shell, part)
    value = first_of(found, part.name)
    if part.operator and not part.operator.endswith(_CHOOSES):
        value = transformed(expander, part, value, line)
    yield from _many(expander, (value,), part, None)


def _list(expander: "Expander", part: Parameter, sign: str, line: int) -> Iterator[Segment]:
    """`$@`, `${name[@]}` and what operators make of them."""
    shell = expander.shell
    held = Array(shell.arguments()) if part.name in _ALL else shell.get(part.name)
    values = elements(held)
    if part.prefix == "#":
        known = held is not None and not of_any_length(held) and not uncounted(values)
        length = Piece(str(len(values)), None, line) if known else missing(f"${{#{part.name}[@]}}")[0]
        yield Segment(length, not part.quoted)
        return
    if part.operator.endswith(_CHOOSES):
        state: Value = held if held is None or len(values) > 1 else values[0] if values else UNSET
        chosen = _chosen(expander, part, state, line, sign)
        if chosen is not None:
            yield from chosen
            return
    if held is None:
        yield Segment(missing(f"${part.name}")[0], not part.quoted)
        return
    values = in_order(part.name, held, values)
    if part.operator == ":":
        values = slice_of(expander, part, values, line)
    elif part.operator and not part.operator.endswith(_CHOOSES):
        values = tuple(transformed(expander, part, value, line) for value in values)
    yield from _many(expander, values, part, sign)


def _many(expander: "Expander", values: Sequence[Scalar], part: Parameter, sign: str | None) -> Iterator[Segment]:
    """Values of a list: words of their own, or joined by IFS for a quoted `*`."""
    joins = part.quoted and sign == "*"
    if joins:
        yield Segment(Piece(""))
    for at, value in enumerate(values):
        if at:
            yield Segment(expander.joiner() if sign == "*" else Piece(" "), ends=not joins)
        yield from (Segment(piece, not part.quoted) for piece in value or (Piece(""),))


def _keys(shell: "Interpreter", name: str) -> tuple[Scalar, ...]:
    value = shell.get(name)
    if of_any_length(value) or uncounted(elements(value)):
        return (missing(f"${{!{name}[@]}}"),)
    keys = value.values if isinstance(value, Table) else map(str, range(len(elements(value))))
    return in_order(name, value, tuple(map(plain, keys)))


def _stopped(shell: "Interpreter", part: Parameter) -> Scalar:
    """A value without which bash does not go on. The script's arguments may yet be given."""
    if part.name.isdigit() and not shell.locals:
        return missing(f"${part.name}")
    raise Leave("exit", status=False)


def _chosen(expander: "Expander", part: Parameter, found: Value, line: int, sign: str = "") -> Sequence[Segment] | None:
    """What `:-`, `:+` and their kin give instead of the value; None for the value itself."""
    colon, operator = part.operator[:-1], part.operator[-1]
    there = _there(found, bool(colon))
    if operator == "?":
        return [Segment(_stopped(expander.shell, part)[0])] if there is False else None
    if operator == "+":
        if there is False:
            no_word = not part.quoted or (sign == "@" and isinstance(found, Unset))
            return [] if no_word else [Segment(Piece(""))]
        argument = _argument(expander, part, line)
        if there:
            return argument
        mark = expander.shell.doubt(mark_of(first_of(found, part.name)) or part.name, line)
        if part.quoted:
            return [Segment(Piece("", mark))]
        return [one._replace(piece=one.piece._replace(mark=mark)) for one in argument]
    mark_of_value = found[0].mark if isinstance(found, tuple) and len(found) == 1 else None
    if colon and mark_of_value is not None and mark_of_value.ways:  # several values, some of which may be empty
        default = expander.scalar(part.argument, line)
        ways = [default if is_empty(way) or _unset_perhaps(way) else way for way in mark_of_value.ways]
        value = joined(ways, part.name, mark_of_value._replace(ways=()))
        return [Segment(piece, not part.quoted) for piece in first_of(value, part.name)]
    if there or (there is None and not _unset_perhaps(first_of(found, part.name))):
        return None
    if operator == "=":
        index = index_of(expander.shell, part.subscript, line)
        target = part.name if index is None else f"{part.name}[{index}]"
        store(expander.shell, target, expander.scalar(part.argument, line))
    return _argument(expander, part, line)


def _argument(expander: "Expander", part: Parameter, line: int) -> Sequence[Segment]:
    """The word that an operator puts in; within quotes there is one, if empty."""
    found = list(expander.segments(part.argument, line, inside=not part.quoted))
    return found or ([Segment(Piece(""))] if part.quoted else [])


def _there(found: Value, colon: bool) -> bool | None:
    """Whether a value counts as there; None where that is not known."""
    match found:
        case None:
            return None
        case Unset():
            return False
        case Array() | Table():
            return True
        case scalar:
            empty = is_empty(scalar) if colon else False
            return None if empty is None else not empty


def _unset_perhaps(value: Scalar) -> bool:
    """A value made of variables that are not defined here: without them there is none, and the default holds."""
    return all(
        piece.mark is not None and not piece.mark.place and re.fullmatch(r"\$\w+", piece.mark.name) for piece in value
    )
