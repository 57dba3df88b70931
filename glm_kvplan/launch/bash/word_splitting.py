"""Where unquoted text ends words: at the characters of IFS; and how `read` parts a line among its variables."""

import re
from functools import lru_cache

from glm_kvplan.launch.bash.values import Scalar
from glm_kvplan.launch.marked_words import Mark, Piece

BLANKS = " \t\n"
_TOLERATED = 200  # characters of IFS


@lru_cache(maxsize=16)
def _tokens(separators: str) -> re.Pattern[str]:
    """Text, blanks that separate, or one other separator."""
    every = re.escape(separators[:_TOLERATED])
    blanks = re.escape("".join(char for char in separators if char in BLANKS)) or "\0"
    return re.compile(f"([^{every}]+)|([{blanks}]+)|(.)", re.DOTALL) if every else re.compile("(.+)()()", re.DOTALL)


class Words:
    """Words put together piece by piece. `separators` is IFS, or why it is not known."""

    def __init__(self, separators: str | Mark) -> None:
        self.separators = separators
        self.found: list[Scalar] = []
        self.current: list[Piece] | None = None
        self.after = ""  # what ended the last word: "blank", or "other", to which blanks still belong

    def add(self, piece: Piece) -> None:
        """A piece that is not split."""
        self.after = ""
        if self.current is None:
            self.current = []
        self.current.append(piece)

    def split(self, piece: Piece) -> None:
        """A piece that ends words at its separators."""
        if isinstance(self.separators, Mark):
            if piece.text:
                self.add(piece._replace(mark=piece.mark or self.separators))
            return
        if piece.mark is not None:
            piece = piece._replace(mark=piece.mark._replace(several=True))
            if not piece.text:
                self.add(piece)  # it may be words, all the same
        for text, blanks, _ in _tokens(self.separators).findall(piece.text):
            if text:
                self.add(piece._replace(text=text))
            elif blanks:
                if self.current is not None:
                    self.end()
                    self.after = "blank"
            else:
                if self.current is None and self.after != "blank":
                    self.current = []  # a separator without text before it: an empty word
                self.end()
                self.after = "other"

    def end(self) -> None:
        """The end of a word, if one is begun."""
        if self.current is not None:
            self.found.append(tuple(self.current))
        self.current = None
        self.after = ""


def words_of(text: str, separators: str) -> list[str]:
    """The words of a text without quotes."""
    words = Words(separators)
    words.split(Piece(text))
    words.end()
    return ["".join(piece.text for piece in word) for word in words.found]


def shared_out(line: str, separators: str, number: int, raw: bool) -> list[str]:
    """A line's text for each of `number` variables: the last has the rest. A backslash escapes, if not `raw`."""
    chars = [(char, False) for char in line] if raw else _unescaped(line)
    blank = [char in separators and char in BLANKS and not escaped for char, escaped in chars]
    ends = [char in separators and not escaped for char, escaped in chars]

    def word(at: int) -> tuple[str, int]:
        """The word from `at` on, and where what separates it from the next ends."""
        start = at
        while at < len(chars) and not ends[at]:
            at += 1
        text, hard = "".join(char for char, _ in chars[start:at]), False
        while at < len(chars) and ends[at] and (blank[at] or not hard):
            hard |= not blank[at]
            at += 1
        return text, at

    at = next((at for at, one in enumerate(blank) if not one), len(chars))
    found = []
    for _ in range(number - 1):
        text, at = word(at)
        found.append(text)
    text, end = word(at)
    if end < len(chars):
        last = next((at for at in range(len(chars), 0, -1) if not blank[at - 1]), 0)
        text = "".join(char for char, _ in chars[at:last])
    return [*found, text]


def _unescaped(line: str) -> list[tuple[str, bool]]:
    found = []
    escaped = False
    for char in line:
        if char == "\\" and not escaped:
            escaped = True
        else:
            found.append((char, escaped))
            escaped = False
    return found
