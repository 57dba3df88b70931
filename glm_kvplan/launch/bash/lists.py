"""Elements of a variable: of a list by number, of an associative array by key; what is written where a gap would be
is not known.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.syntax import Part
from glm_kvplan.launch.bash.values import (
    UNSET,
    Array,
    Scalar,
    Table,
    Unset,
    Value,
    all_marked,
    elements,
    known_text,
    mark_of,
    missing,
    uncounted,
)
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

OPEN = "?"  # for an index that is not known
_TARGET = re.compile(r"([A-Za-z_]\w*)(?:\[(.*)\])?", re.ASCII | re.DOTALL)


def target_of(text: str) -> tuple[str, str | None]:
    """`name` or `name[index]` as (name, index); ("", None) for any other text."""
    match = _TARGET.fullmatch(text)
    return (match[1], match[2]) if match else ("", None)


def index_of(shell: "Interpreter", index: tuple[Part, ...] | None, line: int = 0) -> str | None:
    """A subscript as text; None where there is none."""
    if index is None:
        return None
    text = known_text(shell.expander.scalar(index, line))
    return OPEN if text is None else text


def in_order(name: str, value: Value, values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Keys or values of `value`; bash gives several of an associative array in an order of its own."""
    if not isinstance(value, Table) or len(values) < 2:
        return values
    mark = Mark(f"the order of ${{{name}[@]}}")
    return tuple(all_marked(one, mark) for one in values)


def some_list(name: str) -> Scalar:
    """A list of which nothing is known; it is there, which a mark of `$NAME` would leave open."""
    return (Piece(f"${name}", Mark(f"${{{name}}}", several=True)),)


def of_any_length(value: Value) -> bool:
    """Whether it may be a list, of which nothing is known."""
    return isinstance(value, tuple) and mark_of(value) is not None


def element(shell: "Interpreter", name: str, index: str | None) -> Value:
    """One value: a scalar, UNSET or None; of a list the first, if `index` is None."""
    value = shell.get(name) if name.isidentifier() else shell.special(name)
    if index is None and isinstance(value, Array | Table):
        index = "0"
    if index is None or value is None or isinstance(value, Unset):
        return value
    if isinstance(value, Table) and index != OPEN:
        return value.values.get(index, UNSET)
    values = elements(value)
    at = None if isinstance(value, Table) else number_in(shell, index, values)
    if at is None or (at and of_any_length(value)):
        return missing(f"${{{name}[...]}}")
    return values[at] if at < len(values) else UNSET


def number_in(shell: "Interpreter", index: str, values: Sequence[Scalar]) -> int | None:
    """The place in a list that an index means; None where that is not known, or before its start."""
    at = shell.expander.number(index)
    if at is None or uncounted(values if at < 0 else values[:at]):
        return None
    at += len(values) if at < 0 else 0
    return None if at < 0 else at


def with_element(shell: "Interpreter", name: str, before: Value, index: str, made: Callable[[Value], Scalar]) -> Value:
    """The variable after `name[index]=`; `made` gives what stands there, from what stood there."""
    values, at = elements(before), None
    held: Value = UNSET
    if isinstance(before, Table):
        held = before.values.get(index, UNSET)
    elif not of_any_length(before):
        at = number_in(shell, index, values)
        held = values[at] if at is not None and at < len(values) else UNSET
    new = made(held)
    shell.scope.keep_secret(index, new)
    if isinstance(before, Table) and index != OPEN:
        return Table({**before.values, index: new})
    if at is None or at > len(values):
        return some_list(name)
    return Array((*values[:at], new, *values[at + 1 :]))


def without_element(shell: "Interpreter", name: str, index: str) -> Value:
    """The variable after `unset name[index]`."""
    before = shell.scope.get(name)
    if isinstance(before, Table) and index not in (OPEN, "@", "*"):
        return Table({key: value for key, value in before.values.items() if key != index})
    values = elements(before)
    at = number_in(shell, index, values) if isinstance(before, Array) else None
    if at is None or at < len(values) - 1:
        return some_list(name)
    return Array(values[:at])
