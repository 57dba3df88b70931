"""Assignments of a script: `name=value`, `name+=value`, `name[index]=value`, `name=(values)`."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.leaving import Leave
from glm_kvplan.launch.bash.syntax import Assignment, Text, WordNode
from glm_kvplan.launch.bash.values import (
    UNSET,
    Array,
    Scalar,
    Table,
    Unset,
    Value,
    first_of,
    known_text,
    mark_of,
    missing,
    plain,
)

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter


def assigned(shell: "Interpreter", found: Assignment) -> None:
    """Carry one assignment out."""
    if "r" in shell.scope.attributes(found.name):
        raise Leave("exit", status=False)  # as bash does
    if not isinstance(found.value, WordNode):
        shell.assign(found.name, _list(shell, found))
        return
    value = shell.expander.scalar(found.value.parts, found.value.line)  # first: it may assign the variable itself
    store(shell, found.name, value, _index(shell, found), found.append)


def _index(shell: "Interpreter", found: Assignment) -> str | None:
    if found.index is None:
        return None
    text = known_text(shell.expander.scalar(found.index, 0))
    return "?" if text is None else text


def store(shell: "Interpreter", name: str, value: Scalar, index: str | None = None, append: bool = False) -> None:
    """`name=value`, of a list its first element; `name[index]=value`, "?" for an index that is not known."""
    if index is None and isinstance(shell.held(name), Array | Table):
        index = "0"
    if index is not None:
        shell.assign(name, _with_element(shell, shell.get(name), name, index, value, append))
    else:
        shell.assign(name, appended(shell, shell.get(name), value, name) if append else value)


def stored_at(shell: "Interpreter", target: str, value: Scalar) -> None:
    """`store` where the name, perhaps with an index, is given as text."""
    match = re.fullmatch(r"([A-Za-z_]\w*)(?:\[(.*)\])?", target, re.ASCII)
    if match is not None:
        store(shell, match[1], value, match[2])


def appended(shell: "Interpreter", before: Value, value: Scalar, name: str) -> Scalar:
    """What `name+=value` makes of one value."""
    if isinstance(before, Unset):
        return value
    if "i" in shell.scope.attributes(name):
        return (*plain("("), *first_of(before, name), *plain(")+("), *value, *plain(")"))
    return (*first_of(before, name), *value)


def _list(shell: "Interpreter", found: Assignment) -> Value:
    assert not isinstance(found.value, WordNode)
    before = shell.get(found.name) if found.append else shell.held(found.name)
    if isinstance(before, Table) and not before.numbered:
        return _table(shell, found, before)
    if isinstance(before, Table) and found.append:
        return _with_indices(shell, found, _by_number(before, ()), 0)
    values: list[Scalar] = []
    if found.append and before is not None and not isinstance(before, Unset | Table):  # the environment holds no lists
        values += before.values if isinstance(before, Array) else (first_of(before, found.name),)
    for number, node in enumerate(found.value):
        if isinstance(node, Assignment):
            return _with_indices(shell, found, dict(enumerate(values)), number)
        values += [one.value for one in shell.expander.fields((node,))]
    return Array(tuple(values))


def _with_indices(shell: "Interpreter", found: Assignment, values: dict[int, Scalar], start: int) -> Value:
    """A list by its indices, once those from `start` on are added, which may say where they stand."""
    assert not isinstance(found.value, WordNode)
    at = _end(values)
    for node in found.value[start:]:
        if isinstance(node, WordNode):
            entries = [one.value for one in shell.expander.fields((node,))]
        else:
            index = _number(shell, _index(shell, node) or "", _end(values))
            if index is None:
                return missing(f"${found.name}")
            at, entry = index, _scalar(shell, node)
            entries = [appended(shell, values.get(at, UNSET), entry, found.name) if node.append else entry]
        values |= enumerate(entries, at)
        at += len(entries)
    return _numbered(values)


def _end(values: Mapping[int, Scalar]) -> int:
    """The index behind the last, from which a negative one counts."""
    return max(values, default=-1) + 1


def _numbered(values: Mapping[int, Scalar]) -> Value:
    """A list given by its indices, which may leave gaps."""
    if len(values) == _end(values):
        return Array(tuple(values[at] for at in range(len(values))))
    return Table({str(at): values[at] for at in sorted(values)}, numbered=True)


def _table(shell: "Interpreter", found: Assignment, before: Table) -> Value:
    assert not isinstance(found.value, WordNode)
    values = dict(before.values) if found.append else {}
    for node in found.value:
        key = None if isinstance(node, WordNode) else _index(shell, node)
        if isinstance(node, WordNode) or key in (None, "?"):
            return missing(f"${found.name}")
        assert key is not None
        value = _scalar(shell, node)
        values[key] = appended(shell, values.get(key, UNSET), value, found.name) if node.append else value
        shell.scope.keep_secret(key, values[key])
    return Table(values)


def _scalar(shell: "Interpreter", node: Assignment) -> Scalar:
    assert isinstance(node.value, WordNode)
    return shell.expander.scalar(node.value.parts, node.value.line)


def _number(shell: "Interpreter", index: str, length: int) -> int | None:
    """Where in a list of `length` values an index lies; None where that is not known, or below its start."""
    text = known_text(shell.expander.calculated((Text(index, True),), 0)) if index != "?" else None
    if text is None or not re.fullmatch("-?[0-9]{1,9}", text):
        return None
    at = int(text) + length if text.startswith("-") else int(text)
    return at if at >= 0 else None


def _with_element(shell: "Interpreter", before: Value, name: str, index: str, value: Scalar, append: bool) -> Value:
    unknown = missing(f"${name}")
    if isinstance(before, Table) and not before.numbered:
        if index == "?":
            return unknown
        shell.scope.keep_secret(index, value)
        new = appended(shell, before.values.get(index, UNSET), value, name) if append else value
        return Table({**before.values, index: new})
    shell.scope.keep_secret(index, value)
    if isinstance(before, tuple) and mark_of(before) is not None:
        return unknown  # it may be a list of any length
    values = before.values if isinstance(before, Array) else (before,) if isinstance(before, tuple) else ()
    at = _number(shell, index, before.end if isinstance(before, Table) else len(values))
    if at is None:
        return unknown
    if isinstance(before, Table) or at > len(values):
        found = _by_number(before, values)
        found[at] = appended(shell, found.get(at, UNSET), value, name) if append else value
        return _numbered(found)
    if append:
        value = appended(shell, values[at] if at < len(values) else UNSET, value, name)
    return Array((*values[:at], value, *values[at + 1 :]))


def _by_number(value: Value, values: Sequence[Scalar]) -> dict[int, Scalar]:
    if isinstance(value, Table):
        return {int(key): one for key, one in value.values.items()}
    return dict(enumerate(values))


def without_element(shell: "Interpreter", name: str, index: str) -> None:
    """`unset name[index]`."""
    before = shell.held(name)
    found: Value = missing(f"${name}")
    if index in ("?", "@", "*"):
        pass
    elif isinstance(before, Table) and not before.numbered:
        found = Table({key: value for key, value in before.values.items() if key != index})
    elif isinstance(before, Array | Table):
        values = _by_number(before, before.values if isinstance(before, Array) else ())
        at = _number(shell, index, _end(values))
        if at is not None:
            values.pop(at, None)
            found = _numbered(values)
    shell.assign(name, found)
