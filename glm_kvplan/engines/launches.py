"""One launch out of a command or a text, read by the engine that it starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from glm_kvplan.engines.protocol import Command, Release
from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.launch import Container, Found, Launch

Launchable = Sequence[str] | str | Found  # words that a shell has split, a text of any form, what was found in one
_FORMS = {
    "sglang": "`python -m sglang.launch_server ...` or `sglang serve MODEL ...`",
    "vllm": "`vllm serve MODEL ...` or `python -m vllm.entrypoints.openai.api_server ...`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """One launch, read by its engine but not resolved.

    `flags` are the memory flags by the engine's field names, `checked` those that move no memory but can keep the
    server from starting, `environment` the switches that change bytes. `ignored` counts the engine's flags that touch
    no memory; `unknown` names those that the release does not have. `positions` says where each memory flag stood
    ("word 5", "line 3", "server.yaml").
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    checked: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    revision: str | None = None
    ignored: int = 0
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    positions: Mapping[str, str] = field(default_factory=dict)
    # the launch's other options as one would type them; empty where a value is not kept
    others: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None  # "prefill" or "decode" of a server that does only that

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read otherwise than it stood there, or left out."""
        if not self.ignored:
            return self.warnings
        left = "1 flag of the launch command touches" if self.ignored == 1 else None
        left = left or f"{self.ignored} flags of the launch command touch"
        return (*self.warnings, f"{left} no memory")


class OneLaunch(NamedTuple):
    """The launch that is planned, as its engine reads it, and what stood around it."""

    command: LaunchCommand
    release: Release
    container: Container | None


def launches_of(launch: Launchable) -> Found:
    """The launches in what a user gives. Raises InputError for what cannot be read."""
    return launch if isinstance(launch, Found) else launches_in(launch, SERVERS)


def launched_engine(launch: Launchable, container: str | None = None) -> str | None:
    """The engine that the launches start; None where they do not say, or not the same. Raises InputError as above."""
    engines = {one.engine for one in called(launches_of(launch), container)} - {""}
    return engines.pop() if len(engines) == 1 else None


def called(found: Found, container: str | None) -> Sequence[Launch]:
    """The launches that `container` means, all without one. Raises InputError for a name that none has."""
    if container is None:
        return found.launches
    chosen = [launch for launch in found.launches if launch.called(container)]
    if not chosen:
        those = f"those that do: {_labels(found.launches)}"
        raise InputError(f"{_named(found)}no container {container[:80]!r} launches the engine; {those}")
    return chosen


ROLES = ("prefill", "decode")


def roles_of(launch: Launchable, role_of: Callable[[str], str | None]) -> dict[str, str]:
    """The containers of the prefill and of the decode server, by role; empty where the launches are not these two.

    `role_of` reads a container's launch. Raises InputError.
    """
    found = launches_of(launch).launches
    if len(found) != len(ROLES) or any(one.container is None for one in found):
        return {}
    roles = {role_of(one.label): one.label for one in found}
    return {role: roles[role] for role in ROLES} if set(roles) == set(ROLES) else {}


def read_one(
    launch: Launchable,
    release: Callable[[str | None], Release],
    container: str | None = None,
    within: Path | None = None,
) -> OneLaunch:
    """The one launch in what a user gives, or the one called `container`, read under the release of its engine.

    Launches that ask for the same memory are one: the leader and the workers of a server. --config files must lie in
    `within` where it is given. Raises InputError for no launch, several servers, and what the engine raises it for.
    """
    found = launches_of(launch)
    if not found.launches:
        raise InputError(f"no launch of the engine found; it reads {' or '.join(_FORMS.values())}")
    chosen = called(found, container)
    if len({one.engine for one in chosen} - {""}) > 1:
        raise _several(found, chosen)
    told = launched_engine(found, container)
    under = release(told)
    if told not in (None, under.engine.name):
        raise _other(told, under.engine.name)
    commands = [_read(one, under, within) for one in chosen]
    first = commands[0]
    if any(_asks(other) != _asks(first) for other in commands[1:]) or any(one.deciding for one in chosen[1:]):
        raise _several(found, chosen)
    notes = (*found.notes, *_environments(chosen, commands))
    return OneLaunch(replace(first, warnings=(*notes, *first.warnings)), under, chosen[0].container)


def _read(launch: Launch, release: Release, within: Path | None) -> LaunchCommand:
    try:
        command: LaunchCommand = release.engine.read(launch, release, within)
    except InputError as error:
        raise InputError(f"{launch.within}: {error}") if launch.within else error from None
    return command


def _asks(command: Command) -> tuple[object, ...]:
    """What decides over memory."""
    return command.flags, command.model, command.revision


def _environments(chosen: Sequence[Launch], commands: Sequence[Command]) -> list[str]:
    """A line for each launch that is read as a part of the first one's server, and has another environment."""
    notes = []
    for launch, command in zip(chosen[1:], commands[1:], strict=True):
        pairs = command.environment.items() ^ commands[0].environment.items()
        if pairs:
            names = ", ".join(sorted({name for name, _ in pairs}))
            notes.append(f"{launch.label} starts the same with another {names}; {chosen[0].label} is planned")
    return notes


def _other(told: str | None, asked: str) -> InputError:
    return InputError(f"{told} is another engine than {asked}, whose release is asked for: see --engine")


def _several(found: Found, chosen: Sequence[Launch]) -> InputError:
    number = len(chosen)
    if all(launch.container is not None for launch in chosen):
        return InputError(
            f"{_named(found)}{number} containers launch the engine ({_labels(chosen)}); --container NAME takes one"
        )
    deciding = next((launch.deciding for launch in chosen if launch.deciding is not None), None)
    which = "keep one" if deciding is None else f"which of them starts depends on {deciding.asked}"
    return InputError(f"{number} launches of the engine found ({_labels(chosen)}); {which}")


def _labels(launches: Sequence[Launch]) -> str:
    return ", ".join(launch.label for launch in launches[:8])


def _named(found: Found) -> str:
    return f"{found.name}: " if found.name else ""


def one_launch(words: Sequence[str] | str, engine: str) -> tuple[Launch, list[str]]:
    """The one launch of `engine` in words or in a script's text, and notes. Raises InputError for another engine's."""
    found = launches_in(words, SERVERS)
    if not found.launches:
        raise InputError(f"no launch of the engine found; it reads {_FORMS[engine]}")
    if len(found.launches) > 1:
        raise _several(found, found.launches)
    launch = found.launches[0]
    if launch.engine not in ("", engine):
        raise _other(launch.engine, engine)
    return launch, list(found.notes)
