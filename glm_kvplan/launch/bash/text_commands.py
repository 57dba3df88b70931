"""What writes, reads or makes text: echo, printf, read and their like, and programs that only name paths."""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from glm_kvplan.launch.bash.truth import Truth
from glm_kvplan.launch.bash.values import Array, Scalar, known_text, mark_of, missing, plain
from glm_kvplan.launch.bash.word_reader import NAME
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter
    from glm_kvplan.launch.bash.simple_commands import Started

Builtin: TypeAlias = Callable[["Interpreter", "Started"], Truth]

_FORMAT = re.compile(r"%[-0-9.]*([sdbq%])|\\([ntr\\])|([^%\\]+|[%\\])")
_MOST_NUMBERS = 1024


def _echo(shell: "Interpreter", found: "Started") -> Truth:
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


def _printf(shell: "Interpreter", found: "Started") -> Truth:
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


def _cat(shell: "Interpreter", found: "Started") -> Truth:
    if found.stdin is not None and all(word.text == "-" for word in found.words[1:]):
        shell.printed(found.stdin)
        return True
    return told(shell, found)


def told(shell: "Interpreter", found: "Started") -> Truth:
    """A command that is not run: it is told, and its status is not known."""
    from glm_kvplan.launch.bash.simple_commands import external

    external(shell, found)
    return Mark(f"`{found.words[0].text[:24]}`", shell.place(found.line))


def _pwd(shell: "Interpreter", found: "Started") -> Truth:
    shell.printed((*(shell.scope.folder or missing("$PWD")), Piece("\n")))
    return True


def _path(change: Callable[[str], str]) -> Builtin:
    """A program that only says something of a path."""

    def named(shell: "Interpreter", found: "Started") -> Truth:
        words = [word for word in found.words[1:] if not word.text.startswith("-")]
        texts = [known_text(word.value) for word in words]
        if len(texts) == 1 and texts[0] is not None:
            shell.printed((*plain(change(texts[0])), Piece("\n")))
        else:
            mark = next((mark for word in words if (mark := mark_of(word.value)) is not None), None)
            shell.printed(missing("$(...)") if mark is None else (Piece("$(...)", mark),))
        return True

    return named


def _seq(shell: "Interpreter", found: "Started") -> Truth:
    texts = [known_text(word.value) for word in found.words[1:]]
    if not 1 <= len(texts) <= 3 or not all(text and re.fullmatch("-?[0-9]{1,9}", text) for text in texts):
        return told(shell, found)
    numbers = [int(text or 0) for text in texts]
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[1])
    if len(numbers) == 3:
        step, last = numbers[1] or 1, numbers[2]
    counted = range(first, last + (1 if step > 0 else -1), step)
    if len(counted) > _MOST_NUMBERS:
        return told(shell, found)
    shell.printed(plain("".join(f"{number}\n" for number in counted)))
    return True


def _read(shell: "Interpreter", found: "Started") -> Truth:
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
        elif NAME.fullmatch(text):
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


def _mapfile(shell: "Interpreter", found: "Started") -> Truth:
    name = found.words[-1].text if len(found.words) > 1 and NAME.fullmatch(found.words[-1].text) else "MAPFILE"
    text = known_text(found.stdin) if found.stdin is not None else None
    if text is None:
        shell.assign(name, missing(f"${name}"))
    else:
        cut = any(word.text.startswith("-") and "t" in word.text for word in found.words[1:])
        lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # as bash: at no other end of a line
        shell.assign(name, Array(tuple(plain(line.removesuffix("\n") if cut else line) for line in lines)))
    return True


TEXT_COMMANDS: Mapping[str, Builtin] = {
    **dict.fromkeys(("mapfile", "readarray"), _mapfile),
    **dict.fromkeys(("realpath", "readlink"), _path(posixpath.normpath)),
    "dirname": _path(lambda path: posixpath.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")),
    "basename": _path(lambda path: posixpath.basename(path.rstrip("/"))),
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "pwd": _pwd,
    "seq": _seq,
    "read": _read,
}
