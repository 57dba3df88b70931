"""What people type by guess, and one line that names what is meant: commands and options that there are not."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from glm_kvplan.cli import COMMANDS
from glm_kvplan.engines.by_name import assumed_engine
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import quoted

_INFO = ("engines", "gpus", "model", "schema")  # commands once, topics of info now
_FIT = (
    "kvplan solve says what a server will hold, kvplan advise which flags serve a load, and on how many GPUs (--gpus)"
)
_LISTS = "kvplan info lists the engine releases, GPUs and model that are known, kvplan --help the commands"
_COMMANDS = {
    **dict.fromkeys(("plan", "fit", "fits", "run", "calc", "calculate", "capacity", "memory"), _FIT),
    "size": "kvplan solve says what the engine sizes, kvplan estimate what so many requests need",
    "compare": "did you mean diff?",
    "version": "did you mean kvplan --version?",
    **dict.fromkeys(("list", "ls", "show", "engine", "gpu", "models", "config"), _LISTS),
    **dict.fromkeys(
        ("users", "requests", "concurrency", "context"),
        "requests and their lengths are options, as in: kvplan advise --gpu h200 --context 128k --concurrency 64",
    ),
}
_OPTIONS: Mapping[str, Sequence[str]] = {
    "--concurrency": (
        *("--users", "--requests", "--num-requests", "--batch-size", "--batch", "--bs", "--max-batch-size"),
        *("--clients", "--sessions", "--parallel", "--max-concurrency"),
    ),
    "--context": (
        *("--contexts", "--ctx", "--ctx-len", "--ctx-size", "--context-len", "--context-size", "--mean-context"),
        *("--seq-len", "--seqlen", "--sequence-length", "--input-len", "--isl", "--length", "--lengths", "--tokens"),
    ),
    "--gpus": ("--num-gpus", "--n-gpus", "--ngpus", "--gpu-count", "--cards"),
    "--gpu": ("--card", "--gpu-name", "--gpu-type", "--hardware", "--vram", "--gpu-memory"),
    "--host-gib": ("--host-memory", "--host-mem", "--host-ram", "--ram", "--dram", "--cpu-memory"),
    "--engine": ("--release", "--engine-version"),
    "--lang": ("--language", "--locale", "--zh"),
    "--output": ("--out", "--output-file"),
    "--launch": ("--script", "--manifest", "--command"),
}
_ONCE = {  # names that options had
    "--mix": "--context",
    "--checkpoints": "--prefix-states",
    "--config-root": "--root",
    "--report": "--output",
    "--try-state-dtype": "--try FLAG=VALUE",
}
_MEANT = {guess: option for option, guesses in _OPTIONS.items() for guess in guesses}
_EVERYWHERE = ("--lang",)  # read before commands are


def refuse_command(word: str) -> NoReturn:
    """Raise InputError for a word that is no command: what to type."""
    if word in _INFO:
        raise InputError(f"`kvplan {word}` is now `kvplan info {word}`")
    raise InputError(f"{quoted(word)} is no command; {_command_meant(word)}")


def _command_meant(word: str) -> str:
    known = _COMMANDS.get(word.lower())
    if known is not None:
        return known
    from glm_kvplan.engines.twins import guessed_in

    flag = guessed_in(assumed_engine().name, f"--{word.lower()}")
    if flag is not None:
        return f"a flag of the launch plans it: kvplan solve {flag}; kvplan explain lists what is explained"
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS)
    if near:
        return f"did you mean {near[0]}?"
    if re.search(r"[./]", word) and Path(word).is_file():
        name = Path(word).name
        if ".kvplan." in name:
            return "a deployment file is read by kvplan check"
        if ".log" in name:
            return "a boot log is read by kvplan reconcile"
        return "a launch file is read by kvplan solve --launch"
    from glm_kvplan.memory.gpu import cards_in, is_gpu

    count, card = cards_in(word) or (8, word)
    if is_gpu(card):
        of = f"--gpu {card.lower()}"
        return f"a card goes after a command: kvplan solve {of}, or kvplan advise {of} --gpus {count}"
    return f"commands are: {', '.join(COMMANDS)}"


def refuse_argument(command: str, word: str) -> NoReturn:
    """Raise InputError for a word behind a command that takes none, or no more."""
    from glm_kvplan.memory.gpu import is_gpu

    hint = "a launch command goes after --, its file after --launch; check and diff read deployment files"
    if is_gpu(word):
        hint = f"a card goes after --gpu: kvplan {command} --gpu {word.lower()}"
    raise InputError(f"{quoted(word)} is one argument too many for kvplan {command}; {hint}")


def refuse_launch(words: Sequence[str]) -> None:
    """Raise InputError where a launch command stands among a command's options, or is all there is."""
    from glm_kvplan.engines.servers import SERVERS

    for server in SERVERS:
        if any(word in server.modules for word in words) or (server.program, "serve") in pairwise(words):
            start = f"{server.program} serve ..."
            raise InputError(f"put -- in front of the launch command: kvplan solve --gpu b200 -- {start}")


def refuse_option(
    command: str, option: str, engine: Callable[[], Engine], options_of: Callable[[str], Iterable[str]]
) -> NoReturn:
    """Raise InputError for an option that a command has not: the engine's own name of it, or kvplan's, or who has it.

    `options_of` gives every option of a command by its name.
    """
    from glm_kvplan.engines.twins import guessed_in, twin_in

    own = [*options_of(command)]
    now = _ONCE.get(option)
    if now is not None and now.partition(" ")[0] in own:
        raise InputError(f"{command} {option} is now {command} {now}")
    asked = engine()
    twin, flag = twin_in(asked.name, option), guessed_in(asked.name, option)
    if twin is not None:
        raise InputError(f"{option} is a flag of another engine; of {asked.title} it is {twin}")
    meant = _MEANT.get(option, option)
    if meant in (*own, *_EVERYWHERE):
        raise InputError(f"{command} has no {option}; did you mean {meant}?")
    if flag is not None:
        raise InputError(f"{command} has no {option}; of {asked.title} it is {flag}")
    if option == "--version":
        raise InputError("kvplan --version prints kvplan's; a release of an engine is named with --engine")
    others = [name for name in COMMANDS if name != command and meant in options_of(name)]
    if others:
        said = option if meant == option else f"{option}; what you mean is {meant}"
        raise InputError(f"{command} has no {said}: an option of kvplan {', '.join(others)}")
    from difflib import get_close_matches

    near = get_close_matches(option, own)
    hint = f"did you mean {' or '.join(near)}?" if near else f"kvplan {command} --help lists what it takes"
    raise InputError(f"{command} has no {option}; {hint}")


def refuse_axis(command: str | None, name: str, option: str, text: str, read: Callable[[str], object]) -> None:
    """Raise InputError where an option's text is several values, each of which `read` takes: an axis of a sweep."""
    for part in text.split(","):
        try:
            read(part)
        except InputError:
            return
    over = f"--over {name}={text[:60]}"
    raise InputError(
        f"{option} takes one value; {over if command == 'sweep' else f'kvplan sweep {over}'} takes them all"
    )
