"""The front of the pipe: a model, a GPU, an engine and launch flags become one resolved deployment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import BASELINE, EngineProfile, load_profile
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.engines.sglang.weight_format import WeightFormat, weight_format
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import BUNDLED_ORIGIN, Model, load_model

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.launch_command import LaunchCommand

ASSUMED_GPU = "h200"


@dataclass(frozen=True, slots=True)
class Given:
    """What is known of a deployment before any default is resolved: the start of every plan of it."""

    model: Model
    profile: EngineProfile
    gpu: Gpu
    gpu_assumed: bool
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    served: str | None  # the model the launch command names
    notes: tuple[str, ...] = ()

    def plan(self, **changes: object) -> "Plan":
        """Resolve it, with some flags changed (None takes a flag back). Raises as `plan`."""
        flags = {name: value for name, value in {**self.flags, **changes}.items() if value is not None}
        deployment = resolve(
            flags, geometry=self.model.geometry, profile=self.profile, gpu=self.gpu, environment=self.environment
        )
        stand_in = self.model.origin == BUNDLED_ORIGIN and self.served is not None
        stored = weight_format(flags, None if stand_in else self.model.config, self.served or self.model.name)
        return Plan(
            self.model,
            self.profile,
            self.gpu,
            self.gpu_assumed,
            flags,
            self.environment,
            self.served,
            self.notes,
            deployment=deployment,
            weight_format=stored,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Given):
    """What was given, resolved: everything the ledgers, the solver and the pools ask about one deployment."""

    deployment: Deployment
    weight_format: WeightFormat

    @property
    def geometry(self) -> Geometry:
        return self.model.geometry

    @property
    def choices(self) -> tuple[Choice, ...]:
        return self.deployment.choices

    def with_flags(self, **changes: object) -> "Plan":
        """The same plan with some flags changed (None takes a flag back) and every default resolved anew."""
        return self.plan(**changes)


def plan(
    flags: Mapping[str, object] | None = None,
    *,
    launch: "Sequence[str] | str | LaunchCommand | None" = None,
    model: str | None = None,
    revision: str | None = None,
    gpu: str | None = None,
    engine: str | EngineProfile = BASELINE,
    environment: Mapping[str, str] | None = None,
) -> Plan:
    """Resolve a deployment: `given(...)`, then every default.

    Raises InputError for what cannot be read and RefusedError for what the engine would refuse to start.
    """
    return given(
        flags, launch=launch, model=model, revision=revision, gpu=gpu, engine=engine, environment=environment
    ).plan()


def given(
    flags: Mapping[str, object] | None = None,
    *,
    launch: "Sequence[str] | str | LaunchCommand | None" = None,
    model: str | None = None,
    revision: str | None = None,
    gpu: str | None = None,
    engine: str | EngineProfile = BASELINE,
    environment: Mapping[str, str] | None = None,
) -> Given:
    """Read a deployment without resolving it.

    `flags` are the engine's flags by their argument names (`tp_size=8`); `launch` is a launch command, as text or
    as words, whose flags count where `flags` has none. `gpu` is a name, NAME:MIB or "local"; without one an H200 is
    assumed. `engine` is a release, "installed", a profile file or a profile. Raises InputError.
    """
    profile = load_profile(engine) if isinstance(engine, str) else engine
    all_flags: dict[str, object] = {}
    switches: dict[str, str] = {}
    notes: list[str] = []
    served = served_revision = None
    if launch is not None:
        command = _read(launch, profile.base_release)
        all_flags.update(command.flags)
        switches.update(command.environment)
        notes.extend(_notes(command))
        served, served_revision = command.model, command.revision
    for name, value in (flags or {}).items():
        if name in all_flags and all_flags[name] != value:
            notes.append(f"{name} = {value} given to kvplan replaces {all_flags[name]} of the launch command")
        all_flags[name] = value
    switches.update(environment or {})
    if model is None and served is not None:
        from glm_kvplan.model.served import load_served_model

        loaded = load_served_model(served, revision=revision or served_revision)
    else:
        loaded = load_model(model, revision=revision)
    card = find_gpu(ASSUMED_GPU if gpu is None else gpu)
    return Given(loaded, profile, card, gpu is None, all_flags, switches, served, (*loaded.warnings, *notes))


def _read(launch: "Sequence[str] | str | LaunchCommand", release: str) -> "LaunchCommand":
    # the reader is a third of the start-up time, and most questions come without a launch command
    from glm_kvplan.engines.sglang.launch_command import LaunchCommand, read_launch_command
    from glm_kvplan.launch.launch_file import with_config_file

    if isinstance(launch, LaunchCommand):
        return launch
    return with_config_file(read_launch_command(launch, release), release)


def _notes(command: "LaunchCommand") -> list[str]:
    notes = list(command.warnings)
    if command.ignored == 1:
        notes.append("1 flag of the launch command touches no memory")
    elif command.ignored:
        notes.append(f"{command.ignored} flags of the launch command touch no memory")
    return notes
