"""The front of the pipe: a model, a GPU, an engine and launch flags become one resolved deployment."""

from collections.abc import Mapping, Sequence
from typing import Any

from glm_kvplan.engines.engine import Command, Given, Plan, Release, engine_named, find_release
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.model.loader import load_model
from glm_kvplan.reading.secret_words import without_userinfo

ASSUMED_GPU = "h200"
Launch = Sequence[str] | str | Command


def plan(
    flags: Mapping[str, object] | None = None,
    *,
    launch: Launch | None = None,
    model: str | None = None,
    revision: str | None = None,
    gpu: str | Gpu | None = None,
    engine: str | Release | None = None,
    environment: Mapping[str, str] | None = None,
) -> Any:  # the engine's own Plan
    """Resolve a deployment: `given(...)`, then every default.

    Raises InputError for what cannot be read and RefusedError for what the engine would refuse to start.
    """
    found: Plan = given(
        flags, launch=launch, model=model, revision=revision, gpu=gpu, engine=engine, environment=environment
    ).plan()
    return found


def given(
    flags: Mapping[str, object] | None = None,
    *,
    launch: Launch | None = None,
    model: str | None = None,
    revision: str | None = None,
    gpu: str | Gpu | None = None,
    engine: str | Release | None = None,
    environment: Mapping[str, str] | None = None,
) -> Given:
    """Read a deployment without resolving it.

    `flags` are the engine's flags by their argument names (`tp_size=8`); `launch` is a launch command, as text or
    as words, whose flags count where `flags` has none. `gpu` is a card, a name, NAME:MIB or "local"; without one an
    H200 is assumed. `engine` is a release ("0.5.23", "vllm-0.33.0"), "installed", a profile file or a profile; without
    one the engine's assumed release. Raises InputError.
    """
    release = _release(engine, launch) if engine is None or isinstance(engine, str) else engine
    all_flags: dict[str, object] = {}
    switches: dict[str, str] = {}
    checked: Mapping[str, object] = {}
    notes: list[str] = []
    served = served_revision = None
    if launch is not None:
        command = read_command(launch, release)
        all_flags.update(command.flags)
        checked = command.checked
        switches.update(command.environment)
        notes.extend(command.notes)
        served, served_revision = command.model, command.revision
        served = None if served is None else without_userinfo(served)
    for name, value in (flags or {}).items():
        if name in all_flags and all_flags[name] != value:
            notes.append(f"{name} = {value} given to kvplan replaces {all_flags[name]} of the launch command")
        all_flags[name] = without_userinfo(value) if isinstance(value, str) else value
    switches.update(environment or {})
    if model is None and served is not None:
        from glm_kvplan.model.served import load_served_model

        loaded = load_served_model(served, revision=revision or served_revision)
    else:
        loaded = load_model(model, revision=revision)
    card = gpu if isinstance(gpu, Gpu) else find_gpu(ASSUMED_GPU if gpu is None else gpu)
    notes = [*loaded.warnings, *notes]
    return Given(loaded, release, card, gpu is None, all_flags, switches, served, tuple(notes), checked)


def read_command(launch: Launch, release: Release) -> Command:
    """The launch command, read by its engine where it is still text or words. Raises InputError."""
    if not isinstance(launch, str | Sequence):
        return launch
    command: Command = release.engine.read(launch, release)
    return command


def _release(name: str | None, launch: Launch | None) -> Release:
    """The release that `name` means, of the engine that the launch command starts where that says it."""
    if not isinstance(launch, str | Sequence):
        return find_release(name)
    # the reader is a third of the start-up time, and most questions come without a launch command
    from glm_kvplan.engines.launches import launched_engine

    told = launched_engine(launch)
    return find_release(name, None if told is None else engine_named(told))
