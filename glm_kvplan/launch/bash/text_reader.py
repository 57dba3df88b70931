"""A shell script's text, how far it is read, and what is quoted in it; every character is looked at once."""

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.given_pieces import GIVEN, PLACE, pieces_in
from glm_kvplan.launch.bash.syntax import Document, Given, Part, Text
from glm_kvplan.launch.marked_words import Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.syntax import Body

_DEEPEST = 40  # constructs inside constructs
_MOST_PARTS = 200_000  # of words, in one script
_BLANKS = re.compile(r"(?:[ \t]+|\\\n|#[^\n]*)+")
_IN_SINGLE = re.compile("[^']*'")
_IN_DOUBLE = re.compile(rf"[^$`\"\\{GIVEN}]+")


class TextReader:
    """Where the reader stands. What a `$` starts, and statements, are the subclasses'."""

    def __init__(self, text: str, given: Mapping[int, Piece], first_line: int, numbered: bool) -> None:
        self.text = text
        self.at = 0
        self.given = given
        self.first_line = first_line
        self.numbered = numbered
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.depth = 0
        self.parts = 0
        self.documents: list[tuple[Document, str, bool, bool]] = []  # that start at the next line

    @property
    def line(self) -> int:
        """The line here; 0 throughout a text whose lines say nothing."""
        return self.here if self.numbered else 0

    @property
    def here(self) -> int:
        """The line here, as messages about the text say it."""
        return self.first_line + bisect_left(self.breaks, self.at)

    def fail(self, problem: str, line: int | None = None) -> InputError:
        return InputError(f"line {line or self.here}: {problem}")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail(f"more than {_DEEPEST} constructs inside one another")

    def count(self, parts: list[Part]) -> None:
        self.parts += 1 + len(parts)
        if self.parts > _MOST_PARTS:
            raise self.fail(f"more than {_MOST_PARTS:,} words; give the launch command alone")

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def blanks(self) -> None:
        """Past blanks, continued lines and a comment; not past the end of the line."""
        self.take(_BLANKS)

    def special(self, *, quoted: bool) -> list[Part]:
        """The part that a quote, a backslash, a dollar or a backtick starts."""
        char = self.text[self.at]
        if match := PLACE.match(self.text, self.at):
            self.at = match.end()
            piece = self.given.get(int(match[1]))
            return [Text(match[0], quoted) if piece is None else Given(piece, quoted)]
        self.at += 1
        if char == "\\":
            return self.escaped(quoted)
        if char == "'" and not quoted:
            if not (found := self.take(_IN_SINGLE)):
                raise self.fail("the quote ' is never closed")
            return self.literal(found[:-1])
        if char == '"' and not quoted:
            return self.double_quoted() or [Text("", True)]
        if char == "$":
            return [self.dollar(quoted)]
        if char == "`":
            return [self.backticks(quoted)]
        return [Text(char, quoted)]

    def escaped(self, quoted: bool) -> list[Part]:
        char = self.peek()
        self.at += 1
        if char == "\n":
            return []
        if quoted and char not in ("$", "`", '"', "\\"):
            return [Text("\\" + char, True)]
        return [Text(char or "\\", True)]

    def literal(self, text: str) -> list[Part]:
        """Text in which nothing is expanded any more."""
        return [Given(one, True) if one.mark else Text(one.text, True) for one in pieces_in(text, self.given)]

    def double_quoted(self) -> list[Part]:
        found = self.parts_until('"', _IN_DOUBLE, True, 'the quote " is never closed')
        self.at += 1
        return found

    def parts_until(self, ends: str, plain: re.Pattern[str], quoted: bool, problem: str) -> list[Part]:
        """Text, and what stands for some in it, up to one of `ends`, which is left."""
        line = self.line
        parts: list[Part] = []
        while self.at < len(self.text):
            if text := self.take(plain):
                parts.append(Text(text, quoted))
            elif self.text[self.at] in ends:
                return parts
            else:
                parts += self.special(quoted=quoted)
        raise self.fail(problem, line)

    def dollar(self, quoted: bool) -> Part:
        """What follows a `$`."""
        raise NotImplementedError

    def backticks(self, quoted: bool) -> Part:
        """A substitution, its backtick passed already."""
        raise NotImplementedError

    def substituted(self, opening: str) -> "Body":
        """The statements up to `)`; `opening` is what it closes."""
        raise NotImplementedError

    def script_inside(self, text: str, line: int) -> "Body":
        """The statements of a text inside this one."""
        raise NotImplementedError
