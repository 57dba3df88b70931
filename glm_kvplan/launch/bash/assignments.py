"""Assignments of a script: `name=value`, `name+=value`, `name[index]=value`, `name=(values)`."""

import re
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.syntax import Assignment, Text, WordNode
from glm_kvplan.launch.bash.values import Array, Scalar, Table, Unset, Value, first_of, known_text, missing

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_KEYED = re.compile(r"\[([^\]]*)\]=")
_MOST_GAPS = 4096


def assigned(shell: "Interpreter", found: Assignment) -> None:
    """Carry one assignment out."""
    if not isinstance(found.value, WordNode):
        shell.assign(found.name, _list(shell, found))
        return
    value = shell.expander.scalar(found.value.parts, found.value.line)  # first: it may assign the variable itself
    if found.index is not None:
        shell.assign(found.name, _with_element(shell, shell.get(found.name), found, value))
    elif found.append:
        shell.assign(found.name, appended(shell.get(found.name), value, found.name))
    else:
        shell.assign(found.name, value)


def appended(before: Value, value: Scalar, name: str) -> Value:
    """What `name+=value` makes of the value before."""
    match before:
        case Unset():
            return value
        case Array(values):
            return Array(((*(values[0] if values else ()), *value), *values[1:]))
        case _:
            return (*first_of(before, name), *value)


def _list(shell: "Interpreter", found: Assignment) -> Value:
    assert not isinstance(found.value, WordNode)
    keyed = [_keyed(shell, node) for node in found.value]
    if keyed and all(entry is not None for entry in keyed):
        before = shell.get(found.name)
        earlier = dict(before.values) if found.append and isinstance(before, Table) else {}
        return Table({**earlier, **dict(entry for entry in keyed if entry is not None)})
    values = tuple(one.value for one in shell.expander.fields(found.value))
    before = shell.get(found.name)
    if not found.append or before is None or isinstance(before, Unset | Table):
        return Array(values)  # where nobody has begun it: the environment holds no lists
    earlier_values = before.values if isinstance(before, Array) else (first_of(before, found.name),)
    return Array((*earlier_values, *values))


def _keyed(shell: "Interpreter", node: WordNode) -> tuple[str, Scalar] | None:
    """`[key]=value` inside a list."""
    first = node.parts[0] if node.parts else None
    if not isinstance(first, Text) or first.quoted:
        return None
    match = _KEYED.match(first.text)
    if match is None:
        return None
    rest = Text(first.text[match.end() :], False)
    parts = (rest, *node.parts[1:]) if rest.text else node.parts[1:]
    value = shell.expander.scalar(parts, node.line)
    shell.scope.keep_secret(match[1], value)
    return match[1], value


def _with_element(shell: "Interpreter", before: Value, found: Assignment, value: Scalar) -> Value:
    key = (found.index or "").strip("\"'")
    shell.scope.keep_secret(key, value)
    if isinstance(before, Table):
        new = appended(before.values.get(key, ()), value, key) if found.append else value
        return Table({**before.values, key: first_of(new, key)})
    index = known_text(shell.expander.calculated((Text(key, True),), 0)) if "$" not in key else None
    values = list(before.values) if isinstance(before, Array) else [before] if isinstance(before, tuple) else []
    if index is None or not index.isdigit() or int(index) > min(len(values), _MOST_GAPS):
        return missing(f"${found.name}") if values else Table({key: value})
    at = int(index)
    if found.append and at < len(values):
        value = (*values[at], *value)
    return Array((*values[:at], value, *values[at + 1 :]))


def empty_list(shell: "Interpreter", name: str, table: bool) -> None:
    """`declare -a name` or `declare -A name`."""
    if not isinstance(shell.get(name), Array | Table):
        shell.assign(name, Table({}) if table else Array(()))
