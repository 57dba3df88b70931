"""When the engine would not start: the smallest change of each knob with which it would, found by trying."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from glm_kvplan.bisection import largest, least
from glm_kvplan.engines.sglang.sizing.rank_costs import stage_costs
from glm_kvplan.engines.sglang.sizing.solver import size_together
from glm_kvplan.engines.sglang.sizing.what_if import Setup, draft_flags
from glm_kvplan.units import GIB

FRACTION_STEPS = 1000  # mem_fraction_static is searched in thousandths
RATIO_STEPS = 100  # mamba_full_memory_ratio in hundredths
LARGEST_RATIO = 10
MOST_DRAFTS = 256  # more are not tried: the engine takes as many with a prefix cache (mamba_track_interval)


class Remedy(NamedTuple):
    """One change that alone makes the engine start."""

    flag: str  # the engine's argument name, or "available_gib" for memory itself
    value: int | float | str | bool
    text: str  # the change as one would type or do it


def remedies(setup: Setup) -> list[Remedy]:
    """For a setup that does not start: of each knob the smallest change with which it does. Empty if none alone does.

    Every one has been solved; nothing is extrapolated. Knobs whose change needs defaults to be resolved anew are
    tried where the setup has a resolver.
    """
    if setup.solution().failure is None:
        return []
    return [remedy for knob in _KNOBS for remedy in knob(setup)]


def _starts_with(setup: Setup, cost: str) -> Callable[[float], bool]:
    """Whether the engine starts with one number of the costs changed: for searches of many steps over many stages."""
    priced = tuple(dict.fromkeys(stage_costs(setup)))
    pre_gib, available_gib = setup.memory(setup.deployment)

    def starts(value: float) -> bool:
        change: dict[str, Any] = {cost: value}
        changed = tuple(rank._replace(**change) for rank in priced)
        solutions = size_together(changed, pre_gib, available_gib).values()
        return all(solution.failure is None for solution in solutions)

    return starts


def _mem_fraction_static(setup: Setup) -> Iterator[Remedy]:
    starts = _starts_with(setup, "mem_fraction_static")
    now = setup.deployment.mem_fraction_static
    for thousandth in range(int(now * FRACTION_STEPS) + 1, FRACTION_STEPS):
        value = thousandth / FRACTION_STEPS
        if value > now and starts(value):
            yield Remedy("mem_fraction_static", value, f"--mem-fraction-static {value:g}")
            return


def _max_mamba_cache_size(setup: Setup) -> Iterator[Remedy]:
    setup = setup.pinned()
    workers = setup.deployment.attn_dp_size
    solution = setup.solution()
    costs = solution.costs
    least = costs.slots_per_request
    most = max(least, int(solution.available_gib * GIB) // (costs.slot_bytes + costs.ring_bytes))

    def boots(slots: int) -> bool:
        return setup.boots(max_mamba_cache_size=slots * workers)

    if not boots(least):
        return
    value = least if solution.state_slots < least else largest(boots, least, min(most, solution.state_slots))
    if value != solution.state_slots or costs.state_slots is None:
        yield Remedy("max_mamba_cache_size", value * workers, f"--max-mamba-cache-size {value * workers}")


def _max_running_requests(setup: Setup) -> Iterator[Remedy]:
    workers = setup.deployment.attn_dp_size
    now = setup.solution().costs.requests

    def boots(requests: int) -> bool:
        return setup.boots(max_running_requests=requests * workers)

    if now is None or not boots(1):
        return
    value = 1 if now == 0 else largest(boots, 1, now)
    if value != now:
        yield Remedy("max_running_requests", value * workers, f"--max-running-requests {value * workers}")


def _draft_tokens(setup: Setup) -> Iterator[Remedy]:
    now = setup.deployment.speculative_num_draft_tokens
    if not setup.deployment.speculative or now is None:
        return
    for drafts in range(min(now - 1, MOST_DRAFTS), 1, -1):
        if setup.boots(**draft_flags(drafts)):
            text = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in draft_flags(drafts).items())
            yield Remedy("speculative_num_draft_tokens", drafts, text)
            return
    none = dict.fromkeys(("speculative_algorithm", *draft_flags(2)))
    if setup.boots(**none):
        yield Remedy("speculative_algorithm", "none", "no speculation (leave --speculative-algorithm out)")


def _mamba_ssm_dtype(setup: Setup) -> Iterator[Remedy]:
    if setup.deployment.mamba_ssm_dtype == "float32" and setup.boots(mamba_ssm_dtype="bfloat16"):
        yield Remedy("mamba_ssm_dtype", "bfloat16", "--mamba-ssm-dtype bfloat16")


def _replay(setup: Setup) -> Iterator[Remedy]:
    if setup.may_replay and setup.boots(enable_linear_replayssm_spec=True):
        yield Remedy("enable_linear_replayssm_spec", True, "--enable-linear-replayssm-spec")


def _mamba_full_memory_ratio(setup: Setup) -> Iterator[Remedy]:
    if setup.solution().costs.state_slots is not None:
        return  # the ratio is not read
    starts = _starts_with(setup, "state_ratio")
    now = setup.deployment.mamba_full_memory_ratio
    hundredth = round(now * RATIO_STEPS)
    for step in range(1, LARGEST_RATIO * RATIO_STEPS):
        for steps in (hundredth - step, hundredth + step):
            value = steps / RATIO_STEPS
            if 0 < value <= LARGEST_RATIO and starts(value):
                yield Remedy("mamba_full_memory_ratio", value, f"--mamba-full-memory-ratio {value:g}")
                return


def _max_total_tokens(setup: Setup) -> Iterator[Remedy]:
    page, now = setup.deployment.page_size, setup.deployment.max_total_tokens
    if now is not None and now < page and setup.boots(max_total_tokens=page):
        yield Remedy("max_total_tokens", page, f"--max-total-tokens {page}")


def _chunked_prefill_size(setup: Setup) -> Iterator[Remedy]:
    """A smaller chunk raises the memory fraction the engine picks, where the user picked none."""
    workers, now = setup.deployment.attn_dp_size, setup.deployment.chunked_prefill_size
    chunk = now // 2
    while chunk >= setup.deployment.page_size:
        if setup.boots(chunked_prefill_size=chunk * workers):
            value = chunk * workers
            yield Remedy("chunked_prefill_size", value, f"--chunked-prefill-size {value}")
            return
        chunk //= 2


def _kv_cache_dtype(setup: Setup) -> Iterator[Remedy]:
    if setup.deployment.kv_layout == "bf16" and setup.boots(kv_cache_dtype="fp8_e4m3"):
        yield Remedy("kv_cache_dtype", "fp8_e4m3", "--kv-cache-dtype fp8_e4m3")


def _tp_size(setup: Setup) -> Iterator[Remedy]:
    value = setup.deployment.tp_size * 2
    if setup.boots(tp_size=value):
        yield Remedy("tp_size", value, f"--tp-size {value}")


def _available(setup: Setup) -> Iterator[Remedy]:
    """More memory left by the weights: smaller weights, or a card with less used."""
    pre_gib, available_gib = setup.memory(setup.deployment)

    def boots(mib: int) -> bool:
        return setup.solution_with(pre_gib, available_gib + mib / 1024).failure is None

    highest = 1 << 21  # 2 TiB
    if not boots(highest):
        return
    more_gib = least(boots, 0, highest) / 1024
    value = available_gib + more_gib
    yield Remedy("available_gib", value, f"{more_gib:.2f} GiB more left free by the weights, {value:.2f} GiB in all")


_KNOBS: tuple[Callable[[Setup], Iterator[Remedy]], ...] = (
    _mem_fraction_static,
    _max_mamba_cache_size,
    _max_running_requests,
    _draft_tokens,
    _replay,
    _mamba_full_memory_ratio,
    _max_total_tokens,
    _mamba_ssm_dtype,
    _chunked_prefill_size,
    _kv_cache_dtype,
    _tp_size,
    _available,
)
