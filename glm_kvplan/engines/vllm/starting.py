"""A plan started with the memory that is known: its blocks, at the middle and at the ends of what the memory may be."""

from dataclasses import dataclass, replace

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.vllm.memory_before import Available, available, total_gib
from glm_kvplan.engines.vllm.needed_blocks import NumBlocks
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.start import Failure, Start, start
from glm_kvplan.engines.vllm.weight_placement import placement
from glm_kvplan.engines.vllm.weight_widths import check_expert_scales
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.weights import WeightEstimate, estimate_weights
from glm_kvplan.units import GIB


@dataclass(frozen=True, slots=True)
class Begun:
    """What comes of a start. `low` and `high` are starts at the ends of the memory's interval, the middle where it has
    none.
    """

    plan: Plan
    memory: Available
    start: Start
    low: Start
    high: Start
    weights: WeightEstimate | None

    @property
    def failure(self) -> Failure | None:
        """Why it does not start."""
        return self.start.failure

    @property
    def sizes(self) -> NumBlocks:
        return NumBlocks(self.start.count)

    @property
    def certainty(self) -> Certainty:
        return self.memory.certainty

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of its memory and its weights."""
        return (*self.memory.notes, *(() if self.weights is None else self.weights.notes))


def begin(plan: Plan, given: MemoryGiven, measured: Plan | None = None) -> Begun:
    """Start `plan`. `measured` is the plan whose log printed `given.available_gib`, where that is another one: what the
    two differ by in --gpu-memory-utilization is added.

    Raises InputError for memory that is not known or cannot be, RefusedError where less is free than vLLM takes and
    where the layout cuts FP8 weights inside a scale.
    """
    found, weights = memory_of(plan, given)
    if measured is not None and found.how == "measured":
        share = plan.deployment.gpu_memory_utilization - measured.deployment.gpu_memory_utilization
        more = int(share * total_gib(plan.gpu) * GIB)
        found = found._replace(
            nbytes=found.nbytes + more, low_bytes=found.low_bytes + more, high_bytes=found.high_bytes + more
        )
    begun = start_with(plan, found, found.nbytes)
    low = begun if found.low_bytes == found.nbytes else start_with(plan, found, found.low_bytes)
    high = begun if found.high_bytes == found.nbytes else start_with(plan, found, found.high_bytes)
    return Begun(plan, found, begun, low, high, weights)


def start_with(plan: Plan, found: Available, nbytes: int) -> Start:
    """The start with so many bytes; where an estimate has less than none, it says what took them."""
    made = start(plan.blocks, nbytes)
    if made.failure is None or nbytes >= 0 or found.how != "estimated":
        return made
    return replace(made, failure=made.failure._replace(reason=lacking(plan, found, nbytes)))


def lacking(plan: Plan, found: Available, nbytes: int) -> str:
    """Why an estimate of the memory leaves less than nothing for blocks."""
    share = total_gib(plan.gpu) * plan.deployment.gpu_memory_utilization
    return (
        f"the weights ({found.weights_gib:.1f} GiB a GPU) and what is taken beside them are {-nbytes / GIB:.1f} GiB "
        f"more than the {share:.1f} GiB that vLLM takes of one {plan.gpu.name}: nothing is left for blocks"
    )


def memory_of(plan: Plan, given: MemoryGiven, *, booted: bool = False) -> tuple[Available, WeightEstimate | None]:
    """The memory of the blocks, and the weights' estimate where it was needed. `booted`: a log shows the start."""
    if given.calibration is not None:
        raise InputError("--calibrate reads SGLang's boots; of a vLLM boot give --available-gib, as its log says")
    known = plan.deployment.kv_cache_memory_bytes is not None or given.available_gib is not None
    weights = None
    if not known and (given.weights_gib is None or (plan.deployment.draft_layers and given.draft_weights_gib is None)):
        checkpoint = given.checkpoint or plan.weight_format.format
        source = plan.profile.source("scales")
        weights = estimate_weights(plan.geometry, placement(plan.rank), checkpoint, scales_source=source)
        check_expert_scales(plan.rank, plan.model.config, checkpoint)
    found = available(
        plan.rank,
        plan.gpu,
        available_gib=given.available_gib,
        pre_gib=given.pre_gib,
        weights_gib=given.weights_gib,
        draft_weights_gib=given.draft_weights_gib,
        weights=weights,
        booted=booted,
    )
    if found.nbytes > plan.gpu.memory_mib * 2**20:
        raise InputError(f"{found.nbytes / GIB:.2f} GiB for blocks is more than a {plan.gpu.name} has")
    return found, weights
