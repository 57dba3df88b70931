"""`~` and `~/...` at the start of a word, or of an assignment's value, stand for the home directory."""

import re
from collections.abc import Sequence

from glm_kvplan.launch.bash.syntax import Given, Parameter, Part, Text
from glm_kvplan.launch.marked_words import Mark, Piece

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HOME = re.compile(r"(~(?:[A-Za-z_][\w-]*|[+-])?)([/:].*)?", re.DOTALL)


def with_home(parts: Sequence[Part], assigned: bool) -> Sequence[Part]:
    """The parts of a word with its tilde replaced. `assigned`: they are the value of an assignment.

    Where the home directory is not known, `~/models` stays: it names the place as well.
    """
    first = parts[0]
    text = first.text if isinstance(first, Text) and not first.quoted else ""
    name = None if assigned else _NAME.match(text)
    before = [] if name is None else [Text(name[0], False)]
    if (assigned or before) and any(isinstance(one, Text) and not one.quoted and ":~" in one.text for one in parts):
        return [*before, Given(Piece("~", Mark("$HOME")), True)]
    match = _HOME.fullmatch(text, 0 if name is None else name.end())
    if match is None or (match[2] is None and len(parts) > 1):
        return parts
    unknown: Part = Given(Piece(match[1], Mark("$HOME" if match[1] == "~" else match[1])), True)
    if match[1] == "~":
        unknown = Parameter("HOME", True, None, "-", (Text("~", True) if match[2] else unknown,))
    return [*before, unknown, Text(match[2] or "", False), *parts[1:]]
