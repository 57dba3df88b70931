"""`--format FORM`: what is printed; `--format FORM=FILE`: what is written where. The option, read and carried out."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import typer

from glm_kvplan.errors import InputError

_ONCE = {"markdown": "md", "table": "text"}  # names that forms had


class Forms(NamedTuple):
    """The form that is printed, and those that are written, each with its file."""

    printed: str
    written: tuple[tuple[str, str], ...]


def form_option(known: Sequence[str]) -> Any:
    """`--format` of a command whose answer has these forms."""
    return typer.Option(
        "--format",
        help=f"How to print the answer: {', '.join(known)}. FORMAT=FILE writes it there; may be repeated. [text]",
        metavar="FORMAT[=FILE]",
        autocompletion=lambda: [*known],
    )


def check_form(name: str, known: Sequence[str]) -> None:
    """Raise InputError for what is no form of a command's answer."""
    now = _ONCE.get(name)
    if name not in known and now in known:
        raise InputError(f"--format {name} is now --format {now}")
    if name not in known:
        raise InputError(f"--format {name[:60]!r}: there are {', '.join(known)}")


def read_forms(asked: Sequence[str], json: bool, known: Sequence[str]) -> Forms:
    """`json` is the option of that name; without either the first of `known` is printed. Raises InputError."""
    printed = ["json"] if json else []
    written: list[tuple[str, str]] = []
    for text in asked:
        name, equals, path = text.partition("=")
        check_form(name, known)
        if equals and not path:
            raise InputError(f"--format {text[:60]}: name the file to write it to")
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


def write_forms(forms: Forms, write: Callable[[str, Any], None]) -> None:
    """Every form into its file, then the one that is printed; `write` takes a form and a stream, None to print it."""
    for form, path in forms.written:
        from glm_kvplan.show.whole_file import destination

        with destination(path, option="--format") as file:
            write(form, file)
    write(forms.printed, None)
