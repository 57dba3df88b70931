"""Compound commands of a shell script's text: if, while, for, case and `[[`."""

import re
from abc import abstractmethod

from glm_kvplan.launch.bash import syntax
from glm_kvplan.launch.bash.command_reader import CommandReader
from glm_kvplan.launch.bash.syntax import Body, Part, Statement, Text, WordNode

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|<>()]|\\\n|$)"
)
_IN = re.compile(r"in(?=[ \t\n;(]|$)")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>]")


class CompoundReader(CommandReader):
    """Compound commands; the lists of statements within them are the subclass's."""

    @abstractmethod
    def body(self, *ends: str) -> Body:
        """The statements up to one of the reserved words `ends`, or the text's end."""

    def reserved(self) -> str:
        match = _RESERVED.match(self.text, self.at)
        return match[0] if match else ""

    def keyword(self, word: str) -> None:
        """Past a reserved word, which may be missing only at the text's end."""
        if self.reserved() == word:
            self.at += len(word)
        elif self.peek():
            raise self.fail(f"{word} is expected here")

    def name_here(self) -> str:
        word = self.word()
        if word is None or not all(isinstance(part, Text) for part in word.parts):
            raise self.fail("a name is expected here")
        return "".join(part.text for part in word.parts if isinstance(part, Text))

    def words_of_line(self) -> tuple[WordNode, ...]:
        found: list[WordNode] = []
        while True:
            self.blanks()
            word = self.word()
            if word is None:
                return tuple(found)
            found.append(word)

    def conditional(self) -> Statement:
        branches: list[tuple[Body, Body]] = []
        word = "if"
        while word in ("if", "elif"):
            self.at += len(word)
            condition = self.body("then")
            self.keyword("then")
            branches.append((condition, self.body("elif", "else", "fi")))
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

    def for_loop(self, line: int) -> Statement:
        self.at += len("for")
        self.blanks()
        if self.peek(2) == "((":
            start, test, step = self.counting_parts(line)
            return syntax.CountingFor(start, test, step, self.for_body(), line)
        name = self.name_here()
        self.newlines()
        words = self.words_of_line() if self.take(_IN) else None
        return syntax.For(name, words, self.for_body(), line)

    def for_body(self) -> Body:
        self.newlines()
        if self.peek() == ";":
            self.at += 1
        self.newlines()
        if self.reserved() != "{":
            return self.do_body()
        self.at += 1
        found = self.body("}")
        self.keyword("}")
        return found

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

    def do_body(self) -> Body:
        self.keyword("do")
        found = self.body("done")
        self.keyword("done")
        return found

    def alternatives(self, line: int) -> Statement:
        self.at += len("case")
        self.blanks()
        subject = self.word()
        if subject is None:
            raise self.fail("case needs a word")
        self.newlines()
        if not self.take(_IN):
            raise self.fail("in is expected here")
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
        """The right side of `=~`, in which bars are plain, and all that stands in parentheses."""
        line, depth = self.line, 0
        parts: list[Part] = []
        while (char := self.peek()) and (depth or char not in ") \t\n;&<>"):
            if char in "(|) \t\n;&<>":
                depth += (char == "(") - (char == ")")
                parts.append(Text(char, False))
                self.at += 1
            elif word := self.word():
                parts += word.parts
        return WordNode(tuple(parts), line)
