"""One boot's memory as it calibrates the next plan: from its log, or from a file with what was measured of it."""

from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.transients import graph_bytes
from glm_kvplan.engines.sglang.weight_placement import placement
from glm_kvplan.engines.weight_format import weight_format
from glm_kvplan.errors import InputError
from glm_kvplan.memory.calibration import Calibration
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB


def of_boot(answer: Reconciliation, source: str) -> Calibration:
    """What the boot of a log printed. Raises InputError where it did not print its memory, or its card is unknown."""
    if answer.gpu_unknown:
        raise InputError(
            f"{source}: the log does not tell the card: `kvplan reconcile {source} --gpu NAME --save FILE`, then "
            "--calibrate FILE"
        )
    memory = answer.sizing.memory
    if memory is None:
        raise InputError(f"{source}: the log prints no memory before and after the load: nothing to calibrate by")
    exact = exact_reading(answer)
    available = memory.available_gib if exact is None else exact
    path = answer.boot.arguments.get("model_path")
    stored = weight_format(answer.boot.arguments, None, path if isinstance(path, str) else None)
    given = MemoryGiven(memory.pre_gib, available, memory.target_weights_gib, memory.draft_weights_gib, stored.format)
    return of_memory(answer.plan, given, source, _graphs_off(answer))


def exact_reading(answer: Reconciliation) -> float | None:
    """GiB that the engine read when it sized its pools, by the sizes it printed; None where the log's last reading
    gives them too, or nothing does.
    """
    memory, band = answer.sizing.memory, answer.sizing.band
    if memory is None or band is None or not answer.explained or not band.distance(memory.available_gib):
        return None
    return band.middle_gib


def of_memory(plan: Plan, given: MemoryGiven, source: str, graphs_off_gib: float | None = None) -> Calibration:
    """The same of memory that was measured, as read; CUDA graphs are held against the estimate of the server that
    comes of it. Raises InputError where a part of it is missing.
    """
    target, draft = given.weights_gib, given.draft_weights_gib
    if given.pre_gib is None or given.available_gib is None or target is None:
        raise InputError(
            f"{source}: to calibrate by it takes memory.pre_gib, available_gib and target_weights_gib: see "
            "`kvplan reconcile --save`"
        )
    if graphs_off_gib is None and given.graphs_gib is not None:
        server = Server(plan, given)
        if server.starts:
            graphs_off_gib = given.graphs_gib - graph_bytes(plan.deployment, server.sizes.running_requests) / GIB
    return Calibration(
        source=source,
        gpu=plan.gpu,
        placement=placement(plan.geometry, plan.deployment, plan.gpu),
        checkpoint=given.checkpoint or plan.weight_format.format,
        pre_gib=given.pre_gib,
        weights_gib=target,
        draft_weights_gib=draft,
        left_gib=given.pre_gib - target - (draft or 0.0) - given.available_gib,
        graphs_off_gib=graphs_off_gib,
    )


def _graphs_off(answer: Reconciliation) -> float | None:
    """GiB that went between the pools and the ready server, less what is estimated for CUDA graphs."""
    taken, sizes = taken_after_pools(answer.boot), answer.sizing.sizes
    if taken is None or sizes is None:
        return None
    return taken - graph_bytes(answer.plan.deployment, sizes.running_requests) / GIB


def taken_after_pools(boot: Boot) -> float | None:
    """GiB of the rank that said it is ready."""
    for rank, ready in boot.every("ready"):
        pools = boot.ranks[rank].get("pools_end")
        if pools and "available" in ready:
            return max(float(pools[-1]["available"]) - float(ready["available"]), 0.0)
    return None
