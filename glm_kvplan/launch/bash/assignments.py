"""Assignments of a script: `name=value`, `name+=value`, `name[index]=value`, `name=(values)`."""

from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.leaving import Leave
from glm_kvplan.launch.bash.lists import (
    OPEN,
    index_of,
    number_in,
    of_any_length,
    some_list,
    target_of,
    with_element,
)
from glm_kvplan.launch.bash.syntax import Assignment, WordNode
from glm_kvplan.launch.bash.values import UNSET, Array, Scalar, Table, Unset, Value, elements, first_of, missing

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter


def assigned(shell: "Interpreter", found: Assignment) -> None:
    """Carry one assignment out."""
    if "r" in shell.scope.attributes(found.name):
        raise Leave("exit", status=False)  # as bash does
    if not isinstance(found.value, WordNode):
        shell.assign(found.name, _list(shell, found, found.value))
        return
    value = shell.expander.scalar(found.value.parts, found.value.line)  # first: it may assign the variable itself
    _store(shell, found.name, index_of(shell, found.subscript), value, found.append)


def store(shell: "Interpreter", target: str, value: Scalar, append: bool = False) -> None:
    """`name=value`, of a list its first element, or `name[index]=value`; nothing where `target` is neither."""
    name, index = target_of(target)
    if name:
        _store(shell, name, index, value, append)


def _store(shell: "Interpreter", name: str, index: str | None, value: Scalar, append: bool) -> None:
    if index is None and isinstance(shell.scope.get(name), Array | Table):
        index = "0"

    def made(before: Value) -> Scalar:
        return _appended(shell, name, before, value) if append else value

    held = shell.get(name) if append or index is not None else None
    shell.assign(name, made(held) if index is None else with_element(shell, name, held, index, made))


def _appended(shell: "Interpreter", name: str, before: Value, value: Scalar) -> Scalar:
    """What `name+=value` makes of one value."""
    if isinstance(before, Unset):
        return value
    if shell.scope.attributes(name):
        return missing(f"${{{name}}}")
    return (*first_of(before, name), *value)


def _list(shell: "Interpreter", found: Assignment, nodes: tuple[WordNode | Assignment, ...]) -> Value:
    before = shell.get(found.name) if found.append else shell.scope.get(found.name)
    if isinstance(before, Table):
        return _table(shell, found, nodes, before)
    before = before if found.append else UNSET
    values = list(elements(before))  # what the environment holds is no list
    for node in nodes:
        if isinstance(node, WordNode):
            values += [one.value for one in shell.expander.fields((node,))]
            continue
        at = number_in(shell, index_of(shell, node.subscript) or "", values)
        if at != len(values) or of_any_length(before):  # not the next: in launch scripts keys are names
            return some_list(found.name)
        values.append(_scalar(shell, node))
    return Array(tuple(values))


def _table(shell: "Interpreter", found: Assignment, nodes: tuple[WordNode | Assignment, ...], before: Table) -> Value:
    held = dict(before.values)
    values = held if found.append else {}
    for node in nodes:
        if isinstance(node, WordNode):
            return some_list(found.name)
        key = index_of(shell, node.subscript) or ""
        if key == OPEN:
            return some_list(found.name)
        value = _scalar(shell, node)
        values[key] = _appended(shell, found.name, held.get(key, UNSET), value) if node.append else value
        shell.scope.keep_secret(key, values[key])
    return Table(values)


def _scalar(shell: "Interpreter", node: Assignment) -> Scalar:
    assert isinstance(node.value, WordNode)
    return shell.expander.scalar(node.value.parts, node.value.line)
