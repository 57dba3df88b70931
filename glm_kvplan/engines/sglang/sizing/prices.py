"""The price list: what one more unit of each knob costs or buys, by solving twice."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.sizing.failures import refusal
from glm_kvplan.engines.sglang.sizing.free_memory import free_bytes
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.what_if import Setup, draft_flags

MORE_CONTEXT = 1024


class Price(NamedTuple):
    """One knob moved by one unit. Deltas are of one rank (one DP worker); `total_...` of the whole engine."""

    knob: str
    before: str
    after: str
    tokens: int  # more tokens in the pool
    slots: int  # more state slots
    requests: int  # more running requests
    total_requests: int  # over all DP workers
    free_bytes: int  # more bytes free once every pool is allocated, charged or not
    failure: str | None  # the engine would not start: the kind of failure; the deltas are then 0


class Turn(NamedTuple):
    """One knob to turn: its value before and after, and the flags that turn it."""

    knob: str
    before: str
    after: str
    flags: dict[str, Any]


def prices(setup: Setup) -> list[Price]:
    """The price of one unit of each knob of a setup that starts. A knob the setup cannot turn is left out.

    Raises SizingError where the setup itself does not start.
    """
    base = setup.solution()
    if base.failure is not None:
        raise refusal(base)
    base_free = free_bytes(setup, base)
    found = []
    for knob in _KNOBS:
        for turn in knob(setup, base):
            price = _price(setup, base, base_free, turn)
            if price is not None:
                found.append(price)
    return found


def _price(setup: Setup, base: Solution, base_free: int, turn: Turn) -> Price | None:
    other = setup.changed(**turn.flags)
    solution = None if other is None else other.attempt()
    if other is None or solution is None:
        return None
    name, before, after, _ = turn
    if solution.failure is not None:
        return Price(name, before, after, 0, 0, 0, 0, 0, solution.failure)
    workers, other_workers = setup.deployment.attn_dp_size, other.deployment.attn_dp_size
    return Price(
        name,
        before,
        after,
        solution.tokens - base.tokens,
        solution.state_slots - base.state_slots,
        solution.running_requests - base.running_requests,
        solution.running_requests * other_workers - base.running_requests * workers,
        free_bytes(other, solution) - base_free,
        None,
    )


def _mem_fraction_static(setup: Setup, base: Solution) -> Iterator[Turn]:
    now = setup.deployment.mem_fraction_static
    after = round(now + 0.01, 6)
    if after < 1:
        yield Turn("mem_fraction_static", f"{now:g}", f"{after:g}", {"mem_fraction_static": after})


def _running_request(setup: Setup, base: Solution) -> Iterator[Turn]:
    """One more running request on each worker, from what the engine grants now."""
    workers = setup.deployment.attn_dp_size
    now, after = base.running_requests * workers, (base.running_requests + 1) * workers
    changes: dict[str, Any] = {"max_running_requests": after}
    name = "max_running_requests"
    slots = (base.running_requests + 1) * base.costs.slots_per_request
    if slots > base.state_slots:
        changes["max_mamba_cache_size"] = slots * workers
        name = "max_running_requests with its state slots"
    yield Turn(name, str(now), str(after), changes)


def _draft_token(setup: Setup, base: Solution) -> Iterator[Turn]:
    now = setup.deployment.speculative_num_draft_tokens
    if setup.deployment.speculative and now is not None:
        yield Turn("speculative_num_draft_tokens", str(now), str(now + 1), draft_flags(now + 1))


def _state_slot(setup: Setup, base: Solution) -> Iterator[Turn]:
    workers = setup.deployment.attn_dp_size
    now, after = base.state_slots * workers, (base.state_slots + 1) * workers
    yield Turn("max_mamba_cache_size", str(now), str(after), {"max_mamba_cache_size": after})


def _state_dtype(setup: Setup, base: Solution) -> Iterator[Turn]:
    if setup.deployment.mamba_ssm_dtype == "float32":
        yield Turn("mamba_ssm_dtype", "float32", "bfloat16", {"mamba_ssm_dtype": "bfloat16"})


def _replay(setup: Setup, base: Solution) -> Iterator[Turn]:
    if setup.may_replay:
        yield Turn("enable_linear_replayssm_spec", "off", "on", {"enable_linear_replayssm_spec": True})


def _row_dtype(setup: Setup, base: Solution) -> Iterator[Turn]:
    if setup.deployment.kv_layout == "bf16":
        yield Turn("kv_cache_dtype", "bfloat16", "fp8_e4m3", {"kv_cache_dtype": "fp8_e4m3"})
    else:
        yield Turn("kv_cache_dtype", "fp8_e4m3", "bfloat16", {"kv_cache_dtype": "bfloat16"})


def _context(setup: Setup, base: Solution) -> Iterator[Turn]:
    now = setup.deployment.context_length
    after = now + MORE_CONTEXT
    if after > setup.geometry.max_position_embeddings:
        after = now - MORE_CONTEXT  # the model ends here: the price of the last unit
    if after > 0:
        yield Turn("context_length", str(now), str(after), {"context_length": after})


def _tp(setup: Setup, base: Solution) -> Iterator[Turn]:
    now = setup.deployment.tp_size
    yield Turn("tp_size", str(now), str(now * 2), {"tp_size": now * 2})


def _dp(setup: Setup, base: Solution) -> Iterator[Turn]:
    """Attention DP twice as wide inside the same GPUs."""
    deployment = setup.deployment
    now, after = deployment.attn_dp_size, deployment.attn_dp_size * 2
    if deployment.tp_size % after == 0:
        yield Turn("dp_size", str(now), str(after), {"dp_size": after, "enable_dp_attention": True})


_KNOBS: tuple[Callable[[Setup, Solution], Iterator[Turn]], ...] = (
    _mem_fraction_static,
    _running_request,
    _draft_token,
    _state_slot,
    _state_dtype,
    _replay,
    _row_dtype,
    _context,
    _tp,
    _dp,
)
