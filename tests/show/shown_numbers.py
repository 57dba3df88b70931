"""The numbers of a text held against those of a JSON document, in every form that the terminal has for them."""

import re
from collections.abc import Iterator
from typing import Any

from glm_kvplan.show.format import binary, decimal, three_digits
from glm_kvplan.units import GIB, KIB, MIB


def numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from numbers(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def spellings(value: int | float) -> Iterator[str]:
    """How the terminal may write a number of the JSON."""
    yield f"{value:.2f} GiB"
    yield f"{value:.1f} GiB"
    yield f"{value:,.0f}"
    yield f"{int(value):,}"
    if isinstance(value, int):
        yield from (f"{value:,}", f"{value:+,}", decimal(value), binary(value), three_digits(value))
        yield from (
            f"{value / 1e9:,.2f} GB",
            f"{value / GIB:.2f} GiB",
            f"{value / GIB:.1f} GiB",
            f"{value / MIB:.1f} MiB",
            f"{value / KIB:.1f} KiB",
        )


# Everything with a unit of bytes, and every count of more than three digits.
SHOWN = re.compile(r"(?<![\w.,-])[+-]?(?:\d[\d,]*\.?\d* (?:GiB|MiB|KiB|GB|MB|kB)|\d{1,3}(?:,\d{3})+)(?![\w,.]*\d)")


def unmatched(text: str, document: dict[str, Any], sums: tuple[int, ...] = ()) -> list[str]:
    known = {spelling for value in (*numbers(document), *sums) for spelling in spellings(value)}
    return [
        shown
        for shown in SHOWN.findall(text.replace("+-", ""))
        if shown not in known and shown.removeprefix("+") not in known
    ]
