"""The front of the pipe: a model, a GPU, an engine and launch flags become one resolved deployment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glm_kvplan.deployment.deployment import Deployment
from glm_kvplan.deployment.resolve import Choice, Resolution, resolve
from glm_kvplan.engine.gpu import Gpu, find_gpu
from glm_kvplan.engine.profile import BASELINE, EngineProfile, load_profile
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import Model, load_model

ASSUMED_GPU = "h200"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything the ledgers, the solver and the pools ask about one deployment."""

    model: Model
    profile: EngineProfile
    gpu: Gpu
    gpu_assumed: bool
    resolution: Resolution
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def geometry(self) -> Geometry:
        return self.model.geometry

    @property
    def deployment(self) -> Deployment:
        return self.resolution.deployment

    @property
    def choices(self) -> tuple[Choice, ...]:
        return self.resolution.choices

    def with_flags(self, **changes: object) -> "Plan":
        """The same plan with some flags changed (None takes a flag back) and every default resolved anew."""
        flags = {name: value for name, value in {**self.flags, **changes}.items() if value is not None}
        resolution = resolve(
            flags, geometry=self.geometry, profile=self.profile, gpu=self.gpu, environment=self.environment
        )
        return Plan(
            self.model, self.profile, self.gpu, self.gpu_assumed, resolution, flags, self.environment, self.notes
        )


def plan(
    flags: Mapping[str, object] | None = None,
    *,
    launch: Sequence[str] | str | None = None,
    model: str | None = None,
    revision: str | None = None,
    gpu: str | None = None,
    engine: str = BASELINE,
    environment: Mapping[str, str] | None = None,
) -> Plan:
    """Resolve a deployment.

    `flags` are the engine's flags by their argument names (`tp_size=8`); `launch` is a launch command, as text or
    as words, whose flags count where `flags` has none. `gpu` is a name, NAME:MIB or "local"; without one an H200 is
    assumed. `engine` is a release, "installed" or a profile file.

    Raises InputError for what cannot be read and RefusedError for what the engine would refuse to start.
    """
    profile = load_profile(engine)
    given: dict[str, object] = {}
    switches: dict[str, str] = {}
    notes: list[str] = []
    served = served_revision = None
    if launch is not None:
        from glm_kvplan.deployment.command import read_launch_command

        command = read_launch_command(launch, profile.release)
        given.update(command.flags)
        switches.update(command.environment)
        notes.extend(command.notes())
        served, served_revision = command.model, command.revision
    for name, value in (flags or {}).items():
        if name in given and given[name] != value:
            notes.append(f"{name} = {value} given to kvplan replaces {given[name]} of the launch command")
        given[name] = value
    switches.update(environment or {})
    if model is None and served is not None:
        from glm_kvplan.model.served import load_served_model

        loaded = load_served_model(served, revision=revision or served_revision)
    else:
        loaded = load_model(model, revision=revision)
    card = find_gpu(gpu or ASSUMED_GPU)
    resolution = resolve(given, geometry=loaded.geometry, profile=profile, gpu=card, environment=switches)
    return Plan(loaded, profile, card, gpu is None, resolution, given, switches, (*loaded.warnings, *notes))
