"""The bytes of every pool at the printed sizes, beside the printed ones: no memory reading comes into it."""

from collections import Counter
from collections.abc import Iterable, Iterator

from glm_kvplan.allocate.allocator_rounding import cuda_bounds
from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank, Reading, Readings
from glm_kvplan.engines.sglang.boot_log.lines import MessageName
from glm_kvplan.engines.sglang.boot_log.log_rows import Row, bytes_row, count_row, half_step, telling_digits, word_row
from glm_kvplan.engines.sglang.boot_log.sizing_rows import Sizing
from glm_kvplan.engines.sglang.components import pool_units, tensor_specs
from glm_kvplan.engines.sglang.components.component import DRAFT
from glm_kvplan.engines.sglang.components.latent_kv import PRINTED_DTYPES
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of, ranks
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.tensor import TensorSpec
from glm_kvplan.units import GIB

_SIZES = {"gib": "size", "k_gib": "K size", "v_gib": "V size"}  # of a token pool
# What a boot log calls the type of a draft model's cache.
_STORED_DTYPES = {
    "uint8": ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    "bfloat16": ("bfloat16",),
    "float16": ("float16",),
}


def flag_rows(plan: Plan, boot: Boot) -> Iterator[Row]:
    """Numbers that follow from the flags alone."""
    deployment = plan.deployment
    page_size = boot.arguments.get("page_size")
    if type(page_size) is int:
        yield count_row("page_size", "", deployment.page_size, str(page_size), "flags")
    reserve = boot.first("reserve")
    if reserve is not None:
        shown = f"{deployment.mm_reserve_mib / 1024 if deployment.multimodal else 0.0:.2f}"
        off = float(reserve["gib"]) - float(shown)
        yield Row("multimodal reserve", "", shown, reserve["gib"], off, not off, "flags")
    ready = boot.first("ready")
    if ready is not None:
        for name, field, predicted in (
            ("chunked_prefill_size", "chunk", deployment.chunked_prefill_size),
            ("max_prefill_tokens", "prefill", deployment.max_prefill_tokens),
            ("context_len", "context", deployment.context_length),
        ):
            if field in ready:
                yield count_row(name, "", predicted, ready[field], "flags")


def pool_rows(plan: Plan, boot: Boot, answer: Sizing) -> Iterator[Row]:
    """Every pool of one rank of each pipeline stage, and the ranks that printed something else.

    Where a size is known to nobody, the rows that do not depend on it.
    """
    if answer.sizes is not None:
        yield from _pool_rows(plan, boot, answer, answer.sizes)
        return
    first, *others = (tuple(_pool_rows(plan, boot, answer, sizes)) for sizes in answer.stand_ins)
    yield from (row for row in first if all(row in other for other in others))


def _pool_rows(plan: Plan, boot: Boot, answer: Sizing, sizes: PoolSizes) -> Iterator[Row]:
    yield from _warning_rows(plan, boot, sizes)
    for number, of_stage in enumerate(ranks(plan)):
        logged = {rank: found for rank, found in boot.ranks.items() if rank.pp == number}
        rank = _fullest(logged)
        if rank is None:
            continue
        specs = tensor_specs(of_stage, sizes)
        label = str(rank) if plan.deployment.pp_size > 1 else ""
        yield from _rank_rows(plan, logged[rank], specs, sizes, label)
        yield from _memory_rows(logged[rank], specs, answer, str(rank) if len(boot.ranks) > 1 else "")
        yield from _disagreements(logged, rank)


def _fullest(ranks: dict[LogRank, Readings]) -> LogRank | None:
    """The rank that printed most pools; the lowest of them."""
    names: tuple[MessageName, ...] = ("state_pool", "token_pool", "replay_rings", "pools_end")
    best = max(sorted(ranks), key=lambda rank: sum(len(ranks[rank].get(name, ())) for name in names), default=None)
    return best if best is not None and any(name in ranks[best] for name in names) else None


def _printed(specs: Iterable[TensorSpec], message: MessageName) -> Counter[str]:
    """The numbers of a message that pools print, and the bytes of the tensors that each counts."""
    held = Counter({spec.name: spec.nbytes for spec in specs})
    found: Counter[str] = Counter()
    for component in components.COMPONENTS:
        for each in component.printed:
            if each.message == message:
                found[each.number] += held[each.tensor]
    return found


def _rank_rows(
    plan: Plan,
    readings: Readings,
    specs: tuple[TensorSpec, ...],
    sizes: PoolSizes,
    label: str,
) -> Iterator[Row]:
    for state in readings.get("state_pool", ())[:1]:
        slots = pool_units.effective_state_slots(plan.deployment, sizes)
        yield count_row("state pool slots", label, slots, state["slots"], "printed sizes")
        for field, nbytes in _printed(specs, "state_pool").items():
            if field in state:
                yield bytes_row(f"state pool {field}", label, nbytes, state[field])
            elif nbytes:
                yield word_row(f"state pool {field}", label, "printed", "absent", "flags")
    for ring in readings.get("replay_rings", ())[:1]:
        rings = _printed(specs, "replay_rings")
        for field, printed in ring.items():
            yield bytes_row(f"replay ring {field}", label, rings[field], printed)
    for drafts, pool in enumerate(readings.get("token_pool", ())[:2]):
        name = "draft token pool" if drafts else "token pool"
        unknown = drafts and plan.deployment.unknown_draft
        if "dtype" in pool and not unknown:
            allowed = PRINTED_DTYPES[plan.deployment.kv_layout]
            if drafts:
                allowed = _STORED_DTYPES.get(str(plan.deployment.draft_kv_dtype), allowed)
            dtype = pool["dtype"] if pool["dtype"] in allowed else allowed[0]
            yield word_row(f"{name} dtype", label, dtype, pool["dtype"], "flags")
        yield count_row(f"{name} tokens", label, sizes.tokens, pool["tokens"], "printed sizes")
        printed_bytes = _printed(_of_worker(specs, bool(drafts)), "token_pool")
        for field, words in _SIZES.items():
            if field not in pool:
                continue
            if not unknown:
                yield bytes_row(f"{name} {words}", label, printed_bytes[field], pool[field])
            else:
                yield Row(f"{name} {words}", label, "?", pool[field], None, None, "", "of a draft model not known here")


def _of_worker(specs: Iterable[TensorSpec], drafts: bool) -> tuple[TensorSpec, ...]:
    """The tensors of the draft worker, or of the target's."""
    return tuple(spec for spec in specs if (spec.pool == DRAFT) is drafts)


def _memory_rows(readings: Readings, specs: tuple[TensorSpec, ...], answer: Sizing, label: str) -> Iterator[Row]:
    """What is free on one rank once the pools exist, between two ends.

    The most: its last reading less the pools' tensors. The least: less, besides, what was taken before the sizing and
    what torch's allocator may round the tensors up by. Ranks differ, and the engine sizes by the least of them.
    """
    loaded = readings.get("load_end", ())
    if answer.taken_gib is None or not loaded:
        return
    last = loaded[-1]["available"]
    done: tuple[TensorSpec, ...] = ()
    for drafts, pools in enumerate(readings.get("pools_end", ())[:2]):
        done += _of_worker(specs, bool(drafts))
        nbytes = sum(spec.nbytes for spec in done if spec.place == "device")
        printed = pools["available"]
        rounding = half_step(printed) + half_step(last)
        most = float(last) - nbytes / GIB + rounding
        spread = (cuda_bounds(done).most_reserved - nbytes) / GIB
        least = most - 2 * rounding - max(answer.taken_gib, 0.0) - spread
        value = float(printed)
        outside = value - min(max(value, least), most)
        digits = telling_digits(printed, outside)
        shown = f"{least:.{digits}f}..{most:.{digits}f}"
        name = "free after draft pools" if drafts else "free after pools"
        yield Row(name, label, shown, printed, outside, not outside, "memory", "to the allocator's rounding")
    for ready in readings.get("ready", ())[:1]:
        if "available" in ready:
            yield Row("available_gpu_mem", label, "", ready["available"], None, None, "", "after CUDA graphs")


def _warning_rows(plan: Plan, boot: Boot, sizes: PoolSizes) -> Iterator[Row]:
    ratio = plan.deployment.slots_per_request
    capped = boot.first("capped")
    if capped is not None:
        slots = int(capped["slots"])
        yield count_row("capped: slots per request", "", ratio, capped["ratio"], "flags")
        yield count_row("capped: max_running_requests", "", slots // ratio, capped["requests"], "printed sizes")
    reduced = boot.first("reduced")
    if reduced is not None:
        wanted = costs(rank_of(plan)).requests
        yield count_row("reduced: requested", "", wanted or 0, reduced["wanted"], "flags")
        yield count_row("reduced: granted", "", sizes.running_requests, reduced["requests"], "printed sizes")
    raised = boot.first("decode_slots")
    if raised is not None:
        requests = sizes.running_requests + pool_units.prealloc_requests(plan.deployment)
        yield count_row("decode slots: requests", "", requests, raised["requests"], "printed sizes")
        each = 1 + pool_units.ping_pong_slots(plan.deployment)
        yield count_row("decode slots: slots per request", "", each, raised["ratio"], "flags")


_ALIKE: tuple[MessageName, ...] = ("state_pool", "replay_rings", "token_pool", "host_kv", "host_state", "host_index")


def _disagreements(ranks: dict[LogRank, Readings], leader: LogRank) -> Iterator[Row]:
    """Ranks of one stage whose pools differ from the leader's; the engine gives all of them the same."""
    for rank, readings in ranks.items():
        for name in _ALIKE:
            mine, leads = readings.get(name), ranks[leader].get(name)
            if mine and leads and mine[: len(leads)] != leads[: len(mine)]:
                what = f"{name.replace('_', ' ')} of {rank}"
                yield word_row(what, str(rank), _spelled(leads), _spelled(mine), "printed sizes")
                break


def _spelled(readings: list[Reading]) -> str:
    return "; ".join(" ".join(f"{key}={value}" for key, value in reading.items()) for reading in readings)
