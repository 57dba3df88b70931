"""Statements of a shell script's text: lists, pipelines, groups, functions, redirections."""

import re
from collections.abc import Collection, Iterator, Mapping

from glm_kvplan.launch.bash import syntax
from glm_kvplan.launch.bash.command_reader import FUNCTION
from glm_kvplan.launch.bash.compound_reader import CompoundReader
from glm_kvplan.launch.bash.syntax import Body, Part, Statement
from glm_kvplan.launch.marked_words import Piece

_PIPE = re.compile(r"\|&|\|(?!\|)")
_PORTABLE = re.compile("-p(?=[ \t])")  # an option of `time`
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))


def statements(text: str, given: Mapping[int, Piece] | None = None, *, numbered: bool = True) -> Iterator[Statement]:
    """The statements of a script, one after another as they are read. Raises InputError for what bash cannot read.

    Constructs that the text's end leaves open are closed there: people paste parts of scripts.
    """
    reader = _StatementReader(text, given or {}, 1, numbered)
    waiting = []
    while (found := reader.next_statement(())) is not None:
        waiting.append(found)
        if reader.documents:
            reader.newlines()  # their text stands below
        if not reader.documents:
            yield from waiting
            waiting.clear()
    reader.at_end()
    yield from waiting


def parts_of_text(text: str) -> tuple[Part, ...]:
    """A text read like the body of a here-document: nothing but `$` and backslashes counts."""
    return _StatementReader(text, {}, 0, False).text_parts()


class _StatementReader(CompoundReader):
    # --- lists

    def next_statement(self, ends: Collection[str]) -> Statement | None:
        """The next statement of a list with what joins it; None before one of `ends`, a closing mark, or the end."""
        self.newlines()
        if not self.peek() or self.peek() in ")" or self.peek(2) in (";;", ";&"):
            return None
        word = self.reserved()
        if word in _CLOSING:
            if word in ends:
                return None
            raise self.fail(f"{word} is not expected here")
        found = self.and_or()
        if self.peek() == "&":
            self.at += 1
            return syntax.Group((found,), True, (), True)
        if self.peek() == ";":
            self.at += self.peek(2) not in (";;", ";&")  # which end an alternative of `case`
        elif self.peek() not in ("", "\n", ")") and self.reserved() not in _CLOSING:
            raise self.fail(f"{self.peek()!r} is not expected here")
        return found

    def body(self, *ends: str) -> Body:
        """The statements up to one of the reserved words `ends`, or the text's end."""
        self.deeper()
        found = []
        while (statement := self.next_statement(ends)) is not None:
            found.append(statement)
        self.depth -= 1
        return tuple(found)

    def and_or(self) -> Statement:
        first = self.pipeline()
        others: list[tuple[str, Statement]] = []
        while (operator := self.peek(2)) in ("&&", "||"):
            self.at += 2
            self.newlines()
            others.append((operator, self.pipeline()))
        return syntax.AndOr(first, tuple(others)) if others else first

    def pipeline(self) -> Statement:
        negated = False
        while (word := self.reserved()) in ("!", "time"):
            self.at += len(word)
            negated ^= word == "!"
            self.blanks()
            if word == "time" and self.take(_PORTABLE):
                self.blanks()
        parts = [self.command()]
        while self.take(_PIPE):
            self.newlines()
            parts.append(self.command())
        return parts[0] if len(parts) == 1 and not negated else syntax.Pipeline(tuple(parts), negated)

    # --- commands

    def command(self) -> Statement:
        """The command that starts here; past the blanks behind it."""
        line = self.line
        word = self.reserved()
        match word:
            case "if":
                return self.redirected(self.conditional())
            case "while" | "until":
                return self.redirected(self.loop(word))
            case "for":
                return self.redirected(self.for_loop(line))
            case "case":
                return self.redirected(self.alternatives(line))
            case "function":
                self.at += len(word)
                self.blanks()
                return self.function(self.name_here())
            case "{":
                self.at += 1
                found = syntax.Group(self.body("}"), False)
                self.keyword("}")
                return self.redirected(found)
            case "[[":
                return self.redirected(self.condition(line))
            case "coproc" | "select":
                raise self.fail(f"`{word}` is not read here; give the launch command alone")
        if self.peek(2) == "((" and (expression := self.arithmetic()) is not None:
            return self.redirected(syntax.Calculation(expression, line))
        if self.peek() == "(":
            self.at += 1
            found = syntax.Group(self.substituted("("), True)
            return self.redirected(found)
        return self.simple(line)

    def redirected(self, statement: Statement) -> Statement:
        """A compound command with the redirections behind it."""
        redirects = []
        while True:
            self.blanks()
            redirect = self.redirect()
            if redirect is None:
                break
            redirects.append(redirect)
        return syntax.Group((statement,), False, tuple(redirects)) if redirects else statement

    def function(self, name: str) -> Statement:
        match = FUNCTION.match(self.text, self.at)
        if match:
            self.at = match.end()
        self.newlines()
        return syntax.Function(name, self.command())

    def substituted(self, opening: str) -> Body:
        line = self.line
        found = self.body()
        if not self.peek():
            raise self.fail(f"{opening} is never closed with )", line)
        if self.peek() != ")":
            raise self.fail(f"{self.peek()!r} is not expected here")
        self.at += 1
        return found

    def script_inside(self, text: str, line: int) -> Body:
        reader = _StatementReader(text, self.given, line or self.here, self.numbered)
        reader.depth = self.depth
        found = reader.body()
        reader.at_end()
        return found

    def at_end(self) -> None:
        """Raises InputError where a list of statements has ended before the text."""
        if self.peek():
            raise self.fail(f"{self.peek()!r} is not expected here")
