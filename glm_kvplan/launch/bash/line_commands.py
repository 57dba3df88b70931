"""What reads lines into variables: read, mapfile."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.assignments import stored_at
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.text_commands import Builtin
from glm_kvplan.launch.bash.values import Array, known_text, mark_of, missing, plain
from glm_kvplan.launch.bash.word_reader import NAME
from glm_kvplan.launch.bash.word_splitting import shared_out, words_of
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter
    from glm_kvplan.launch.bash.simple_commands import Started

_WITH_VALUE = "adinNptu"


class _Read:
    """The options and names of one `read`."""

    def __init__(self, words: list[str]) -> None:
        self.listed = ""
        self.raw = self.whole = False
        self.elsewhere = False  # from another descriptor, or only a part of a line
        at = 0
        while at < len(words) and re.fullmatch("-[a-zA-Z]+.*", words[at], re.DOTALL):
            letters = words[at][1:]
            at += 1
            while letters:
                letter, letters = letters[0], letters[1:]
                self.raw |= letter == "r"
                if letter in _WITH_VALUE:
                    value = letters or (words[at] if at < len(words) else "")
                    at += not letters
                    letters = ""
                    self.listed = value if letter == "a" else self.listed
                    self.whole |= letter == "d" and not value
                    self.elsewhere |= letter in "inNu" or (letter == "d" and bool(value))
        self.names = words[at + (words[at : at + 1] == ["--"]) :]


def _read(shell: "Interpreter", found: "Started") -> Truth:
    wanted = _Read([word.text for word in found.words[1:]])
    names = [wanted.listed] if wanted.listed else wanted.names or ["REPLY"]
    value, separators = found.stdin, shell.separators()
    text = known_text(value) if value is not None else None
    if value is None or text is None or wanted.elsewhere or isinstance(separators, Mark):
        mark = mark_of(value) if value is not None else None
        for name in names:
            if wanted.whole and value is not None and len(names) == 1 and not wanted.elsewhere and not wanted.listed:
                stored_at(shell, name, value)
            elif NAME.fullmatch(name.partition("[")[0]):
                shell.assign(name.partition("[")[0], (Piece(f"${name}", mark),) if mark else missing(f"${name}"))
        if value is None or wanted.elsewhere:
            return Mark("`read`", shell.place(found.line))
        return not wanted.whole
    line, newline, _ = (text, "", "") if wanted.whole else text.partition("\n")
    if "\\" in line and not wanted.raw and (wanted.listed or line.endswith("\\")):
        for name in names:
            shell.assign(name, missing(f"${name}"))
    elif wanted.listed:
        shell.assign(wanted.listed, Array(tuple(map(plain, words_of(line, separators)))))
    else:
        within = separators if wanted.names else ""  # REPLY has the line as it is
        for name, part in zip(names, shared_out(line, within, len(names), wanted.raw), strict=True):
            stored_at(shell, name, plain(part))
    return bool(newline)


def _mapfile(shell: "Interpreter", found: "Started") -> Truth:
    words = [word.text for word in found.words[1:]]
    name = words[-1] if words and NAME.fullmatch(words[-1]) else "MAPFILE"
    text = known_text(found.stdin) if found.stdin is not None else None
    options = [word for word in words if word != name]
    if text is None or not set(options) <= {"-t"}:
        shell.assign(name, missing(f"${name}"))
    else:
        lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # as bash: at no other end of a line
        shell.assign(name, Array(tuple(plain(line.removesuffix("\n") if options else line) for line in lines)))
    return True


LINE_COMMANDS: Mapping[str, Builtin] = {"read": _read, **dict.fromkeys(("mapfile", "readarray"), _mapfile)}
