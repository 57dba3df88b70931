"""Which form a text has that holds a launch: the one place that tells a script from a manifest, a unit, a recipe."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.given_values import GivenValues
from glm_kvplan.launch.launch import Found, Server, gathered
from glm_kvplan.launch.marked_words import Word
from glm_kvplan.launch.server_commands import launches_of_text, launches_of_words

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
    if isinstance(launch, str):
        found = _in_text(launch, servers, around, name)
    elif not launch:
        raise InputError("the launch command is empty; put it after -- or in a file")
    else:
        words = tuple(Word(text, f"word {at}") for at, text in enumerate(launch, 1))
        found = launches_of_words(words, servers, {}, around)
    if not isinstance(around.given, GivenValues) or not around.given:
        return found
    if isinstance(launch, str):
        return found._replace(notes=(*found.notes, *around.given.unused(launch, name or "the launch text")))
    if not around.given.used:
        raise InputError(
            "--set gives no value to words after --: the shell that split them leaves no variable open; put the whole "
            "command in quotes, or its file behind --launch"
        )
    return found


def _in_text(launch: str, servers: Sequence[Server], around: Surroundings, name: str) -> Found:
    if len(launch) > LARGEST_TEXT:
        raise InputError("the launch text is larger than 10 MiB; give the launch command alone")
    if "\0" in launch:
        raise InputError("the launch text holds NUL bytes: it is binary, not a shell script")
    if not launch.strip():
        raise InputError("the launch text is empty")
    # most commands are words, and need none of these
    from glm_kvplan.launch import compose, dockerfile, fenced_blocks, manifest, python_lists, recipes, systemd_unit

    text = launch.removeprefix("\ufeff").replace("\r\n", "\n")
    shown = name or "the launch text"
    if manifest.is_manifest(text):
        return manifest.read_manifest(manifest.data_of(text, shown), shown, servers, around)
    if _DEPLOYMENT_FILE.search(text):
        raise InputError(f"{shown}: is a deployment file; `kvplan check` reads it, --launch takes a launch's own file")
    if compose.is_compose(text):
        return compose.read_compose(manifest.data_of(text, shown), shown, servers, around)
    if systemd_unit.is_unit(text):
        script = systemd_unit.script_of(text, around.beside)
        return launches_of_text(script, servers, around, systemd_unit.SPECIFIERS)
    if dockerfile.is_dockerfile(text):
        return dockerfile.read_dockerfile(text, servers, around)
    if recipes.is_mapping(text):
        return _in_mapping(manifest.data_of(text, shown), shown, servers, around)
    if fenced_blocks.is_document(text):
        return _in_blocks(text, servers, around, name)
    program = python_lists.program_of(text)
    if program is not None:
        return python_lists.read_program(program, servers, around)
    return launches_of_text(text, servers, around)


def _in_mapping(documents: Sequence[Any], shown: str, servers: Sequence[Server], around: Surroundings) -> Found:
    """A YAML mapping that is none of the forms with a mark of their own: flags as keys, or values with args."""
    from glm_kvplan.launch import manifest, recipes

    found = recipes.read_recipe(documents, shown, servers)
    return found if found.launches else manifest.read_manifest(documents, shown, servers, around)


def _in_blocks(text: str, servers: Sequence[Server], around: Surroundings, name: str) -> Found:
    """What the blocks of a document launch; a block of another kind (an output, a patch) says nothing."""
    from glm_kvplan.launch import fenced_blocks

    named = [block for block in fenced_blocks.blocks(text) if any(server.named_in(block) for server in servers)]
    return gathered([("", partial(_in_text, block, servers, around, name)) for block in named], name)
