"""The two readings of free memory that the engine sizes its pools by: measured, or estimated from the card."""

from math import isfinite
from typing import Final, NamedTuple

from glm_kvplan.certainty import Certainty, How
from glm_kvplan.errors import InputError
from glm_kvplan.memory.before_load import taken_before_load
from glm_kvplan.memory.calibration import BOOT_TO_BOOT_GIB, Calibration
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.memory.weights import WeightEstimate
from glm_kvplan.units import GIB


class NoRoomError(InputError):
    """The weights alone need more memory than there is: the server dies while it loads them."""

    is_no = True


CALIBRATED: Final = "calibrated"
TARGET, DRAFT = "target weights", "draft weights"  # names of parts that are looked up again


class MemoryPart(NamedTuple):
    """One amount that leads to the readings. Negative parts are taken away."""

    name: str
    gib: float
    error_gib: float
    how: How
    source: str


class MemoryBudget(NamedTuple):
    """GiB free before the weights load and after target and draft have: the minimum over all ranks, as the engine
    takes it (distributed/bootstrap.py:193-223, mem_cache/kv_cache_configurator.py:2999-3005 at 0.5.23).

    `how` is "measured" only where both readings were given, "calibrated" where a boot of the same cards says what they
    do not show. `error_gib` is how far `available_gib` may be off.
    """

    pre_gib: float
    available_gib: float
    how: How
    error_gib: float
    total_gib: float | None  # the card's own total; None where no card was named
    weights_gib: float | None  # target, of the rank that decides; None where unknown
    draft_weights_gib: float | None
    returned_gib: float  # the draft's own embedding and head: free again once the pools exist
    parts: tuple[MemoryPart, ...]
    upper_bound: bool = False  # something that takes memory is not known at all: what follows is the most there can be
    uncounted: str = ""  # what that is
    checkpoint: str | None = None  # the format of the weights, where the estimate is of one
    graphs_off_gib: float = 0.0  # CUDA graphs of a calibrating boot, less their estimate

    @property
    def calibrated(self) -> tuple[str, ...]:
        """What another boot says, in words."""
        found = [part for part in self.parts if part.how == CALIBRATED]
        names = [part.name for part in found] + ["CUDA graphs"] * bool(self.graphs_off_gib)
        return (f"calibrated by {found[0].source}: {', '.join(names)}; the rest is estimated",) if found else ()

    @property
    def certainty(self) -> Certainty:
        """Of what follows from it: "derived", "estimated" or "upper bound"."""
        return "upper bound" if self.upper_bound else self.reading

    @property
    def reading(self) -> Certainty:
        """Of the memory itself: "derived" or "estimated"."""
        return "derived" if self.how == "measured" else "estimated"

    @property
    def estimated(self) -> bool:
        """The memory is not measured: digits below its error mean nothing."""
        return self.how != "measured"

    @property
    def total_bytes(self) -> int:
        """The card's own memory, or what was free before the load where no card is named."""
        return int((self.pre_gib if self.total_gib is None else self.total_gib) * GIB)


# Between "Load weight end" and the sizing, and the allocator's holes among the weights.
AFTER_GIVEN_WEIGHTS = MemoryPart(
    "left by loading", -0.1, 0.1, "estimated",
    "0.12 GiB on a B200 TP4 server: what its pools imply against the weights it printed",
)  # fmt: skip
AFTER_ESTIMATED_WEIGHTS = MemoryPart(
    "left by loading", -0.3, 0.3, "estimated",
    "allocator holes and loading: 0.2 GiB (NVFP4) and 0.3 GiB (FP8) over the tensors on B200 TP4 servers",
)  # fmt: skip
UNMEASURED_WEIGHTS_ERROR = 0.02  # share of the weights: twice the largest miss known, where nobody measured


def memory_budget(
    placement: Placement,
    *,
    gpu: Gpu | None = None,
    pre_gib: float | None = None,
    available_gib: float | None = None,
    weights_gib: float | None = None,
    draft_weights_gib: float | None = None,
    weights: WeightEstimate | None = None,
    after: MemoryPart | None = None,
    calibration: Calibration | None = None,
) -> MemoryBudget:
    """The readings, from what is known: both given; or `pre_gib` or `gpu`, less given or estimated weights.

    `weights_gib` wins over the estimate's target and `draft_weights_gib` over its draft; both win over what
    `calibration` says, and that over an estimate. `after` is what is taken between the end of the load, which is what
    `available_gib` is printed of, and the sizing. Raises InputError where something is missing.
    """
    for flag, value in (
        ("--pre-gib", pre_gib),
        ("--available-gib", available_gib),
        ("--weights-gib", weights_gib),
        ("--draft-weights-gib", draft_weights_gib),
    ):
        if value is not None and not (isfinite(value) and value >= 0):
            raise InputError(f"{flag} {value}: must be a number of GiB, not negative")
    total = None if gpu is None else _total(gpu)
    before, first = _before_load(placement, gpu, pre_gib, calibration)
    how: How
    loaded = _loaded(placement, weights_gib, draft_weights_gib, weights, calibration)
    if available_gib is not None:
        if available_gib > before:
            raise InputError(f"--available-gib {available_gib} is above the {before:.2f} GiB free before the load")
        how = "measured" if pre_gib is not None else "estimated"
        error = 0.0 if pre_gib is not None else first[-1].error_gib
        last: tuple[MemoryPart, ...] = (
            MemoryPart("free after the load", available_gib, 0.0, "measured", "--available-gib"),
        )
        if after is not None:
            how, error, last = "estimated", (error**2 + after.error_gib**2) ** 0.5, (*last, after)
            available_gib = max(0.0, available_gib + after.gib)
        return _budget(before, available_gib, how, error, total, loaded, weights, (*first, *loaded, *last))
    if not loaded:
        raise InputError(
            "the memory after the load is unknown: give --available-gib, or --weights-gib, or --checkpoint "
            "for an estimate"
        )
    left = _left(loaded, calibration)
    rest = (left,) if after is None or left.how == CALIBRATED else (left, after)  # a boot's left holds both
    available = before + sum(part.gib for part in (*loaded, *rest))
    parts = (*first, *loaded, *rest)
    if available <= 0:
        raise NoRoomError(
            f"the weights ({-sum(part.gib for part in loaded):.1f} GiB a rank) do not fit in the "
            f"{before:.1f} GiB free before the load: raise --tp-size or --pp-size, or take a smaller checkpoint"
        )
    # Independent amounts: the errors add in squares, except that nothing is surer than its surest part.
    error = sum(part.error_gib**2 for part in parts) ** 0.5
    how = CALIBRATED if first[-1].how == CALIBRATED else "estimated"
    found = _budget(before, available, how, error, total, loaded, weights, parts)
    if calibration is None or calibration.graphs_off_gib is None:
        return found
    return found._replace(graphs_off_gib=calibration.graphs_off_gib)


def check_free(gpu: Gpu | None, pre_gib: float) -> None:
    """Raise InputError where more is said to be free than the card has."""
    if gpu is not None and pre_gib > _total(gpu):
        raise InputError(f"--pre-gib {pre_gib} is more than a {gpu.name} has ({_total(gpu):.2f} GiB)")


def show_gib(gib: float, how: How) -> str:
    """A reading with the digits it deserves: two decimals as the engine prints where measured, one where not."""
    return f"{gib:.2f}" if how in ("measured", "given") else f"~{gib:.1f}"


def _total(gpu: Gpu) -> float:
    return gpu.memory_mib / 1024


def _left(loaded: tuple[MemoryPart, ...], calibration: Calibration | None) -> MemoryPart:
    """What loading leaves beside the weights."""
    if any(part.how == "estimated" for part in loaded):
        return AFTER_ESTIMATED_WEIGHTS
    if calibration is None or not all(part.how == CALIBRATED for part in loaded):
        return AFTER_GIVEN_WEIGHTS
    error = AFTER_GIVEN_WEIGHTS.error_gib / 2  # two servers' figures lie 0.04 GiB apart; these are of one
    return MemoryPart(AFTER_GIVEN_WEIGHTS.name, -calibration.left_gib, error, CALIBRATED, calibration.source)


def _before_load(
    placement: Placement, gpu: Gpu | None, pre: float | None, calibration: Calibration | None
) -> tuple[float, tuple[MemoryPart, ...]]:
    if pre is not None:
        if pre == 0:
            raise InputError("--pre-gib 0: no memory to size")
        check_free(gpu, pre)
        return pre, (MemoryPart("free before the load", pre, 0.0, "measured", "--pre-gib"),)
    if gpu is None:
        raise InputError("the memory before the load is unknown: give --pre-gib or --gpu")
    total = _total(gpu)
    card = MemoryPart(f"{gpu.name} memory", total, 0.0, "given", gpu.source)
    taken = taken_before_load(gpu, placement.gpus)
    name = (
        "operating system and context" if gpu.integrated
        else "driver and context" if placement.gpus == 1
        else "driver, context and communication"
    )  # fmt: skip
    overhead = MemoryPart(name, -taken.gib, taken.error_gib, "estimated", taken.evidence)
    if calibration is not None:
        calibration.require(gpu)
        if calibration.of_context(placement):
            overhead = MemoryPart(name, -calibration.taken_gib, BOOT_TO_BOOT_GIB, CALIBRATED, calibration.source)
    if total + overhead.gib <= 0:
        raise InputError(
            f"{gpu.name} with {gpu.memory_mib} MiB is no larger than what {overhead.name} take (~{-overhead.gib:.1f} "
            "GiB); give its memory in MiB, or --pre-gib"
        )
    return total + overhead.gib, (card, overhead)


def _loaded(
    placement: Placement,
    target: float | None,
    draft: float | None,
    weights: WeightEstimate | None,
    calibration: Calibration | None,
) -> tuple[MemoryPart, ...]:
    """Target and draft weights of the rank with the most of them, as parts to take away."""
    parts = []
    boot = None
    stage = 0 if weights is None else weights.heaviest_stage
    if calibration is not None and weights is not None:
        estimated = weights.target[stage] / GIB
        boot = calibration if calibration.of_weights(placement, weights.checkpoint, estimated) else None
    if target is not None:
        parts.append(MemoryPart(TARGET, -target, 0.0, "given", "--weights-gib"))
    elif boot is not None:
        parts.append(MemoryPart(TARGET, -boot.weights_gib, 0.0, CALIBRATED, boot.source))
    elif weights is not None:
        parts.append(_estimated_part(TARGET, weights.target[stage], weights))
    else:
        return ()
    if draft is not None:
        parts.append(MemoryPart(DRAFT, -draft, 0.0, "given", "--draft-weights-gib"))
    elif boot is not None and placement.draft and boot.of_draft(placement):
        parts.append(MemoryPart(DRAFT, -(boot.draft_weights_gib or 0.0), 0.0, CALIBRATED, boot.source))
    elif weights is not None and placement.draft:
        part = _estimated_part(DRAFT, weights.draft[stage], weights)
        if target is None and boot is None and weights.error_gib is not None:
            part = part._replace(error_gib=0.0)  # a measured error is that of target and draft together
        if placement.own_draft_error:
            part = part._replace(error_gib=placement.own_draft_error / GIB)
        parts.append(part)
    elif placement.draft:
        raise InputError("--draft-weights-gib is missing: the draft's weights load before the pools are sized")
    return tuple(parts)


def _estimated_part(name: str, nbytes: int, weights: WeightEstimate) -> MemoryPart:
    error = weights.error_gib
    if error is None:
        error = nbytes / GIB * UNMEASURED_WEIGHTS_ERROR
    return MemoryPart(name, -nbytes / GIB, error, "estimated", weights.evidence)


def _budget(
    before: float,
    available: float,
    how: How,
    error: float,
    total: float | None,
    loaded: tuple[MemoryPart, ...],
    weights: WeightEstimate | None,
    parts: tuple[MemoryPart, ...],
) -> MemoryBudget:
    amounts = {part.name: -part.gib for part in loaded}
    draft = amounts.get(DRAFT)
    returned = 0.0 if weights is None or not draft else weights.returned[weights.heaviest_stage] / GIB
    of_format = any(part.name == TARGET and part.how != "given" for part in loaded)
    return MemoryBudget(
        pre_gib=before,
        available_gib=available,
        how=how,
        error_gib=error,
        total_gib=total,
        weights_gib=amounts.get(TARGET),
        draft_weights_gib=draft,
        returned_gib=min(returned, draft or 0.0),
        parts=parts,
        checkpoint=weights.checkpoint if weights is not None and of_format else None,
    )
