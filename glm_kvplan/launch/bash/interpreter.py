"""A shell script followed statement by statement: what is assigned, which branch is taken, which commands start.

No command is run. A test whose answer is not known sends the reader every way, each into a layer of its own; what comes
out the same is known, the rest carries a mark that says what would decide.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash import syntax
from glm_kvplan.launch.bash.branches import alternatives, conditional
from glm_kvplan.launch.bash.command_lists import joined_to, pipeline
from glm_kvplan.launch.bash.declarations import shaped
from glm_kvplan.launch.bash.expansion import Expander
from glm_kvplan.launch.bash.leaving import Frame, Leave, Truth
from glm_kvplan.launch.bash.loops import counting_loop, for_loop, while_loop
from glm_kvplan.launch.bash.scope import Scope
from glm_kvplan.launch.bash.simple_commands import from_elsewhere, is_a_file, simple_command, to_elsewhere
from glm_kvplan.launch.bash.started_commands import Command
from glm_kvplan.launch.bash.statement_reader import statements
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.truth import condition, negated, number_holds
from glm_kvplan.launch.bash.values import (
    Scalar,
    Unset,
    Value,
    all_marked,
    joined,
    mark_of,
    missing,
    plain,
    text_of,
    uncounted,
)
from glm_kvplan.launch.bash.word_splitting import BLANKS
from glm_kvplan.launch.marked_words import Mark, Piece, Word, concealed, secret_values
from glm_kvplan.reading.secret_words import key_like

_LARGEST = 1 << 25  # characters that expansion may make: a text can double a variable line after line
_MOST_COMMANDS = 20_000
_FAILING = (syntax.Simple, syntax.Condition, syntax.Calculation)  # what ends a script after `set -e` where it fails
# Variables that have a value of their own at every time, whatever is assigned.
_LIVE = frozenset(("RANDOM", "SRANDOM", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "_"))
_WITHOUT_ARGUMENTS = "the script is read as if it were called without arguments"


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
        self.leaving: list[Frame] = []  # functions, loops and subshells
        self.locals: list[dict[str, Value]] = []  # per function: what its local variables hide
        self.output: list[Piece] | None = None  # of a substitution, while one is worked out
        self.typed = True  # standard input is what somebody types, who may type nothing
        self.status: Truth = True  # of the last command
        self.substituted: Truth  # of the last substitution in the command at hand
        self.testing = 0  # above 0: a status is asked for, so `set -e` does not end the script
        self.repeating = False  # in a round of a loop that shows only what changes
        self.option_letter: tuple[Value, int] = (None, 1)  # what getopts has assigned to OPTIND, and the letter there
        # Frames that were open when the substitution began, commands that started the engine, as far as `on_command`
        # counts them, the line of a text inside this one whose lines are not counted.
        self.printing = self.started = self.base_line = self.size = self.commands = 0

    def run(self, text: str, given: Mapping[int, Piece] | None = None) -> None:
        """Follow a whole text. Raises InputError for what cannot be read, or never ends."""
        try:
            for statement in statements(text, given):
                self.execute(statement)
        except Leave:
            return
        except RecursionError:  # a text that evaluates or sources itself
            raise InputError("the script starts itself again, or is nested too deeply") from None
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

    def doubt(self, what: str | Mark, line: int) -> Mark:
        """What decides a status that is not known: `what`, here where it has no place yet."""
        mark = what if isinstance(what, Mark) else Mark(what)
        return Mark(mark.name, mark.place or self.place(line))

    def word(self, value: Scalar, line: int) -> Word:
        return concealed(Word(text_of(value), self.place(line), mark_of(value)), self.scope.secrets)

    def within(self) -> Surroundings:
        """What a script that a command is given stands in."""
        return replace(self.around, secrets=frozenset(self.scope.secrets)) if self.scope.secrets else self.around

    def environment(self, place: str) -> dict[str, Word]:
        """What a command that starts at `place` sees of the script's variables."""
        return {
            name: concealed(Word(text_of(value), place, mark_of(value)), self.scope.secrets)
            for name, value in self.scope.environment().items()
        }

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
        found = self.scope.get(name) if name not in _LIVE else None
        if name in self.around.given and (found is None or (isinstance(found, tuple) and mark_of(found) is not None)):
            return plain(self.around.given[name])
        if name == "BASH_SOURCE" and found is None and self.around.file is not None:
            return plain(str(self.around.file))
        return found

    def special(self, name: str) -> Value:
        """`$1`, `$#`, `$0`, `$?` and their kin."""
        if name == "0":
            called = missing("$0") if self.around.called is None else self.around.called
            return called if self.around.file is None else plain(str(self.around.file))
        if name == "#":
            return missing("$#") if uncounted(self.arguments()) else plain(str(len(self.arguments())))
        if name == "?" and isinstance(self.status, Mark):
            return (Piece(f"${name}", self.status),)
        if name == "?" and self.status:
            return plain("0")
        if not name.isdigit():
            return missing(f"${name}")
        if name in self.around.given and not self.locals:
            return plain(self.around.given[name])
        arguments = self.arguments()
        if int(name) <= len(arguments) and not uncounted(arguments[: int(name) - 1]):
            return arguments[int(name) - 1]
        return missing(f"${{{name}}}") if uncounted(arguments) else Unset()

    def arguments(self) -> tuple[Scalar, ...]:
        found = self.scope.arguments
        if not found and not self.locals and not self.around.arguments:
            self.note(_WITHOUT_ARGUMENTS)
        return found

    def separators(self) -> str | Mark:
        """The characters of IFS, or why they are not known."""
        found = self.scope.get("IFS")
        if not isinstance(found, tuple):
            return BLANKS
        return mark_of(found) or text_of(found)

    def assign(self, name: str, value: Value) -> None:
        attributes = self.scope.attributes(name)
        if "r" in attributes:
            return
        value = shaped(name, attributes, value) if attributes else value
        for frame in self.leaving:
            for left in frame.left:
                value = joined((self.get(name), value), name, left.mark)
        self.scope.set(name, value)

    def perhaps_left(self, since: int = 0) -> Mark | None:
        """What decides whether the script comes here, as far as functions and loops may have been left."""
        return next((left.mark for frame in self.leaving[since:] for left in frame.left), None)

    def loops(self) -> int:
        """How many loops `break` may leave."""
        functions = [at for at, frame in enumerate(self.leaving) if frame.kind == "function"]
        return sum(frame.kind == "loop" for frame in self.leaving[functions[-1] + 1 if functions else 0 :])

    def captured(self, body: syntax.Body) -> Scalar:
        """What `$(body)` prints, as far as that is known without running it."""
        outer, self.output, started = self.output, [], self.printing
        pieces = self.output
        self.printing = len(self.leaving)
        try:
            self.status = self.substituted = self.apart(lambda: self.tested(body))
        finally:
            self.output, self.printing = outer, started
        if is_a_file(body):
            pieces.append(missing("$(...)")[0])
        while pieces and pieces[-1].mark is None and pieces[-1].text.endswith("\n"):
            last = pieces.pop()
            if text := last.text.rstrip("\n"):
                pieces.append(last._replace(text=text))
        return tuple(pieces)

    def printed(self, value: Scalar) -> None:
        """What a command writes to its standard output."""
        if self.output is not None:
            mark = self.perhaps_left(self.printing)
            self.output += value if mark is None else all_marked(value, mark)

    # --- statements

    def run_body(self, body: Iterable[syntax.Statement]) -> Truth:
        status: Truth = True
        for statement in body:
            status = self.execute(statement)
        return status

    def tested(self, body: Iterable[syntax.Statement]) -> Truth:
        """The status of a body that does not end the script where it fails: a condition, a substitution."""
        self.testing += 1
        try:
            return self.run_body(body)
        finally:
            self.testing -= 1

    def execute(self, statement: syntax.Statement) -> Truth:
        self.status = status = self.executed(statement)
        if status is False and not self.testing and self.scope.option("errexit"):
            fails = not statement.negated if isinstance(statement, syntax.Pipeline) else isinstance(statement, _FAILING)
            if fails or (isinstance(statement, syntax.Group) and statement.inside):
                raise Leave("exit", status=False)
        return status

    def executed(self, statement: syntax.Statement) -> Truth:
        match statement:
            case syntax.Simple():
                return simple_command(self, statement)
            case syntax.AndOr():
                return joined_to(self, self.tested((statement.first,)), statement.others)
            case syntax.Pipeline(parts, inverted):
                if inverted:
                    return negated(self.tested((syntax.Pipeline(parts, False),)))
                return pipeline(self, parts)
            case syntax.If():
                return conditional(self, statement.branches)
            case syntax.Loop():
                return while_loop(self, statement)
            case syntax.For():
                return for_loop(self, statement)
            case syntax.CountingFor():
                return counting_loop(self, statement)
            case syntax.Case():
                return alternatives(self, statement)
            case syntax.Function(name, body):
                known = self.scope.functions.get(name, body)
                self.scope.functions[name] = body if not self.deciding or known is body else None
                return True
            case syntax.Group(body, inside, redirects, background):
                with self.redirected(redirects):
                    status = self.apart(lambda: self.run_body(body)) if inside else self.run_body(body)
                return background or status
            case syntax.Condition():
                return condition(self, statement)
            case syntax.Calculation():
                return number_holds(self, statement.expression, statement.line)

    @contextmanager
    def redirected(self, redirects: Sequence[syntax.Redirect]) -> Iterator[None]:
        """Standard output goes elsewhere, if it does; standard input comes from there."""
        outer = self.output, self.typed
        if to_elsewhere(redirects):
            self.output = None
        self.typed &= not from_elsewhere(redirects)
        try:
            yield
        finally:
            self.output, self.typed = outer

    def apart(self, body: Callable[[], Truth]) -> Truth:
        """A subshell: what is assigned, exported or defined inside is gone afterwards."""
        saved = self.scope.exported, self.scope.functions, self.scope.everything
        output, outer = self.output, self.locals
        self.locals = [dict(hidden) for hidden in outer]
        self.scope.exported, self.scope.functions = dict(saved[0]), dict(saved[1])
        self.scope.push()
        try:
            return self.left_in("subshell", body)
        finally:
            self.output, self.locals = output, outer
            self.scope.pop()
            self.scope.exported, self.scope.functions, self.scope.everything = saved

    def left_in(self, kind: str, body: Callable[[], Truth]) -> Truth:
        """The status of a "function", which `return` leaves, or of a "subshell", which everything leaves."""
        with self.frame(kind) as frame:
            try:
                return frame.settled(body())
            except Leave as left:
                if kind == "function" and left.kind != "return":
                    raise
                return frame.settled(left.status)

    @contextmanager
    def frame(self, kind: str) -> Iterator[Frame]:
        """A function, loop or subshell while it is followed."""
        self.leaving.append(Frame(kind))
        try:
            yield self.leaving[-1]
        finally:
            self.leaving.pop()
