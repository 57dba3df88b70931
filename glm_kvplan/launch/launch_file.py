"""Launches kept in a file (`--launch FILE`), read with what lies beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.forms import LARGEST_TEXT, launches_in
from glm_kvplan.launch.launch import Found, Server
from glm_kvplan.launch.marked_words import printable
from glm_kvplan.reading.guarded_file import inside, read_stdin, read_text

ADVICE = "a launch script is a few KiB"  # about a large one


def read_launch_file(
    path: str | Path,
    servers: Sequence[Server],
    given: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Found:
    """The launches in a file of any form; "-" reads standard input. `given` is what is said of its variables.

    Raises InputError for a file that cannot be read, is larger than 10 MiB or is not UTF-8 text, and for everything
    `launches_in` raises it for.
    """
    shown = name or "--launch " + printable(str(path), 200)
    around = Surroundings(given=given or {})
    if str(path) == "-":
        return launches_in(read_stdin(shown, most=LARGEST_TEXT, advice=ADVICE), servers, around, shown)
    text = read_text(path, shown, most=LARGEST_TEXT, advice=ADVICE)
    whole = Path(path).resolve()
    return launches_in(text, servers, replace(around, file=whole, beside=_beside(whole.parent)), shown)


def _beside(folder: Path) -> Callable[[str], str | None]:
    def text_of(name: str) -> str | None:
        """The text of a file in the folder; None where it is none, lies outside it or cannot be read."""
        try:
            return read_text(inside(folder, name, name), name, most=LARGEST_TEXT, advice=ADVICE)
        except InputError:
            return None

    return text_of
