"""A word of a command, where it stood, and what is not known of it; what a message may quote of foreign text."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import Concealed, ConcealedName, key_like

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_SHORTEST_SECRET = 5
_LONGEST_SECRET = 4096  # of which parts are known again
_MOST_SECRETS = 64  # of a script; with more of them no word is quoted
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*])")


class Mark(NamedTuple):
    """Why text is not known: `name` is missing ("$TP", "$(...)"), or decides at `place` between `answers`."""

    name: str
    place: str = ""
    answers: tuple[str, ...] = ()
    empty: bool = False  # the branch asks only whether `name` is empty
    ways: "tuple[tuple[Piece, ...], ...]" = ()  # the whole values between which it decides
    several: bool = False  # as a word of a list, it may be none, or several

    @property
    def given(self) -> str:
        """How a message goes on after "... is given"; it ends with how to give the value."""
        if not self.place:
            return f"{self.name}, {self.missing}"
        if self.answers:
            return f"{' or '.join(self.answers)}, as {self.name} of {self.place} decides, {self.missing}"
        return f"what {self.name} of {self.place} decides, {self.missing}"

    @property
    def asked(self) -> str:
        """How a message goes on after "depends on"."""
        return f"{self.name} of {self.place}, {self.missing}" if self.place else f"{self.name}, {self.missing}"

    @property
    def missing(self) -> str:
        variable = _VARIABLE.fullmatch(self.name)
        if self.name.startswith("%"):
            return "which systemd fills in; write its value"
        if variable is None:
            return "which is not run here; write out what it gives"
        return f"which is not defined here; give --set {variable[1]}=VALUE or write its value"

    @property
    def complaint(self) -> str:
        """A whole message about words that may be there or not."""
        if self.place:
            return f"whether more words stand here depends on {self.asked}"
        return f"{self.name} {self.missing.removeprefix('which ')}"


class Piece(NamedTuple):
    """A part of a word or value that is known as a whole, or not known for one reason."""

    text: str
    mark: Mark | None = None
    line: int = 0  # where it was written; 0 where that is the word at hand


class Word(NamedTuple):
    """One word after quoting and substitution; `mark` is on it where part of it could not be substituted."""

    text: str
    place: str  # "line 3", or "word 3" of a list
    mark: Mark | None = None

    @property
    def undefined(self) -> str:
        """What could not be substituted, "" if all was."""
        return "" if self.mark is None else self.mark.name


def concealed(word: Word, secrets: Collection[str]) -> Word:
    """The word, never to be quoted where the value of a key-like variable stands in it, or it is a part of one."""
    if not secrets:
        return word
    text = word.text.casefold()
    value = text.partition("=")[2] if text.startswith("-") else text
    part = len(value) >= _SHORTEST_SECRET
    many = len(secrets) > _MOST_SECRETS
    found = [] if many else [one for one in secrets if one in text or (part and value in one[:_LONGEST_SECRET])]
    if not found and not many:
        return word
    if word.text.startswith("-") and any(secret in text.partition("=")[0] for secret in found):
        return word._replace(text=ConcealedName(word.text))
    return word._replace(text=Concealed(word.text))


def secret_values(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """The values of key-like variables that are long enough to be secrets, in small letters."""
    return {value.casefold() for name, value in pairs if len(value) >= _SHORTEST_SECRET and key_like(name)}


def defined(word: Word, what: str) -> str:
    """The text of a word whose value matters. Raises InputError that says what would have to be known."""
    if word.mark is not None:
        raise InputError(f"{word.place}: {what} is given {word.mark.given}")
    return word.text


def printable(text: str, most: int = 60) -> str:
    """What a message may quote of the user's text: one line, no control characters, not endless."""
    shown = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(char if char.isprintable() else "?" for char in shown)


def split_assignment(text: str) -> tuple[str, str] | None:
    """`NAME=value` as (name, value); None for any other word."""
    match = _ASSIGNMENT.match(text)
    return None if match is None or match[2] else (match[1], text[match.end() :])
