"""What printf and `echo -e` make of their words: escapes, conversions with width and precision."""

import re
from collections.abc import Sequence
from decimal import Decimal

from glm_kvplan.launch.bash.values import Scalar, known_text, mark_of, missing, plain
from glm_kvplan.launch.marked_words import Piece

_TOKEN = re.compile(r"%([-+ 0#]*)(\d{0,4})((?:\.\d{0,3})?)([a-zA-Z%])|([^%\\]+)|(\\.[0-9a-fA-F]{0,8})|(.)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {
    **{"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
    "\\": "\\",
}
_SAFE = re.compile(r"[\w/.,:=@%+-]+", re.ASCII)  # not quoted by %q
_MOST_PIECES = 10_000


class _NotKnown(Exception):
    """A conversion or escape that is not worked out here, or on which versions of bash disagree."""


def formatted(values: Sequence[Scalar]) -> Scalar:
    """What printf writes, given its format and arguments."""
    form = known_text(values[0])
    if form is None:
        return missing("$(...)")
    waiting = list(values[1:])
    found: list[Piece] = []
    try:
        while True:
            before = len(waiting)
            for flags, width, point, kind, text, escape, other in _TOKEN.findall(form):
                if kind and kind != "%":
                    found += _converted(waiting.pop(0) if waiting else None, flags, width, point, kind)
                else:
                    found.append(Piece("%" if kind else text or other or _escaped(escape)))
                    if other == "%":
                        raise _NotKnown
            if not waiting or len(waiting) == before or len(found) > _MOST_PIECES:
                return tuple(found)
    except _NotKnown:
        return missing("$(...)")


def unescaped(pieces: Sequence[Piece]) -> Scalar:
    """What `echo -e` writes of its words."""
    try:
        return tuple(
            piece if piece.mark is not None else piece._replace(text=_escaped(piece.text, octal=False))
            for piece in pieces
        )
    except _NotKnown:
        return missing("$(...)")


def _escaped(text: str, octal: bool = True) -> str:
    """The text without its escapes. `octal`: \\101 needs no 0 in front."""

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if match[5]:
            if match[5] in "c\"'?":
                raise _NotKnown  # \\c ends the output; printf and %b differ on quotes
            return _PLAIN_ESCAPES.get(match[5], match[0])
        if not octal and not code and match[0][1] != "0":
            return match[0]
        if match[4] and octal and len(match[0]) > 4:
            raise _NotKnown  # %b and the format differ on \\0101
        number = int(code, 16) if code else int(match[4], 8)
        if (
            number > 0x10FFFF
            or 0xD800 <= number < 0xE000
            or (number > 127 and not (match[2] or match[3]))
            or not number
        ):
            raise _NotKnown  # a byte, not a character
        return chr(number)

    return _ESCAPE.sub(one, text)


def _converted(value: Scalar | None, flags: str, width: str, point: str, kind: str) -> tuple[Piece, ...]:
    """One argument (None: none is left) as a conversion writes it. `point` is the precision with its point."""
    plainly = not (flags or width or point)
    if kind == "s" and plainly:
        return value or ()
    text = "" if value is None else known_text(value)
    if text is None:
        return (Piece("$(...)", mark_of(value or ())),)
    shape = f"%{flags}{width}{point}"
    if kind in "sb":
        text = _escaped(text) if kind == "b" else text
        if not text.isascii() or set(flags) - {"-"}:
            raise _NotKnown  # widths count bytes
        return plain((shape + "s") % text)
    if kind == "q" and plainly and _SAFE.fullmatch(text):
        return plain(text)
    if kind == "c" and plainly and text:
        return plain(text[0])
    if kind in "diuxXo":
        return plain(_number(text, shape, flags, kind))
    if kind == "f" and re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{0,15})?", text):
        number, places = Decimal(text), int(point[1:] or 0) if point else 6
        if (number * 10**places) % 1 not in (Decimal("0.5"), Decimal("-0.5")):  # where binary digits decide
            digits = f"{number:{'+' if '+' in flags else ''}.{places}f}"
            if not set(flags) - {"-", "+", "0"}:
                wide = int(width or 0)
                return plain(
                    digits.ljust(wide) if "-" in flags else digits.zfill(wide) if "0" in flags else digits.rjust(wide)
                )
    raise _NotKnown


def _number(text: str, shape: str, flags: str, kind: str) -> str:
    if match := re.fullmatch("[\"'](.).*", text, re.DOTALL):
        number = ord(match[1])
        if number > 127:
            raise _NotKnown
    elif re.fullmatch(r"\s*[-+]?(?:0[xX][0-9a-fA-F]{1,15}|[0-9]{1,18})|", text):
        digits = text.strip().lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
        if octal and not re.fullmatch("[0-7]+", digits):
            raise _NotKnown
        number = int(digits or "0", 8 if octal else 0) * (-1 if "-" in text else 1)
    else:
        raise _NotKnown  # bash complains
    if kind in "uxXo" and (number < 0 or ("#" in flags and kind == "o")):
        raise _NotKnown
    if "." in shape and "0" in flags:
        raise _NotKnown
    return (shape + {"i": "d", "u": "d"}.get(kind, kind)) % number
