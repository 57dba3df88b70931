"""What bash does itself: sourcing, testing, leaving and more; and the table of all that is built in."""

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash import truth
from glm_kvplan.launch.bash.argument_commands import ARGUMENT_COMMANDS
from glm_kvplan.launch.bash.declarations import DECLARE, declare, unset
from glm_kvplan.launch.bash.given_pieces import nested
from glm_kvplan.launch.bash.leaving import Leave, Truth
from glm_kvplan.launch.bash.line_commands import LINE_COMMANDS
from glm_kvplan.launch.bash.started_commands import Builtin, Started, told
from glm_kvplan.launch.bash.syntax import Text
from glm_kvplan.launch.bash.text_commands import TEXT_COMMANDS
from glm_kvplan.launch.bash.values import Scalar, known_text, mark_of, missing, plain
from glm_kvplan.launch.marked_words import Piece, printable

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_SETTINGS = re.compile(r"(?:activate|conda\.sh|\.bashrc|\.profile|profile|setvars\.sh|lmod.*|modules?\.sh)$")


def _source(shell: "Interpreter", found: Started) -> Truth:
    name = found.words[1].text if len(found.words) > 1 else ""
    marked = mark_of(found.words[1].value) if name else None
    text = shell.around.beside(name) if name and marked is None else None
    if text is not None:
        outer = shell.scope.arguments
        if found.words[2:]:
            shell.scope.set_arguments(word.value for word in found.words[2:])
        status = shell.left_in("function", lambda: shell.run_inside(text, None, found.line))
        if found.words[2:]:
            shell.scope.set_arguments(outer)
        return status
    if not _SETTINGS.search(name):
        shell.note(f"{shell.place(found.line)}: {printable(name, 40)} is not read here; what it sets is not known")
    return shell.doubt(f"`source` of {printable(posixpath.basename(name), 24)}", found.line)


def _eval(shell: "Interpreter", found: Started) -> Truth:
    pieces: list[Piece] = []
    for word in found.words[1:]:
        pieces += ([Piece(" ")] if pieces else []) + list(word.value)
    if pieces and pieces[0].mark is not None:
        shell.note(f"{shell.place(found.line)}: what `eval` is given is not known here, nor what it sets")
    text, given = nested(pieces)
    return shell.run_inside(text, given, found.line)


def _leave(kind: str) -> Builtin:
    def leave(shell: "Interpreter", found: Started) -> Truth:
        words = found.words[1:]
        if kind in ("exit", "return"):
            if kind == "return" and all(frame.kind != "function" for frame in shell.leaving):
                return False  # bash complains and goes on
            raise Leave(kind, status=_number_told(words[0].value) if words else shell.status)
        loops = shell.loops()
        levels = int(words[0].text) if words and re.fullmatch("[1-9][0-9]?", words[0].text) else 1
        if loops:
            raise Leave(kind, min(levels, loops))
        return True

    return leave


def _number_told(value: Scalar) -> Truth:
    """A status given as a number."""
    text, mark = known_text(value), mark_of(value)
    if text is None:
        return mark if mark is not None and mark.name != "$?" else False  # `$?` is known only to be another than 0
    return re.fullmatch("[0-9]+", text) is not None and int(text) % 256 == 0


def _test(shell: "Interpreter", found: Started) -> Truth:
    words = list(found.words[1:])
    if found.words[0].text == "[" and (not words or words.pop().text != "]"):
        return False
    return truth.test_command(shell, words, found.line)


def _let(shell: "Interpreter", found: Started) -> Truth:
    holds: Truth = False
    for word in found.words[1:]:
        holds = truth.number_holds(shell, (Text(word.text, True),), found.line)
    return holds


def _cd(shell: "Interpreter", found: Started) -> Truth:
    words = [word for word in found.words[1:] if not re.fullmatch("-[LPe@-]*|[-+][0-9]+", word.text)]
    folder = known_text(words[0].value) if words else None
    here = known_text(shell.scope.folder) if shell.scope.folder is not None else None
    if folder is not None and not folder.startswith("/"):
        folder = None if here is None else posixpath.join(here, folder)
    if found.words[0].text != "cd":
        shell.printed(missing("$(...)"))
    shell.scope.folder = missing("$PWD") if folder is None else plain(posixpath.normpath(folder))
    return True


def _command(shell: "Interpreter", found: Started) -> Truth:
    from glm_kvplan.launch.bash.simple_commands import start

    rest = found.words[1:]
    if not rest:
        return True
    if rest[0].text.startswith("-"):
        shell.printed(missing("$(...)"))
        return shell.doubt(f"`{printable(rest[-1].text, 24)}`", found.line)
    return start(shell, found._replace(words=rest), functions=False)


def _exec(shell: "Interpreter", found: Started) -> Truth:
    if len(found.words) == 1:
        return True
    raise Leave("exit", status=told(shell, found))


def _succeeds(shell: "Interpreter", found: Started) -> Truth:
    return True


def _alone_succeeds(shell: "Interpreter", found: Started) -> Truth:
    """What succeeds without arguments; with some, that depends."""
    shell.printed(missing("$(...)"))
    return shell.doubt(f"`{found.words[0].text}`", found.line) if len(found.words) > 1 else True


def _shopt(shell: "Interpreter", found: Started) -> Truth:
    words = [word.text for word in found.words[1:]]
    if "-s" in words or "-u" in words:
        if "nocasematch" in words:
            shell.scope.set_option("nocasematch", "-s" in words)
        return True
    shell.printed(missing("$(...)"))
    return shell.doubt("`shopt`", found.line)


BUILTINS: Mapping[str, Builtin] = {
    **TEXT_COMMANDS,
    **LINE_COMMANDS,
    **ARGUMENT_COMMANDS,
    **dict.fromkeys(DECLARE, declare),
    **dict.fromkeys((":", "true", "trap", "ulimit", "umask", "disown"), _succeeds),
    **dict.fromkeys(("wait", "hash", "alias"), _alone_succeeds),
    "shopt": _shopt,
    **{kind: _leave(kind) for kind in ("exit", "return", "break", "continue")},
    **dict.fromkeys(("[", "test"), _test),
    **dict.fromkeys((".", "source"), _source),
    **dict.fromkeys(("command", "builtin"), _command),
    **dict.fromkeys(("cd", "pushd", "popd"), _cd),
    "false": lambda shell, found: False,
    "unset": unset,
    "eval": _eval,
    "exec": _exec,
    "let": _let,
}
