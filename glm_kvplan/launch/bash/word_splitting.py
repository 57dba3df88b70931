"""Where unquoted text ends words: at the characters of IFS; and how `read` parts a line among its variables."""

import re
from functools import lru_cache
from typing import NamedTuple

from glm_kvplan.launch.bash.values import Scalar, text_of
from glm_kvplan.launch.marked_words import Mark, Piece

BLANKS = " \t\n"
_TOLERATED = 200  # characters of IFS


@lru_cache(maxsize=16)
def _tokens(separators: str) -> re.Pattern[str]:
    """Text, blanks that separate, or one other separator."""
    every = re.escape(separators[:_TOLERATED])
    blanks = f"(?:(?=[{every}])[{BLANKS}])+"
    return re.compile(f"([^{every}]+)|({blanks})|(.)", re.DOTALL) if every else re.compile("(.+)()()", re.DOTALL)


class Field(NamedTuple):
    """A word after splitting, and its line."""

    value: Scalar
    line: int

    @property
    def text(self) -> str:
        return text_of(self.value)


class Segment(NamedTuple):
    """A piece of a word. `splits`: at its separators words end; `ends`: a word ends, or the piece stands between."""

    piece: Piece
    splits: bool = False
    ends: bool = False


class Words:
    """Words put together piece by piece. `separators` is IFS, or why it is not known."""

    def __init__(self, separators: str | Mark) -> None:
        self.separators = separators
        self.found: list[Scalar] = []
        self.current: list[Piece] | None = None
        self.blank = False  # whether a blank ended the last word: another separator may still belong to it

    def add(self, piece: Piece) -> None:
        """A piece that is not split."""
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
                    self.blank = True
            else:
                if self.current is None and not self.blank:
                    self.current = []  # a separator without text before it: an empty word
                self.end()

    def end(self) -> None:
        """The end of a word, if one is begun."""
        if self.current is not None:
            self.found.append(tuple(self.current))
        self.current = None
        self.blank = False


def words_of(text: str, separators: str) -> list[str]:
    """The words of a text without quotes."""
    words = Words(separators)
    words.split(Piece(text))
    words.end()
    return ["".join(piece.text for piece in word) for word in words.found]


def shared_out(line: str, separators: str, number: int) -> list[str]:
    """A line's text for each of `number` variables, as `read -r` gives it: the last has the rest."""
    blanks = "".join(char for char in separators if char in BLANKS)
    blank, other = (f"[{re.escape(chars)}]" if chars else "(?!)" for chars in (blanks, separators.strip(BLANKS)))
    between = re.compile(f"(?:{blank})*{other}(?:{blank})*|(?:{blank})+")
    rest = line.lstrip(blanks) if blanks else line
    found = []
    for _ in range(number - 1):
        text, *rests = between.split(rest, maxsplit=1)
        found.append(text)
        rest = rests[0] if rests else ""
    text, *rests = between.split(rest, maxsplit=1)
    return [*found, text if rests == [""] else rest.rstrip(blanks) if blanks else rest]
