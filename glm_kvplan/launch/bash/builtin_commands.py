"""What bash does itself: declarations, arguments, sourcing, testing, leaving; and the table of all that is built in."""

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash import truth
from glm_kvplan.launch.bash.assignments import appended, empty_list
from glm_kvplan.launch.bash.syntax import Part, Text, WordNode
from glm_kvplan.launch.bash.text_commands import TEXT_COMMANDS, Builtin, told
from glm_kvplan.launch.bash.values import UNSET, Scalar, known_text, mark_of, missing, plain, text_of
from glm_kvplan.launch.bash.word_reader import NAME, nested
from glm_kvplan.launch.marked_words import Mark, Piece, printable

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter
    from glm_kvplan.launch.bash.simple_commands import Started

DECLARE = ("export", "declare", "typeset", "local", "readonly")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_SETTINGS = re.compile(r"(?:activate|conda\.sh|\.bashrc|\.profile|profile|setvars\.sh|lmod.*|modules?\.sh)$")


class Leave(Exception):
    """`exit`, `return`, `break` or `continue`."""

    def __init__(self, kind: str, levels: int = 1) -> None:
        self.kind, self.levels = kind, levels


def as_assignment(node: WordNode) -> tuple[str, tuple[Part, ...]] | None:
    """A word that spells an assignment: `name=` and the parts of its value."""
    first = node.parts[0] if node.parts else None
    match = _ASSIGNMENT.match(first.text) if isinstance(first, Text) and not first.quoted else None
    if match is None or not isinstance(first, Text):
        return None
    rest = first.text[match.end() :]
    return match[0], (Text(rest, False), *node.parts[1:]) if rest else node.parts[1:]


def _declare(shell: "Interpreter", found: "Started") -> truth.Truth:
    name = found.words[0].text
    options = "".join(word.text[1:] for word in found.words[1:] if word.text[:1] in "-+" and word.text[1:])
    exports = name == "export" or "x" in options
    if name == "export" and ("n" in options or "f" in options):
        return True
    names = []
    for word in found.words[1:]:
        match = _ASSIGNMENT.match(word.text)
        target = match[1] if match else word.text
        if not NAME.fullmatch(target):
            continue
        names.append(target)
        if name in ("local", "declare", "typeset") and shell.locals:
            shell.locals[-1].setdefault(target, shell.scope.get(target))
        if match:
            value = _after(word.value, match.end())
            shell.assign(target, appended(shell.get(target), value, target) if match[2] else value)
        elif "a" in options or "A" in options:
            empty_list(shell, target, "A" in options)
        elif name == "local":
            shell.assign(target, UNSET)
    for one in found.lists:
        if name in ("local", "declare", "typeset") and shell.locals:
            shell.locals[-1].setdefault(one.name, shell.scope.get(one.name))
        shell.assigned(one)
    if exports:
        shell.scope.exported.update(dict.fromkeys(names, True))
    return True


def _after(value: Scalar, length: int) -> Scalar:
    """The pieces without their first characters."""
    found = []
    for piece in value:
        cut = min(length, len(piece.text))
        length -= cut
        if cut < len(piece.text) or (piece.mark is not None and not cut):
            found.append(piece._replace(text=piece.text[cut:]))
    return tuple(found)


def _unset(shell: "Interpreter", found: "Started") -> truth.Truth:
    if len(found.words) > 1 and found.words[1].text == "-f":
        for word in found.words[2:]:
            shell.scope.functions.pop(word.text, None)
        return True
    for word in found.words[1:]:
        name, bracket, _ = word.text.partition("[")
        if NAME.fullmatch(name):
            shell.assign(name, missing(f"${name}") if bracket else UNSET)
    return True


def _set(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = list(found.words[1:])
    while words:
        text = words[0].text
        if text in ("-o", "+o"):
            if len(words) > 1 and words[1].text == "allexport":
                shell.scope.everything = text == "-o"
            del words[:2]
            continue
        if text == "--" or text[:1] not in ("-", "+"):
            shell.scope.set_arguments(word.value for word in words[text == "--" :])
            return True
        if "a" in text[1:]:
            shell.scope.everything = text[0] == "-"
        del words[0]
    return True


def _shift(shell: "Interpreter", found: "Started") -> truth.Truth:
    number = found.words[1].text if len(found.words) > 1 else "1"
    if not re.fullmatch("[0-9]{1,4}", number):
        return Mark("`shift`", shell.place(found.line))
    arguments = shell.scope.arguments
    if int(number) > len(arguments):
        return False
    shell.scope.set_arguments(arguments[int(number) :])
    return True


def _source(shell: "Interpreter", found: "Started") -> truth.Truth:
    name = found.words[1].text if len(found.words) > 1 else ""
    marked = mark_of(found.words[1].value) if name else None
    text = shell.around.beside(name) if name and marked is None else None
    if text is not None:
        return shell.run_inside(text, None, found.line)
    if not _SETTINGS.search(name):
        shell.note(f"{shell.place(found.line)}: {printable(name, 40)} is not read here; what it sets is not known")
    return Mark(f"`source` of {printable(posixpath.basename(name), 24)}", shell.place(found.line))


def _eval(shell: "Interpreter", found: "Started") -> truth.Truth:
    pieces: list[Piece] = []
    for word in found.words[1:]:
        pieces += ([Piece(" ")] if pieces else []) + list(word.value)
    text, given = nested(pieces)
    return shell.run_inside(text, given, found.line)


def _leave(kind: str) -> Builtin:
    def leave(shell: "Interpreter", found: "Started") -> truth.Truth:
        levels = found.words[1].text if len(found.words) > 1 else "1"
        raise Leave(kind, int(levels) if kind in ("break", "continue") and re.fullmatch("[1-9]", levels) else 1)

    return leave


def _test(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = found.words[1:]
    if found.words[0].text == "[":
        words = words[:-1] if words and words[-1].text == "]" else words
    return truth.test_command(shell, words, found.line)


def _let(shell: "Interpreter", found: "Started") -> truth.Truth:
    number = plain("0")
    for word in found.words[1:]:
        number = shell.expander.calculated((Text(word.text, True),), found.line)
    mark = mark_of(number)
    return Mark(mark.name, mark.place or shell.place(found.line)) if mark is not None else text_of(number) != "0"


def _cd(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = [word for word in found.words[1:] if not re.fullmatch("-[LPe@-]*", word.text)]
    folder = known_text(words[0].value) if words else None
    here = known_text(shell.scope.folder) if shell.scope.folder is not None else None
    if folder is not None and not folder.startswith("/"):
        folder = None if here is None else posixpath.join(here, folder)
    shell.scope.folder = missing("$PWD") if folder is None else plain(posixpath.normpath(folder))
    return True


def _command(shell: "Interpreter", found: "Started") -> truth.Truth:
    from glm_kvplan.launch.bash.simple_commands import start

    rest = found.words[1:]
    if not rest:
        return True
    if rest[0].text.startswith("-"):
        shell.printed(missing("$(...)"))
        return Mark(f"`{printable(rest[-1].text, 24)}`", shell.place(found.line))
    return start(shell, found._replace(words=rest))


def _exec(shell: "Interpreter", found: "Started") -> truth.Truth:
    if len(found.words) == 1:
        return True
    told(shell, found)
    raise Leave("exit")


def _succeeds(shell: "Interpreter", found: "Started") -> truth.Truth:
    return True


BUILTINS: Mapping[str, Builtin] = {
    **TEXT_COMMANDS,
    **dict.fromkeys(DECLARE, _declare),
    **dict.fromkeys((":", "true", "trap", "wait", "ulimit", "umask", "shopt", "alias", "hash", "disown"), _succeeds),
    **{kind: _leave(kind) for kind in ("exit", "return", "break", "continue")},
    **dict.fromkeys(("[", "test"), _test),
    **dict.fromkeys((".", "source"), _source),
    **dict.fromkeys(("command", "builtin"), _command),
    **dict.fromkeys(("cd", "pushd"), _cd),
    "false": lambda shell, found: False,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "eval": _eval,
    "exec": _exec,
    "let": _let,
}
