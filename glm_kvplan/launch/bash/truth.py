"""Whether a test of a script holds: `[ ... ]`, `[[ ... ]]`, `((...))`; or what would have to be known to say."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.lists import some_list
from glm_kvplan.launch.bash.regular_expressions import NotRead, groups_of
from glm_kvplan.launch.bash.syntax import Condition, Part, Text, WordNode
from glm_kvplan.launch.bash.values import Array, Scalar, Unset, is_empty, mark_of, plain, text_of
from glm_kvplan.launch.bash.word_splitting import Field
from glm_kvplan.launch.marked_words import Mark

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_DEEPEST = 40


def negated(found: Truth) -> Truth:
    return found if isinstance(found, Mark) else not found


def both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return left if isinstance(left, Mark) else right


def either(left: Truth, right: Truth) -> Truth:
    return negated(both(negated(left), negated(right)))


def test_command(shell: "Interpreter", words: Sequence[Field], line: int) -> Truth:
    """`test ...` or `[ ... ]` with its brackets left out."""
    return _Test(shell, [_Operand(word.text, word.value) for word in words], line, False).whole()


def condition(shell: "Interpreter", found: Condition) -> Truth:
    """`[[ ... ]]`."""
    operands = []
    for node in found.tokens:
        first = node.parts[0] if len(node.parts) == 1 else None
        text = first.text if isinstance(first, Text) and not first.quoted else ""
        operands.append(_Operand(text, node=node))
    return _Test(shell, operands, found.line, True).whole()


def number_holds(shell: "Interpreter", expression: tuple[Part, ...], line: int) -> Truth:
    """`((...))`: true where the number is not 0."""
    number = shell.expander.calculated(expression, line)
    mark = mark_of(number)
    return _decides(shell, mark, line) if mark is not None else text_of(number) != "0"


def _decides(shell: "Interpreter", mark: Mark, line: int, *, empty: bool = False) -> Mark:
    return shell.doubt(mark, line)._replace(empty=empty and not mark.place)


class _Operand(NamedTuple):
    """A word of a test: expanded already, or a node that is expanded when it is its turn.

    `operator` is its text if it may be an operator: nothing in it is substituted or quoted.
    """

    operator: str
    value: Scalar = ()
    node: WordNode | None = None


class _Test:
    """One test, read from its left end as bash does."""

    def __init__(self, shell: "Interpreter", words: list[_Operand], line: int, double: bool) -> None:
        self.shell, self.words, self.line, self.double = shell, words, line, double
        self.at = self.depth = 0

    def whole(self) -> Truth:
        if not self.words:
            return False
        if len(self.words) == 1:
            return negated(self.empty(self.scalar(self.words[0])))
        if not self.double and len(self.words) == 4 and self.operator() == "!":
            self.at = 1  # of what the other three say together
            return negated(self.any_of())
        found = self.any_of()
        return found if self.at == len(self.words) else self.shell.doubt("a test", self.line)

    def operator(self) -> str:
        return self.words[self.at].operator if self.at < len(self.words) else ""

    def scalar(self, word: _Operand) -> Scalar:
        if word.node is None:
            return word.value
        return self.shell.expander.scalar(word.node.parts, word.node.line)

    def take(self) -> Scalar:
        self.at += 1
        return self.scalar(self.words[self.at - 1])

    def any_of(self) -> Truth:
        found = self.all_of()
        while self.operator() in (("||",) if self.double else ("-o",)):
            self.at += 1
            found = either(found, self.all_of())
        return found

    def all_of(self) -> Truth:
        found = self.one()
        while self.operator() in (("&&",) if self.double else ("-a",)):
            self.at += 1
            found = both(found, self.one())
        return found

    def one(self) -> Truth:
        self.depth += 1
        try:
            left = len(self.words) - self.at
            if self.depth > _DEEPEST or left < 1:
                self.at = len(self.words) + 1  # the whole is asked about
                return False
            operator = self.operator()
            if left > 2 and self.is_binary(second := self.words[self.at + 1].operator):
                return self.binary(second)
            if operator == "!":
                self.at += 1
                return negated(self.one())
            if operator == "(":
                self.at += 1
                found = self.any_of()
                self.at += 1
                return found
            if left > 1 and re.fullmatch("-[a-zA-Z]", operator):
                self.at += 1
                return self.unary(operator)
            return negated(self.empty(self.take()))
        finally:
            self.depth -= 1

    def is_binary(self, operator: str) -> bool:
        return (
            operator in _NUMBERS
            or operator in ("=", "==", "!=", "<", ">", "-nt", "-ot", "-ef")
            or (self.double and operator == "=~")
        )

    def empty(self, value: Scalar) -> Truth:
        found, mark = is_empty(value), mark_of(value)
        if mark is None or found is not None:
            return found is True
        return _decides(self.shell, mark, self.line, empty=len(value) == 1)

    def unary(self, operator: str) -> Truth:
        value = self.take()
        if operator == "-z":
            return self.empty(value)
        if operator == "-n":
            return negated(self.empty(value))
        mark = mark_of(value)
        if mark is not None:
            return _decides(self.shell, mark, self.line)
        if operator == "-v":
            name = text_of(value)
            found = self.shell.get(name)
            return (
                Mark(f"${name}", self.shell.place(self.line), (), True)
                if found is None
                else not isinstance(found, Unset)
            )
        of_files = operator not in ("-o", "-R")  # options of the shell, references
        return self.shell.doubt(f"a file that `{operator}` looks for" if of_files else "a test", self.line)

    def binary(self, operator: str) -> Truth:
        left = self.take()
        self.at += 1
        right = self.words[self.at]
        if operator in ("==", "=", "!=") and self.double and right.node is not None:
            self.at += 1
            pattern = self.shell.expander.pattern(right.node.parts, right.node.line)
            mark = pattern if isinstance(pattern, Mark) else mark_of(left)
            if mark is not None:
                return _decides(self.shell, mark, self.line)
            assert not isinstance(pattern, Mark)
            return pattern.matches(text_of(left)) != (operator == "!=")
        if operator == "=~" and right.node is not None:
            self.at += 1
            return self.expression(left, right.node)
        value = self.take()
        mark = mark_of(left) or mark_of(value)
        if mark is not None:
            return _decides(self.shell, mark, self.line)
        a, b = text_of(left), text_of(value)
        if operator in ("=", "==", "!="):
            return (a == b) != (operator == "!=")
        if operator in ("<", ">"):
            return a < b if operator == "<" else a > b
        if operator not in _NUMBERS:
            return self.shell.doubt(f"a file that `{operator}` looks for", self.line)
        return self.numbers(operator, a, b)

    def expression(self, left: Scalar, node: WordNode) -> Truth:
        """`=~`, which keeps what it finds in BASH_REMATCH."""
        steps = self.shell.expander.steps(node.parts, node.line)
        mark = steps if isinstance(steps, Mark) else mark_of(left)
        self.shell.assign("BASH_REMATCH", some_list("BASH_REMATCH"))
        if mark is not None:
            return _decides(self.shell, mark, self.line)
        assert not isinstance(steps, Mark)
        try:
            groups = groups_of(steps, text_of(left))
        except NotRead:
            return self.shell.doubt("a regular expression", self.line)
        if groups != ():
            self.shell.assign("BASH_REMATCH", Array(tuple(map(plain, groups or ()))))
        return groups is not None

    def numbers(self, operator: str, a: str, b: str) -> Truth:
        numbers = []
        for text in (a, b):
            if self.double:
                found = self.shell.expander.calculated((Text(text, True),), self.line)
                mark = mark_of(found)
                if mark is not None:
                    return _decides(self.shell, mark, self.line)
                text = text_of(found)
            if not re.fullmatch(r"\s*[-+]?[0-9]{1,18}\s*", text):
                return False  # bash complains and goes on
            numbers.append(int(text))
        return _NUMBERS[operator](numbers[0], numbers[1])
