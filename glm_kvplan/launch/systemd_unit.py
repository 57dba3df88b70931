"""A systemd unit's service as the shell script that would start the same."""

import re
import shlex
import string
from collections.abc import Callable

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.given_pieces import GIVEN
from glm_kvplan.launch.environment_file import read_environment
from glm_kvplan.launch.marked_words import Mark, Piece

_SETTING = re.compile(r"(Environment|EnvironmentFile|ExecStart)\s*=\s*(.*)", re.DOTALL)
_SPECIFIER = re.compile("%([A-Za-z%])")
SPECIFIERS = {ord(char): Piece(f"%{char}", Mark(f"%{char}")) for char in string.ascii_letters}
_HOW = "-@:+!"  # in front of a command: how it is run
_WHOLE_VARIABLE = re.compile(r"\$[A-Za-z_]\w*")  # a word of its own: systemd splits its value at blanks


def is_unit(text: str) -> bool:
    """The text is a unit with a service: it has the section and a command at the left margin."""
    return bool(re.search(r"(?m)^\[Service\]\s*$", text) and re.search(r"(?m)^ExecStart\s*=", text))


def script_of(text: str, beside: Callable[[str], str | None] = lambda _: None) -> str:
    """Assignments and commands of the unit's service, each on its own line of the unit; other lines are empty.

    A specifier, as `%i`, is its number in SPECIFIERS between two GIVEN. `beside` gives the text of a file that lies
    there (EnvironmentFile=).

    Source: systemd.service(5), "Command lines", systemd.exec(5), "Environment", and systemd.unit(5), "Specifiers".
    Raises InputError for a quote that is never closed.
    """
    lines = text.splitlines()
    script = [""] * len(lines)
    start = 0
    while start < len(lines):
        end = start + 1
        while lines[end - 1].endswith("\\") and end < len(lines):
            end += 1
        setting = _SETTING.fullmatch("\n".join(lines[start:end]).replace("\\\n", " "))
        if setting is not None:
            script[start] = (
                _exported(beside(setting[2].strip().removeprefix("-")) or "")
                if setting[1] == "EnvironmentFile"
                else _shell(setting[1], setting[2], start + 1)
            )
        start = end
    return "\n".join(script)


def _exported(text: str) -> str:
    return "; ".join(f"export {name}={shlex.quote(value)}" for name, value in read_environment(text).items())


def _shell(key: str, value: str, line: int) -> str:
    value = _SPECIFIER.sub(lambda match: "%" if match[1] == "%" else f"{GIVEN}{ord(match[1])}{GIVEN}", value)
    try:
        words = shlex.split(value.lstrip(_HOW) if key == "ExecStart" else value)
    except ValueError:
        raise InputError(f"line {line}: {key}= has a quote that is never closed") from None
    if key == "ExecStart":
        return " ".join(map(_quoted, words))
    return "; ".join(f"export {shlex.quote(word)}" for word in words if "=" in word)


def _quoted(word: str) -> str:
    if _WHOLE_VARIABLE.fullmatch(word):
        return word
    if "$" not in word:
        return shlex.quote(word)
    return '"' + re.sub(r'([\\"`])', r"\\\1", word).replace("$$", "\\$") + '"'
