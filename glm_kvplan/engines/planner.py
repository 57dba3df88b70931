"""The front of the pipe: a model, a GPU, an engine and launch flags become one resolved deployment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glm_kvplan.engines.by_name import engine_named, find_release
from glm_kvplan.engines.protocol import Command, Given, Plan, Release
from glm_kvplan.errors import InputError
from glm_kvplan.launch.launch import Container, Found
from glm_kvplan.launch.marked_words import printable
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.model.loader import Model, existing_path, load_model
from glm_kvplan.reading.secret_words import public, without_userinfo

if TYPE_CHECKING:
    from glm_kvplan.engines.launches import OneLaunch

ASSUMED_GPU = "h200"
Launchable = Sequence[str] | str | Found  # words that a shell has split, a text, what was found in one


def plan(
    flags: Mapping[str, object] | None = None,
    *,
    launch: Launchable | Command | None = None,
    container: str | None = None,
    model: str | Model | None = None,
    served: str | None = None,
    revision: str | None = None,
    gpu: str | Gpu | None = None,
    engine: str | Release | None = None,
    environment: Mapping[str, str] | None = None,
) -> Any:  # the engine's own Plan
    """Resolve a deployment: `given(...)`, then every default.

    Raises InputError for what cannot be read and RefusedError for what the engine would refuse to start.
    """
    found: Plan = given(
        flags,
        launch=launch,
        container=container,
        model=model,
        served=served,
        revision=revision,
        gpu=gpu,
        engine=engine,
        environment=environment,
    ).plan()
    return found


def given(
    flags: Mapping[str, object] | None = None,
    *,
    launch: Launchable | Command | None = None,
    container: str | None = None,
    model: str | Model | None = None,
    served: str | None = None,
    revision: str | None = None,
    gpu: str | Gpu | None = None,
    engine: str | Release | None = None,
    environment: Mapping[str, str] | None = None,
) -> Given:
    """Read a deployment without resolving it.

    `flags` are the engine's flags by their argument names (`tp_size=8`); `launch` is a launch command, as text or
    as words, whose flags count where `flags` has none; `container` names one where it holds several. `model` is a
    config.json, its folder, a Hub id or a model read already; `served` names one as a launch command does: it may lie
    on another machine. `gpu` is a card, a name, NAME:MIB or "local"; without one an H200 is assumed. `engine` is a
    release ("0.5.23", "vllm-0.33.0"), "installed", a profile file or a profile; without one the engine's assumed
    release. Raises InputError.
    """
    all_flags: dict[str, object] = {}
    switches: dict[str, str] = {}
    checked: Mapping[str, object] = {}
    notes: list[str] = []
    served_revision = None
    command: Command | None = None
    around: Container | None = None
    if isinstance(launch, str | Sequence):
        one = read_launch(launch, engine, container)
        command, release, around = one.command, one.release, one.container
    else:
        command = launch
        release = find_release(engine) if engine is None or isinstance(engine, str) else engine
    if command is not None:
        all_flags.update(command.flags)
        checked = command.checked
        switches.update(command.environment)
        notes.extend(command.notes)
        if served is None:
            served, served_revision = command.model, command.revision
    for name, value in (flags or {}).items():
        if name in all_flags and all_flags[name] != value:
            notes.append(f"{name} = {value} given to kvplan replaces {all_flags[name]} of the launch command")
        all_flags[name] = public(value)
    switches.update(environment or {})
    served = None if served is None else without_userinfo(served)
    if isinstance(model, Model):
        loaded = model
    elif model is None and served is not None:
        from glm_kvplan.launch.model_name import refuse_other_model
        from glm_kvplan.model.served import load_served_model

        if existing_path(served) is None:  # else its own config.json says what it is
            refuse_other_model(served)
        loaded = load_served_model(served, revision=revision or served_revision)
    else:
        loaded = load_model(model, revision=revision)
    if gpu is None and around is not None:
        gpu = card_of(around, notes)
    card = gpu if isinstance(gpu, Gpu) else find_gpu(ASSUMED_GPU if gpu is None else gpu)
    notes = [*loaded.warnings, *notes]
    rest: Mapping[str, str] = {} if command is None else command.others
    return Given(loaded, release, card, gpu is None, all_flags, switches, served, tuple(notes), checked, around, rest)


def card_of(container: Container, notes: list[str]) -> Gpu | None:
    """The card that a container's node has, as its cluster calls it; None where none is named, or known here."""
    if not container.gpu:
        return None
    name = container.gpu.removesuffix("-SHARED")
    try:
        card = find_gpu(name)
    except InputError:
        notes.append(f"container {container.label} runs on {printable(name)}, which is not known here: give --gpu")
        return None
    notes.append(f"the GPU is that of container {container.label}: {printable(name)}")
    return card


def read_launch(
    launch: Launchable, engine: str | Release | None, container: str | None = None, within: Path | None = None
) -> "OneLaunch":
    """The launch that is planned, read under the release that `engine` means; --config files lie in `within`.

    Raises InputError.
    """
    # the reader is a third of the start-up time, and most questions come without a launch command
    from glm_kvplan.engines.launches import read_one

    def release(told: str | None) -> Release:
        if engine is not None and not isinstance(engine, str):
            return engine
        return find_release(engine, None if told is None else engine_named(told))

    return read_one(launch, release, container, within)
