"""Simple commands of a script: built in, a function of its own, or one that starts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash import builtin_commands
from glm_kvplan.launch.bash.assignments import assigned
from glm_kvplan.launch.bash.brace_words import with_braces
from glm_kvplan.launch.bash.declarations import DECLARE, as_assignment
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.scope import ARGUMENTS
from glm_kvplan.launch.bash.started_commands import Started, external
from glm_kvplan.launch.bash.syntax import Assignment, Redirect, Simple, Statement, WordNode
from glm_kvplan.launch.bash.values import NOT_RUN, Scalar, known_text, plain
from glm_kvplan.launch.bash.word_splitting import Field
from glm_kvplan.launch.marked_words import Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_DEEPEST_CALL = 20
# Commands that do their work in any script that goes on, and print nothing.
_SUCCEED = frozenset(
    (
        *("mkdir", "rm", "touch", "chmod", "cp", "mv", "ln", "sleep", "pkill", "killall", "logger", "module"),
        *("nohup", "sync", "renice", "conda", "pip", "pip3", "uv"),
    )
)


def simple_command(shell: "Interpreter", found: Simple) -> Truth:
    """Carry one simple command out, as far as its effect on this script goes."""
    shell.count()
    shell.substituted = True
    words: list[Field] = []
    for node in found.words:
        if not isinstance(node, Assignment):
            words += _word(shell, words, node)
    lists = [node for node in found.words if isinstance(node, Assignment)]
    if not words:
        for one in found.assignments:
            assigned(shell, one)
        return shell.substituted
    if [word.text for word in words] == ["exec"]:
        shell.output = None if to_elsewhere(found.redirects) else shell.output
        return True
    before = tuple(
        (one.name, shell.expander.scalar(one.value.parts, one.value.line))
        for one in found.assignments
        if isinstance(one.value, WordNode)
    )
    with shell.redirected(found.redirects):
        return start(shell, Started(before, words, lists, _stdin(shell, found.redirects), found.line))


def start(shell: "Interpreter", found: Started, functions: bool = True) -> Truth:
    """A function, what is built in, or a command of its own; and whether it succeeds."""
    name = found.words[0].text
    if functions and name in shell.scope.functions:
        return _call(shell, found, shell.scope.functions[name])
    builtin = builtin_commands.BUILTINS.get(name)
    if builtin is not None:
        with _assigned_before(shell, found):
            return builtin(shell, found)
    external(shell, found)
    if name in _SUCCEED or (name == "kill" and [word.text for word in found.words[1:2]] != ["-0"]):
        return True
    return shell.doubt(f"`{name.rpartition('/')[2][:24]}`", found.line)


def _word(shell: "Interpreter", words: Sequence[Field], node: WordNode) -> list[Field]:
    """The words of a node; what `export` and its like assign is not split."""
    if words and words[0].text in DECLARE:
        split = [as_assignment(parts) for parts in with_braces(node.parts)]
        if all(split):
            return [
                Field((*plain(one[0]), *shell.expander.scalar(one[1], node.line)), node.line)
                for one in split
                if one is not None
            ]
    return shell.expander.fields((node,))


def _stdin(shell: "Interpreter", redirects: Sequence[Redirect]) -> Scalar | None:
    for one in reversed(redirects):  # the last one wins
        if one.document is not None:
            return shell.expander.scalar(one.document.parts, one.target.line)
        if one.operator == "<<<":
            return (*shell.expander.scalar(one.target.parts, one.target.line), Piece("\n"))
        if one.operator == "<" and one.number in ("", "0"):
            file = shell.expander.scalar(one.target.parts, one.target.line)
            return plain("") if known_text(file) == "/dev/null" else NOT_RUN
    return None


def to_elsewhere(redirects: Sequence[Redirect]) -> bool:
    """Whether standard output goes to a file or another descriptor."""
    return any(one.operator[0] in (">", "&") and one.number in ("", "1") for one in redirects)


def from_elsewhere(redirects: Sequence[Redirect]) -> bool:
    """Whether standard input comes from a file, or from the script."""
    return any(one.operator[0] == "<" and one.number in ("", "0") for one in redirects)


def is_a_file(body: Sequence[Statement]) -> bool:
    """`$(<file)`."""
    one = body[0] if len(body) == 1 else None
    return isinstance(one, Simple) and not one.words and [to.operator for to in one.redirects] == ["<"]


@contextmanager
def _assigned_before(shell: "Interpreter", found: Started) -> Iterator[None]:
    """The assignments before a command, where what it starts sees them, and not afterwards."""
    names = dict.fromkeys(name for name, _ in found.before)
    hidden = {name: (shell.scope.get(name), shell.scope.exported.get(name, False)) for name in names}
    for name, value in found.before:
        shell.scope.set(name, value)
        shell.scope.exported[name] = True
    try:
        yield
    finally:
        for name, (was, exported) in hidden.items():
            shell.scope.set(name, was)
            shell.scope.exported[name] = exported


def _call(shell: "Interpreter", found: Started, body: Statement | None) -> Truth:
    """One of the script's functions: arguments and local variables of its own, everything else shared."""
    name = found.words[0].text
    if body is None:
        raise InputError(
            f"{shell.place(found.line)}: the function {name[:40]} is another one in each of several branches"
        )
    if len(shell.locals) >= _DEEPEST_CALL:
        raise InputError(f"{shell.place(found.line)}: functions call one another more than {_DEEPEST_CALL} deep")
    hidden = {ARGUMENTS: shell.scope.get(ARGUMENTS)}
    with _assigned_before(shell, found):
        shell.scope.set_arguments(word.value for word in found.words[1:])
        shell.locals.append(hidden)
        try:
            return shell.left_in("function", lambda: shell.execute(body))
        finally:
            shell.locals.pop()
            for name, value in hidden.items():
                shell.scope.set(name, value)
