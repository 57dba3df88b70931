"""Every construct of the shell reader once: what bash gives to `run` in a script of a line or two, and what we give.

`run` is given words that we know. `unknown` is given at least one that we mark as unknown, though bash knows it, or may
not start at all by our reading.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.started_commands import Command
from glm_kvplan.launch.bash.surroundings import Surroundings

_MOST, _TOGETHER = 480, 30
_BEFORE = "A=x; B='a b'; E=; N=3; T=abcabc; L=(p 'q r' s); declare -A M=([k]=v [m]='w z'); set -- 1 '2 3' 4\n"
_AFTER = '\nrun END "$A" "$B" "$E" "$N" "$T" "${#L[@]}" "$#"\n'
# Words go to a descriptor of their own: a script may send its output elsewhere.
_TOLD = """exec 3>&1; set -f; HOME=/h; run() { printf '%s\\0' run "$#" "$@" >&3; }
unknown() { printf '%s\\0' unknown "$#" "$@" >&3; }
for script; do (eval "$script") >/dev/null 2>&1 </dev/null; printf '\\1\\0' >&3; done"""
_OURS = 'HOME=/h; run() { _told run "$@" >&2; :; }; unknown() { _told unknown "$@" >&2; :; }\n'


class Told(NamedTuple):
    name: str
    words: list[str]
    marked: bool = False


def _scripts() -> list[str]:
    paragraphs = (Path(__file__).parent / "bash_constructs.txt").read_text().strip("\n").split("\n\n")
    return [one for one in paragraphs if not one.startswith("# ")]


def bash_gives(scripts: list[str]) -> list[list[Told]]:
    try:
        done = subprocess.run(["bash", "-c", _TOLD, "bash", *scripts], capture_output=True, timeout=300, check=True)
    except FileNotFoundError:
        pytest.skip("bash is not installed")
    found = []
    for one in done.stdout.decode("utf-8", "replace").split("\1\0")[:-1]:
        words = one.split("\0")[:-1]
        commands = []
        while words:
            name, number = words[0], int(words[1])
            commands.append(Told(name, words[2 : 2 + number]))
            del words[: 2 + number]
        found.append(commands)
    return found


def ours(script: str) -> list[Told]:
    found = []

    def told(command: Command, _: Interpreter) -> None:
        if command.words[0].text == "_told":
            marked = command.deciding is not None or any(word.mark is not None for word in command.words)
            found.append(Told(command.words[1].text, [word.text for word in command.words[2:]], marked))

    try:
        Interpreter(Surroundings(), told).run(_OURS + script)
    except InputError as error:
        found.append(Told(f"{error}", []))
    return found


def fits(ours: list[Told], theirs: list[Told]) -> bool:
    known = [one for one in ours if one.name != "unknown"]
    return known == [one for one in theirs if one.name == "run"] and all(
        one.marked for one in ours if one.name == "unknown"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize("first", range(0, _MOST, _TOGETHER))
def test_every_construct_gives_commands_what_bash_gives_them(first: int) -> None:
    paragraphs = _scripts()
    assert _MOST - 3 * _TOGETHER < len(paragraphs) <= _MOST
    scripts = [_BEFORE + one + _AFTER for one in paragraphs[first : first + _TOGETHER]]
    wrong = [
        (script, theirs, mine)
        for script, theirs in zip(scripts, bash_gives(scripts), strict=True)
        if not fits(mine := ours(script), theirs)
    ]
    assert not wrong
