"""`declare`, `local`, `export`, `unset` and their like, and what a declaration makes of every later value."""

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.assignments import assigned, store
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.lists import of_any_length, target_of, without_element
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
    text_of,
)
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

DECLARE = ("export", "declare", "typeset", "local", "readonly")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?)(\+?)=")
_OPTIONS = re.compile("[-+][A-Za-z]+|--")
_SHAPES = frozenset("ilu")  # letters of attributes that change what is assigned


def as_assignment(parts: tuple[Part, ...]) -> tuple[str, tuple[Part, ...]] | None:
    """A word that spells an assignment: `name=` and the parts of its value."""
    match parts:
        case (Text(text, False as quoted), *others) if match := _ASSIGNMENT.match(text):
            return match[0], (Text(text[match.end() :], quoted), *others)
        case _:
            return None


def declare(shell: "Interpreter", found: Started) -> Truth:
    """The five commands that declare."""
    command = found.words[0].text
    given = [word.text for word in found.words[1:] if _OPTIONS.fullmatch(word.text)]
    on = "".join(text[1:] for text in given if text[0] == "-")
    off = "".join(text[1:] for text in given if text[0] == "+")
    if "p" in on or "F" in on or (command != "export" and "f" in on):
        shell.printed(missing("$(...)"))
        return shell.doubt(f"`{command}`", found.line)
    if "n" in on and command != "export":
        raise InputError(f"{shell.place(found.line)}: `{command} -n` is not read here; give the launch command alone")
    if command == "local" and not shell.locals:
        return False
    if "f" in on:
        return True
    is_local = command in ("local", "declare", "typeset") and bool(shell.locals) and "g" not in on
    attributes = (on, off, command == "readonly")
    status: Truth = True
    for word in [word for word in found.words[1:] if not _OPTIONS.fullmatch(word.text)]:
        match = _ASSIGNMENT.match(text_of(takewhile(lambda piece: piece.mark is None, word.value)))
        if match is None and mark_of(word.value) is not None:
            shell.note(f"{shell.place(found.line)}: what `{command}` is given is not known here, nor what it sets")
            continue
        target, _ = target_of(match[1] if match else word.text)
        if not target or _refused(shell, target, is_local, assigns=match is not None):
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


def _refused(shell: "Interpreter", name: str, is_local: bool, *, assigns: bool) -> bool:
    """Whether bash lets a variable be that is not to be changed; a local one may hide it if it is a caller's own."""
    hides = is_local and name not in shell.locals[-1]
    own = any(name in frame for frame in shell.locals)
    return "r" in shell.scope.attributes(name) and (not own if hides else assigns)


def _assign(shell: "Interpreter", target: str, value: Scalar, append: bool, outside: bool) -> None:
    hiding = next((frame for frame in shell.locals if target in frame), None) if outside else None
    if hiding is not None:
        hiding[target] = missing(f"${{{target}}}") if append else value
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
    held = shell.scope.get(name)
    if {"a", "A"} & {*on} and not isinstance(held, Array | Table) and not of_any_length(held):
        kept = {"0": held} if isinstance(held, tuple) else {}
        shell.assign(name, Table(kept) if "A" in on else Array(tuple(kept.values())))


def _finish(shell: "Interpreter", name: str, command: str, attributes: tuple[str, str, bool]) -> None:
    on, off, readonly = attributes
    if readonly or "r" in on:
        shell.scope.set(f"{name}/", plain(shell.scope.attributes(name) + "r"))
    if command == "export" or "x" in (*on, *off):
        shell.scope.exported[name] = "x" not in off and "n" not in on


def _after(value: Scalar, length: int) -> Scalar:
    """The pieces without their first characters."""
    found = []
    for piece in value:
        cut = min(length, len(piece.text))
        length -= cut
        found.append(piece._replace(text=piece.text[cut:]))
    return tuple(found)


def unset(shell: "Interpreter", found: Started) -> Truth:
    words = [word.text for word in found.words[1:]]
    options = "".join(word for word in words if _OPTIONS.fullmatch(word))
    status: Truth = True
    if "n" in options:
        return True  # what a reference goes by, and we have none
    for word in words:
        name, index = target_of(word)
        is_set = not isinstance(shell.scope.get(word), Unset | None)
        if "f" in options or ("v" not in options and not is_set and word in shell.scope.functions):
            shell.scope.functions.pop(word, None)
        elif not name:
            continue
        elif "r" in shell.scope.attributes(name):
            status = False
        elif index is not None:
            shell.assign(name, without_element(shell, name, index.strip("\"'")))
        else:
            shell.scope.set(f"{name}/", plain(""))
            shell.scope.exported[name] = False
            shell.assign(name, UNSET)
    return status


def shaped(name: str, attributes: str, value: Value) -> Value:
    """What attributes leave of a value: whole numbers stay; what others become (`declare -i`, `-l`) is not known."""

    def one(scalar: Scalar) -> Scalar:
        if "?" not in attributes and re.fullmatch("0|-?[1-9][0-9]{0,17}", known_text(scalar) or ""):
            return scalar
        return (Piece(f"${name}", mark_of(scalar) or Mark(f"${{{name}}}")),)

    if isinstance(value, Unset | None):
        return value
    if isinstance(value, Array):
        return Array(tuple(map(one, value.values)))
    return Table({key: one(scalar) for key, scalar in value.values.items()}) if isinstance(value, Table) else one(value)
