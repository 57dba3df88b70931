"""A boot log of vLLM beside the plan: each number it prints, what is planned, and whether one explains the other."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from glm_kvplan.engines.vllm.boot_lines import Boot, Printed
from glm_kvplan.engines.vllm.components import kda_state
from glm_kvplan.engines.vllm.memory_before import ACTIVATION, GRAPHS, ONE_GPU, SEVERAL_GPUS
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.profile import releases
from glm_kvplan.engines.vllm.start import Start, start
from glm_kvplan.engines.vllm.starting import memory_of
from glm_kvplan.engines.vllm.weight_placement import placement
from glm_kvplan.errors import InputError
from glm_kvplan.memory.budget import UNMEASURED_WEIGHTS_ERROR, MemoryPart
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.weights import estimate_weights
from glm_kvplan.units import GIB

BLOCKS = "blocks of the memory"
_TELLING = ("cache tokens", "concurrency", "block size", "state padding %", "context", "longest that fits")


RowVerdict = Literal["same", "within", "differs", "not planned"]
PrintedUnit = Literal["GiB", "tokens", "blocks", "%", "x"]


class LogRow(NamedTuple):
    """One printed number. `verdict`: within is in the estimate's interval."""

    title: str
    printed: float
    planned: float | None
    error: float  # what `planned` may be off by
    unit: PrintedUnit
    verdict: RowVerdict
    explanation: str
    line: int


class Reconciliation(NamedTuple):
    """`explained`: the blocks, cache size and concurrency follow from the printed memory to the last digit."""

    boot: Boot
    rows: tuple[LogRow, ...]
    start: Start | None  # the one that prints what the log prints
    refusal: str | None  # what the plan says of a start that failed
    explained: bool
    warnings: tuple[str, ...]


def release_of(boot: Boot) -> tuple[str, str | None]:
    """(the release to plan with, a note where the log's own is another). Raises InputError for one before 0.30."""
    if boot.release is None:
        return releases()[-1], f"the log names no release: {releases()[-1]} is assumed"
    if boot.release in releases():
        return boot.release, None
    earlier = [known for known in releases() if _number(known) <= _number(boot.release)]
    if not earlier:
        raise InputError(f"vLLM {boot.release[:40]} does not know this model; the first that does is {releases()[0]}")
    return earlier[-1], f"the log is of vLLM {boot.release[:40]}: planned as {earlier[-1]}"


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


def reconcile(boot: Boot, plan: Plan, given: MemoryGiven) -> Reconciliation:
    """Hold a log against the plan of the same launch."""
    found = _matching_start(boot, plan)
    rows = tuple(_rows(boot, plan, given, found))
    failure = _failure(boot, plan)
    explained = all(row.verdict == "same" for row in rows if row.title in _TELLING)
    explained = explained and all(row.verdict != "differs" for row in rows if row.title == BLOCKS)
    explained = explained and (found is not None or failure is not None)
    warnings = list(boot.warnings)
    if boot.refusal is not None and failure is None:
        warnings.append("the log ends in a refusal that the plan does not share")
    return Reconciliation(boot, rows, found, failure, explained, tuple(warnings))


def _matching_start(boot: Boot, plan: Plan) -> Start | None:
    """The start that prints the log's cache size: its number of blocks is found, within the printed memory."""
    tokens, context = boot.printed.get("cache tokens"), boot.printed.get("context")
    if tokens is None or context is None or not context.value:
        return None
    blocks = plan.blocks
    needed = blocks.needed(int(context.value))
    guess = int(tokens.value * needed / context.value)
    for count in (guess, guess + 1):  # the size is cut to whole tokens
        begun = start(blocks, count * blocks.nbytes)
        if begun.max_model_len == int(context.value) and begun.printed_tokens == int(tokens.value):
            return begun
    return None


def _rows(boot: Boot, plan: Plan, given: MemoryGiven, found: Start | None) -> Iterator[LogRow]:
    printed, deployment = boot.printed, plan.deployment
    sizes: tuple[tuple[str, float | None, PrintedUnit], ...] = (
        ("block size", deployment.block_size, "tokens"),
        ("context", deployment.max_model_len if not deployment.fits_max_model_len else None, "tokens"),
        ("state padding %", _padding(plan), "%"),
    )
    for name, value, unit in sizes:
        if name in printed:
            yield _exact(printed[name], value, unit, _why(plan, name))
    yield from _memory_rows(boot, plan, given)
    if "cache tokens" in printed:  # and the concurrency, on the same line
        tokens = None if found is None else float(found.printed_tokens)
        why = "no number of blocks of this plan prints it" if found is None else _blocks_said(plan, found)
        yield _exact(printed["cache tokens"], tokens, "tokens", why)
        if found is not None:
            yield from _blocks_of_the_memory(plan, printed, found)
        yield _exact(
            printed["concurrency"],
            None if found is None else found.concurrency,
            "x",
            "blocks over blocks a request needs",
        )
    if "longest that fits" in printed and "left for blocks" in printed:
        # the printed memory is what is left beside the block that is never given out
        low, high = (
            plan.blocks.longest_context(int(end * GIB) // plan.blocks.nbytes + 1)
            for end in printed["left for blocks"].ends
        )
        longest = printed["longest that fits"]
        fits = low <= longest.value <= high
        middle = float(longest.value if fits else high)
        yield LogRow("longest that fits", longest.value, middle, 0.0, "tokens", "same" if fits else "differs",
                     "blocks beside the fixed ones, in tokens", longest.line)  # fmt: skip
    if "blocks" in printed and "available" in printed:
        low, high = (plan.blocks.count(int(end * GIB)) for end in printed["available"].ends)
        count = printed["blocks"]
        fits = low <= count.value <= high
        yield LogRow("blocks", count.value, float(count.value if fits else high), 0.0, "blocks",
                     "same" if fits else "differs", "the printed memory over a block's bytes", count.line)  # fmt: skip


def _exact(printed: Printed, planned: float | None, unit: PrintedUnit, why: str) -> LogRow:
    verdict: RowVerdict = "not planned" if planned is None else "same" if printed.agrees(planned) else "differs"
    return LogRow(printed.name, printed.value, planned, 0.0, unit, verdict, why, printed.line)


def _memory_rows(boot: Boot, plan: Plan, given: MemoryGiven) -> Iterator[LogRow]:
    """What is taken before the blocks: weights, graphs, and what is left; held against the estimate's interval."""
    printed = boot.printed
    try:
        weights = estimate_weights(plan.geometry, placement(plan.rank), given.checkpoint or plan.weight_format.format)
    except InputError:
        return
    if "weights" in printed:
        loaded = (weights.target[0] + weights.draft[0] - weights.returned[0]) / GIB
        error = weights.error_gib if weights.error_gib is not None else UNMEASURED_WEIGHTS_ERROR * loaded
        yield _estimate(printed["weights"], loaded, error, "the checkpoint's tensors on one GPU")
    for name in ("graphs estimated", "graphs"):
        if name in printed and plan.gpu.capability[0] in GRAPHS:
            part = GRAPHS[plan.gpu.capability[0]]
            yield _estimate(printed[name], -part.gib, part.error_gib, part.source)
            break
    if "available" in printed and plan.deployment.kv_cache_memory_bytes is None:
        found, _ = memory_of(plan, MemoryGiven(checkpoint=given.checkpoint), booted=True)
        error = (found.high_bytes - found.low_bytes) / 2 / GIB
        yield from _profiled(printed, found.parts)
        yield _estimate(printed["available"], found.nbytes / GIB, error, "the share of the card less all of that")


def _profiled(printed: Mapping[str, Printed], parts: tuple[MemoryPart, ...]) -> Iterator[LogRow]:
    """What the profiling run found; its peak has the estimate of the CUDA graphs in it."""
    for name, names in (
        ("weights and context", ("target weights", "draft weights", SEVERAL_GPUS.name, ONE_GPU.name)),
        ("activations", ("indexer workspace", ACTIVATION.name, GRAPHS[9].name)),
    ):
        if name in printed:
            taken = [part for part in parts if part.name in names]
            error = sum(part.error_gib**2 for part in taken) ** 0.5
            said = ", ".join(part.name for part in taken)
            yield _estimate(printed[name], -sum(part.gib for part in taken), error, said)


def _estimate(printed: Printed, planned: float, error: float, why: str) -> LogRow:
    verdict: RowVerdict = "within" if abs(printed.value - planned) <= error + printed.step / 2 else "differs"
    return LogRow(printed.name, printed.value, planned, error, "GiB", verdict, why, printed.line)


def _padding(plan: Plan) -> float:
    """What the log prints: the state's page over the state, as the platform pads it."""
    state = kda_state.layer_bytes(plan.rank)
    page = plan.deployment.block_size * plan.deployment.sized_row_bytes
    return 100 * (page - state) / state


def _why(plan: Plan, name: str) -> str:
    if name == "block size":
        return plan.deployment.choice("block_size").reason
    return "a layer's rows over its state" if name == "state padding %" else "--max-model-len"


def _blocks_said(plan: Plan, found: Start) -> str:
    return f"{found.count} blocks of {plan.blocks.nbytes:,} bytes, {plan.blocks.needed(found.max_model_len)} a request"


def _blocks_of_the_memory(plan: Plan, printed: Mapping[str, Printed], found: Start) -> Iterator[LogRow]:
    """The blocks that the cache size means, beside those that the memory gives."""
    deployment, memory = plan.deployment, printed.get("available")
    if deployment.num_gpu_blocks_override is None and deployment.kv_cache_memory_bytes is None and memory is None:
        return
    given = MemoryGiven(available_gib=None if memory is None else memory.value)
    known, _ = memory_of(plan, given, booted=True)
    low, high = plan.blocks.count(known.low_bytes), plan.blocks.count(known.high_bytes)
    inside = low <= found.count <= high
    # engines beside each other have each its own memory, and the log prints the least of all
    verdict: RowVerdict = "same" if inside else "differs" if deployment.data_parallel_size == 1 else "not planned"
    why = "the printed memory over a block's bytes" if known.how == "measured" else "as the flags fix them"
    if not inside:
        why = f"{why}: {low} to {high}" if low != high else f"{why}: {low}"
    count = float(found.count if inside else high)
    yield LogRow(BLOCKS, float(found.count), count, 0.0, "blocks", verdict, why, printed["cache tokens"].line)


def _failure(boot: Boot, plan: Plan) -> str | None:
    """What the plan says of the start that the log's memory makes, where it fails."""
    memory = boot.printed.get("left for blocks") or boot.printed.get("available")
    if boot.refusal is None or memory is None:
        return None
    beside = plan.blocks.nbytes if "left for blocks" in boot.printed else 0
    failed = start(plan.blocks, int(memory.value * GIB) + beside).failure
    return None if failed is None else failed.reason
