"""Words of a script with their expansions worked out: parameters, substitutions, arithmetic, splitting."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.launch.bash import arithmetic
from glm_kvplan.launch.bash.brace_words import with_braces
from glm_kvplan.launch.bash.glob_patterns import LONGEST, Pattern, pattern_of
from glm_kvplan.launch.bash.syntax import Arithmetic, Given, Parameter, Part, Substitution, Text, WordNode
from glm_kvplan.launch.bash.values import (
    UNSET,
    Array,
    Scalar,
    Table,
    Unset,
    Value,
    first_of,
    is_empty,
    joined,
    known_text,
    mark_of,
    missing,
    plain,
    text_of,
)
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_ALL = ("@", "*")


class Segment(NamedTuple):
    """A piece of a word; `splits`: at its blanks words end. None for the piece: a word ends here."""

    piece: Piece | None
    splits: bool = False


class Field(NamedTuple):
    """A word after splitting, and its line."""

    value: Scalar
    line: int

    @property
    def text(self) -> str:
        return text_of(self.value)


_BREAK = Segment(None)


class Expander:
    """Expansions as the interpreter's variables have them now."""

    def __init__(self, shell: "Interpreter") -> None:
        self.shell = shell

    def fields(self, nodes: Iterable[WordNode]) -> list[Field]:
        """The words that nodes stand for."""
        found: list[Field] = []
        for node in nodes:
            for parts in with_braces(node.parts):
                current: list[Piece] | None = None
                for segment in self.segments(parts, node.line):
                    if segment.piece is None:
                        found += [Field(tuple(current), node.line)] if current is not None else []
                        current = None
                        continue
                    words = self.split(segment.piece) if segment.splits else [segment.piece]
                    for at, word in enumerate(words):
                        if at and current is not None:
                            found.append(Field(tuple(current), node.line))
                            current = None
                        if word is not None:
                            current = [] if current is None else current
                            current.append(word)
                if current is not None:
                    found.append(Field(tuple(current), node.line))
        self.shell.grow(sum(len(field.text) + 64 for field in found))
        return [field._replace(line=field.value[0].line or field.line) if field.value else field for field in found]

    def split(self, piece: Piece) -> list[Piece | None]:
        """An unquoted piece in parts, between which words end; None for a part without text."""
        separators = self.shell.separators()
        if not separators:
            return [piece]
        parts = re.split(f"[{re.escape(separators)}]+", piece.text)
        return [piece._replace(text=part) if part else None for part in parts]

    def scalar(self, parts: Iterable[Part], line: int) -> Scalar:
        """The value of parts where no splitting happens: an assignment, a here-document, a subject."""
        found: list[Piece] = []
        for segment in self.segments(parts, line):
            piece = segment.piece or Piece(" ")
            if found and found[-1][1:] == piece[1:]:
                found[-1] = piece._replace(text=found[-1].text + piece.text)
            elif piece.text or piece.mark:
                found.append(piece)
        self.shell.grow(sum(len(piece.text) + 64 for piece in found))
        return tuple(found)

    def pattern(self, parts: Iterable[Part], line: int) -> Pattern | Mark:
        """A pattern, or why it is not known."""
        steps: list[tuple[str, bool]] = []
        for part in parts:
            quoted = part.quoted
            for segment in self.segments((part,), line):
                if segment.piece is not None:
                    if segment.piece.mark is not None:
                        return segment.piece.mark
                    steps.append((segment.piece.text, quoted))
        if sum(len(text) for text, _ in steps) > LONGEST:
            return Mark("a pattern")
        return pattern_of(steps)

    def segments(self, parts: Iterable[Part], line: int, *, inside: bool = False) -> Iterator[Segment]:
        for part in parts:
            match part:
                case Text(text, quoted):
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
            found = first_of(self.shell.get(name), name)
            digits = known_text(found)
            if digits is None:
                unknown = unknown or mark_of(found)
                return 1
            return arithmetic.number(digits.strip()) if digits.strip() else 0

        def assign(name: str, found: int) -> None:
            self.shell.assign(name, plain(str(found)) if unknown is None else (Piece("$((...))", unknown),))

        try:
            result = arithmetic.calculate(text_of(text), value, assign)
        except arithmetic.ArithmeticProblem:
            return missing("$((...))")
        return (Piece("$((...))", unknown),) if unknown is not None else (Piece(str(result), None, line),)

    # --- parameters

    def parameter(self, part: Parameter, line: int) -> Iterator[Segment]:
        """The segments of one parameter expansion."""
        sign = part.name if part.name in _ALL else self.index_of(part, line)
        if part.prefix == "!":
            if sign in _ALL:
                yield from self.many(self.keys(part.name), sign, part.quoted)
                return
            name = known_text(first_of(self.shell.get(part.name), part.name))
            if name is None or not re.fullmatch(r"[A-Za-z_]\w*", name):
                yield Segment(missing(f"${{!{part.name}}}")[0], not part.quoted)
                return
            part = replace(part, name=name, prefix="")
        if sign in _ALL:
            values = self.elements(part.name)
            yield from self.operated_list(part, values, sign, line)
            return
        found = self.element(part.name, sign)
        yield from (
            Segment(piece, not part.quoted) if isinstance(piece, Piece) else piece
            for piece in self.operated(part, found, line)
        )

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
            case Table(values):
                return tuple(values.values())
            case Unset():
                return ()
            case None:
                return None
            case _:
                return (value,)

    def keys(self, name: str) -> tuple[Scalar, ...]:
        value = self.shell.get(name)
        if isinstance(value, Table):
            return tuple(map(plain, value.values))
        return tuple(plain(str(at)) for at in range(len(self.elements(name) or ())))

    def element(self, name: str, index: str | None) -> Value:
        """One value: a scalar, UNSET or None."""
        value = self.shell.get(name) if name.isidentifier() else self.shell.special(name)
        if index is None or value is None:
            return value if value is None or isinstance(value, Unset) else first_of(value, name)
        if index == "?":
            return missing(f"${{{name}[...]}}")
        if isinstance(value, Table):
            return value.values.get(index, UNSET)
        at = known_text(self.calculated((Text(index, True),), 0))
        if at is None or not re.fullmatch(r"-?[0-9]{1,9}", at):
            return missing(f"${{{name}[...]}}")
        values = self.elements(name) or ()
        return values[int(at)] if -len(values) <= int(at) < len(values) else UNSET

    def many(self, values: Iterable[Scalar], sign: str, quoted: bool) -> Iterator[Segment]:
        """Values of a list: apart, or joined by blanks for a quoted `*`."""
        if quoted and sign == "*":
            yield Segment(Piece(""))
        for at, value in enumerate(values):
            if at:
                yield Segment(Piece(" ")) if quoted and sign == "*" else _BREAK
            pieces = value or (Piece(""),)
            yield from (Segment(piece, not quoted) for piece in pieces)

    def operated_list(
        self, part: Parameter, values: tuple[Scalar, ...] | None, sign: str, line: int
    ) -> Iterator[Segment]:
        operator = part.operator
        if part.prefix == "#":
            yield Segment(missing(f"${part.name}")[0] if values is None else Piece(str(len(values)), None, line))
            return
        if operator and operator[-1] in "-=+?" and operator != "@":
            state: Value = None if values is None else (values[0] if values else UNSET)
            if values and len(values) > 1:
                state = plain("x")
            chosen = self.chosen(part, state, line)
            if chosen is not None:
                yield from chosen
                return
        if values is None:
            yield Segment(missing(f"${part.name}")[0], not part.quoted)
            return
        if operator == ":":
            values = self.slice_of(part, values, line)
        elif operator and operator[-1] not in "-=+?":
            values = tuple(self.transformed(part, value, line) for value in values)
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
            value = self.transformed(part, value, line)
        yield from value or (Piece(""),)

    def chosen(self, part: Parameter, found: Value, line: int) -> list[Segment] | None:
        """What `:-`, `:+` and their kin give instead of the value; None for the value itself."""
        colon, operator = part.operator[:-1], part.operator[-1]
        state = _state(found, bool(colon))
        if operator == "?":
            return None
        if operator == "+":
            if state == "nothing":
                return [Segment(Piece(""), False)] if part.quoted else []
            argument = list(self.segments(part.argument, line, inside=not part.quoted))
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
            self.shell.assign(part.name, self.scalar(part.argument, line))
        return list(self.segments(part.argument, line, inside=not part.quoted))

    def slice_of(self, part: Parameter, values: tuple[Scalar, ...], line: int) -> tuple[Scalar, ...]:
        numbers = self.bounds(part, line)
        if numbers is None:
            return (missing(f"${{{part.name}[@]:...}}")[0:1],)
        start, length = numbers
        if part.name in _ALL:
            values = (plain(""), *values)  # $0 stands before the arguments
        start = start + len(values) if start < 0 else start
        return values[max(0, start) :][: None if length is None else max(0, length)]

    def bounds(self, part: Parameter, line: int) -> tuple[int, int | None] | None:
        """`start:length` of `${name:start:length}`."""
        text = known_text(self.scalar(part.argument, line))
        if text is None:
            return None
        start, _, length = text.partition(":")
        numbers = [known_text(self.calculated((Text(one, True),), line)) for one in (start, length) if one.strip()]
        if not all(number is not None and re.fullmatch(r"-?[0-9]{1,9}", number) for number in numbers) or not numbers:
            return None
        found = [int(number or 0) for number in numbers]
        return found[0], found[1] if len(found) > 1 else None

    def transformed(self, part: Parameter, value: Scalar, line: int) -> Scalar:
        """`#pattern`, `%pattern`, `/pattern/other`, `:start:length`, `^`, `,` on one value."""
        operator, text = part.operator, known_text(value)
        if text is None:
            return (Piece(f"${{{part.name}}}", mark_of(value)),)
        if len(text) > LONGEST or operator.startswith("@"):
            return missing(f"${{{part.name}...}}")
        if operator == ":":
            numbers = self.bounds(part, line)
            if numbers is None:
                return missing(f"${{{part.name}:...}}")
            start, length = numbers
            start = max(0, start + len(text)) if start < 0 else start
            end = None if length is None else length if length < 0 else start + length
            return plain(text[start:end])
        if operator in ("^", "^^", ",", ",,"):
            change = str.upper if operator[0] == "^" else str.lower
            return plain(change(text) if len(operator) > 1 else change(text[:1]) + text[1:])
        pattern = self.pattern(part.argument, line)
        if isinstance(pattern, Mark):
            return (Piece(f"${{{part.name}}}", pattern),)
        self.shell.grow(len(text) * 8)
        if operator[0] == "#":
            return plain(pattern.without_start(text, operator == "##"))
        if operator[0] == "%":
            return plain(pattern.without_end(text, operator == "%%"))
        other = known_text(self.scalar(part.other, line))
        if other is None:
            return missing(f"${{{part.name}/...}}")
        return plain(pattern.replaced(text, other, operator))


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
