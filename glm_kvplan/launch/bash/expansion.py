"""Words of a script with their expansions worked out: parameters, substitutions, arithmetic, splitting."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash import arithmetic
from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.brace_words import with_braces
from glm_kvplan.launch.bash.glob_patterns import LONGEST, Pattern
from glm_kvplan.launch.bash.lists import element, target_of
from glm_kvplan.launch.bash.parameters import parameter
from glm_kvplan.launch.bash.syntax import Arithmetic, Given, Parameter, Part, Substitution, Text, WordNode
from glm_kvplan.launch.bash.values import (
    Scalar,
    first_of,
    known_text,
    mark_of,
    plain,
    text_of,
)
from glm_kvplan.launch.bash.word_splitting import Field, Segment, Words
from glm_kvplan.launch.marked_words import Mark, Piece, printable

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_MOST_VALUES = 10_000  # of variables in one expression, those that their values name included
_NUMBER = "$((...))"  # one that is not known


class Expander:
    """Expansions as the interpreter's variables have them now."""

    def __init__(self, shell: "Interpreter") -> None:
        self.shell = shell
        self.calculating = False
        self.looked_up = 0  # variables of the expression at hand

    def fields(self, nodes: Iterable[WordNode]) -> list[Field]:
        """The words that nodes stand for."""
        found: list[Field] = []
        for node in nodes:
            for parts in with_braces(node.parts):
                words = Words(self.shell.separators())
                for segment in self.segments(self.with_files(parts), node.line):
                    if segment.ends:
                        words.end()
                    elif segment.splits:
                        words.split(segment.piece)
                    else:
                        words.add(segment.piece)
                words.end()
                found += [Field(value, node.line) for value in words.found]
        self._made(field.text for field in found)
        return [field._replace(line=field.value[0].line or field.line) if field.value else field for field in found]

    def with_files(self, parts: Iterable[Part]) -> Iterable[Part]:
        """The parts of a word; what names files by `*` and `?` is not known."""
        if self.shell.scope.option("noglob"):
            return parts
        return [
            Given(Piece(part.text, Mark(f"`{printable(part.text, 24)}`", several=True)), True)
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
            piece = segment.piece
            if found and found[-1][1:] == piece[1:]:
                found[-1] = piece._replace(text=found[-1].text + piece.text)
            elif piece.text or piece.mark:
                found.append(piece)
        self._made(piece.text for piece in found)
        return tuple(found)

    def _made(self, texts: Iterable[str]) -> None:
        """Count what an expansion has made: characters, and what a text takes beside them."""
        self.shell.grow(sum(len(text) + 64 for text in texts))

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
        return Pattern(steps)

    def steps(self, parts: Iterable[Part], line: int) -> list[tuple[str, bool]] | Mark:
        """Text, and whether it is quoted, in order; or why it is not known."""
        found: list[tuple[str, bool]] = []
        for part in parts:
            for segment in self.segments((part,), line):
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
                    yield from parameter(self, part, line)

    def calculated(self, expression: tuple[Part, ...], line: int) -> Scalar:
        """The number that an expression gives, as text."""
        text = self.scalar(expression, line)
        found = mark_of(text) or self.evaluated(text_of(text))
        return (Piece(_NUMBER, found),) if isinstance(found, Mark) else (Piece(str(found), None, line),)

    def number(self, text: str) -> int | None:
        """The number that a text gives; None where it is not known."""
        found = self.evaluated(text)
        return None if isinstance(found, Mark) else found

    def evaluated(self, text: str) -> int | Mark:
        """The number that a text gives, or why it is not known; variables in it may hold expressions themselves."""
        unknown: Mark | None = None
        if not self.calculating:
            self.looked_up = 0

        def value(name: str) -> int:
            nonlocal unknown
            self.looked_up += 1
            if self.looked_up > _MOST_VALUES:
                raise arithmetic.ArithmeticProblem
            name, index = target_of(name)
            found = first_of(element(self.shell, name, index), name)
            digits = known_text(found)
            if digits is None:
                unknown = unknown or mark_of(found)
                return 1
            return arithmetic.calculate(digits, value, assign)

        def assign(name: str, found: int | None) -> None:
            if found is None and unknown is None:
                return  # not reached
            store(self.shell, name, plain(str(found)) if unknown is None else (Piece(_NUMBER, unknown),))

        outer, self.calculating = self.calculating, True
        try:
            result = arithmetic.calculate(text, value, assign)
        except (arithmetic.ArithmeticProblem, RecursionError):  # A=A; $((A))
            if outer:
                raise  # an index of the whole expression
            return Mark(_NUMBER)
        finally:
            self.calculating = outer
        return unknown or result
