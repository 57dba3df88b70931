"""A launch script's text as commands of words: quotes, continuations, comments, variables. No command is run."""

import re
from itertools import dropwhile
from typing import NamedTuple

from glm_kvplan.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[@*]\])?(?:(:?[-=?+])(.*))?", re.DOTALL)
_OPENS, _CLOSES = ("if", "case", "for", "while", "until", "select"), ("fi", "esac", "done")
_UNIT_ENVIRONMENT = "Environment="  # of a systemd unit: NAME=value follows
_DEEPEST = 16
_LARGEST = 1 << 25  # characters that substitution may add: a text can double a variable line after line
_MOST_COMMANDS = 20_000


class Word(NamedTuple):
    """One word after quoting and substitution. `undefined` names what could not be substituted, "" if all was."""

    text: str
    place: str  # "line 3", or "word 3" of a list
    undefined: str = ""


class Script(NamedTuple):
    """The commands of a text in order, and what was exported before each (index of the command, name, word)."""

    commands: tuple[tuple[Word, ...], ...]
    exports: tuple[tuple[int, str, Word], ...]


def printable(text: str, most: int = 60) -> str:
    """What a message may quote of the user's text: one line, no control characters, not endless."""
    clean = "".join(char if char.isprintable() else "?" for char in text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 3] + "..."


def split_assignment(text: str) -> tuple[str, str] | None:
    """`NAME=value` as (name, value); None for any other word."""
    match = _ASSIGNMENT.match(text)
    return None if match is None or match[2] else (match[1], text[match.end() :])


def read_script(text: str, place: str = "") -> Script:
    """Split a script's text. Raises InputError for a quote, brace or bracket that is never closed.

    Variables assigned in the text are substituted; all others leave their mark in `Word.undefined`. `place`
    stands in front of every word's position (the word of a `bash -c "..."`).
    """
    return _Reader(text.replace("\r\n", "\n"), place).read()


class _Reader:
    """One pass over the text; every character is looked at once per level of `${...:-...}` nesting."""

    def __init__(self, text: str, place: str) -> None:
        self.text = text
        self.place = place
        self.at = 0
        self.line = 1
        self.commands: list[tuple[Word, ...]] = []
        self.exports: list[tuple[int, str, Word]] = []
        self.variables: dict[str, tuple[Word, ...]] = {}
        self.words: list[Word] = []  # of the command at hand
        self.pieces: list[str] | None = None  # of the word at hand; None between words
        self.undefined = ""
        self.assigning: bool | None = None  # the word at hand is NAME=...; None before its first =
        self.expanded = 0
        self.quoted = False  # the word at hand holds a quote: no assignment name, no file descriptor
        self.redirected = False  # the next word is a file, not an argument
        self.branches = 0  # how many if, case and loops are open
        self.guarded = False  # the command at hand runs only if the one before it did (&&) or did not (||)
        self.array: tuple[str, bool, list[Word]] | None = None  # name, appended to, words of NAME=( ... )

    def read(self) -> Script:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            self.at += 1
            if char == "\n":
                self.line += 1
                self.end_command()
                self.guarded = False
            elif char in " \t":
                self.end_word()
            elif char == "\\":
                self.escape()
            elif char == "'":
                self.add(self.until("'"), quoted=True)
            elif char == '"':
                self.double_quoted()
            elif char in "$`":
                self.substitute(char, quoted=False)
            elif char == "#" and self.pieces is None:
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif char in "<>" or (char == "&" and text[self.at : self.at + 1] == ">"):
                self.redirect()
            elif char == "(" and self.opens_array():
                continue
            elif char == ")" and self.array is not None:
                self.close_array()
            elif char in ";&|()":
                self.end_command()
                self.guarded = char in "&|" and text[self.at - 2 : self.at - 1] == char
            else:
                if char == "=" and self.assigning is None:
                    self.assigning = not self.quoted and _NAME.fullmatch("".join(self.pieces or ())) is not None
                self.add(char)
        if self.array is not None:
            raise InputError(f"{self.here()}: the list {self.array[0]}=( is never closed with )")
        self.end_command()
        return Script(tuple(self.commands), tuple(self.exports))

    def here(self) -> str:
        return self.place or f"line {self.line}"

    def add(self, text: str, *, quoted: bool = False) -> None:
        if self.pieces is None:
            self.pieces = []
        self.pieces.append(text)
        self.quoted = self.quoted or quoted

    def until(self, mark: str) -> str:
        """The text up to `mark`, which is passed over."""
        end = self.text.find(mark, self.at)
        if end < 0:
            raise InputError(f"{self.here()}: the quote {mark} is never closed")
        found = self.text[self.at : end]
        self.line += found.count("\n")
        self.at = end + 1
        return found

    def escape(self) -> None:
        following = self.text[self.at : self.at + 1]
        self.at += 1
        if following == "\n":
            self.line += 1
        elif following:
            self.add(following, quoted=True)

    def double_quoted(self) -> None:
        opened = self.here()
        self.add("", quoted=True)
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                return
            if char == "\\" and self.text[self.at : self.at + 1] in ("$", "`", '"', "\\", "\n"):
                following = self.text[self.at]
                self.at += 1
                if following == "\n":
                    self.line += 1
                else:
                    self.add(following)
            elif char in "$`":
                self.substitute(char, quoted=True)
            else:
                self.line += char == "\n"
                self.add(char)
        raise InputError(f'{opened}: the quote " is never closed')

    def redirect(self) -> None:
        if self.pieces is not None and not self.quoted and "".join(self.pieces).isdigit():
            self.pieces = None  # the 2 of 2>&1
        self.end_word()
        while self.text[self.at : self.at + 1] in ("<", ">", "&", "|", "-"):
            self.at += 1
        self.redirected = True

    def opens_array(self) -> bool:
        if self.array is not None or self.pieces is None or self.quoted:
            return False
        match = _ASSIGNMENT.fullmatch("".join(self.pieces))
        if match is None:
            return False
        self.pieces = None
        self.array = (match[1], bool(match[2]), [])
        return True

    def close_array(self) -> None:
        assert self.array is not None
        self.end_word()
        name, appended, words = self.array
        self.array = None
        self.variables[name] = (*(self.variables.get(name, ()) if appended else ()), *words)

    def end_word(self) -> None:
        if self.pieces is not None:
            word = Word("".join(self.pieces), self.here(), self.undefined)
            if self.redirected:
                self.redirected = False
            elif self.array is not None:
                self.array[2].append(word)
            else:
                self.words.append(word)
        self.pieces, self.undefined, self.quoted, self.assigning = None, "", False, None

    def end_command(self) -> None:
        self.end_word()
        self.redirected = False
        if self.array is not None or not self.words:
            return
        words = list(dropwhile(lambda word: word.text in ("then", "do", "else", "{", "!"), self.words))
        first = words[0].text if words else ""
        self.branches += (first in _OPENS) - (first in _CLOSES and self.branches > 0)
        if first.startswith(_UNIT_ENVIRONMENT):
            bare = words[0]._replace(text=first.removeprefix(_UNIT_ENVIRONMENT))
            words = [words[0]._replace(text="export"), bare, *words[1:]]
        declared = bool(words) and words[0].text in ("export", "declare", "typeset", "local", "readonly")
        if words and (declared or all(_ASSIGNMENT.match(word.text) for word in words)):
            exported = declared and (words[0].text == "export" or any(word.text == "-x" for word in words))
            self.assign(words[1:] if declared else words, exported)
        elif words:
            self.commands.append(tuple(words))
            if len(self.commands) > _MOST_COMMANDS:
                raise InputError(f"{self.here()}: more than {_MOST_COMMANDS} commands; give the launch command alone")
        self.words = []

    def assign(self, words: list[Word], exported: bool) -> None:
        for word in words:
            match = _ASSIGNMENT.match(word.text)
            name = match[1] if match else word.text
            if match:
                value = word._replace(text=word.text[match.end() :])
                before = self.variables.get(name, ())
                if match[2] and before:
                    value = value._replace(text=before[0].text + value.text)
                if (self.branches or self.guarded) and before and before[0].text != value.text:
                    value = value._replace(undefined=value.undefined or f"${name} of several branches")
                self.variables[name] = (value,)
            if exported and len(self.variables.get(name, ())) == 1:
                self.exports.append((len(self.commands), name, self.variables[name][0]))

    def substitute(self, mark: str, quoted: bool) -> None:
        """What follows a `$` or a backtick, put into the word at hand."""
        following = self.text[self.at : self.at + 1]
        if mark == "`":
            self.until("`")
            self.unknown("`...`")
        elif following == "(":
            self.at += 1
            self.skip_parentheses()
            self.unknown("$(...)")
        elif following == "{":
            self.at += 1
            self.put(*self.parameter(self.braced(), 0), quoted)
        elif following == "'" and not quoted:
            return  # $'...' reads as '...'
        elif match := _NAME.match(self.text, self.at):
            self.at = match.end()
            self.put(*self.parameter(match[0], 0), quoted)
        elif following and following in "@*#?$!-0123456789":
            self.at += 1
            self.unknown(f"${following}")
        else:
            self.add("$")

    def unknown(self, name: str) -> None:
        self.add(name)
        self.undefined = self.undefined or name

    def skip_parentheses(self) -> None:
        depth = 1
        while depth:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise InputError(f"{self.here()}: $( is never closed with )")
            self.line += char == "\n"
            depth += (char == "(") - (char == ")")
            self.at += 1

    def braced(self) -> str:
        start, depth = self.at, 1
        while depth:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise InputError(f"{self.here()}: ${{ is never closed with }}")
            self.line += char == "\n"
            depth += (char == "{") - (char == "}")
            self.at += 1
        return self.text[start : self.at - 1]

    def parameter(self, inside: str, depth: int) -> tuple[tuple[Word, ...], bool]:
        """The words a `${inside}` stands for, and whether they stay apart even inside quotes ([@])."""
        match = _PARAMETER.fullmatch(inside)
        if match is None or depth > _DEEPEST:
            return (Word(f"${{{inside}}}", "", printable(f"${{{inside}}}", 40)),), False
        name, index, operator, alternative = match.groups()
        value = self.variables.get(name)
        if operator and operator.endswith("+"):
            text = alternative if value is not None else ""
            return (self.default(text, depth),), False
        blank = value is not None and not "".join(word.text for word in value if word.text != word.undefined)
        empty = value is None or (blank and (operator or "").startswith(":"))
        if empty and operator and operator[-1] in "-=":
            word = self.default(alternative, depth)
            if operator.endswith("="):
                self.variables[name] = (word,)
            return (word,), False
        if value is None:
            return (Word(f"${name}", "", f"${name}"),), False
        return (value if index else value[:1]), index == "[@]"

    def default(self, text: str, depth: int) -> Word:
        """The text after `:-`, its own variables substituted."""
        pieces, at, undefined = [], 0, ""
        text = text.replace('"', "").replace("'", "")
        while (dollar := text.find("$", at)) >= 0:
            pieces.append(text[at:dollar])
            at = dollar + 1
            if text[at : at + 1] == "{":
                start, level = at + 1, 1
                at = start
                while level and at < len(text):
                    level += (text[at] == "{") - (text[at] == "}")
                    at += 1
                inside = text[start : at - 1]
            elif match := _NAME.match(text, at):
                inside, at = match[0], match.end()
            else:
                undefined = undefined or printable(text[dollar:], 20)
                continue
            words, _ = self.parameter(inside, depth + 1)
            pieces.append(" ".join(word.text for word in words))
            undefined = undefined or next((word.undefined for word in words if word.undefined), "")
        pieces.append(text[at:])
        return Word("".join(pieces), "", undefined)

    def put(self, words: tuple[Word, ...], apart: bool, quoted: bool) -> None:
        """Substituted words into the word at hand: split at blanks outside quotes, whole inside them."""
        if (quoted or self.assigning) and not apart:
            fields = [(" ".join(word.text for word in words), words)]
        elif quoted or self.assigning:
            fields = [(word.text, (word,)) for word in words]
        else:
            fields = [(field, (word,)) for word in words for field in word.text.split()]
        self.expanded += sum(len(text) + 64 for text, _ in fields)  # a word costs more than its text
        if self.expanded > _LARGEST:
            raise InputError(f"{self.here()}: the variables of this text grow beyond 32 MiB; write the command out")
        for number, (text, sources) in enumerate(fields):
            if number:
                self.end_word()
            self.add(text, quoted=quoted)
            self.undefined = self.undefined or next((word.undefined for word in sources if word.undefined), "")
