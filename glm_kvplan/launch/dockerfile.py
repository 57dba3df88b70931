"""A Dockerfile's last stage as the shell script that a container of it would run."""

import json
import re
import shlex
from collections.abc import Sequence

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.continued_lines import continued_lines
from glm_kvplan.launch.launch import Found, Server
from glm_kvplan.launch.marked_words import printable
from glm_kvplan.launch.server_commands import launches_of_text

_FROM = re.compile(r"(?im)^FROM\s+(?:--\S+\s+)*(\S+)")
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_OLD_PAIR = re.compile(r"([A-Za-z_]\w*)\s+(.*)", re.DOTALL)  # ENV NAME value
_PAIR = re.compile(r"""\s*([A-Za-z_]\w*)=((?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])*)""", re.DOTALL)
_PART = re.compile(r"""'[^']*'|\\.|"(?:[^"\\]|\\.)*"|[^"'\\]+""", re.DOTALL)  # of a value


def is_dockerfile(text: str) -> bool:
    """Its first instruction is FROM, perhaps after ARGs, and it says what runs."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    return bool(re.match(r"(?i)(?:FROM|ARG)\s", first) and _FROM.search(text))


def read_dockerfile(text: str, servers: Sequence[Server], around: Surroundings) -> Found:
    """The launch that a container of the last stage is. An image that starts a server by itself takes CMD's words."""
    image = _FROM.findall(text)[-1]
    own = next((server for server in servers if server.starts_in(image)), None)
    script = script_of(text, "" if own is None else f"{own.program} serve ")
    found = launches_of_text(script, servers, around)
    return found._replace(launches=[launch._replace(image=image) for launch in found.launches])


def script_of(text: str, entrypoint: str = "") -> str:
    """Assignments and the command, each on its own line of the Dockerfile; other lines are empty. `entrypoint` is what
    the image starts by itself where the file gives nothing else.

    Source: the Dockerfile reference, ENTRYPOINT and CMD: a CMD of words follows an ENTRYPOINT of words; an ENTRYPOINT
    for the shell takes no CMD. ARG: its value is there while the image is built, not when a container runs, and ENV
    always overrides it. Raises InputError for words that are no JSON list.
    """
    script: dict[int, str] = {}
    entry: tuple[int, str, bool] | None = None  # line, shell text, made of words
    command: tuple[int, str, bool] | None = None
    kept: set[str] = set()  # variables of ENV
    building: set[str] = set()  # those of ARG, which no container sees
    for start, line in continued_lines(text, ("#", "")):
        match = _INSTRUCTION.fullmatch(line)
        if match is None:
            continue
        name, rest = match[1].upper(), match[2]
        if name == "FROM":
            entry = command = None
            for one in (script, kept, building):
                one.clear()
        elif name == "ENV":
            pairs = _pairs(rest, blank=True)
            script[start] = _assignments("export", pairs)
            kept |= {name for name, _ in pairs}
            building -= kept
        elif name == "ARG":
            pairs = [pair for pair in _pairs(rest, blank=False) if pair[0] not in kept]
            script[start] = _assignments("declare", pairs)
            building |= {name for name, _ in pairs}
        elif name == "ENTRYPOINT":
            entry = (start, *_command(rest, start + 1))
        elif name == "CMD":
            command = (start, *_command(rest, start + 1))
    before = f"unset -v {' '.join(sorted(building))}; " if building else ""
    if entry is not None:
        words = entry[1]
        if entry[2] and command is not None:
            words += " " + (command[1] if command[2] else shlex.join(["/bin/sh", "-c", command[1]]))
        script[entry[0]] = before + words
    elif command is not None:
        script[command[0]] = before + entrypoint + command[1]
    return "\n".join(script.get(at, "") for at in range(len(text.splitlines())))


def _command(text: str, line: int) -> tuple[str, bool]:
    """A command as shell text, and whether it was given in words."""
    if not text.lstrip().startswith("["):
        return text, False
    joined = re.sub(r"\\\n", " ", text)
    try:
        words = json.loads(joined)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError
    except (ValueError, RecursionError):
        raise InputError(f"line {line}: {printable(text.strip())} is no JSON list of words") from None
    return shlex.join(words), True


def _pairs(text: str, *, blank: bool) -> list[tuple[str, str]]:
    """The names and values of ENV or ARG; `blank`: ENV's old form, a name and after a blank its value."""
    text = re.sub(r"\\\n", " ", text).strip()
    old = _OLD_PAIR.fullmatch(text) if blank else None
    return [(old[1], old[2])] if old else _PAIR.findall(text)


def _assignments(builtin: str, pairs: Sequence[tuple[str, str]]) -> str:
    """One command: within an instruction a variable has the value from before it."""
    return " ".join([builtin, *(f"{name}={_PART.sub(_shell_part, value)}" for name, value in pairs)]) if pairs else ""


def _shell_part(match: re.Match[str]) -> str:
    """Part of a value for a shell, which would run `$(...)` and split at blanks; Docker does neither."""
    part = match[0]
    if part[0] in "'\\":
        return part
    quoted = part if part[0] == '"' else f'"{part}"'
    return re.sub(r"(\\.)|(`|\$\()", lambda sign: sign[1] or "\\" + sign[2], quoted)
