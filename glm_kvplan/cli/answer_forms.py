"""`--format FORM`: what is printed; `--format FORM=FILE`: what is written where."""

from collections.abc import Sequence
from typing import NamedTuple

from glm_kvplan.errors import InputError


class Forms(NamedTuple):
    """The form that is printed, and those that are written, each with its file."""

    printed: str
    written: tuple[tuple[str, str], ...]


def read_forms(asked: Sequence[str], json: bool, known: Sequence[str]) -> Forms:
    """`json` is the option of that name; without either the first of `known` is printed. Raises InputError."""
    printed = ["json"] if json else []
    written: list[tuple[str, str]] = []
    for text in asked:
        name, equals, path = text.partition("=")
        if name not in known or (equals and not path):
            raise InputError(f"--format {text[:60]!r}: give one of {', '.join(known)}, and =FILE to write it there")
        if equals:
            written.append((name, path))
        elif name not in printed:
            printed.append(name)
    if len(printed) > 1:
        raise InputError(
            f"one form is printed, not {' and '.join(printed)}; write the others: --format {printed[1]}=FILE"
        )
    if len({path for _, path in written}) < len(written):
        raise InputError("--format writes two forms into one file; name two")
    return Forms(printed[0] if printed else known[0], tuple(written))
