"""Words of a script with their expansions worked out: parameters, substitutions, arithmetic, splitting."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.launch.bash import arithmetic
from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.brace_words import with_braces
from glm_kvplan.launch.bash.glob_patterns import LONGEST, Pattern, pattern_of
from glm_kvplan.launch.bash.leaving import Leave
from glm_kvplan.launch.bash.parameter_changes import slice_of, transformed
from glm_kvplan.launch.bash.syntax import Arithmetic, Given, Parameter, Part, Substitution, Text, WordNode
from glm_kvplan.launch.bash.values import (
    UNSET,
    Array,
    Scalar,
    Table,
    Unset,
    Value,
    all_marked,
    first_of,
    is_empty,
    joined,
    known_text,
    mark_of,
    missing,
    plain,
    text_of,
    uncounted,
)
from glm_kvplan.launch.bash.word_splitting import Words
from glm_kvplan.launch.marked_words import Mark, Piece, printable

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_ALL = ("@", "*")
_DEEPEST_VALUE = 20  # expressions that are values of variables of expressions


class Segment(NamedTuple):
    """A piece of a word; `splits`: at its blanks words end.

    None for the piece: a word ends here; `splits`, where no words end, IFS joins (`$*`), a blank otherwise (`$@`).
    """

    piece: Piece | None
    splits: bool = False


class Field(NamedTuple):
    """A word after splitting, and its line."""

    value: Scalar
    line: int

    @property
    def text(self) -> str:
        return text_of(self.value)


class Expander:
    """Expansions as the interpreter's variables have them now."""

    def __init__(self, shell: "Interpreter") -> None:
        self.shell = shell
        self.calculating = 0

    def fields(self, nodes: Iterable[WordNode]) -> list[Field]:
        """The words that nodes stand for."""
        found: list[Field] = []
        for node in nodes:
            for parts in with_braces(node.parts):
                words = Words(self.shell.separators())
                for segment in self.segments(self.with_files(parts), node.line):
                    if segment.piece is None:
                        words.end()
                    elif segment.splits:
                        words.split(segment.piece)
                    else:
                        words.add(segment.piece)
                words.end()
                found += [Field(value, node.line) for value in words.found]
        self.shell.grow(sum(len(field.text) + 64 for field in found))
        return [field._replace(line=field.value[0].line or field.line) if field.value else field for field in found]

    def with_files(self, parts: Iterable[Part]) -> Iterable[Part]:
        """The parts of a word; what names files by `*` and `?` is not known."""
        if self.shell.scope.option("noglob"):
            return parts
        return [
            Given(Piece(part.text, Mark(f"`{printable(part.text, 24)}`")), True)
            if isinstance(part, Text) and not part.quoted and ("*" in part.text or "?" in part.text)
            else part
            for part in parts
        ]

    def joiner(self) -> Piece:
        """What stands between the words of `"$*"`."""
        separators = self.shell.separators()
        return Piece("", separators) if isinstance(separators, Mark) else Piece(separators[:1])

    def scalar(self, parts: Iterable[Part], line: int) -> Scalar:
        """The value of parts where no splitting happens: an assignment, a here-document, a subject."""
        found: list[Piece] = []
        for segment in self.segments(parts, line):
            piece = segment.piece or (self.joiner() if segment.splits else Piece(" "))
            if found and found[-1][1:] == piece[1:]:
                found[-1] = piece._replace(text=found[-1].text + piece.text)
            elif piece.text or piece.mark:
                found.append(piece)
        self.shell.grow(sum(len(piece.text) + 64 for piece in found))
        return tuple(found)

    def pattern(self, parts: Iterable[Part], line: int) -> Pattern | Mark:
        """A pattern, or why it is not known."""
        if self.shell.scope.option("nocasematch") is not False:
            return Mark("`shopt -s nocasematch`")
        steps = self.steps(parts, line)
        if isinstance(steps, Mark):
            return steps
        plain_text = "".join(text for text, quoted in steps if not quoted)
        if sum(len(text) for text, _ in steps) > LONGEST or re.search(r"[@*+?!]\(", plain_text):
            return Mark("a pattern")
        return pattern_of(steps)

    def steps(self, parts: Iterable[Part], line: int) -> list[tuple[str, bool]] | Mark:
        """Text, and whether it is quoted, in order; or why it is not known."""
        found: list[tuple[str, bool]] = []
        for part in parts:
            for segment in self.segments((part,), line):
                if segment.piece is not None:
                    if segment.piece.mark is not None:
                        return segment.piece.mark
                    found.append((segment.piece.text, part.quoted))
        return found

    def segments(self, parts: Iterable[Part], line: int, *, inside: bool = False) -> Iterator[Segment]:
        for part in parts:
            match part:
                case Text(text, quoted):
                    if not text and not quoted:
                        continue  # of {,a}
                    yield Segment(Piece(text, None, line), inside and not quoted)
                case Given(piece, quoted):
                    yield Segment(piece, not quoted)
                case Substitution(body, quoted):
                    pieces = self.shell.captured(body) or ((Piece(""),) if quoted else ())
                    yield from (Segment(piece, not quoted) for piece in pieces)
                case Arithmetic(expression, quoted):
                    yield Segment(self.calculated(expression, line)[0], not quoted)
                case Parameter():
                    yield from self.parameter(part, line)

    def calculated(self, expression: tuple[Part, ...], line: int) -> Scalar:
        """The number an expression gives, as text."""
        text = self.scalar(expression, line)
        unknown = mark_of(text)
        if unknown is not None:
            return (Piece("$((...))", unknown),)

        def value(name: str) -> int:
            nonlocal unknown
            plain_name, bracket, index = name.partition("[")
            found = first_of(self.element(plain_name, index[:-1] if bracket else None), name)
            digits = known_text(found)
            if digits is None:
                unknown = unknown or mark_of(found)
                return 1
            if self.calculating >= _DEEPEST_VALUE:
                raise arithmetic.ArithmeticProblem
            return arithmetic.calculate(digits, value, assign)  # a variable may hold an expression

        def assign(name: str, found: int | None) -> None:
            if found is None and unknown is None:
                return  # not reached
            plain_name, bracket, index = name.partition("[")
            number = plain(str(found)) if unknown is None else (Piece("$((...))", unknown),)
            store(self.shell, plain_name, number, index[:-1] if bracket else None)

        self.calculating += 1
        try:
            result = arithmetic.calculate(text_of(text), value, assign)
        except arithmetic.ArithmeticProblem:
            return missing("$((...))")
        finally:
            self.calculating -= 1
        return (Piece("$((...))", unknown),) if unknown is not None else (Piece(str(result), None, line),)

    # --- parameters

    def parameter(self, part: Parameter, line: int) -> Iterator[Segment]:
        """The segments of one parameter expansion."""
        sign = part.name if part.name in _ALL else self.index_of(part, line)
        if part.prefix == "!":
            if sign in _ALL:
                yield from self.many(self.keys(part.name), sign, part.quoted)
                return
            name = known_text(first_of(self.element(part.name, sign), part.name))
            if name is None or not re.fullmatch(r"[A-Za-z_]\w*|[0-9]+", name):
                yield Segment(missing(f"${{!{part.name}}}")[0], not part.quoted)
                return
            part = replace(part, name=name, prefix="")
        if sign in _ALL:
            values = self.elements(part.name)
            yield from self.operated_list(part, values, sign, line)
            return
        found = self.element(part.name, sign)
        if (
            isinstance(found, Unset)
            and part.operator[-1:] not in tuple("-=+?")
            and self.shell.scope.option("nounset") is True
        ):
            found = self.stopped(part)
        yield from (
            Segment(piece, not part.quoted) if isinstance(piece, Piece) else piece
            for piece in self.operated(part, found, line)
        )

    def stopped(self, part: Parameter) -> Scalar:
        """A value without which bash does not go on. The script's arguments may yet be given."""
        if part.name.isdigit() and not self.shell.locals:
            return missing(f"${part.name}")
        raise Leave("exit", status=False)

    def index_of(self, part: Parameter, line: int) -> str | None:
        """The subscript as text; None where there is none, "?" where it is not known."""
        if part.index is None:
            return None
        text = known_text(self.scalar(part.index, line))
        return "?" if text is None else text

    def elements(self, name: str) -> tuple[Scalar, ...] | None:
        """All values of a list; None where the variable is not defined here."""
        if name in _ALL:
            return self.shell.arguments()
        match value := self.shell.get(name):
            case Array(values):
                return values
            case Table():
                return self.unordered(name, value, value.values.values())
            case Unset():
                return ()
            case None:
                return None
            case _:
                return (value,)

    def unordered(self, name: str, table: Table, values: Iterable[Scalar]) -> tuple[Scalar, ...]:
        """Keys or values of an associative array, in whose order bash does not give several."""
        if table.numbered or len(table.values) < 2:
            return tuple(values)
        mark = Mark(f"the order of ${{{name}[@]}}")
        return tuple(all_marked(value, mark) for value in values)

    def keys(self, name: str) -> tuple[Scalar, ...]:
        value = self.shell.get(name)
        if isinstance(value, Table):
            return self.unordered(name, value, map(plain, value.values))
        return tuple(plain(str(at)) for at in range(len(self.elements(name) or ())))

    def element(self, name: str, index: str | None) -> Value:
        """One value: a scalar, UNSET or None."""
        value = self.shell.get(name) if name.isidentifier() else self.shell.special(name)
        if index is None or value is None or isinstance(value, Unset):
            return value if value is None or isinstance(value, Unset) else first_of(value, name)
        if index == "?":
            return missing(f"${{{name}[...]}}")
        if isinstance(value, Table) and not value.numbered:
            return value.values.get(index, UNSET)
        at = known_text(self.calculated((Text(index, True),), 0))
        if at is None or not re.fullmatch(r"-?[0-9]{1,9}", at):
            return missing(f"${{{name}[...]}}")
        if isinstance(value, Table):
            return value.values.get(str(int(at) + value.end if at.startswith("-") else int(at)), UNSET)
        if isinstance(value, tuple) and mark_of(value) is not None and int(at):
            return missing(f"${{{name}[...]}}")  # it may be a list of any length
        values = self.elements(name) or ()
        if uncounted(values) and not 0 <= int(at) < len(values):
            return missing(f"${{{name}[...]}}")
        return values[int(at)] if -len(values) <= int(at) < len(values) else UNSET

    def many(self, values: Iterable[Scalar], sign: str, quoted: bool) -> Iterator[Segment]:
        """Values of a list: apart, or joined by blanks for a quoted `*`."""
        if quoted and sign == "*":
            yield Segment(Piece(""))
        for at, value in enumerate(values):
            if at:
                yield Segment(self.joiner()) if quoted and sign == "*" else Segment(None, sign == "*")
            pieces = value or (Piece(""),)
            yield from (Segment(piece, not quoted) for piece in pieces)

    def operated_list(
        self, part: Parameter, values: tuple[Scalar, ...] | None, sign: str, line: int
    ) -> Iterator[Segment]:
        operator = part.operator
        if part.prefix == "#":
            held = self.shell.get(part.name)
            if isinstance(held, Table):
                values = tuple(held.values.values())
            whole = isinstance(held, tuple) and mark_of(held) is not None  # it may be a list of any length
            known = values is not None and not whole and not uncounted(values)
            yield Segment(Piece(str(len(values or ())), None, line) if known else missing(f"${{#{part.name}[@]}}")[0])
            return
        if operator and operator[-1] in "-=+?" and operator != "@":
            state: Value = None if values is None else (values[0] if values else UNSET)
            if values and len(values) > 1:
                state = plain("x")
            chosen = self.chosen(part, state, line, sign)
            if chosen is not None:
                yield from chosen
                return
        if values is None:
            yield Segment(missing(f"${part.name}")[0], not part.quoted)
            return
        if operator == ":":
            values = slice_of(self, part, values, line)
        elif operator and operator[-1] not in "-=+?":
            values = tuple(transformed(self, part, value, line) for value in values)
        yield from self.many(values, sign, part.quoted)

    def operated(self, part: Parameter, found: Value, line: int) -> Iterator[Piece | Segment]:
        name = part.name
        if part.prefix == "#":
            text = known_text(first_of(found, name))
            yield Piece(str(len(text)), None, line) if text is not None else missing(f"${{#{name}}}")[0]
            return
        operator = part.operator
        if operator and operator[-1] in "-=+?" and not operator.startswith("@"):
            chosen = self.chosen(part, found, line)
            if chosen is not None:
                yield from chosen
                return
        value = first_of(found, name) if not isinstance(found, Unset) else ()
        if operator and operator[-1] not in "-=+?":
            value = transformed(self, part, value, line)
        yield from value or (Piece(""),)

    def chosen(self, part: Parameter, found: Value, line: int, sign: str = "") -> list[Segment] | None:
        """What `:-`, `:+` and their kin give instead of the value; None for the value itself."""
        colon, operator = part.operator[:-1], part.operator[-1]
        state = _state(found, bool(colon))
        if operator == "?":
            return [Segment(self.stopped(part)[0])] if state == "nothing" else None
        if operator == "+":
            if state == "nothing":
                no_word = not part.quoted or (sign == "@" and isinstance(found, Unset))
                return [] if no_word else [Segment(Piece(""), False)]
            argument = self.argument(part, line)
            if state == "something":
                return argument
            unknown = mark_of(first_of(found, part.name)) or Mark(f"${part.name}")
            mark = unknown if unknown.place else Mark(unknown.name, self.shell.place(line))
            if part.quoted:
                return [Segment(Piece("", mark))]
            return [
                segment if segment.piece is None else segment._replace(piece=segment.piece._replace(mark=mark))
                for segment in argument
            ]
        if operator in "-=" and colon and isinstance(found, tuple) and len(found) == 1 and found[0].mark is not None:
            mark = found[0].mark
            if mark.ways:  # one of several values, some of which may be empty
                default = self.scalar(part.argument, line)
                ways = [default if _defaults(way) else way for way in mark.ways]
                value = joined(ways, part.name, mark._replace(ways=()))
                return [Segment(piece, not part.quoted) for piece in first_of(value, part.name)]
        if state == "something" or (state == "unknown" and not _unset_perhaps(found, bool(colon))):
            return None
        if operator == "=":
            store(self.shell, part.name, self.scalar(part.argument, line), self.index_of(part, line))
        return self.argument(part, line)

    def argument(self, part: Parameter, line: int) -> list[Segment]:
        """The word that an operator puts in; within quotes there is one, if empty."""
        found = list(self.segments(part.argument, line, inside=not part.quoted))
        return found or ([Segment(Piece(""))] if part.quoted else [])


def _state(found: Value, colon: bool) -> str:
    """Whether a value counts as there: "something", "nothing", or "unknown"."""
    match found:
        case None:
            return "unknown"
        case Unset():
            return "nothing"
        case Array() | Table():
            return "something"
        case scalar:
            if not colon:
                return "something"
            empty = is_empty(scalar)
            return "unknown" if empty is None else "nothing" if empty else "something"


def _defaults(way: Scalar) -> bool:
    return is_empty(way) is True or _unset_perhaps(way, True)


def _unset_perhaps(found: Value, colon: bool) -> bool:
    """A value made of variables that are not defined here: without them there is none, and the default holds."""
    if found is None:
        return True
    if not colon or isinstance(found, Array | Table | Unset):
        return False
    return all(
        piece.mark is not None and not piece.mark.place and re.fullmatch(r"\$\w+", piece.mark.name) for piece in found
    )
