"""Statements of a shell script's text: lists, pipelines, branches, loops, functions, redirections."""

import re
from collections.abc import Collection, Iterator, Mapping

from glm_kvplan.launch.bash import syntax
from glm_kvplan.launch.bash.command_reader import FUNCTION, CommandReader
from glm_kvplan.launch.bash.syntax import Body, Part, Statement, Text, WordNode
from glm_kvplan.launch.marked_words import Piece

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|<>()]|\\\n|$)"
)
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))
_IN = re.compile(r"in(?=[ \t\n;]|$)")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>]")


def statements(text: str, given: Mapping[int, Piece] | None = None, *, numbered: bool = True) -> Iterator[Statement]:
    """The statements of a script, one after another as they are read. Raises InputError for what bash cannot read.

    Constructs that the text's end leaves open are closed there: people paste parts of scripts.
    """
    reader = _StatementReader(text, given, 1, numbered)
    waiting = []
    while True:
        found = reader.next_statement(())
        if found is not None:
            waiting.append(found)
        if reader.documents and found is not None:
            reader.newlines()  # their text stands below
        if not reader.documents:
            yield from waiting
            waiting.clear()
        if found is None:
            if reader.at < len(text):
                raise reader.fail(f"{reader.peek()!r} is not expected here")
            yield from waiting
            return


def parts_of_text(text: str) -> tuple[Part, ...]:
    """A text read like the body of a here-document: nothing but `$` and backslashes counts."""
    return _StatementReader("", numbered=False).document_parts(text, 0)


class _StatementReader(CommandReader):
    # --- lists

    def next_statement(self, ends: Collection[str]) -> Statement | None:
        """The next statement of a list with what joins it; None before one of `ends`, a closing mark, or the end."""
        self.newlines()
        while self.semicolon():
            self.newlines()
        if not self.peek() or self.peek() in ")" or self.peek(2) in (";;", ";&"):
            return None
        word = self.reserved()
        if word in _CLOSING:
            if word in ends:
                return None
            raise self.fail(f"{word} is not expected here")
        found = self.and_or()
        self.blanks()
        if self.peek() == "&" and self.peek(2) != "&&":
            self.at += 1
            return syntax.Group((found,), True, (), True)
        if not self.semicolon() and self.peek() and self.peek() not in "\n;)":
            raise self.fail(f"{self.peek()!r} is not expected here")
        return found

    def semicolon(self) -> bool:
        """Past a semicolon that ends no alternative of `case`."""
        found = self.peek() == ";" and self.peek(2) not in (";;", ";&")
        self.at += found
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
        while True:
            self.blanks()
            operator = self.peek(2)
            if operator not in ("&&", "||"):
                return syntax.AndOr(first, tuple(others)) if others else first
            self.at += 2
            self.newlines()
            others.append((operator, self.pipeline()))

    def pipeline(self) -> Statement:
        negated = False
        while (word := self.reserved()) in ("!", "time"):
            self.at += len(word)
            negated ^= word == "!"
            self.blanks()
            self.take(re.compile("-p(?=[ \t])"))
            self.blanks()
        parts = [self.command()]
        while True:
            self.blanks()
            if self.peek() != "|" or self.peek(2) == "||":
                break
            self.at += 2 if self.peek(2) == "|&" else 1
            self.newlines()
            parts.append(self.command())
        return parts[0] if len(parts) == 1 and not negated else syntax.Pipeline(tuple(parts), negated)

    # --- commands

    def reserved(self) -> str:
        match = _RESERVED.match(self.text, self.at)
        return match[0] if match else ""

    def keyword(self, word: str) -> bool:
        """Past a reserved word, which may be missing only at the text's end."""
        self.newlines()
        if self.reserved() == word:
            self.at += len(word)
            return True
        if self.peek():
            raise self.fail(f"{word} is expected here")
        return False

    def command(self) -> Statement:
        self.blanks()
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

    def conditional(self) -> Statement:
        branches: list[tuple[Body, Body]] = []
        word = "if"
        while word in ("if", "elif"):
            self.at += len(word)
            condition = self.body("then")
            self.keyword("then")
            branches.append((condition, self.body("elif", "else", "fi")))
            self.newlines()
            word = self.reserved()
        if word == "else":
            self.at += len(word)
            branches.append(((), self.body("fi")))
        self.keyword("fi")
        return syntax.If(tuple(branches))

    def loop(self, word: str) -> Statement:
        self.at += len(word)
        condition = self.body("do")
        return syntax.Loop(condition, self.do_body(), word == "until")

    def do_body(self) -> Body:
        self.keyword("do")
        found = self.body("done")
        self.keyword("done")
        return found

    def for_loop(self, line: int) -> Statement:
        self.at += len("for")
        self.blanks()
        counting: list[tuple[Part, ...]] = []
        name, words = "", None
        if self.peek(2) == "((":
            counting = self.counting_parts(line)
        else:
            name = self.name_here()
            self.newlines()
            if self.take(_IN):
                words = self.words_of_line()
        self.newlines()
        if self.peek() == ";":
            self.at += 1
        self.newlines()
        if self.reserved() == "{":
            self.at += 1
            body = self.body("}")
            self.keyword("}")
        else:
            body = self.do_body()
        if counting:
            return syntax.CountingFor(counting[0], counting[1], counting[2], body, line)
        return syntax.For(name, words, body, line)

    def counting_parts(self, line: int) -> list[tuple[Part, ...]]:
        """The three expressions of `for ((...))`."""
        found: list[list[Part]] = [[]]
        for part in self.arithmetic() or ():
            if part == Text(";", False):
                found.append([])
            else:
                found[-1].append(part)
        if len(found) != 3:
            raise self.fail("for (( needs three expressions", line)
        return [tuple(parts) for parts in found]

    def words_of_line(self) -> tuple[WordNode, ...]:
        found: list[WordNode] = []
        while True:
            self.blanks()
            word = self.word()
            if word is None:
                return tuple(found)
            found.append(word)

    def name_here(self) -> str:
        word = self.word()
        if word is None or not all(isinstance(part, Text) for part in word.parts):
            raise self.fail("a name is expected here")
        return "".join(part.text for part in word.parts if isinstance(part, Text))

    def alternatives(self, line: int) -> Statement:
        self.at += len("case")
        self.blanks()
        subject = self.word()
        if subject is None:
            raise self.fail("case needs a word")
        self.newlines()
        if not self.text.startswith("in", self.at):
            raise self.fail("in is expected here")
        self.at += 2
        found = []
        while True:
            self.newlines()
            if not self.peek() or self.reserved() == "esac":
                break
            if self.peek() == "(":
                self.at += 1
            patterns = []
            while True:
                self.blanks()
                pattern = self.word()
                if pattern is None:
                    raise self.fail("a pattern is expected here")
                patterns.append(pattern)
                self.blanks()
                if self.peek() == "|":
                    self.at += 1
                elif self.peek() == ")":
                    self.at += 1
                    break
                else:
                    raise self.fail(") is expected here")
            body = self.body("esac")
            if self.text.startswith((";&", ";;&"), self.at):
                raise self.fail("`;&` is not read here; give the launch command alone")
            self.at += 2 * (self.peek(2) == ";;")
            found.append((tuple(patterns), body))
        self.keyword("esac")
        return syntax.Case(subject, tuple(found), line)

    def function(self, name: str) -> Statement:
        match = FUNCTION.match(self.text, self.at)
        if match:
            self.at = match.end()
        self.newlines()
        return syntax.Function(name, self.command())

    def condition(self, line: int) -> Statement:
        """`[[ ... ]]`: its operators as words of their own."""
        self.at += 2
        tokens = []
        while True:
            self.newlines()
            here = self.line
            if not self.peek():
                raise self.fail("[[ is never closed with ]]", line)
            operator = self.take(_TEST_OPERATOR)
            if operator:
                tokens.append(WordNode((Text(operator, False),), here))
                continue
            word = self.word()
            if word is None:
                raise self.fail(f"{self.peek()!r} is not expected here")
            if word.parts == (Text("]]", False),):
                return syntax.Condition(tuple(tokens), line)
            tokens.append(word)
            if word.parts == (Text("=~", False),):
                self.blanks()
                tokens.append(self.expression_pattern())

    def expression_pattern(self) -> WordNode:
        """The right side of `=~`, in which parentheses and bars are plain."""
        line = self.line
        parts: list[Part] = []
        while self.at < len(self.text) and self.text[self.at] not in " \t\n":
            if self.text[self.at] in "();&|<>":
                parts.append(Text(self.text[self.at], False))
                self.at += 1
                continue
            word = self.word()
            if word is None:
                break
            parts += word.parts
        return WordNode(tuple(parts), line)

    def substituted(self, opening: str) -> Body:
        line = self.line
        found = self.body()
        self.newlines()
        if self.peek() != ")":
            if self.peek():
                raise self.fail(f"{self.peek()!r} is not expected here")
            raise self.fail(f"{opening} is never closed with )", line)
        self.at += 1
        return found

    def script_inside(self, text: str, line: int) -> Body:
        reader = _StatementReader(text, self.given, line or 1, self.numbered)
        reader.depth = self.depth
        found = reader.body()
        if reader.at < len(text):
            raise reader.fail(f"{reader.peek()!r} is not expected here")
        return found
