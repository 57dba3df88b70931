"""One launch out of a command or a script: which engine it starts, with which words."""

from collections.abc import Sequence

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.server_commands import Launch, launches_of_text, launches_of_words
from glm_kvplan.launch.systemd_unit import is_unit, script_of
from glm_kvplan.launch.words import Word

LARGEST_TEXT = 10 << 20  # characters of a script, bytes of a file
_FORMS = {
    "sglang": "`python -m sglang.launch_server ...` or `sglang serve MODEL ...`",
    "vllm": "`vllm serve MODEL ...` or `python -m vllm.entrypoints.openai.api_server ...`",
}


def one_launch(words: Sequence[str] | str, engine: str) -> tuple[Launch, list[str]]:
    """The one launch of `engine` in words (already split by a shell) or in a script's text, and warnings.

    In front of the engine's own words there may be assignments, `env`, `exec`, docker, kubectl, numactl, srun,
    `bash -c "..."` and the like; its flags may also stand alone. Raises InputError for no launch, several, or one of
    another engine.
    """
    launches, warnings = _launches(words)
    if not launches:
        raise InputError(f"no launch of the engine found; it reads {_FORMS[engine]}")
    if len(launches) > 1:
        places = ", ".join(launch.words[0].place if launch.words else "no flags" for launch in launches[:4])
        deciding = next((launch.deciding for launch in launches if launch.deciding is not None), None)
        which = "keep one" if deciding is None else f"which of them starts depends on {deciding.asked}"
        raise InputError(f"{len(launches)} launches of the engine found ({places}); {which}")
    found = launches[0]
    if found.engine not in ("", engine):
        raise InputError(f"{found.engine} is another engine than {engine}, whose release is asked for: see --engine")
    return found, warnings


def launched_engine(words: Sequence[str] | str) -> str | None:
    """The engine that a launch command or script starts; None where it does not say. Raises InputError as above."""
    engines = {launch.engine for launch in _launches(words)[0]} - {""}
    return engines.pop() if len(engines) == 1 else None


def _launches(words: Sequence[str] | str) -> tuple[list[Launch], list[str]]:
    if isinstance(words, str):
        if len(words) > LARGEST_TEXT:
            raise InputError("the launch text is larger than 10 MiB; give the launch command alone")
        if "\0" in words:
            raise InputError("the launch text holds NUL bytes: it is binary, not a shell script")
        if not words.strip():
            raise InputError("the launch text is empty")
        text = words.removeprefix("\ufeff")
        return launches_of_text(script_of(text) if is_unit(text) else text, SERVERS)
    if not words:
        raise InputError("the launch command is empty; put it after -- or in a file")
    return launches_of_words(tuple(Word(text, f"word {at}") for at, text in enumerate(words, 1)), SERVERS), []
