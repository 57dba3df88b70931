"""The numbers an axis runs over: lists, `A..B:STEP` and `A..B:xFACTOR`, exact in decimals and never written out."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from glm_kvplan.errors import InputError
from glm_kvplan.units import COUNT_FACTOR, LARGEST_COUNT

MOST_VALUES = 100_000_000
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([kKmM]?)")
_RANGE = re.compile(r"(?P<first>.+?)\.\.(?P<last>[^:]+)(:(?P<times>x?)(?P<step>.+))?")


@dataclass(frozen=True, slots=True)
class Steps:
    """The floats (first + i * step) / scale for i below `count`; each is the float nearest to the exact decimal."""

    first: int
    step: int
    scale: int
    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[float]:
        scale = self.scale
        return (number / scale for number in range(self.first, self.first + self.count * self.step, self.step))


Span = Sequence[object] | Steps


def read_numbers(word: str, place: str, *, whole: bool) -> Span:
    """One item of a list: a number, or a range. `whole` gives ints, and allows 8k (8 * 1024) and 1m (1024**2).

    Raises InputError that names `where` and the word.
    """
    found = _RANGE.fullmatch(word)
    if found is None:
        return (_as(_number(word, place, whole), place, word, whole),)
    first, last = (_number(found[end], place, whole) for end in ("first", "last"))
    if last < first:
        raise InputError(f"{place}: {word!r} runs backwards; write the smaller number first")
    if found["times"]:
        return _geometric(first, last, _number(found["step"], place, False), place, word, whole)
    if found["step"] is None and not whole:
        raise InputError(f"{place}: {word!r} has no step; write {word}:0.01, or {word}:x2")
    step = Fraction(1) if found["step"] is None else _number(found["step"], place, whole)
    if step <= 0:
        raise InputError(f"{place}: the step of {word!r} must be above 0")
    count = (last - first) // step + 1
    if count > MOST_VALUES:
        raise InputError(f"{place}: {word!r} has {count:,} values; take a larger step")
    if not whole:
        scale = first.denominator * step.denominator
        return Steps(int(first * scale), int(step * scale), scale, count)
    start, stride = (_as(number, place, word, whole) for number in (first, step))
    assert isinstance(start, int) and isinstance(stride, int)
    return range(start, start + count * stride, stride)


def _geometric(first: Fraction, last: Fraction, factor: Fraction, place: str, word: str, whole: bool) -> Span:
    if factor < Fraction(101, 100) or first <= 0:
        raise InputError(f"{place}: {word!r} must start above 0 and grow by a factor of 1.01 or more")
    values, number = [], first
    while number <= last:
        values.append(_as(number, place, word, whole))
        number *= factor
    return tuple(values)


def _number(text: str, place: str, suffixes: bool) -> Fraction:
    text = text.strip()
    found = _NUMBER.fullmatch(text)
    if found is None or (found[2] and not suffixes):
        example = "8k (times 1024), or a range 1..8, 1..8:x2" if suffixes else "0.85, or a range 0.80..0.90:0.05"
        raise InputError(f"{place}: {text[:40]!r} is not a number such as {example}")
    number = Fraction(text[: len(text) - len(found[2])]) * COUNT_FACTOR[found[2].lower()]
    if abs(number) > LARGEST_COUNT:
        raise InputError(f"{place}: {text[:40]!r} is out of range; numbers go up to 2**48")
    return number


def _as(number: Fraction, place: str, word: str, whole: bool) -> int | float:
    if not whole:
        return float(number)
    if number.denominator != 1:
        raise InputError(f"{place}: {word[:40]!r} gives {float(number):g}, and only whole numbers are taken")
    return int(number)


def read_list(text: str, place: str, read: Callable[[str], Span]) -> tuple[Span, ...]:
    """The comma-separated items of `text`, each read by `read`; no item may be empty."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InputError(f"{place}: {text[:60]!r} has an empty value; write values with one comma between them")
    return tuple(read(word) for word in words)
