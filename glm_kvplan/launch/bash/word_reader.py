"""Words of a shell script's text: quotes, escapes, expansions and here-documents, every character looked at once."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.escapes import unescaped
from glm_kvplan.launch.bash.syntax import (
    Arithmetic,
    Document,
    Given,
    Parameter,
    Part,
    Substitution,
    Text,
    WordNode,
)
from glm_kvplan.launch.bash.tilde_words import with_home
from glm_kvplan.launch.bash.values import missing
from glm_kvplan.launch.marked_words import Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.syntax import Body

DEEPEST = 40  # constructs inside constructs
_MOST_PARTS = 200_000  # of words, in one script
# A character of no script, before and after the number of a piece that an outer shell worked out.
GIVEN = "\ufdd0"
_PLAIN = re.compile(rf"[^ \t\n;&|<>()$`\"'\\{GIVEN}]+")
_IN_DOUBLE = re.compile(rf"[^$`\"\\{GIVEN}]+")
_IN_BRACES = re.compile(rf"[^$`\"'\\}}{GIVEN}]+")
_IN_PATTERN = re.compile(rf"[^$`\"'\\}}/{GIVEN}]+")
_IN_ARITHMETIC = re.compile(rf"[^$`\"'\\();{GIVEN}]+")
_IN_DOCUMENT = re.compile(rf"[^$`\\{GIVEN}]+")
_GIVEN = re.compile(rf"{GIVEN}([0-9]+){GIVEN}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_PREFIX = re.compile(r"[#!](?!\}|$)")
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|:|@[A-Za-z]")
_ANSI_QUOTED = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL)
_BLANK = " \t"
_ENDS_WORD = " \t\n;&|<>()"


class WordReader:
    """The text, how far it is read, and the words from there on. Statements are the subclass's."""

    def __init__(
        self, text: str, given: Mapping[int, Piece] | None = None, first_line: int = 1, numbered: bool = True
    ) -> None:
        self.text = text
        self.at = 0
        self.given = given or {}
        self.first_line = first_line
        self.numbered = numbered
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.depth = 0
        self.parts = 0
        self.documents: list[tuple[Document, str, bool, bool]] = []  # that start at the next line

    @property
    def line(self) -> int:
        """The line here; 0 throughout a text whose lines say nothing."""
        return self.first_line + bisect_right(self.breaks, self.at - 1) if self.numbered else 0

    def fail(self, problem: str, line: int | None = None) -> InputError:
        return InputError(f"line {line or self.first_line + bisect_right(self.breaks, self.at - 1)}: {problem}")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"more than {DEEPEST} constructs inside one another")

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
        while True:
            char = self.peek()
            if char and char in _BLANK:
                self.at += 1
            elif char == "\\" and self.peek(2) == "\\\n":
                self.at += 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def word(self, assigned: bool = False) -> WordNode | None:
        """The word that starts here; None where none does. `assigned`: it is the value of an assignment."""
        line = self.line
        parts: list[Part] = []
        while self.at < len(self.text):
            if text := self.take(_PLAIN):
                parts.append(Text(text, False))
            elif (char := self.text[self.at]) == "(" and self.pattern_list(parts):
                continue
            elif char in _ENDS_WORD:
                if char in "<>" and not parts and self.text[self.at + 1 : self.at + 2] == "(":
                    self.at += 2
                    self.substituted(f"{char}(")
                    parts.append(Given(missing(f"{char}(...)")[0], True))
                    continue
                break
            else:
                parts += self.special(quoted=False)
        self.count(parts)
        if any(isinstance(part, Text) and "~" in part.text for part in parts):
            parts = list(with_home(parts, assigned))
        return WordNode(tuple(parts), line) if parts else None

    def count(self, parts: list[Part]) -> None:
        self.parts += 1 + len(parts)
        if self.parts > _MOST_PARTS:
            raise self.fail(f"more than {_MOST_PARTS:,} words; give the launch command alone")

    def pattern_list(self, parts: list[Part]) -> bool:
        """`@(a|b)` and its kin belong to the word; what they match is not worked out here."""
        last = parts[-1] if parts else None
        if not isinstance(last, Text) or last.quoted or last.text[-1] not in "@*+?!":
            return False
        end = self.text.find(")", self.at)
        if end < 0 or "\n" in self.text[self.at : end]:
            return False
        self.at = end + 1
        parts.append(Given(missing("(...|...)")[0], False))
        return True

    def special(self, *, quoted: bool) -> list[Part]:
        """The part that a quote, a backslash, a dollar or a backtick starts."""
        char = self.text[self.at]
        if match := _GIVEN.match(self.text, self.at):
            self.at = match.end()
            piece = self.given.get(int(match[1])) if len(match[1]) < 9 else None
            return [Text(match[0], quoted) if piece is None else Given(piece, quoted)]
        self.at += 1
        if char == "\\":
            return self.escaped(quoted)
        if char == "'" and not quoted:
            return self.literal(self.until("'"))
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

    def until(self, mark: str) -> str:
        end = self.text.find(mark, self.at)
        if end < 0:
            raise self.fail(f"the quote {mark} is never closed")
        found = self.text[self.at : end]
        self.at = end + 1
        return found

    def literal(self, text: str) -> list[Part]:
        """Text in which nothing is expanded any more."""
        if GIVEN not in text or not self.given:
            return [Text(text, True)]
        pieces = _GIVEN.split(text)
        found: list[Part] = []
        for at, piece in enumerate(pieces):
            found.append(Given(self.given[int(piece)], True) if at % 2 else Text(piece, True))
        return found

    def double_quoted(self) -> list[Part]:
        opened = self.line
        parts: list[Part] = []
        while self.at < len(self.text):
            if text := self.take(_IN_DOUBLE):
                parts.append(Text(text, True))
            elif self.text[self.at] == '"':
                self.at += 1
                return parts
            else:
                parts += self.special(quoted=True)
        raise self.fail('the quote " is never closed', opened)

    def dollar(self, quoted: bool) -> Part:
        """What follows a `$`."""
        if self.peek(2) == "((" and (found := self.arithmetic()) is not None:
            return Arithmetic(found, quoted)
        char = self.peek()
        if char == "(":
            self.at += 1
            return Substitution(self.substituted("$("), quoted)
        if char == "{":
            self.at += 1
            return self.braced(quoted)
        if char == "'" and not quoted:
            self.at += 1
            return self.ansi_quoted()
        if char == '"' and not quoted:
            return Text("", False)  # $"..." is translated text: the quote that follows
        if char == "[":
            return Arithmetic(self.subscript(self.line), quoted)
        if name := self.take(NAME):
            if self.peek() == "{" and not quoted:
                return Given(missing(f"${name}{{...}}")[0], quoted)  # braces come first: $x{1,2} is $x1 $x2
            return Parameter(name, quoted)
        if char and char in "@*#?$!-0123456789":
            self.at += 1
            return Parameter(char, quoted)
        return Text("$", quoted)

    def ansi_quoted(self) -> Part:
        """`$'...'`, its quote passed already."""
        match = _ANSI_QUOTED.match(self.text, self.at)
        if match is None:
            raise self.fail("the quote ' is never closed")
        self.at = match.end()
        text = unescaped(match[1], quotes=True)
        return Given(missing("$'...'")[0], True) if text is None else Text(text, True)

    def substituted(self, opening: str) -> "Body":
        """The statements up to `)`; `opening` is what it closes."""
        raise NotImplementedError

    def script_inside(self, text: str, line: int) -> "Body":
        """The statements of a text inside this one."""
        raise NotImplementedError

    def backticks(self, quoted: bool) -> Part:
        line, found = self.line, []
        while True:
            char = self.peek()
            if not char:
                raise self.fail("the quote ` is never closed", line)
            self.at += 1
            if char == "`":
                break
            if char == "\\" and self.peek() and self.peek() in ('`\\$"' if quoted else "`\\$"):
                char = self.peek()
                self.at += 1
            found.append(char)
        self.deeper()
        body = self.script_inside("".join(found), line)
        self.depth -= 1
        return Substitution(body, quoted)

    def arithmetic(self) -> tuple[Part, ...] | None:
        """The expression of `((...))`, whose parentheses start here; None where they are two subshells."""
        start, line = self.at, self.line
        self.at += 2
        parts: list[Part] = []
        depth = 0
        self.deeper()
        while self.at < len(self.text):
            if text := self.take(_IN_ARITHMETIC):
                parts.append(Text(text, False))
                continue
            char = self.text[self.at]
            if char == ")" and not depth:
                if self.peek(2) != "))":
                    break
                self.at += 2
                self.depth -= 1
                self.count(parts)
                return tuple(parts)
            if char in "();":
                depth += (char == "(") - (char == ")")
                parts.append(Text(char, False))
                self.at += 1
            else:
                parts += self.special(quoted=True) if char not in "\"'" else self.special(quoted=False)
        else:
            raise self.fail("(( is never closed with ))", line)
        self.at = start
        self.depth -= 1
        return None

    def braced(self, quoted: bool) -> Part:
        """`${...}`, its brace passed already."""
        line = self.line
        self.deeper()
        prefix = self.take(_PREFIX)
        name = self.take(_PARAMETER)
        index = self.subscript(line) if name and self.peek() == "[" else None
        operator = self.take(_OPERATOR)
        argument: tuple[Part, ...] = ()
        other: tuple[Part, ...] = ()
        if operator in ("/", "//"):
            if self.peek() in ("#", "%") and operator == "/":
                operator += self.peek()
                self.at += 1
            if operator == "//" and self.peek() == "/":
                argument, self.at = (Text("/", True),), self.at + 1  # of ${X////-}
            argument += self.argument(False, _IN_PATTERN, line, "/}")
            if self.peek() == "/":
                self.at += 1
                other = self.argument(quoted, _IN_BRACES, line, "}")
        elif operator:
            argument = self.argument(quoted and operator[0] not in "#%^,", _IN_BRACES, line, "}")
            if argument and (not quoted or operator[0] in "#%"):
                argument = tuple(with_home(argument, False))
        if self.peek() != "}" or not name:
            self.argument(quoted, _IN_BRACES, line, "}")
            name, operator = "", ""
        self.at += 1
        self.depth -= 1
        if not name:
            return Given(missing("${...}")[0], quoted)
        return Parameter(name, quoted, index, operator, argument, other, prefix)

    def subscript(self, line: int) -> tuple[Part, ...]:
        """What stands in the brackets that open here."""
        self.at += 1
        parts: list[Part] = []
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "]" and not depth:
                self.at += 1
                return tuple(parts)
            depth += (char == "[") - (char == "]")
            if char in "$`\"'\\":
                parts += self.special(quoted=False)
            else:
                parts.append(Text(char, True))
                self.at += 1
        raise self.fail("[ is never closed with ]", line)

    def argument(self, quoted: bool, plain: re.Pattern[str], line: int, ends: str) -> tuple[Part, ...]:
        """The word inside `${...}` up to one of `ends`, which is left."""
        parts: list[Part] = []
        between = False  # single quotes, which are plain inside double ones but keep braces between them
        while self.at < len(self.text):
            if text := self.take(plain):
                parts.append(Text(text, quoted))
            elif (char := self.text[self.at]) in ends and not between:
                self.count(parts)
                return tuple(parts)
            elif char == '"':
                self.at += 1
                parts += self.double_quoted() or [Text("", True)]
            elif (char == "'" or char in ends) and quoted:
                between ^= char == "'"
                parts.append(Text(char, True))
                self.at += 1
            elif quoted and self.peek(2) == "\\}":
                parts.append(Text("}", True))
                self.at += 2
            else:
                parts += self.special(quoted=quoted)
        raise self.fail("${ is never closed with }", line)

    def read_pending_documents(self) -> None:
        """The here-documents that start after the line just ended."""
        pending, self.documents = self.documents, []
        for document, delimiter, literal, tabs in pending:
            line, lines = self.line, []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                row = self.text[self.at : end]
                self.at = end + 1
                row = row.lstrip("\t") if tabs else row
                if row == delimiter:
                    break
                lines.append(row + "\n")
            body = "".join(lines)
            document.parts = tuple(self.literal(body)) if literal else self.document_parts(body, line)

    def document_parts(self, body: str, line: int) -> tuple[Part, ...]:
        reader = type(self)(body, self.given, line, self.numbered)
        reader.depth = self.depth
        parts: list[Part] = []
        while reader.at < len(body):
            if text := reader.take(_IN_DOCUMENT):
                parts.append(Text(text, True))
            else:
                parts += reader.special(quoted=True)
        self.count(parts)
        return tuple(parts)


def nested(value: Sequence[Piece]) -> tuple[str, Mapping[int, Piece]]:
    """A script's text that an outer shell made, with what is not known of it set apart."""
    given = {at: piece for at, piece in enumerate(value) if piece.mark is not None}
    return "".join(f"{GIVEN}{at}{GIVEN}" if at in given else piece.text for at, piece in enumerate(value)), given


def pieces_in(text: str, given: Mapping[int, Piece]) -> list[Piece]:
    """A text with the pieces put back that were set apart in it."""
    found: list[Piece] = []
    end = 0
    for match in _GIVEN.finditer(text):
        if int(match[1]) in given:
            found += [Piece(text[end : match.start()]), given[int(match[1])]]
            end = match.end()
    return [*found, Piece(text[end:])]
