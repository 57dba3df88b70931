"""What a dollar or a backtick starts in a shell script's text: parameters, substitutions, arithmetic."""

import re

from glm_kvplan.launch.bash.escapes import unescaped
from glm_kvplan.launch.bash.given_pieces import GIVEN
from glm_kvplan.launch.bash.syntax import Arithmetic, Given, Parameter, Part, Substitution, Text
from glm_kvplan.launch.bash.text_reader import TextReader
from glm_kvplan.launch.bash.tilde_words import with_home
from glm_kvplan.launch.bash.values import missing

_IN_BRACES = re.compile(rf"[^$`\"'\\}}{GIVEN}]+")
_IN_PATTERN = re.compile(rf"[^$`\"'\\}}/{GIVEN}]+")
_IN_ARITHMETIC = re.compile(rf"[^$`\"'\\();{GIVEN}]+")
_IN_SUBSCRIPT = re.compile(rf"[^$`\"'\\\[\]{GIVEN}]+")
_BACKTICKS = re.compile(r"((?:[^`\\]|\\.)*)`", re.DOTALL)
_ANSI_QUOTED = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,9}|[@*#?$!-]")
_PREFIX = re.compile(r"[#!](?!\}|$)")
_SPECIAL = re.compile(r"[@*#?$!0-9-]")
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//?|(?:\^\^?|,,?)(?=\})|:")


class DollarReader(TextReader):
    """Parameters, substitutions and arithmetic. Words and statements are the subclasses'."""

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
            return Text("", quoted)  # $"..." is translated text: the quote that follows
        if char == "[":
            return Arithmetic(self.subscript(), quoted)
        if name := self.take(NAME):
            if self.peek() == "{" and not quoted:
                return Given(missing(f"${name}{{...}}")[0], quoted)  # braces come first: $x{1,2} is $x1 $x2
            return Parameter(name, quoted)
        if name := self.take(_SPECIAL):
            return Parameter(name, quoted)
        return Text("$", quoted)

    def ansi_quoted(self) -> Part:
        """`$'...'`, its quote passed already."""
        match = _ANSI_QUOTED.match(self.text, self.at)
        if match is None:
            raise self.fail("the quote ' is never closed")
        self.at = match.end()
        text = unescaped(match[1], quotes=True)
        return Given(missing("$'...'")[0], True) if text is None else Text(text, True)

    def backticks(self, quoted: bool) -> Part:
        line, match = self.line, _BACKTICKS.match(self.text, self.at)
        if match is None:
            raise self.fail("the quote ` is never closed")
        self.at = match.end()
        text = re.sub(r"\\([`\\$\"])" if quoted else r"\\([`\\$])", r"\1", match[1])
        return Substitution(self.script_inside(text, line), quoted)

    def arithmetic(self) -> tuple[Part, ...] | None:
        """The expression of `((...))`, whose parentheses start here; None where they are two subshells."""
        start = self.at
        self.at += 2
        parts: list[Part] = []
        depth = 0
        self.deeper()
        while True:
            parts += self.parts_until("();", _IN_ARITHMETIC, False, "(( is never closed with ))")
            char = self.text[self.at]
            if char == ")" and not depth:
                break
            depth += (char == "(") - (char == ")")
            parts.append(Text(char, False))
            self.at += 1
        self.depth -= 1
        if self.peek(2) != "))":
            self.at = start
            return None
        self.at += 2
        self.count(parts)
        return tuple(parts)

    def braced(self, quoted: bool) -> Part:
        """`${...}`, its brace passed already."""
        line = self.line
        self.deeper()
        prefix = self.take(_PREFIX)
        name = self.take(_PARAMETER)
        index = self.subscript() if name and self.peek() == "[" else None
        operator = self.take(_OPERATOR)
        argument: tuple[Part, ...] = ()
        other: tuple[Part, ...] = ()
        if operator in ("/", "//"):
            if self.peek() in ("#", "%") and operator == "/":
                operator += self.peek()
                self.at += 1
            if operator == "//" and self.peek() == "/":
                argument, self.at = (Text("/", quoted),), self.at + 1  # of ${X////-}
            argument += self.argument(False, _IN_PATTERN, line)
            if self.peek() == "/":
                self.at += 1
                other = self.argument(quoted, _IN_BRACES, line)
                other = tuple(map(_put_in, other)) if quoted else other
        elif operator:
            within = quoted and operator[0] not in "#%"  # a pattern's quotes are its own
            argument = self.argument(within, _IN_BRACES, line)
            if argument and not within:
                argument = tuple(with_home(argument, False))
        if name and self.peek() == "}":
            found: Part = Parameter(name, quoted, index, operator, argument, other, prefix)
        else:
            self.argument(quoted, _IN_BRACES, line)
            found = Given(missing(f"${{{name}...}}")[0], quoted)
        self.at += 1
        self.depth -= 1
        return found

    def subscript(self) -> tuple[Part, ...]:
        """What stands in the brackets that open here."""
        self.at += 1
        parts: list[Part] = []
        depth = 0
        while True:
            parts += self.parts_until("[]", _IN_SUBSCRIPT, False, "[ is never closed with ]")
            char = self.text[self.at]
            self.at += 1
            if char == "]" and not depth:
                return tuple(parts)
            depth += (char == "[") - (char == "]")
            parts.append(Text(char, False))

    def argument(self, quoted: bool, plain: re.Pattern[str], line: int) -> tuple[Part, ...]:
        """The word inside `${...}` up to its brace, or a slash that `plain` stops at, which is left."""
        parts: list[Part] = []
        between = False  # single quotes, which are plain inside double ones but keep braces between them
        while self.at < len(self.text):
            if text := self.take(plain):
                parts.append(Text(text, quoted))
            elif (ends := (char := self.text[self.at]) in "/}") and not between:
                self.count(parts)
                return tuple(parts)
            elif char == '"':
                self.at += 1
                parts += self.double_quoted() or [Text("", True)]
            elif (char == "'" or ends) and quoted:
                between ^= char == "'"
                parts.append(Text(char, quoted))
                self.at += 1
            elif quoted and self.peek(2) == "\\}":
                parts.append(Text("}", quoted))
                self.at += 2
            else:
                parts += self.special(quoted=quoted)
        raise self.fail("${ is never closed with }", line)


def _put_in(part: Part) -> Part:
    """A part of `other` in `"${name/pattern/other}"`: a backslash before a slash goes, at others versions differ."""
    if not isinstance(part, Text) or not re.match(r"\\.", part.text):
        return part
    return Text("/", part.quoted) if part.text == r"\/" else Given(missing(part.text)[0], part.quoted)
