"""A shell script followed statement by statement: what is assigned, which branch is taken, which commands start.

No command is run. A test whose answer is not known sends the reader every way, each into a layer of its own; what comes
out the same is known, the rest carries a mark that says what would decide.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.assignments import assigned
from glm_kvplan.launch.bash.builtin_commands import Leave
from glm_kvplan.launch.bash.expansion import Expander
from glm_kvplan.launch.bash.scope import Scope
from glm_kvplan.launch.bash.simple_commands import simple_command
from glm_kvplan.launch.bash.statement_reader import statements
from glm_kvplan.launch.bash.syntax import (
    AndOr,
    Assignment,
    Body,
    Calculation,
    Case,
    Condition,
    For,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Redirect,
    Simple,
    Statement,
)
from glm_kvplan.launch.bash.truth import Truth, calculation, condition, negated
from glm_kvplan.launch.bash.values import (
    Scalar,
    Unset,
    Value,
    joined,
    known_text,
    mark_of,
    missing,
    plain,
    text_of,
    weight,
)
from glm_kvplan.launch.marked_words import Mark, Piece, Word, concealed, secret_values
from glm_kvplan.reading.secret_words import key_like

_LARGEST = 1 << 25  # characters that expansion may make: a text can double a variable line after line
_MOST_COMMANDS = 20_000
_MOST_PATHS = 4  # commands after an unknown one in a chain of && and || that are followed on each of its paths
_WITHOUT_ARGUMENTS = "the script is read as if it were called without arguments"


class Command(NamedTuple):
    """A command that starts: assignments before it, and its words."""

    words: tuple[Word, ...]
    values: tuple[Scalar, ...]  # the words in pieces
    stdin: Scalar | None  # what a here-document gives it
    deciding: Mark | None  # what decides whether it starts at all


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a script sees before its first line.

    `environment` is exported to it, `given` is what the user says of variables that it leaves open, `file` is where it
    lies, `beside` reads files that it sources. `place` is the whole text's place in messages, "" for lines of its own.
    """

    environment: Mapping[str, Scalar] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[Scalar, ...] = ()
    file: Path | None = None
    beside: Callable[[str], str | None] = lambda _: None
    place: str = ""
    secrets: frozenset[str] = frozenset()  # values of key-like variables outside


class Interpreter:
    """One script. `on_command` is told every command that is neither built in nor one of the script's functions."""

    def __init__(self, around: Surroundings, on_command: "Callable[[Command, Interpreter], None]") -> None:
        self.around, self.on_command = around, on_command
        self.scope = Scope()
        self.scope.begin(around.environment, around.arguments)
        given = secret_values((name, around.given[name]) for name in around.given if key_like(name))
        self.scope.secrets |= around.secrets | given
        self.expander = Expander(self)
        self.notes: list[str] = []
        self.deciding: list[Mark] = []  # the open branches
        self.leaving: list[list[Mark]] = [[]]  # per function and loop: what may have left it already
        self.locals: list[dict[str, Value]] = []  # per function: what its local variables hide
        self.output: list[Piece] | None = None  # of a substitution, while one is worked out
        self.base_line = 0  # of a text inside this one whose lines are not counted
        self.size = self.commands = 0

    def run(self, text: str, given: Mapping[int, Piece] | None = None) -> None:
        """Follow a whole text. Raises InputError for what cannot be read, or never ends."""
        try:
            for statement in statements(text, given):
                self.execute(statement)
        except Leave:
            return
        except InputError as error:
            if self.around.place and str(error).startswith("line "):
                raise InputError(f"{self.around.place}: {str(error).partition(': ')[2]}") from None
            raise

    def run_inside(self, text: str, given: Mapping[int, Piece] | None, line: int) -> Truth:
        """Follow a text as a part of this one: what `eval` is given, or a sourced file."""
        outer, self.base_line = self.base_line, self.base_line or line
        status: Truth = True
        try:
            for statement in statements(text, given, numbered=False):
                status = self.execute(statement)
        finally:
            self.base_line = outer
        return status

    # --- what expansions and commands ask

    def place(self, line: int) -> str:
        return self.around.place or f"line {line or self.base_line}"

    def word(self, value: Scalar, line: int) -> Word:
        return concealed(Word(text_of(value), self.place(line), mark_of(value)), self.scope.secrets)

    def within(self) -> Surroundings:
        """What a script that a command is given stands in."""
        return replace(self.around, secrets=frozenset(self.scope.secrets)) if self.scope.secrets else self.around

    def environment(self) -> dict[str, Word]:
        """What a command started now sees of the script's variables."""
        return {name: self.word(value, 0) for name, value in self.scope.environment().items()}

    def grow(self, size: int) -> None:
        self.size += size
        if self.size > _LARGEST:
            raise InputError("the variables of this text grow beyond 32 MiB; write the command out")

    def count(self) -> None:
        self.commands += 1
        if self.commands > _MOST_COMMANDS:
            raise InputError(f"more than {_MOST_COMMANDS:,} commands; give the launch command alone")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def get(self, name: str) -> Value:
        """A variable's value; what the user gives counts where the script leaves it open."""
        found = self.scope.get(name)
        if name in self.around.given and (found is None or (isinstance(found, tuple) and mark_of(found) is not None)):
            return plain(self.around.given[name])
        if name == "PWD" and found is None:
            return self.scope.folder
        if name == "BASH_SOURCE" and found is None and self.around.file is not None:
            return plain(str(self.around.file))
        return found

    def special(self, name: str) -> Value:
        """`$1`, `$#`, `$0`, `$?` and their kin."""
        if name == "0":
            return missing("$0") if self.around.file is None else plain(str(self.around.file))
        if name == "#":
            return plain(str(len(self.arguments())))
        if not name.isdigit():
            return missing(f"${name}")
        if name in self.around.given and not self.locals:
            return plain(self.around.given[name])
        arguments = self.arguments()
        return arguments[int(name) - 1] if len(name) < 4 and int(name) <= len(arguments) else Unset()

    def arguments(self) -> tuple[Scalar, ...]:
        found = self.scope.arguments
        if not found and not self.locals and not self.around.arguments:
            self.note(_WITHOUT_ARGUMENTS)
        return found

    def separators(self) -> str:
        found = self.scope.get("IFS")
        return known_text(found) or "" if isinstance(found, tuple) else " \t\n"

    def assign(self, name: str, value: Value) -> None:
        for mark in (mark for frame in self.leaving for mark in frame):
            value = joined((self.get(name), value), name, mark)
        self.scope.set(name, value)

    def assigned(self, found: Assignment) -> None:
        assigned(self, found)

    def captured(self, body: Body) -> Scalar:
        """What `$(body)` prints, as far as that is known without running it."""
        outer, self.output = self.output, []
        pieces = self.output
        try:
            self.apart(lambda: self.run_body(body))
        finally:
            self.output = outer
        while pieces and pieces[-1].mark is None and pieces[-1].text.endswith("\n"):
            last = pieces.pop()
            if text := last.text.rstrip("\n"):
                pieces.append(last._replace(text=text))
        return tuple(pieces)

    def printed(self, value: Scalar) -> None:
        """What a command writes to its standard output."""
        if self.output is not None:
            self.output += value

    # --- statements

    def run_body(self, body: Iterable[Statement]) -> Truth:
        status: Truth = True
        for statement in body:
            status = self.execute(statement)
        return status

    def execute(self, statement: Statement) -> Truth:
        match statement:
            case Simple():
                return simple_command(self, statement)
            case AndOr():
                return self.and_or(statement)
            case Pipeline(parts, inverted):
                status = self.pipeline(parts)
                return negated(status) if inverted else status
            case If():
                return self.conditional(statement.branches)
            case Loop():
                return self.loop(statement)
            case For():
                return self.for_loop(statement)
            case Case():
                return self.alternatives(statement)
            case Function(name, body):
                known = self.scope.functions.get(name, body)
                self.scope.functions[name] = body if not self.deciding or known is body else None
                return True
            case Group(body, inside, redirects):
                with self.redirected(redirects):
                    return self.apart(lambda: self.run_body(body)) if inside else self.run_body(body)
            case Condition():
                return condition(self, statement)
            case Calculation():
                return calculation(self, statement)

    def pipeline(self, parts: Sequence[Statement]) -> Truth:
        """What its commands assign stays inside; what the last one prints of the others' output is not known."""
        if len(parts) == 1:
            return self.execute(parts[0])
        outer = self.output
        found: Truth = True
        try:
            for part in parts:
                self.output = None if outer is None else []
                found = self.apart(partial(self.execute, part))
        finally:
            self.output = outer
        self.printed(missing("$(...)"))
        return found

    @contextmanager
    def redirected(self, redirects: Sequence[Redirect]) -> Iterator[None]:
        """Standard output goes elsewhere, if it does."""
        outer = self.output
        if any(one.operator[0] in ">&" and one.number in ("", "1") for one in redirects):
            self.output = None
        try:
            yield
        finally:
            self.output = outer

    def apart(self, body: Callable[[], Truth]) -> Truth:
        """A subshell: what is assigned, exported or defined inside is gone afterwards."""
        saved = self.scope.exported, self.scope.functions, self.scope.everything
        self.scope.exported, self.scope.functions = dict(saved[0]), dict(saved[1])
        self.scope.push()
        try:
            return body()
        except Leave:
            return True
        finally:
            self.scope.pop()
            self.scope.exported, self.scope.functions, self.scope.everything = saved

    def and_or(self, found: AndOr) -> Truth:
        return self.joined_to(self.execute(found.first), found.others)

    def joined_to(self, status: Truth, others: Sequence[tuple[str, Statement]]) -> Truth:
        """What `&&` and `||` join to a command that has ended with `status`."""
        for at, (operator, other) in enumerate(others):
            goes_on = status if operator == "&&" else negated(status)
            if isinstance(goes_on, Mark):
                skipped = operator == "||"  # the status if it is
                rest = others[at + 1 :]
                if len(rest) > _MOST_PATHS:
                    status = self.branched(goes_on, [partial(self.execute, other), partial(bool, skipped)])
                    continue
                return self.branched(
                    goes_on,
                    [
                        lambda: self.joined_to(self.execute(other), rest),  # noqa: B023 (called before the loop goes on)
                        lambda: self.joined_to(skipped, rest),  # noqa: B023
                    ],
                )
            if goes_on:
                status = self.execute(other)
        return status

    def conditional(self, branches: Sequence[tuple[Body, Body]]) -> Truth:
        if not branches:
            return True
        test, body = branches[0]
        status = self.run_body(test)
        if isinstance(status, Mark):
            return self.branched(status, [lambda: self.run_body(body), lambda: self.conditional(branches[1:])])
        return self.run_body(body) if status else self.conditional(branches[1:])

    def alternatives(self, found: Case) -> Truth:
        subject = self.expander.scalar(found.word.parts, found.word.line)
        mark, text = mark_of(subject), text_of(subject)
        ways: list[Body] = []
        through = False
        for patterns, body, ending in found.alternatives:
            fits = through
            for node in patterns:
                pattern = self.expander.pattern(node.parts, node.line)
                if isinstance(pattern, Mark):
                    mark = mark or pattern
                elif pattern.takes_everything or (mark is None and pattern.matches(text)):
                    fits = True
            if mark is None and fits:
                status = self.run_body(body)
                if ending == ";;":
                    return status
                through = ending == ";&"
            elif mark is not None:
                ways.append(body)
                if fits:
                    break
        else:
            ways.append(())
        if mark is None:
            return True
        deciding = Mark(mark.name, mark.place or self.place(found.line))
        return self.branched(deciding, [partial(self.run_body, body) for body in ways])

    # --- loops

    def loop(self, found: Loop) -> Truth:
        with self.frame() as perhaps_left:
            while True:
                self.count()
                holds = self.run_body(found.condition)
                holds = negated(holds) if found.until else holds
                if isinstance(holds, Mark):
                    return self.branched(holds, [lambda: self.round(found.body)[1], lambda: True])
                if not holds:
                    return True
                started = self.started
                goes_on, status = self.round(found.body)
                if not goes_on or perhaps_left or self.started > started:
                    return status  # a server that was started in the round runs until it is stopped

    def round(self, body: Body) -> tuple[bool, Truth]:
        """One round of a loop; whether another may follow."""
        try:
            return True, self.run_body(body)
        except Leave as left:
            if left.kind not in ("break", "continue"):
                raise
            if left.levels > 1:
                raise Leave(left.kind, left.levels - 1) from None
            return left.kind == "continue", True

    @contextmanager
    def frame(self) -> Iterator[list[Mark]]:
        self.leaving.append([])
        try:
            yield self.leaving[-1]
        finally:
            self.leaving.pop()

    def for_loop(self, found: For) -> Truth:
        with self.frame() as perhaps_left:
            if not found.name:
                return self.branched(
                    Mark("a loop", self.place(found.line)), [lambda: self.round(found.body)[1], lambda: True]
                )
            nodes = found.words
            words = self.arguments() if nodes is None else [one.value for one in self.expander.fields(nodes)]
            unknown = next((mark for value in words if (mark := mark_of(value)) is not None), None)
            if unknown is not None:
                one_of_them = (Piece(f"${found.name}", unknown),)
                deciding = Mark(unknown.name, unknown.place or self.place(found.line))
                return self.branched(deciding, [lambda: self.round_with(found, one_of_them)[1], lambda: True])
            status: Truth = True
            for value in words:
                self.count()
                goes_on, status = self.round_with(found, value)
                if not goes_on or perhaps_left:
                    break
            return status

    def round_with(self, found: For, value: Scalar) -> tuple[bool, Truth]:
        self.assign(found.name, value)
        return self.round(found.body)

    # --- branches

    started = 0  # commands that started the engine, as far as `on_command` counts them

    def branched(self, mark: Mark, ways: Sequence[Callable[[], Truth]]) -> Truth:
        """Go every way, each in a layer of its own, and join what comes out; a way that ends the script is left."""
        going: list[tuple[Mapping[str, Value], Truth, Leave | None]] = []
        for way in ways:
            self.scope.push()
            self.deciding.append(mark)
            left: Leave | None = None
            status: Truth = True
            try:
                status = way()
            except Leave as leave:
                left = leave
            finally:
                self.deciding.pop()
                changes = self.scope.pop()
            if left is None or left.kind != "exit":
                going.append((changes, status, left))
        if not going:
            raise Leave("exit")
        self.grow(sum(256 * weight(value) for changes, _, _ in going for value in changes.values()))
        self.scope.join([changes for changes, _, _ in going], mark, self.get)
        stays = [status for _, status, left in going if left is None]
        if not stays:
            raise next(left for _, _, left in going if left is not None)
        if len(stays) < len(going):
            self.leaving[-1].append(mark)
        return stays[0] if all(status == stays[0] for status in stays) else mark
