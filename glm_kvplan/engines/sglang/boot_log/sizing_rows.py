"""What the log's memory lines and flags say the engine had to size, beside what it printed."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.engines.sglang.boot_log.boot import Boot, LoggedMemory, logged_memory
from glm_kvplan.engines.sglang.boot_log.fit import Band, fit
from glm_kvplan.engines.sglang.boot_log.log_rows import PrintedSizes, Row, count_row, half_step, printed_sizes, word_row
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.rank_costs import stage_costs
from glm_kvplan.engines.sglang.sizing.solver import Solution, size_stages, tightest
from glm_kvplan.engines.sglang.weight_placement import after_load
from glm_kvplan.memory.budget import AFTER_GIVEN_WEIGHTS

# What the engine may take between its last printed reading and the sizing: the planner's own estimate of it.
MOST_TAKEN_GIB = AFTER_GIVEN_WEIGHTS.error_gib - AFTER_GIVEN_WEIGHTS.gib
SIZES = ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests")


class Sizing(NamedTuple):
    """`sizes` are the printed ones, a predicted one where the log lacks it; None where neither is known.

    `stand_ins` are then two that agree in what is known and differ in what is not: what both foretell, is known.

    `pre_gib` is what was free before the load: as logged, or all of the card.

    `band` is the free memory that gives exactly the printed sizes, `taken_gib` how far it lies below the log's last
    reading of it (None without such a reading).
    """

    memory: LoggedMemory | None
    pre_gib: float
    solution: Solution | None  # at the memory the log prints
    band: Band | None
    taken_gib: float | None
    sizes: PoolSizes | None
    stand_ins: tuple[PoolSizes, ...]
    rows: tuple[Row, ...]


def sizing(plan: Plan, boot: Boot) -> Sizing:
    """Predict the three sizes from the logged memory, and find the memory that gives the printed ones exactly."""
    memory, printed = logged_memory(boot), printed_sizes(boot)
    pre = memory.pre_gib if memory is not None else round(plan.gpu.memory_mib / 1024, 2)
    after = after_load(plan.deployment)
    left = 0.0 if after is None else after.gib
    costs = stage_costs(ranks(plan))

    def attempt(available_gib: float) -> Solution:
        return tightest(size_stages(costs, pre, max(available_gib, 0.0)))

    solution = None if memory is None else attempt(memory.available_gib + left)
    band = taken = None
    if boot.failure is None:
        band = fit(attempt, pre, printed)
        if band is not None and memory is not None:
            taken = band.distance(memory.available_gib)
    known = _known(printed, solution, None if band is None else attempt(band.least_gib))
    sizes, stand_ins = _whole(known), _stand_ins(plan, known)
    rows = tuple(_rows(plan, boot, printed, memory, solution, band, taken))
    return Sizing(memory, pre, solution, band, taken, sizes, stand_ins, rows)


def _known(printed: PrintedSizes, *solutions: Solution | None) -> PrintedSizes:
    known: list[int | None] = list(printed)
    for solution in solutions:
        if solution is not None and solution.failure is None:
            known = [size if size is not None else other for size, other in zip(known, solution.sizes, strict=True)]
    return PrintedSizes(*known)


def _whole(known: PrintedSizes) -> PoolSizes | None:
    if known.tokens is None or known.state_slots is None or known.running_requests is None:
        return None
    return PoolSizes(known.tokens, known.state_slots, known.running_requests)


def _stand_ins(plan: Plan, known: PrintedSizes) -> tuple[PoolSizes, ...]:
    ends = plan.deployment.page_size, plan.deployment.context_length
    return tuple(PoolSizes(*(end if size is None else size for size in known)) for end in ends)


def _rows(
    plan: Plan,
    boot: Boot,
    printed: PrintedSizes,
    memory: LoggedMemory | None,
    solution: Solution | None,
    band: Band | None,
    taken: float | None,
) -> Iterator[Row]:
    if boot.failure is not None:
        if solution is not None:
            yield word_row("refusal", "", solution.failure or "starts", boot.failure, "memory")
        return
    if printed.tokens is None:
        return
    if memory is None or solution is None:
        note = "one budget gives all sizes" if band else "no budget gives these sizes together"
        for name, size in zip(SIZES, printed, strict=True):
            if size is not None:
                yield Row(
                    name, "", str(size) if band else "?", str(size), None, band is not None, "printed sizes", note
                )
        return
    explained = taken is not None and _within(plan, taken)
    note = f"exact with {taken:.2f} GiB less free" if explained else ""
    for name, size, predicted in zip(SIZES, printed, solution.sizes, strict=True):
        if size is None:
            continue
        row = count_row(name, "", predicted, str(size), "memory")
        good = row.explained if taken is None else explained or (row.explained and name != SIZES[0])
        yield row._replace(explained=good, note=note if row.difference else "")


def _within(plan: Plan, taken_gib: float) -> bool:
    """The memory that gives the printed sizes is the log's, to its rounding and to what is taken after it."""
    rounding = half_step("0.00") * (2 - plan.deployment.mem_fraction_static)
    after = after_load(plan.deployment)
    if after is not None:
        taken_gib, rounding = taken_gib + after.gib, rounding + after.error_gib
    return -rounding <= taken_gib <= MOST_TAKEN_GIB + rounding
