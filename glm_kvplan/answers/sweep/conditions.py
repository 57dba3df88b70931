"""`--where`: which rows to keep, as a small expression over column names. It is parsed, never evaluated as code.

    max_running_requests >= 64 and (free_gib > 10 or headroom == "fits") and not engine == "0.5.20"

Names, numbers, "text", true, false and none; ==, !=, <, <=, >, >= (chains too); and, or, not; parentheses. A missing
value compares as false with everything but none.
"""

import difflib
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from glm_kvplan.engines.sweep_columns import Column
from glm_kvplan.errors import InputError
from glm_kvplan.units import COUNT_FACTOR

_Read = Callable[[tuple[Any, ...]], Any]
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?[0-9]{1,18}(?:\.[0-9]{1,18})?[kKmM]?(?![\w.]))|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<text>"[^"]*"|'[^']*')|(?P<sign>==|!=|<=|>=|<|>|\(|\)))"""
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = {"true": True, "false": False, "none": None}
_KINDS = {"int": "number", "float": "number", "text": "text", "flag": "flag"}
_MOST_CHARACTERS, _MOST_NESTED = 4000, 50


class _Token(NamedTuple):
    kind: str  # number, name, text, sign or end
    text: str
    at: int


class _Value(NamedTuple):
    """One side of a comparison. `kind` is number, text, flag or none."""

    kind: str
    read: _Read


def read_where(text: str, columns: Sequence[Column]) -> Callable[[tuple[Any, ...]], bool]:
    """The expression as a test of rows. Raises InputError, with the place, for anything that is not one."""
    if len(text) > _MOST_CHARACTERS:
        raise InputError(f"--where has {len(text)} characters; {_MOST_CHARACTERS} are read at most")
    parser = _Parser(_tokens(text), columns)
    test = parser.either()
    if parser.token.kind != "end":
        raise parser.wrong("and, or, or the end")
    return test


def _tokens(text: str) -> list[_Token]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            shown = text[at:].strip()[:20]
            hint = "; equal is ==" if shown.startswith("=") else ""
            raise InputError(f"--where: {shown!r} (character {at + 1}) cannot be read{hint}")
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
        at = match.end()
    return [*found, _Token("end", "the end", end + 1)]


class _Parser:
    """Recursive descent; every method reads one rule and leaves the next token in `token`."""

    def __init__(self, tokens: list[_Token], columns: Sequence[Column]) -> None:
        self.tokens, self.place, self.nested = tokens, 0, 0
        self.columns = {column.name: (at, _KINDS[column.kind]) for at, column in enumerate(columns)}

    @property
    def token(self) -> _Token:
        return self.tokens[self.place]

    def wrong(self, expected: str) -> InputError:
        return InputError(f"--where: {self.token.text[:20]!r} (character {self.token.at}) stands where {expected} must")

    def taken(self, *texts: str) -> str | None:
        """The token's text where it is one of `texts`, which is then left behind."""
        token = self.token
        if token.kind not in ("name", "sign") or token.text not in texts:
            return None
        self.place += 1
        return token.text

    def either(self) -> Callable[[tuple[Any, ...]], bool]:
        tests = [self.both()]
        while self.taken("or"):
            tests.append(self.both())
        return tests[0] if len(tests) == 1 else lambda row: any(test(row) for test in tests)

    def both(self) -> Callable[[tuple[Any, ...]], bool]:
        tests = [self.negated()]
        while self.taken("and"):
            tests.append(self.negated())
        return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)

    def negated(self) -> Callable[[tuple[Any, ...]], bool]:
        self.nested += 1
        if self.nested > _MOST_NESTED:
            raise InputError(f"--where is nested more than {_MOST_NESTED} deep")
        try:
            if self.taken("not"):
                test = self.negated()
                return lambda row: not test(row)
            if self.taken("("):
                test = self.either()
                if not self.taken(")"):
                    raise self.wrong("a closing parenthesis")
                return test
            return self.comparison()
        finally:
            self.nested -= 1

    def comparison(self) -> Callable[[tuple[Any, ...]], bool]:
        left = self.value()
        tests = []
        while sign := self.taken(*_COMPARE):
            right = self.value()
            tests.append(_test(left, sign, right))
            left = right
        if not tests:
            if left.kind != "flag":
                raise self.wrong("a comparison such as >= 64")
            read = left.read
            return lambda row: read(row) is True
        return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)

    def value(self) -> _Value:
        kind, text, _ = self.token
        if kind == "name" and text in ("and", "or", "not"):
            raise self.wrong("a name or a value")
        if kind == "name" and text not in _WORDS and text not in self.columns:
            near = difflib.get_close_matches(text[:60], self.columns)
            hint = f"; nearest: {', '.join(near)}" if near else f"; there are {', '.join(self.columns)}"
            raise InputError(f"--where: {text[:40]!r} is no column{hint}")
        if kind in ("sign", "end"):
            raise self.wrong("a name or a value")
        self.place += 1
        if kind == "name" and text in self.columns:
            at, of = self.columns[text]
            return _Value(of, operator.itemgetter(at))
        value: Any
        if kind == "name":
            value = _WORDS[text]
            kind = "none" if value is None else "flag"
        elif kind == "text":
            value = text[1:-1]
        else:
            factor = COUNT_FACTOR.get(text[-1].lower(), 1)
            digits = text if factor == 1 else text[:-1]
            value = (float(digits) if "." in digits else int(digits)) * factor
        return _Value(kind, lambda row: value)


def _test(left: _Value, sign: str, right: _Value) -> Callable[[tuple[Any, ...]], bool]:
    of_left, compare, of_right = left.read, _COMPARE[sign], right.read
    kinds = {left.kind, right.kind}
    if "none" in kinds:
        if sign not in ("==", "!="):
            raise InputError(f"--where: none is compared with == and != only, not {sign}")
        return lambda row: (of_left(row) is of_right(row)) is (sign == "==")
    if len(kinds) > 1 or (kinds == {"flag"} and sign not in ("==", "!=")):
        told = " with ".join(sorted({left.kind, right.kind}))
        raise InputError(f"--where: {sign} cannot compare {told if len(kinds) > 1 else 'two flags'}; quote text")

    def test(row: tuple[Any, ...]) -> bool:
        a, b = of_left(row), of_right(row)
        return a is not None and b is not None and compare(a, b)

    return test
