"""The seam: what every engine answers, and all that the rest of the house asks of one.

Nothing outside `engines/` names an engine; `by_name.py` finds one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from glm_kvplan.engines.flag import Choice, Flag, Variable

if TYPE_CHECKING:
    from glm_kvplan.contexts import Contexts
    from glm_kvplan.engines.boot_logs import BesideLog, LogReader
    from glm_kvplan.engines.expectations import Expectations, Held
    from glm_kvplan.engines.measures import Started
    from glm_kvplan.launch.launch import Container, Launch
    from glm_kvplan.memory.calibration import Calibration
    from glm_kvplan.memory.given import MemoryGiven
    from glm_kvplan.memory.gpu import Gpu
    from glm_kvplan.model.geometry import Geometry
    from glm_kvplan.model.loader import Model
    from glm_kvplan.show.page import Page
    from glm_kvplan.workload import HostGiven


class Release(Protocol):
    """One release of an engine: what it does differently is data inside its folder."""

    @property
    def release(self) -> str:
        """As shown: the release, and the user's own profile file where one lies on top."""

    @property
    def base_release(self) -> str:
        """The release itself."""

    @property
    def engine(self) -> "Engine":
        """The engine it is a release of."""


class Command(Protocol):
    """One launch command, read by its engine but not resolved."""

    @property
    def flags(self) -> Mapping[str, object]:
        """Memory flags by the engine's field names, typed."""

    @property
    def checked(self) -> Mapping[str, object]:
        """Flags that move no memory, but may keep the server from starting."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The switches of the environment that change bytes."""

    @property
    def model(self) -> str | None: ...

    @property
    def revision(self) -> str | None: ...

    @property
    def others(self) -> Mapping[str, str]:
        """Options from which no memory follows, as one would type them; empty where a value is not kept."""

    @property
    def role(self) -> str | None:
        """ "prefill" or "decode" of a server that does only that."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was read otherwise than it stood there."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The same, and how much was left out."""

    @property
    def positions(self) -> Mapping[str, str]:
        """Where each memory flag stood, by its field name: "line 3", "word 5"."""


class Plan(Protocol):
    """A deployment resolved: everything that is asked about it afterwards."""

    @property
    def given(self) -> "Given": ...

    @property
    def deployment(self) -> Any:
        """The engine's own resolved arguments."""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every flag that touches memory: its value, and why."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the engine accepts and does otherwise, a line each."""

    @property
    def gpus(self) -> int:
        """GPUs of the whole deployment."""

    @property
    def context_length(self) -> int:
        """Tokens of the longest request the server takes."""

    @property
    def asked_requests(self) -> int | None:
        """Requests at once that the user's own flags ask for, over the whole deployment."""

    def host(self, host_gib: float | None, pod_gib: float | None) -> "HostGiven":
        """What is known of a host. Raises InputError for memory that cannot be, or that nothing would use."""

    @property
    def gpu(self) -> "Gpu": ...

    @property
    def gpu_assumed(self) -> bool:
        """No GPU was named."""

    @property
    def notes(self) -> tuple[str, ...]:
        """How the input was read."""

    @property
    def hosts(self) -> int:
        """Hosts that the GPUs of one engine are spread over."""

    @property
    def has_host_pools(self) -> bool:
        """Something lies in host memory."""

    def hold(
        self,
        given: "MemoryGiven",
        expect: "Expectations",
        *,
        host_gib: float | None = None,
        pod_gib: float | None = None,
    ) -> "Held":
        """Start it and judge what is expected of it. Raises InputError, RefusedError."""

    def calibration(self, given: "MemoryGiven", source: str) -> "Calibration":
        """The same of memory that was measured of it. Raises InputError where a part of it is missing."""

    def started(
        self, given: "MemoryGiven", context: int, prompt: int | None = None, mix: "Contexts | None" = None
    ) -> "Started":
        """Start it; requests are counted at `context` tokens, and of `mix`. Raises InputError, RefusedError."""

    def with_flags(self, **changes: object) -> Any:
        """The same with some flags changed (None takes one back) and every default resolved anew."""


class Engine(Protocol):
    """What one engine answers. Errors: InputError for what cannot be meant, RefusedError for what would not start."""

    name: str  # "sglang"
    title: str  # "SGLang"
    assumed: str  # the release where nobody names one
    flags: Sequence[Flag]  # what can be given to a plan: the engine's memory flags, and kvplan's own
    switches: Mapping[str, Variable]  # environment variables that change bytes, by name
    context_option: str  # how it spells the longest request
    log_anchors: Sequence[str]  # a piece of every line of a boot log that its reader reads

    def releases(self) -> tuple[str, ...]:
        """The releases with a profile, oldest first."""

    def installed(self) -> str | None:
        """The release installed here, from its metadata; nothing is imported."""

    def facts(self, release: Any) -> Mapping[str, str]:
        """What users of a release meet first, under a heading each."""

    def compare(self, before: Any, after: Any) -> tuple[Any, "Page"]:
        """Two releases beside each other: the answer, and its page. Raises InputError where none is made."""

    def load(self, name: str) -> Release:
        """A release, "installed", or a profile file. Raises InputError."""

    def read_flag(self, flag: Flag, text: str) -> object:
        """The value that `text` spells, as the engine's own parser reads it (of `ints` one). Raises InputError."""

    def read(self, launch: "Launch", release: Release, within: Path | None = None) -> Any:
        """One launch's words, its own config file included (which must lie in `within`). Raises InputError."""

    def log_reader(self) -> "LogReader":
        """A new reader of boot logs."""

    def ask_server(self, url: str, timeout: float) -> Any:
        """What a running server says of its start. Raises InputError, also where the engine's servers do not tell."""

    def reconcile(self, boot: Any, beside: "BesideLog") -> Any:
        """A start held against the plan of its launch: `explained`, and what `answer_reconcile` shows.

        Raises InputError, RefusedError.
        """

    def calibration(self, boot: Any, source: str) -> "Calibration":
        """What a start printed, for the next plan on its cards. Raises InputError where it did not print enough."""

    def saved_plan(self, found: Any, source: str) -> Mapping[str, object]:
        """A deployment file with the memory that such a start measured; `source` is where it was read."""

    def resolve(self, given: "Given", flags: Mapping[str, object]) -> Any:
        """The plan that `given` becomes with these flags in place of its own. Raises InputError, RefusedError."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is known of a deployment before any default is resolved: the start of every plan of it."""

    model: "Model"
    profile: Any  # a Release
    gpu: "Gpu"
    gpu_assumed: bool
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    served: str | None  # the model the launch command names
    notes: tuple[str, ...] = ()
    # of the launch: flags that move no memory but may keep it from starting
    checked: Mapping[str, object] = field(default_factory=dict)
    container: "Container | None" = None  # what stands around the launch in a manifest
    others: Mapping[str, str] = field(default_factory=dict)  # other options of the launch, as one would type them

    @property
    def geometry(self) -> "Geometry":
        return self.model.geometry

    def plan(self, **changes: object) -> Any:
        """Resolve it, with some flags changed (None takes a flag back). Raises InputError, RefusedError.

        The one way from flags to a plan: prices, remedies, layouts and sweeps take it, too.
        """
        return self.profile.engine.resolve(self, self.flags_with(changes))

    def flags_with(self, changes: Mapping[str, object]) -> Mapping[str, object]:
        """Its flags with some changed; None takes one back."""
        flags = {**self.flags, **changes}
        return {name: value for name, value in flags.items() if value is not None} if None in flags.values() else flags

    def with_changes(self, changes: Mapping[str, object]) -> "Given":
        """The same with some flags changed; None takes one back."""
        return Given(*self.values(self.flags_with(changes)))

    def values(self, flags: Mapping[str, object]) -> tuple[Any, ...]:
        """Its fields in order, with other flags: what a plan of them begins with."""
        return (
            self.model,
            self.profile,
            self.gpu,
            self.gpu_assumed,
            flags,
            self.environment,
            self.served,
            self.notes,
            self.checked,
            self.container,
            self.others,
        )
