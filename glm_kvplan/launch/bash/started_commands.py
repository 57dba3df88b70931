"""Commands that start: with which words, what stands before them and on their standard input."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.syntax import Assignment
from glm_kvplan.launch.bash.values import NOT_RUN, Scalar, plain
from glm_kvplan.launch.bash.word_splitting import Field
from glm_kvplan.launch.marked_words import Mark, Word

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter


class Started(NamedTuple):
    """A command about to start: assignments before it and its words; lists among them (`declare -a x=(...)`)."""

    before: tuple[tuple[str, Scalar], ...]
    words: Sequence[Field]
    lists: Sequence[Assignment]
    stdin: Scalar | None
    line: int


class Command(NamedTuple):
    """A command that starts: assignments before it, and its words."""

    words: tuple[Word, ...]
    values: tuple[Scalar, ...]  # the words in pieces
    stdin: Scalar | None  # what a here-document gives it
    deciding: Mark | None  # what decides whether it starts at all


Builtin: TypeAlias = Callable[["Interpreter", Started], Truth]


def external(shell: "Interpreter", found: Started) -> None:
    """A command that is not built in: it is told, not run."""
    assignments = [Field((*plain(f"{name}="), *value), found.line) for name, value in found.before]
    words = (*assignments, *found.words)
    left = shell.perhaps_left()
    deciding = shell.deciding[-1] if shell.deciding else left
    shell.printed(NOT_RUN)
    shell.on_command(
        Command(
            tuple(shell.word(one.value, one.line) for one in words),
            tuple(one.value for one in words),
            shell.around.stdin if found.stdin is None else found.stdin,
            deciding,
        ),
        shell,
    )


def told(shell: "Interpreter", found: Started) -> Truth:
    """A command that is not run: it is told, and its status is not known."""
    external(shell, found)
    return shell.doubt(f"`{found.words[0].text[:24]}`", found.line)
