"""A deployment of SGLang, resolved: what the components, the sizing and every answer ask about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.protocol import Given
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.engines.weight_format import WeightFormat, kernel_method, quantization_method, weight_format
from glm_kvplan.model.draft import DraftModel, find_draft, load_draft
from glm_kvplan.model.loader import Model

if TYPE_CHECKING:
    from glm_kvplan.contexts import Contexts
    from glm_kvplan.engines.expectations import Expectations, Held
    from glm_kvplan.engines.measures import Started
    from glm_kvplan.memory.calibration import Calibration
    from glm_kvplan.memory.given import MemoryGiven
    from glm_kvplan.workload import HostGiven


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Given):
    """What was given, with every default filled in and the format its weights are stored in."""

    deployment: Deployment
    weight_format: WeightFormat

    @property
    def given(self) -> Given:
        """What it was made from: the plan itself is all of that."""
        return self

    @property
    def choices(self) -> tuple[Choice, ...]:
        return self.deployment.choices

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the engine accepts and does otherwise, a line each."""
        return self.deployment.warnings

    @property
    def gpus(self) -> int:
        """GPUs of the whole deployment, all replicas."""
        return self.deployment.world_size * self.deployment.replicas

    @property
    def context_length(self) -> int:
        """Tokens of the longest request the server takes."""
        return self.deployment.context_length

    @property
    def asked_requests(self) -> int | None:
        """Requests at once that the user's own flags ask for, over the whole deployment."""
        asked = self.flags.get("max_running_requests")
        return asked if isinstance(asked, int) else None

    def host(self, host_gib: float | None, pod_gib: float | None) -> "HostGiven":
        """What is known of a host, as bytes. Raises InputError for memory that cannot be, or that nothing would use."""
        from glm_kvplan.engines.sglang.sizing.host_given import host_given

        return host_given(self.deployment, host_gib=host_gib, pod_gib=pod_gib)

    @property
    def hosts(self) -> int:
        """Hosts that the GPUs of one engine are spread over."""
        return self.deployment.nnodes

    @property
    def has_host_pools(self) -> bool:
        """Something lies in host memory."""
        return self.deployment.enable_hierarchical_cache

    def hold(
        self,
        given: "MemoryGiven",
        expect: "Expectations",
        *,
        host_gib: float | None = None,
        pod_gib: float | None = None,
    ) -> "Held":
        """Start it and judge what is expected of it. Raises InputError, RefusedError."""
        from glm_kvplan.engines.sglang.checks.holding import hold

        return hold(self, given, expect, host_gib=host_gib, pod_gib=pod_gib)

    def calibration(self, given: "MemoryGiven", source: str) -> "Calibration":
        """Memory that was measured of it, for the next plan on its cards. Raises InputError where a part is missing."""
        from glm_kvplan.engines.sglang.boot_log.calibrated import of_memory

        return of_memory(self, given, source)

    def started(
        self, given: "MemoryGiven", context: int, prompt: int | None = None, mix: "Contexts | None" = None
    ) -> "Started":
        """Start it; requests are counted at `context` tokens, and of `mix`. Raises InputError, RefusedError."""
        from glm_kvplan.engines.sglang.answers.started import started

        return started(self, given, context, prompt, mix)

    def with_flags(self, **changes: object) -> "Plan":
        """The same plan with some flags changed (None takes a flag back) and every default resolved anew."""
        return resolved(self, self.flags_with(changes))


def resolved(given: Given, flags: Mapping[str, object]) -> Plan:
    """Fill in every default. Raises InputError for flags that cannot be meant, RefusedError for a refused start."""
    deployment = resolve(
        {**given.checked, **flags} if given.checked else flags,
        geometry=given.model.geometry,
        profile=given.profile,
        gpu=given.gpu,
        environment=given.environment,
        quantization=_method(given.model, given.served),
        kernels=_kernels(given.model, given.served),
        draft=_draft(flags),
    )
    return Plan(
        *given.values(flags),
        deployment=deployment,
        weight_format=_stored(given.model, given.served, flags.get("quantization")),
    )


# Methods that pack routed experts while they load, and what comes of the stored format. The one that calls itself
# modelopt_fp4 is taken from the MTP layer.
# Source: layers/quantization/nvfp4_online.py:163-208, layers/quantization/modelopt_quant.py:1533-1545,
# models/deepseek_nextn.py:71-75 at 0.5.23.
_PACKED_ON_LOAD: dict[tuple[object, str], str] = {
    ("modelopt_fp4", "fp8"): "fp8-nvfp4",
    ("nvfp4_online", "fp8"): "fp8-nvfp4-mtp",
    ("modelopt_fp4", "bf16"): "nvfp4-experts",
    ("nvfp4_online", "bf16"): "nvfp4-mtp",
}


# The same for every plan of a checkpoint, and long to read off a config: kept by model.
@lru_cache(maxsize=64)
def _method(model: Model, served: str | None) -> str | None:
    return quantization_method(model.config_of(served))


@lru_cache(maxsize=64)
def _kernels(model: Model, served: str | None) -> str | None:
    return kernel_method(model.config_of(served))


@lru_cache(maxsize=64)
def _stored(model: Model, served: str | None, quantization: object) -> WeightFormat:
    name = served or model.name
    stored = weight_format({}, model.config_of(served), name)
    packed = _PACKED_ON_LOAD.get((quantization, stored.format))
    serialized = stored.assumed and quantization == "modelopt_fp4"  # nobody knows the checkpoint: it is one of these
    if packed is None or serialized:
        return weight_format({"quantization": quantization}, model.config_of(served), name)
    return WeightFormat(packed, f"--quantization {quantization} packs the experts of {stored.format} as they load")


def _draft(flags: Mapping[str, object]) -> DraftModel | str | None:
    """The config of the draft model, or why there is none to read; None where no draft model is named.

    One that the user points at must be there; one that the launch names may lie on the server alone.
    """
    path, named = flags.get("speculative_draft_model_path"), flags.get("draft_config")
    if flags.get("speculative_algorithm") is None or path is None:
        return None
    return load_draft(str(named)) if named is not None else find_draft(str(path))
