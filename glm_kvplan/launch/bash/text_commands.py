"""What writes or makes text: echo, printf and their like, and programs that only name paths."""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.escapes import unescaped
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.printf_format import formatted
from glm_kvplan.launch.bash.started_commands import Builtin, Started, told
from glm_kvplan.launch.bash.values import NOT_RUN, known_text, mark_of, missing, plain
from glm_kvplan.launch.marked_words import Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_MOST_NUMBERS = 1024


def _echo(shell: "Interpreter", found: Started) -> Truth:
    words = list(found.words[1:])
    options = ""
    while words and re.fullmatch("-[neE]+", words[0].text):
        options += words.pop(0).text
    pieces: list[Piece] = []
    for at, word in enumerate(words):
        pieces += ([Piece(" ")] if at else []) + list(word.value)
    pieces += [] if "n" in options else [Piece("\n")]
    if options.rfind("e") > options.rfind("E"):
        texts = [unescaped(piece.text, octal=False) for piece in pieces if piece.mark is None]
        if None in texts:
            pieces = list(NOT_RUN)
        else:
            pieces = [piece if piece.mark else piece._replace(text=texts.pop(0) or "") for piece in pieces]
    shell.printed(tuple(pieces))
    return True


def _printf(shell: "Interpreter", found: Started) -> Truth:
    words, target = list(found.words[1:]), ""
    if words and words[0].text.startswith("-v"):
        target = words.pop(0).text[2:] or (words.pop(0).text if words else "")
    if words and words[0].text == "--":
        del words[0]
    if not words:
        return False  # bash says how it is used
    value = formatted([word.value for word in words])
    if target:
        store(shell, target, value)
    else:
        shell.printed(value)
    return True


def _cat(shell: "Interpreter", found: Started) -> Truth:
    if found.stdin is not None and all(word.text == "-" for word in found.words[1:]):
        shell.printed(found.stdin)
        return True
    return told(shell, found)


def _pwd(shell: "Interpreter", found: Started) -> Truth:
    shell.printed((*(shell.scope.folder or missing("$PWD")), Piece("\n")))
    return True


def _path(change: Callable[..., str | None], options: str, least: int = 0, most: int = 1) -> Builtin:
    """A program that only says something of a path, given `least` words of these options; None where it would look."""

    def named(shell: "Interpreter", found: Started) -> Truth:
        words = [word for word in found.words[1:] if not re.fullmatch(options, word.text)]
        mark = mark_of([piece for word in words for piece in word.value])
        texts = [word.text for word in words]
        read = 1 <= len(texts) <= most and not any(text.startswith("-") for text in texts)
        enough = len(found.words) > len(texts) + least
        said = change(*texts) if mark is None and read and enough else None
        if said is None:
            shell.printed(NOT_RUN if mark is None else (NOT_RUN[0]._replace(mark=mark),))
            return shell.doubt(f"`{found.words[0].text}`", found.line)
        shell.printed(plain(f"{said}\n"))
        return True

    return named


def _seq(shell: "Interpreter", found: Started) -> Truth:
    texts = [known_text(word.value) or "" for word in found.words[1:]]
    if not 1 <= len(texts) <= 3 or not all(re.fullmatch("-?[0-9]{1,9}", text) for text in texts):
        return told(shell, found)
    numbers = [int(text) for text in texts]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) > 2 else 1
    if step == 0:
        return told(shell, found)  # seq complains
    counted = range(first, numbers[-1] + step // abs(step), step)
    if len(counted) > _MOST_NUMBERS:
        return told(shell, found)
    shell.printed(plain("".join(f"{number}\n" for number in counted)))
    return True


def _absolute(path: str) -> str | None:
    return posixpath.normpath(path) if path.startswith("/") else None


def _before(path: str) -> str:
    return posixpath.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")


def _last(path: str, ending: str = "") -> str:
    name = posixpath.basename(path.rstrip("/")) or path[:1]
    return name if name == ending else name.removesuffix(ending)


TEXT_COMMANDS: Mapping[str, Builtin] = {
    "realpath": _path(_absolute, "-[emqs]+"),
    "readlink": _path(_absolute, "-[nqs]*[fem][nqs]*", least=1),
    "dirname": _path(_before, "(?!)"),
    "basename": _path(_last, "(?!)", most=2),
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "pwd": _pwd,
    "seq": _seq,
}
