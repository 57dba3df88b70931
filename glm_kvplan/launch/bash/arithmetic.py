"""Arithmetic of `$((...))` and `((...))`, in bash's 64 bits."""

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,2}#[0-9a-zA-Z]{1,20}|[0-9]{1,20})|([A-Za-z_]\w*(?:\[[^\[\]]*\])?)"
    r"|(<<=|>>=|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_BINARY = (
    *(("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<=", ">=", "<", ">"), ("<<", ">>")),
    *(("+", "-"), ("*", "/", "%")),
)
_ASSIGNS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_DEEPEST = 50


class ArithmeticProblem(Exception):
    """What bash would refuse, or what is not read here."""


def calculate(text: str, value: Callable[[str], int], assign: Callable[[str, int | None], None]) -> int:
    """The value of an expression; names (`x`, `x[1]`) are asked of `value`. Raises ArithmeticProblem.

    `assign` is told None for an assignment that is not reached: `0 && (x = 1)`.
    """
    return _Calculator(text, value, assign).whole()


class _Calculator:
    def __init__(self, text: str, value: Callable[[str], int], assign: Callable[[str, int | None], None]) -> None:
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or len(self.tokens) > 500:
                raise ArithmeticProblem
            kind = "number" if match[1] else "name" if match[2] else "operator"
            self.tokens.append((kind, match[1] or match[2] or match[3]))
            at = match.end()
        self.value, self.assign = value, assign
        self.at = self.depth = 0
        self.skipped = 0  # above 0: in what `&&`, `||` and `?` pass over

    def whole(self) -> int:
        if not self.tokens:
            return 0
        found = self.comma()
        if self.at < len(self.tokens):
            raise ArithmeticProblem
        return found

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def accept(self, *operators: str) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "operator" and self.peek() in operators:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return ""

    def comma(self) -> int:
        found = self.ternary()
        while self.accept(","):
            found = self.ternary()
        return found

    def ternary(self) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ArithmeticProblem
        (kind, name), (_, operator) = (*self.tokens[self.at : self.at + 2], ("", ""), ("", ""))[:2]
        if kind == "name" and operator in _ASSIGNS:
            self.at += 2
            new = self.ternary()
            found = new if operator == "=" else self.apply(operator[:-1], self.asked(name), new)
            self.assign(name, None if self.skipped else found)
        else:
            found = self.binary(0)
            if self.accept("?"):
                first = self.passing(not found, self.comma)
                if not self.accept(":"):
                    raise ArithmeticProblem
                second = self.passing(bool(found), self.ternary)
                found = first if found else second
        self.depth -= 1
        return found

    def binary(self, level: int) -> int:
        if level == len(_BINARY):
            return self.power()
        found = self.binary(level + 1)
        while operator := self.accept(*_BINARY[level]):
            decided = (operator == "&&" and not found) or (operator == "||" and bool(found))
            found = self.apply(operator, found, self.passing(decided, lambda: self.binary(level + 1)))
        return found

    def passing(self, over: bool, read: Callable[[], int]) -> int:
        self.skipped += over
        found = read()
        self.skipped -= over
        return found

    def apply(self, operator: str, left: int, right: int) -> int:
        return 0 if self.skipped else _apply(operator, left, right)

    def asked(self, name: str) -> int:
        return 0 if self.skipped else self.value(name)

    def power(self) -> int:
        found = self.unary()
        if self.accept("**"):
            exponent = self.power()
            if not 0 <= exponent < 64:
                raise ArithmeticProblem
            found = _wrapped(found**exponent)
        return found

    def unary(self) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ArithmeticProblem
        try:
            if operator := self.accept("+", "-", "!", "~"):
                found = self.unary()
                return {"+": found, "-": -found, "!": int(not found), "~": ~found}[operator]
            if operator := self.accept("++", "--"):
                return self.step(self.name(), 1 if operator == "++" else -1)
            if self.accept("("):
                found = self.comma()
                if not self.accept(")"):
                    raise ArithmeticProblem
                return found
            if self.at >= len(self.tokens):
                raise ArithmeticProblem
            kind, text = self.tokens[self.at]
            self.at += 1
            if kind == "number":
                return number(text)
            if kind != "name":
                raise ArithmeticProblem
            if operator := self.accept("++", "--"):
                change = 1 if operator == "++" else -1
                return self.step(text, change) - change
            return self.asked(text)
        finally:
            self.depth -= 1

    def name(self) -> str:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        self.at += 1
        if kind != "name":
            raise ArithmeticProblem
        return text

    def step(self, name: str, change: int) -> int:
        found = _wrapped(self.asked(name) + change)
        self.assign(name, None if self.skipped else found)
        return found


def number(text: str) -> int:
    """A number as bash writes it: decimal, 0x, a leading 0 for octal, base#digits."""
    try:
        if "#" in text:
            base, _, digits = text.partition("#")
            return _wrapped(int(digits, int(base)))
        if len(text) > 1 and text[0] == "0" and text[1] not in "xX":
            return _wrapped(int(text, 8))
        return _wrapped(int(text, 0))
    except ValueError:
        raise ArithmeticProblem from None


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if not right:
            raise ArithmeticProblem
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _wrapped(quotient if operator == "/" else left - quotient * right)
    if operator in ("<<", ">>"):
        right %= 64
    results: dict[str, Callable[[], int]] = {
        "||": lambda: int(bool(left or right)),
        "&&": lambda: int(bool(left and right)),
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<=": lambda: int(left <= right),
        ">=": lambda: int(left >= right),
        "<": lambda: int(left < right),
        ">": lambda: int(left > right),
        "<<": lambda: left << right,
        ">>": lambda: left >> right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
    }
    return _wrapped(results[operator]())
