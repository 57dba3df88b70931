"""What reads lines into variables: read, mapfile."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.dollar_reader import NAME
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.lists import some_list
from glm_kvplan.launch.bash.started_commands import Builtin, Started
from glm_kvplan.launch.bash.values import Array, known_text, mark_of, missing, plain
from glm_kvplan.launch.bash.word_splitting import shared_out, words_of
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_OPTION = re.compile("-(?!$)([ers]*)(?:([adinNptu])(.*))?", re.DOTALL)


def _read(shell: "Interpreter", found: Started) -> Truth:
    words = [word.text for word in found.words[1:]]
    listed, raw, whole, elsewhere = "", False, False, False  # elsewhere: another descriptor, or only a part of a line
    while words and (option := _OPTION.fullmatch(words[0])) is not None:
        del words[0]
        raw |= "r" in option[1]
        if option[2] is not None:
            chosen = option[3] or (words.pop(0) if words else "")
            listed = chosen if option[2] == "a" else listed
            whole |= option[2] == "d" and not chosen
            elsewhere |= option[2] in ("n", "N", "u") or (option[2] == "d" and bool(chosen))
    given = words[words[:1] == ["--"] :]
    names = [listed] if listed else given or ["REPLY"]
    value, separators = found.stdin, shell.separators()
    text = None if value is None else known_text(value)
    line, newline, _ = (text or "").partition("\n") if text is None or not whole else (text, "", "")
    if text is None or elsewhere or isinstance(separators, Mark) or ("\\" in line and not raw):
        typed = value is None and not elsewhere and shell.typed  # by whoever runs the script, nothing perhaps
        mark = None if value is None else mark_of(value)
        for name in names:
            if listed:
                shell.assign(name, some_list(name))
            elif whole and value is not None and len(names) == 1 and not elsewhere:
                store(shell, name, value)
            else:
                unknown = missing(f"${name}" if typed else f"${{{name}}}")
                store(shell, name, (Piece(f"${name}", mark),) if mark else unknown)
        if value is None or elsewhere:
            return shell.doubt("`read`", found.line)
        return not whole if text is None else bool(newline)
    if listed:
        shell.assign(listed, Array(tuple(map(plain, words_of(line, separators)))))
    else:
        within = separators if given else ""  # REPLY has the line as it is
        for name, part in zip(names, shared_out(line, within, len(names)), strict=True):
            store(shell, name, plain(part))
    return bool(newline)


def _mapfile(shell: "Interpreter", found: Started) -> Truth:
    words = [word.text for word in found.words[1:]]
    name = words[-1] if words and NAME.fullmatch(words[-1]) else "MAPFILE"
    text = known_text(found.stdin) if found.stdin is not None else None
    options = [word for word in words if word != name]
    if text is None or not set(options) <= {"-t"}:
        shell.assign(name, some_list(name))
    else:
        ending = "" if options else "\n"
        shell.assign(name, Array(tuple(plain(line + ending) for line in text.split("\n")[:-1])))
    return True


LINE_COMMANDS: Mapping[str, Builtin] = {"read": _read, **dict.fromkeys(("mapfile", "readarray"), _mapfile)}
