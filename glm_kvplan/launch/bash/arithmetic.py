"""Arithmetic of `$((...))` and `((...))`, in bash's 64 bits."""

import operator
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]?#[0-9a-zA-Z]{1,20}|[0-9]{1,20}|[A-Za-z_]\w*(?:\[[^\[\]]*\])?"
    r"|<<=|>>=|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),])"
)
_NAME = re.compile("[A-Za-z_]")
_MOST, _DEEPEST = 500, 50


class ArithmeticProblem(Exception):
    """What bash would refuse, or what is not read here."""


def _quotient(left: int, right: int) -> int:
    if not right:
        raise ArithmeticProblem
    found = abs(left) // abs(right)
    return -found if left ^ right < 0 else found


_BINARY: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda left, right: bool(left or right)},
    {"&&": lambda left, right: bool(left and right)},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt},
    {"<<": lambda left, right: left << right % 64, ">>": lambda left, right: left >> right % 64},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _quotient, "%": lambda left, right: left - right * _quotient(left, right)},
)
_APPLY = {sign: apply for level in _BINARY for sign, apply in level.items()}
_ASSIGNS = ("=", *(f"{sign}=" for sign in ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")))
_UNARY: Mapping[str, Callable[[int], int]] = {"+": int, "-": operator.neg, "!": operator.not_, "~": operator.inv}


def calculate(text: str, value: Callable[[str], int], assign: Callable[[str, int | None], None]) -> int:
    """The value of an expression; names (`x`, `x[1]`) are asked of `value`. Raises ArithmeticProblem.

    `assign` is told None for an assignment that is not reached: `0 && (x = 1)`.
    """
    return _Calculator(text, value, assign).whole()


class _Calculator:
    def __init__(self, text: str, value: Callable[[str], int], assign: Callable[[str, int | None], None]) -> None:
        self.tokens: list[str] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or len(self.tokens) == _MOST:
                raise ArithmeticProblem
            self.tokens.append(match[1])
            at = match.end()
        self.tokens += ["", ""]
        self.value, self.assign = value, assign
        self.at = self.depth = 0
        self.skipped = 0  # above 0: in what `&&`, `||` and `?` pass over

    def whole(self) -> int:
        found = self.comma() if self.tokens[0] else 0
        self.expect("")
        return found

    def accept(self, *signs: str) -> str:
        text = self.tokens[self.at]
        if text not in signs:
            return ""
        self.at += 1
        return text

    def expect(self, sign: str) -> None:
        if self.tokens[self.at] != sign:
            raise ArithmeticProblem
        self.at += 1

    def name(self) -> str:
        found = self.tokens[self.at]
        if not _NAME.match(found):
            raise ArithmeticProblem
        self.at += 1
        return found

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ArithmeticProblem

    def comma(self) -> int:
        found = self.ternary()
        while self.accept(","):
            found = self.ternary()
        return found

    def ternary(self) -> int:
        self.deeper()
        if self.tokens[self.at + 1] in _ASSIGNS:
            name, sign = self.name(), self.accept(*_ASSIGNS)
            new = self.ternary()
            found = new if sign == "=" else self.apply(sign[:-1], self.asked(name), new)
            self.assign(name, None if self.skipped else found)
        else:
            found = self.binary(0)
            if self.accept("?"):
                first = self.passing(not found, self.comma)
                self.expect(":")
                second = self.passing(bool(found), self.ternary)
                found = first if found else second
        self.depth -= 1
        return found

    def binary(self, level: int) -> int:
        if level == len(_BINARY):
            return self.power()
        found = self.binary(level + 1)
        while sign := self.accept(*_BINARY[level]):
            decided = (sign == "&&" and not found) or (sign == "||" and bool(found))
            found = self.apply(sign, found, self.passing(decided, lambda: self.binary(level + 1)))
        return found

    def passing(self, over: bool, read: Callable[[], int]) -> int:
        self.skipped += over
        found = read()
        self.skipped -= over
        return found

    def apply(self, sign: str, left: int, right: int) -> int:
        return right if self.skipped else _wrapped(_APPLY[sign](left, right))

    def asked(self, name: str) -> int:
        return not self.skipped and self.value(name)

    def power(self) -> int:
        found = self.unary()
        if self.accept("**"):
            exponent = self.power()
            if exponent < 0:
                raise ArithmeticProblem
            found = _wrapped(pow(found, exponent, 1 << 64))
        return found

    def unary(self) -> int:
        self.deeper()
        if sign := self.accept(*_UNARY):
            found = _wrapped(_UNARY[sign](self.unary()))
        elif sign := self.accept("++", "--"):
            found = self.step(self.name(), sign)
        elif self.accept("("):
            found = self.comma()
            self.expect(")")
        elif self.tokens[self.at][:1].isdigit():
            found = number(self.tokens[self.at])
            self.at += 1
        else:
            name = self.name()
            found = self.asked(name)
            if sign := self.accept("++", "--"):
                self.step(name, sign)
        self.depth -= 1
        return found

    def step(self, name: str, sign: str) -> int:
        found = _wrapped(self.asked(name) + (1 if sign == "++" else -1))
        self.assign(name, None if self.skipped else found)
        return found


def number(text: str) -> int:
    """A number as bash writes it: decimal, 0x, a leading 0 for octal, base#digits."""
    base, _, digits = text.rpartition("#")
    try:
        if base:
            return _wrapped(int(f"0{digits}", int(base)))  # the 0: 16#0x1 is none
        return _wrapped(int(text, 8 if re.match("0[0-9]", text) else 0))
    except ValueError:
        raise ArithmeticProblem from None


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
