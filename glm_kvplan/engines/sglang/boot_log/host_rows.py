"""HiCache's host pools at the printed device sizes, beside the printed ones. Host sizes are decimal GB."""

from collections.abc import Iterator
from typing import TypeVar

from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank, Readings
from glm_kvplan.engines.sglang.boot_log.lines import MessageName
from glm_kvplan.engines.sglang.boot_log.log_rows import Row, bytes_row, count_row, decimals, half_step, word_row
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of, ranks
from glm_kvplan.engines.sglang.sizing.host_sizes import DEFAULT_RATIO, HostPlan, sized_automatically, stage_plans
from glm_kvplan.errors import KvplanError
from glm_kvplan.units import GB

_BY_RATIO = "by the printed ratio"
_LINES: tuple[MessageName, ...] = ("host_kv", "host_state", "host_index")

Number = TypeVar("Number", int, float)


def host_rows(plan: Plan, boot: Boot, sizes: PoolSizes | None) -> Iterator[Row]:
    """The host pools of one rank of each pipeline stage.

    An automatic ratio depends on free host memory that the log prints with one decimal at best: it is taken as
    printed, with three decimals, and what follows from it must lie between its two ends.
    """
    if not any(boot.has(name) for name in _LINES):
        return
    if not plan.deployment.enable_hierarchical_cache:
        yield word_row("HiCache", "", "off", "on", "flags")
        return
    if sizes is None:
        return
    try:
        ends = [_plans(plan, sizes, ratio) for ratio in _ratios(plan, boot, sizes)]
    except KvplanError as error:
        yield word_row("HiCache", "", str(error), "allocated", "flags")
        return
    for number in range(plan.deployment.pp_size):
        found = next(_with_pools(boot, number), None)
        if found is not None:
            rank, readings = found
            label = str(rank) if plan.deployment.pp_size > 1 else ""
            yield from _stage_rows(readings, ends[0][number], ends[-1][number], label)


def _with_pools(boot: Boot, stage: int) -> Iterator[tuple[LogRank, Readings]]:
    for rank, readings in sorted(boot.ranks.items()):
        if rank.pp == stage and any(name in readings for name in _LINES):
            yield rank, readings


def _ratios(plan: Plan, boot: Boot, sizes: PoolSizes) -> tuple[float | None, ...]:
    """The two ends of the automatic ratio; (None,) where flags give a ratio or a size."""
    if not sized_automatically(plan.deployment, plan.profile):
        return (None,)
    line = boot.first("host_ratio")
    if line is not None:
        ratio, step = float(line["ratio"]), half_step(line["ratio"])
        return max(ratio - step, 0.0), min(ratio + step, DEFAULT_RATIO)
    pool = boot.first("host_kv")
    if pool is None or not sizes.tokens:
        return (DEFAULT_RATIO,)
    tokens = int(pool["tokens"])
    return (tokens - plan.deployment.page_size) / sizes.tokens, min(tokens / sizes.tokens, DEFAULT_RATIO)


def _plans(plan: Plan, sizes: PoolSizes, ratio: float | None) -> tuple[HostPlan, ...]:
    deployment = plan.deployment if ratio is None else plan.deployment.with_values(hicache_ratio=ratio)
    return stage_plans(ranks(rank_of(plan)._replace(deployment=deployment)), sizes)


def _stage_rows(readings: Readings, low: HostPlan, high: HostPlan, label: str) -> Iterator[Row]:
    lines = {line["label"] == "draft": line for line in reversed(readings.get("host_kv", []))}
    kv_line, draft_line = lines.get(False), lines.get(True)
    pools = low.pool("kv"), high.pool("kv")
    if kv_line is not None and pools[0] is not None and pools[1] is not None:
        pool = pools[0]
        yield _between("host KV tokens", label, pool.units, pools[1].units, kv_line["tokens"])
        yield bytes_row(
            "host KV size", label, int(kv_line["tokens"]) * pool.row_bytes * pool.layers, kv_line["gb"], decimal=True
        )
        if "target_layers" in kv_line:
            layers = int(kv_line["target_layers"]) + int(kv_line["draft_layers"])
            yield count_row("host KV layers", label, pool.layers, str(layers), "flags")
    state_line = next(iter(readings.get("host_state", ())), None)
    states = low.pool("mamba"), high.pool("mamba")
    if state_line is not None and states[0] is not None and states[1] is not None:
        if "slots" in state_line:
            yield _between("host state slots", label, states[0].units, states[1].units, state_line["slots"])
            nbytes = int(state_line["slots"]) * states[0].bytes_per_unit
            yield bytes_row("host state size", label, nbytes, state_line["gb"], decimal=True)
        else:
            ends = states[0].requested_bytes, states[1].requested_bytes
            yield _bytes_between("host state size", label, *ends, state_line["gb"])
    drafts = low.pool("draft"), high.pool("draft")
    if draft_line is not None and drafts[0] is not None and drafts[1] is not None:
        yield _between("host draft tokens", label, drafts[0].units, drafts[1].units, draft_line["tokens"])
        nbytes = int(draft_line["tokens"]) * drafts[0].bytes_per_unit
        yield bytes_row("host draft size", label, nbytes, draft_line["gb"], decimal=True)
    index_line = next(iter(readings.get("host_index", ())), None)
    if index_line is not None:
        index = low.pool("indexer")
        if index is None:
            yield word_row("host index pool", label, "none", f"{index_line['gb']} GB", "flags")
        elif kv_line is not None:
            nbytes = int(kv_line["tokens"]) * index.row_bytes * index.layers
            yield bytes_row("host index size", label, nbytes, index_line["gb"], decimal=True)


def _between(name: str, label: str, low: int, high: int, printed: str) -> Row:
    """A count between the two ends of the automatic ratio."""
    if low == high:
        return count_row(name, label, low, printed, "printed sizes")
    off = _outside(int(printed), low, high)
    return Row(name, label, f"{low}..{high}", printed, off, not off, "printed sizes", _BY_RATIO)


def _bytes_between(name: str, label: str, low: int, high: int, printed: str) -> Row:
    """Bytes between the two ends, both rounded as the printed ones are."""
    if low == high:
        return bytes_row(name, label, low, printed, decimal=True)
    ends = [f"{nbytes / GB:.{decimals(printed)}f}" for nbytes in (low, high)]
    off = _outside(float(printed), float(ends[0]), float(ends[1]))
    return Row(name, label, "..".join(ends), printed, off, not off, "printed sizes", _BY_RATIO)


def _outside(value: Number, low: Number, high: Number) -> Number:
    """How far a value lies above `high`, or (negative) below `low`; 0 between them."""
    return value - min(max(value, low), high)
