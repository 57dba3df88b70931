"""A systemd unit's service as the shell script that would start the same."""

import re
import shlex
import string
from collections.abc import Callable

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.given_pieces import GIVEN
from glm_kvplan.launch.continued_lines import continued_lines
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
    """Assignments and commands of the unit's service, each command on its own line of the unit; other lines are empty.

    A specifier, as `%i`, is its number in SPECIFIERS between two GIVEN. `beside` gives the text of a file that lies
    there (EnvironmentFile=).

    Source: systemd.service(5), "Command lines", systemd.exec(5), "Environment" (wherever it stands, and files override
    it), and systemd.unit(5), "Specifiers". Raises InputError for a quote that is never closed.
    """
    environment: list[str] = []
    files: list[str] = []
    commands: dict[int, str] = {}
    for start, line in continued_lines(text, ("#", ";")):
        setting = _SETTING.fullmatch(line.replace("\\\n", " "))
        if setting is None:
            continue
        key, value = setting.groups()
        if key == "EnvironmentFile":
            found = read_environment(beside(value.removeprefix("-")) or "")
            files += [f"export {name}={shlex.quote(one)}" for name, one in found.items()]
        elif key == "Environment":
            environment += [f"export {shlex.quote(word)}" for word in _words(key, value, start) if "=" in word]
        else:
            commands[start] = " ".join(map(_quoted, _words(key, value.lstrip(_HOW), start)))
    before = [*environment, *files]
    return "\n".join(
        "; ".join([*before, commands[at]]) if at in commands else "" for at in range(len(text.splitlines()))
    )


def _words(key: str, value: str, line: int) -> list[str]:
    value = _SPECIFIER.sub(lambda match: "%" if match[1] == "%" else f"{GIVEN}{ord(match[1])}{GIVEN}", value)
    try:
        return shlex.split(value)
    except ValueError:
        raise InputError(f"line {line + 1}: {key}= has a quote that is never closed") from None


def _quoted(word: str) -> str:
    if _WHOLE_VARIABLE.fullmatch(word):
        return word
    # ${X} is replaced within a word, $X is not
    return '"' + re.sub(r'\$(\$)|([\\"`]|\$(?!\{))', r"\\\1\2", word) + '"'
