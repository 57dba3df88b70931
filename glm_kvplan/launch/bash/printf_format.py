"""What printf makes of its words: `%s`, `%d`, `%q` of plain text; what else there is, is not known here."""

import re
from collections.abc import Sequence

from glm_kvplan.launch.bash.escapes import unescaped
from glm_kvplan.launch.bash.values import Scalar, known_text, mark_of, missing, plain
from glm_kvplan.launch.marked_words import Piece

_TOKEN = re.compile(r"%([-0]?)(\d{0,3})([sdiq%])|([^%]+)|(.)", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})|")
_SAFE = re.compile(r"[\w/.,:=@%+-]+", re.ASCII)  # not quoted by %q
_MOST_PIECES = 10_000
_OUTPUT = "$(...)"


def formatted(values: Sequence[Scalar]) -> Scalar:
    """What printf writes, given its format and arguments."""
    form = known_text(values[0])
    if form is None:
        return missing(_OUTPUT)
    waiting = list(values[1:])
    found: list[Piece] = []
    while True:
        before = len(waiting)
        for flag, width, kind, text, _ in _TOKEN.findall(form):
            if kind and kind != "%":
                value = _converted(waiting.pop(0) if waiting else (), flag, int(width or 0), kind)
            else:
                literal = "%" if kind else unescaped(text) if text else None
                value = None if literal is None else plain(literal)
            if value is None or len(found) >= _MOST_PIECES:
                return missing(_OUTPUT)
            found += value
        if not waiting or len(waiting) == before:
            return tuple(found)


def _converted(value: Scalar, flag: str, width: int, kind: str) -> Scalar | None:
    """One argument as a conversion writes it; None where that is not known here."""
    if kind == "s" and not flag and not width:
        return value
    text = known_text(value)
    if text is None:
        return (Piece(_OUTPUT, mark_of(value)),)
    if kind == "s":
        text_known = text.isascii() and flag != "0"  # widths count bytes
        return plain(text.ljust(width) if flag else text.rjust(width)) if text_known else None
    if kind == "q":
        return plain(text) if _SAFE.fullmatch(text) and not width else None
    return plain(f"%{flag}{width or ''}d" % int(text or 0)) if _NUMBER.fullmatch(text) else None
