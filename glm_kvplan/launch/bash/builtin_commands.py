"""What bash does itself: declarations, arguments, sourcing, leaving, printing; and programs that only name paths."""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash import truth
from glm_kvplan.launch.bash.assignments import appended, empty_list
from glm_kvplan.launch.bash.syntax import Part, Text, WordNode
from glm_kvplan.launch.bash.values import UNSET, Array, Scalar, known_text, mark_of, missing, plain, text_of
from glm_kvplan.launch.marked_words import Mark, Piece, printable

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter
    from glm_kvplan.launch.bash.simple_commands import Started

DECLARE = ("export", "declare", "typeset", "local", "readonly")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTINGS = re.compile(r"(?:activate|conda\.sh|\.bashrc|\.profile|profile|setvars\.sh|lmod.*|modules?\.sh)$")
_FORMAT = re.compile(r"%[-0-9.]*([sdbq%])|\\([ntr\\])|([^%\\]+|[%\\])")
_MOST_NUMBERS = 1024


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
        if not _NAME.fullmatch(target):
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
        if _NAME.fullmatch(name):
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


def nested(value: Sequence[Piece]) -> tuple[str, Mapping[int, Piece]]:
    """A script's text that an outer shell made, with what is not known of it set apart."""
    from glm_kvplan.launch.bash.word_reader import GIVEN

    given = {at: piece for at, piece in enumerate(value) if piece.mark is not None}
    return "".join(f"{GIVEN}{at}{GIVEN}" if at in given else piece.text for at, piece in enumerate(value)), given


def _leave(kind: str) -> Callable[["Interpreter", "Started"], truth.Truth]:
    def leave(shell: "Interpreter", found: "Started") -> truth.Truth:
        from glm_kvplan.launch.bash.interpreter import Leave

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


def _echo(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = list(found.words[1:])
    ending = "\n"
    while words and re.fullmatch("-[neE]+", words[0].text):
        ending = "" if "n" in words[0].text else ending
        del words[0]
    pieces: list[Piece] = []
    for at, word in enumerate(words):
        pieces += ([Piece(" ")] if at else []) + list(word.value)
    shell.printed((*pieces, Piece(ending)))
    return True


def _printf(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = list(found.words[1:])
    target = ""
    if len(words) > 1 and words[0].text == "-v":
        target = words[1].text
        del words[:2]
    if words and words[0].text == "--":
        del words[0]
    value = _formatted([word.value for word in words]) if words else ()
    if target:
        shell.assign(target, value)
    else:
        shell.printed(value)
    return True


def _formatted(values: Sequence[Scalar]) -> Scalar:
    form = known_text(values[0])
    if form is None:
        return missing("$(...)")
    waiting = list(values[1:])
    found: list[Piece] = []
    while True:
        before = len(waiting)
        for kind, escape, text in _FORMAT.findall(form):
            if kind == "%":
                found.append(Piece("%"))
            elif kind:
                found += waiting.pop(0) if waiting else ()
            else:
                found.append(Piece({"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}.get(escape, text)))
        if not waiting or len(waiting) == before or len(found) > 10_000:
            return tuple(found)


def _cat(shell: "Interpreter", found: "Started") -> truth.Truth:
    if found.stdin is not None and all(word.text == "-" for word in found.words[1:]):
        shell.printed(found.stdin)
        return True
    return _told(shell, found)


def _told(shell: "Interpreter", found: "Started") -> truth.Truth:
    from glm_kvplan.launch.bash.simple_commands import external

    external(shell, found)
    return Mark(f"`{found.words[0].text[:24]}`", shell.place(found.line))


def _cd(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = [word for word in found.words[1:] if not re.fullmatch("-[LPe@-]*", word.text)]
    folder = known_text(words[0].value) if words else None
    here = known_text(shell.scope.folder) if shell.scope.folder is not None else None
    if folder is not None and not folder.startswith("/"):
        folder = None if here is None else posixpath.join(here, folder)
    shell.scope.folder = missing("$PWD") if folder is None else plain(posixpath.normpath(folder))
    return True


def _pwd(shell: "Interpreter", found: "Started") -> truth.Truth:
    shell.printed((*(shell.scope.folder or missing("$PWD")), Piece("\n")))
    return True


def _path(change: Callable[[str], str]) -> Callable[["Interpreter", "Started"], truth.Truth]:
    """A program that only says something of a path."""

    def named(shell: "Interpreter", found: "Started") -> truth.Truth:
        words = [word for word in found.words[1:] if not word.text.startswith("-")]
        texts = [known_text(word.value) for word in words]
        if len(texts) == 1 and texts[0] is not None:
            shell.printed((*plain(change(texts[0])), Piece("\n")))
        else:
            mark = next((mark for word in words if (mark := mark_of(word.value)) is not None), None)
            shell.printed(missing("$(...)") if mark is None else (Piece("$(...)", mark),))
        return True

    return named


def _seq(shell: "Interpreter", found: "Started") -> truth.Truth:
    texts = [known_text(word.value) for word in found.words[1:]]
    if not 1 <= len(texts) <= 3 or not all(text and re.fullmatch("-?[0-9]{1,9}", text) for text in texts):
        return _told(shell, found)
    numbers = [int(text or 0) for text in texts]
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[1])
    if len(numbers) == 3:
        step, last = numbers[1] or 1, numbers[2]
    counted = range(first, last + (1 if step > 0 else -1), step)
    if len(counted) > _MOST_NUMBERS:
        return _told(shell, found)
    shell.printed(plain("".join(f"{number}\n" for number in counted)))
    return True


def _read(shell: "Interpreter", found: "Started") -> truth.Truth:
    words = [word.text for word in found.words[1:]]
    names, whole, listed, at = [], False, False, 0
    while at < len(words):
        text = words[at]
        at += 1
        if text.startswith("-") and len(text) > 1:
            listed = listed or "a" in text
            if text[-1] in "dinNptu" and at < len(words):
                whole = whole or (text[-1] == "d" and not words[at])
                at += 1
        elif _NAME.fullmatch(text):
            names.append(text)
    value = found.stdin
    separators = next((known_text(value) for name, value in found.before if name == "IFS"), shell.separators())
    for number, name in enumerate(names or ["REPLY"]):
        if value is None or separators is None:
            shell.assign(name, missing(f"${name}"))
            continue
        read = known_text(value)
        if read is None:
            shell.assign(name, (Piece(f"${name}", mark_of(value)),) if not whole or len(names) > 1 else value)
            continue
        line = read if whole else read.partition("\n")[0]
        parts = re.split(f"[{re.escape(separators)}]+", line.strip(separators)) if separators else [line]
        if listed:
            shell.assign(name, Array(tuple(map(plain, parts))))
        elif number == len(names) - 1:
            shell.assign(name, plain(" ".join(parts[number:]) if number else line.strip(separators)))
        else:
            shell.assign(name, plain(parts[number]) if number < len(parts) else ())
    return Mark("`read`", shell.place(found.line)) if value is None else not whole


def _mapfile(shell: "Interpreter", found: "Started") -> truth.Truth:
    name = found.words[-1].text if len(found.words) > 1 and _NAME.fullmatch(found.words[-1].text) else "MAPFILE"
    text = known_text(found.stdin) if found.stdin is not None else None
    shell.assign(name, missing(f"${name}") if text is None else Array(tuple(map(plain, text.splitlines()))))
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
    from glm_kvplan.launch.bash.interpreter import Leave

    if len(found.words) == 1:
        return True
    _told(shell, found)
    raise Leave("exit")


def _succeeds(shell: "Interpreter", found: "Started") -> truth.Truth:
    return True


BUILTINS: Mapping[str, Callable[["Interpreter", "Started"], truth.Truth]] = {
    **dict.fromkeys(DECLARE, _declare),
    **dict.fromkeys((":", "true", "trap", "wait", "ulimit", "umask", "shopt", "alias", "hash", "disown"), _succeeds),
    **{kind: _leave(kind) for kind in ("exit", "return", "break", "continue")},
    **dict.fromkeys(("[", "test"), _test),
    **dict.fromkeys((".", "source"), _source),
    **dict.fromkeys(("command", "builtin"), _command),
    **dict.fromkeys(("mapfile", "readarray"), _mapfile),
    **dict.fromkeys(("cd", "pushd"), _cd),
    **dict.fromkeys(("realpath", "readlink"), _path(posixpath.normpath)),
    "dirname": _path(lambda path: posixpath.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")),
    "basename": _path(lambda path: posixpath.basename(path.rstrip("/"))),
    "false": lambda shell, found: False,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "eval": _eval,
    "exec": _exec,
    "let": _let,
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "pwd": _pwd,
    "seq": _seq,
    "read": _read,
}
