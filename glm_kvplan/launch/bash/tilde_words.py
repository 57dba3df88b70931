"""`~` and `~/...` at the start of a word, or of an assignment's value, stand for the home directory."""

import re
from collections.abc import Sequence

from glm_kvplan.launch.bash.syntax import Given, Parameter, Part, Text
from glm_kvplan.launch.marked_words import Mark, Piece

_HOME_HERE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*\+?=)?(~(?:[A-Za-z_][\w-]*|[+-])?)(/.*)?", re.DOTALL)


def with_home(parts: Sequence[Part], assigned: bool) -> Sequence[Part]:
    """The parts of a word with its tilde replaced. `assigned`: they are the value of an assignment.

    Where the home directory is not known, `~/models` stays: it names the place as well.
    """
    if assigned and any(isinstance(part, Text) and not part.quoted and ":~" in part.text for part in parts):
        return [Given(Piece("~", Mark("$HOME")), True)]
    first = parts[0]
    match = _HOME_HERE.fullmatch(first.text) if isinstance(first, Text) and not first.quoted else None
    if match is None or (match[1] and assigned) or (match[3] is None and len(parts) > 1):
        return parts
    unknown: Part = Given(Piece(match[2], Mark("$HOME" if match[2] == "~" else match[2])), True)
    if match[2] == "~":
        unknown = Parameter("HOME", True, None, "-", (Text("~", True) if match[3] else unknown,))
    before, after = ([Text(text, False)] if text else [] for text in match.group(1, 3))
    return [*before, unknown, *after, *parts[1:]]
