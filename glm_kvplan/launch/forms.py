"""Which form a text has that holds a launch: the one place that tells a script from a manifest, a unit, a recipe."""

import re
from collections.abc import Sequence

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.interpreter import Surroundings
from glm_kvplan.launch.given_values import GivenValues
from glm_kvplan.launch.launch import Found, Server
from glm_kvplan.launch.manifest import is_manifest, read_manifest
from glm_kvplan.launch.server_commands import launches_of_text, launches_of_words
from glm_kvplan.launch.systemd_unit import is_unit, script_of
from glm_kvplan.launch.words import Word

LARGEST_TEXT = 10 << 20  # characters of a script, bytes of a file
# What a deployment file needs, at the left margin, in YAML and in TOML: no shell script has it there.
_DEPLOYMENT_FILE = re.compile(r"(?m)^(?:launch|launch_file|flags)(?:: | = |:$)|^\[flags\]$")


def launches_in(
    launch: Sequence[str] | str, servers: Sequence[Server], around: Surroundings | None = None, name: str = ""
) -> Found:
    """The launches in words that a shell has split, or in a text of any form. `name` is the text in messages.

    In front of a server's own words there may be assignments, `env`, `exec`, docker, kubectl, numactl, srun,
    `bash -c "..."` and the like; its flags may also stand alone.

    Raises InputError for what is empty, binary, too large or a deployment file (its engine, GPU and memory would be
    lost), and for a form that cannot be read.
    """
    around = around or Surroundings()
    found = _launches(launch, servers, around, name)
    if not isinstance(around.given, GivenValues) or not around.given:
        return found
    text = launch if isinstance(launch, str) else " ".join(launch)
    return found._replace(notes=(*found.notes, *around.given.unused(text, name or "the launch text")))


def _launches(launch: Sequence[str] | str, servers: Sequence[Server], around: Surroundings, name: str) -> Found:
    if not isinstance(launch, str):
        if not launch:
            raise InputError("the launch command is empty; put it after -- or in a file")
        words = tuple(Word(text, f"word {at}") for at, text in enumerate(launch, 1))
        return launches_of_words(words, servers, around=around)
    if len(launch) > LARGEST_TEXT:
        raise InputError("the launch text is larger than 10 MiB; give the launch command alone")
    if "\0" in launch:
        raise InputError("the launch text holds NUL bytes: it is binary, not a shell script")
    if not launch.strip():
        raise InputError("the launch text is empty")
    text = launch.removeprefix("\ufeff")
    shown = name or "the launch text"
    if is_manifest(text):
        return read_manifest(text, shown, servers, around)
    if is_unit(text):
        return launches_of_text(script_of(text), servers, around)
    if _DEPLOYMENT_FILE.search(text):
        raise InputError(f"{shown}: is a deployment file; `kvplan check` reads it, --launch takes a launch's own file")
    return launches_of_text(text, servers, around)
