"""`declare`, `local`, `export`, `unset` and their like, and what a declaration makes of every later value."""

import re
from typing import TYPE_CHECKING

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.assignments import assigned, store
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.lists import target_of, without_element
from glm_kvplan.launch.bash.started_commands import Started
from glm_kvplan.launch.bash.syntax import Part, Text
from glm_kvplan.launch.bash.values import (
    UNSET,
    Array,
    Scalar,
    Table,
    Unset,
    Value,
    known_text,
    mark_of,
    missing,
    plain,
)
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

DECLARE = ("export", "declare", "typeset", "local", "readonly")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?)(\+?)=")
_SHAPES = frozenset("ilu")  # letters of attributes that change what is assigned


def as_assignment(parts: tuple[Part, ...]) -> tuple[str, tuple[Part, ...]] | None:
    """A word that spells an assignment: `name=` and the parts of its value."""
    first = parts[0] if parts else None
    match = _ASSIGNMENT.match(first.text) if isinstance(first, Text) and not first.quoted else None
    if match is None or not isinstance(first, Text):
        return None
    rest = first.text[match.end() :]
    return match[0], (Text(rest, False), *parts[1:]) if rest else parts[1:]


def declare(shell: "Interpreter", found: Started) -> Truth:
    """The five commands that declare."""
    command = found.words[0].text
    given = [word.text for word in found.words[1:] if re.fullmatch("[-+][A-Za-z]+", word.text)]
    on = "".join(text[1:] for text in given if text[0] == "-")
    off = "".join(text[1:] for text in given if text[0] == "+") + ("x" if command == "export" and "n" in on else "")
    if "p" in on or "F" in on or (command != "export" and "f" in on):
        shell.printed(missing("$(...)"))
        return shell.doubt(f"`{command}`", found.line)
    if "n" in on and command != "export":
        raise InputError(f"{shell.place(found.line)}: `{command} -n` is not read here; give the launch command alone")
    if command == "local" and not shell.locals:
        return False
    if command == "export" and "f" in on:
        return True
    is_local = command in ("local", "declare", "typeset") and bool(shell.locals) and "g" not in on
    attributes = (on, off, command == "readonly")
    status: Truth = True
    for word in found.words[1:]:
        match = _ASSIGNMENT.match(word.text)
        target, index = target_of(match[1] if match else word.text)
        if not target or (index is not None and not match):
            if mark_of(word.value) is not None:
                shell.note(f"{shell.place(found.line)}: what `{command}` is given is not known here, nor what it sets")
            continue
        if match and "r" in shell.scope.attributes(target) and not (is_local and target not in shell.locals[-1]):
            status = False
            continue
        _begin(shell, target, is_local, attributes)
        if match:
            _assign(shell, match[1], _after(word.value, match.end()), bool(match[2]), "g" in on)
        _finish(shell, target, command, attributes)
    for one in found.lists:
        _begin(shell, one.name, is_local, attributes)
        assigned(shell, one)
        _finish(shell, one.name, command, attributes)
    return status


def _assign(shell: "Interpreter", target: str, value: Scalar, append: bool, outside: bool) -> None:
    name, index = target_of(target)
    hiding = next((frame for frame in shell.locals if name in frame), None) if outside else None
    if hiding is not None:
        hiding[name] = missing(f"${{{name}}}") if append or index is not None else value
    else:
        store(shell, target, value, append)


def _begin(shell: "Interpreter", name: str, is_local: bool, attributes: tuple[str, str, bool]) -> None:
    """Hide what a local variable hides, keep the attributes and make an empty list where one is declared."""
    on, off, _ = attributes
    if is_local and name not in shell.locals[-1]:
        key = f"{name}/"
        shell.locals[-1].update({name: shell.scope.get(name), key: shell.scope.get(key)})
        shell.scope.set(name, UNSET)
        shell.scope.set(key, plain(""))
    if _SHAPES & {*on, *off}:
        shell.scope.set(f"{name}/", plain(shell.scope.attributes(name).replace("s", "") + "s" * bool(_SHAPES & {*on})))
    if "A" in on and not isinstance(shell.scope.get(name), Table):
        shell.assign(name, Table({}))
    elif "a" in on and not isinstance(shell.scope.get(name), Array | Table):
        held = shell.scope.get(name)
        shell.assign(name, Array((held,) if isinstance(held, tuple) else ()))


def _finish(shell: "Interpreter", name: str, command: str, attributes: tuple[str, str, bool]) -> None:
    on, off, readonly = attributes
    if readonly or "r" in on:
        shell.scope.set(f"{name}/", plain(shell.scope.attributes(name) + "r"))
    if "x" in off:
        shell.scope.exported[name] = False
    elif command == "export" or "x" in on:
        shell.scope.exported[name] = True


def _after(value: Scalar, length: int) -> Scalar:
    """The pieces without their first characters."""
    found = []
    for piece in value:
        cut = min(length, len(piece.text))
        length -= cut
        if cut < len(piece.text) or (piece.mark is not None and not cut):
            found.append(piece._replace(text=piece.text[cut:]))
    return tuple(found)


def unset(shell: "Interpreter", found: Started) -> Truth:
    words = [word.text for word in found.words[1:] if not re.fullmatch("-[fvn]+", word.text)]
    options = "".join(word.text for word in found.words[1:] if re.fullmatch("-[fvn]+", word.text))
    status: Truth = True
    for word in words:
        name, index = target_of(word)
        if "f" in options or ("v" not in options and shell.scope.get(word) is None and word in shell.scope.functions):
            shell.scope.functions.pop(word, None)
        elif not name or "n" in options:
            continue
        elif "r" in shell.scope.attributes(name):
            status = False
        elif index is not None:
            shell.assign(name, without_element(shell, name, index.strip("\"'")))
        else:
            shell.scope.set(f"{name}/", plain(""))
            shell.assign(name, UNSET)
    return status


def shaped(name: str, attributes: str, value: Value) -> Value:
    """What attributes leave of a value: whole numbers stay; what others become (`declare -i`, `-l`) is not known."""

    def one(scalar: Scalar) -> Scalar:
        if "?" not in attributes and re.fullmatch("0|-?[1-9][0-9]{0,17}", known_text(scalar) or ""):
            return scalar
        return (Piece(f"${name}", mark_of(scalar) or Mark(f"${{{name}}}")),)

    if value is None or isinstance(value, Unset):
        return value
    if isinstance(value, Array):
        return Array(tuple(map(one, value.values)))
    return Table({key: one(scalar) for key, scalar in value.values.items()}) if isinstance(value, Table) else one(value)
