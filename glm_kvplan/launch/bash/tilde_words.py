"""`~` and `~/...` at the start of a word, or of a part of an assignment's value, stand for the home directory."""

import re
from collections.abc import Sequence

from glm_kvplan.launch.bash.syntax import Given, Parameter, Part, Text
from glm_kvplan.launch.marked_words import Mark, Piece

_PREFIX = re.compile(r"~(?:[A-Za-z_][\w-]*|[+-])?(?=[/:]|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# Where it is not known, `~/models` stays: it names the place as well.
_HOME = Parameter("HOME", True, None, "-", (Given(Piece("~", Mark("$HOME")), True),))
_HOME_OF_PATH = Parameter("HOME", True, None, "-", (Text("~", True),))


def with_home(parts: Sequence[Part], assigned: bool) -> list[Part]:
    """The parts of a word with its tildes replaced. `assigned`: they are the value of an assignment."""
    found: list[Part] = []
    for at, part in enumerate(parts):
        if not isinstance(part, Text) or part.quoted or "~" not in part.text:
            found.append(part)
            continue
        match = _ASSIGNMENT.match(part.text) if not at and not assigned else None
        starts = {0} if not at and not match else set()
        if match:
            starts.add(match.end())
        if assigned or match:
            starts |= {
                colon.end() for colon in re.finditer(":", part.text) if not match or colon.start() >= match.end()
            }
        found += _replaced(part.text, starts, bool(assigned or match), at + 1 == len(parts))
    return found


def _replaced(text: str, starts: set[int], assigned: bool, last: bool) -> list[Part]:
    found: list[Part] = []
    done = 0
    for at in sorted(starts):
        match = _PREFIX.match(text, at)
        if (
            match is None
            or (match.end() == len(text) and not last)
            or (text[match.end() :][:1] == ":" and not assigned)
        ):
            continue
        if at > done:
            found.append(Text(text[done:at], False))
        name = match[0]
        home = _HOME_OF_PATH if text.startswith("/", match.end()) else _HOME
        found.append(home if name == "~" else Given(Piece(name, Mark(name)), True))
        done = match.end()
    return [*found, Text(text[done:], False)] if done < len(text) else found
