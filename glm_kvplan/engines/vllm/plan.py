"""A deployment of vLLM, resolved: what its blocks, its memory and every answer ask about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.expectations import Expectations, Held
from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.measures import Started
from glm_kvplan.engines.protocol import Given
from glm_kvplan.engines.vllm.blocks import Blocks, blocks_of
from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.engines.vllm.resolve.resolver import resolve
from glm_kvplan.engines.vllm.resolve.undecided import every_choice
from glm_kvplan.engines.vllm.weight_widths import check_experts
from glm_kvplan.engines.weight_format import WeightFormat, quantization_method, weight_format
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.calibration import Calibration
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.model.loader import BUNDLED_ORIGIN
from glm_kvplan.workload import UNKNOWN_HOST, HostGiven

NO_CALIBRATION = "is of vLLM, which takes no calibration: give --available-gib, as its log says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Given):
    """What was given, with every default filled in, the blocks that follow, and how its weights are stored."""

    deployment: Deployment
    blocks: Blocks
    weight_format: WeightFormat

    @property
    def given(self) -> Given:
        """What it was made from: the plan itself is all of that."""
        return self

    @property
    def rank(self) -> Rank:
        return self.blocks.rank

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every flag that the release has and that can touch memory, what no rule decides included."""
        return every_choice(self.deployment, self.flags, self.profile)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What vLLM accepts and does otherwise, a line each."""
        return self.deployment.warnings

    @property
    def gpus(self) -> int:
        """GPUs of the whole deployment, all engines."""
        return self.deployment.gpus

    @property
    def context_length(self) -> int:
        """Tokens of the longest request the server takes."""
        return self.deployment.max_model_len

    @property
    def asked_requests(self) -> int | None:
        """Requests at once that the user's own flags ask for, over the whole deployment."""
        asked = self.flags.get("max_num_seqs")
        return asked * self.deployment.data_parallel_size if isinstance(asked, int) else None

    def host(self, host_gib: float | None, pod_gib: float | None) -> HostGiven:
        """What is known of a host: nothing of it is planned. Raises InputError where something was given."""
        if not host_gib is pod_gib is None:
            raise InputError("vLLM's host memory is not planned here; leave --host-gib and --pod-gib out")
        return UNKNOWN_HOST

    @property
    def hosts(self) -> int:
        """Hosts that the GPUs of all engines are spread over."""
        return self.deployment.nnodes

    @property
    def has_host_pools(self) -> bool:
        """Nothing that is planned here lies in host memory."""
        return False

    def hold(
        self,
        given: MemoryGiven,
        expect: Expectations,
        *,
        host_gib: float | None = None,
        pod_gib: float | None = None,
    ) -> Held:
        """Start it and judge what is expected of it. Raises InputError, RefusedError."""
        from glm_kvplan.engines.vllm.checks.holding import hold

        return hold(self, given, expect, host_gib=host_gib, pod_gib=pod_gib)

    def calibration(self, given: MemoryGiven, source: str) -> Calibration:
        """None: what calibrates here is the memory a log calls available. Raises InputError."""
        raise InputError(f"--calibrate {source} {NO_CALIBRATION}")

    def started(
        self, given: MemoryGiven, context: int, prompt: int | None = None, mix: Contexts | None = None
    ) -> Started:
        """Start it; requests are counted at `context` tokens, and of `mix`. Raises InputError, RefusedError."""
        from glm_kvplan.engines.vllm.answers.started import started

        return started(self, given, context, prompt, mix)

    def with_flags(self, **changes: object) -> "Plan":
        """The same plan with some flags changed (None takes a flag back) and every default resolved anew."""
        return resolved(self, self.flags_with(changes))


def resolved(given: Given, flags: Mapping[str, object]) -> Plan:
    """Fill in every default. Raises InputError for flags that cannot be meant, RefusedError for a refused start."""
    deployment = resolve(
        flags,
        geometry=given.model.geometry,
        profile=given.profile,
        gpu=given.gpu,
        environment=given.environment,
    )
    config = _config(given, flags.get("quantization"))
    rank = Rank(given.model.geometry, deployment, given.profile)
    check_experts(rank, given.model.config)
    return Plan(
        *given.values(flags),
        deployment=deployment,
        blocks=blocks_of(rank),
        weight_format=weight_format(flags, config, given.served or given.model.name),
    )


# Methods that FP8 weights take: their own, and what takes them over (models/deepseek_v4/quant_config.py:186 at 0.33.0).
_TAKE_FP8 = (None, "fp8", "humming", "deepseek_v4_fp8")


def _config(given: Given, asked: object) -> Mapping[str, Any] | None:
    """The config.json that says how the weights are stored. Raises RefusedError where --quantization is not its own;
    of a model that nobody named the flag says more.
    """
    config = given.model.config_of(given.served)
    method = asked.lower() if isinstance(asked, str) else None
    stored = quantization_method(config)
    if stored != "fp8" or method in _TAKE_FP8:
        return config
    if given.served is None and given.model.origin == BUNDLED_ORIGIN:
        return None
    raise RefusedError(
        f"--quantization {asked}: the checkpoint says {stored} in its config.json", given.profile.source("quantization")
    )
