"""Backslash escapes of `$'...'`, printf and `echo -e`."""

import re

_ESCAPE = re.compile(r"\\(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|(0?[0-7]{1,3})|(.)|$)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LETTERS["\\"] = "\\"
_QUOTES = "\"'?"


def unescaped(text: str, *, quotes: bool = False, octal: bool = True) -> str | None:
    """The text without its escapes; None for one that is a byte and no character, or on which programs differ.

    `quotes`: a backslash before a quote is one of them; `octal`: \\101 needs no 0 in front.
    """
    differ = False

    def one(match: re.Match[str]) -> str:
        nonlocal differ
        char, digits = match[5], match[1] or match[2] or match[3]
        if char in _LETTERS or (quotes and char and char in _QUOTES):
            return _LETTERS.get(char, char)
        if char and char not in f"c{_QUOTES}":
            return match[0]
        number = int(digits, 16) if digits else int(match[4] or "0", 8)
        known = number < (0x110000 if match[2] or match[3] else 128) and not 0xD800 <= number < 0xE000
        differ |= not number or not known or (match[4] is not None and (not octal or len(match[4]) > 3))
        return "" if differ else chr(number)

    found = _ESCAPE.sub(one, text)
    return None if differ else found
