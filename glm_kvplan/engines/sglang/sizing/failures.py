"""Where the engine's own sizing gives up, and how far it was from not giving up."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from glm_kvplan.errors import RefusedError
from glm_kvplan.units import GIB

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.solver import Solution

LEAST_TOKENS = 2  # of one request, in the engine's own bound (tokens // 2)

FailureKind = Literal[
    "lazy_needs_overlap",  # the lazy strategy without the overlap schedule
    "no_state_slots",  # the state pool comes out with no slot
    "no_token_memory",  # weights, reserves and states leave nothing for tokens
    "no_tokens",  # what is left, or the user's cap, is under one page of tokens
    "no_requests",  # slots, tokens or the cap serve no request at all
]


class SizingError(RefusedError):
    """The engine refuses to start because its pools do not come out.

    `missing_bytes` is how many more bytes free on a rank would do; 0 where memory is not what is missing (a cap of
    requests or tokens is). `solution` holds every number up to the failing step.
    """

    def __init__(
        self,
        kind: FailureKind,
        reason: str,
        source: str,
        missing_bytes: int = 0,
        solution: "Solution | None" = None,
    ) -> None:
        super().__init__(reason, source)
        self.kind = kind
        self.missing_bytes = missing_bytes
        self.solution = solution


def refusal(solution: "Solution", missing_bytes: int | None = None) -> SizingError:
    """The error of a solution that failed. `missing_bytes`: memory with which it would not; None: what the step lacks.

    Where the step lacks no memory, none is said to be missing.
    """
    assert solution.failure is not None
    explain, source = _EXPLAINED[solution.failure]
    reason, missing = explain(solution)
    if missing and missing_bytes is not None:
        missing = missing_bytes
    if missing:
        reason = f"{reason}; {missing / GIB:.3g} GiB short"
    return SizingError(solution.failure, reason, source, missing, solution)


def _no_state_slots(solution: "Solution") -> tuple[str, int]:
    costs = solution.costs
    if costs.state_slots is not None:
        return (
            "the flags leave no state slot (max_mamba_cache_size, or max_running_requests without a radix cache, "
            "is under one a worker); raise them",
            0,
        )
    first = _first_slot_bytes(solution)
    return (
        f"the state pool's share of memory ({solution.state_budget_bytes / GIB:.2f} GiB) holds no state slot "
        f"(the first costs {first / GIB:.2f} GiB); raise mem_fraction_static or mamba_full_memory_ratio",
        max(1, int(first - solution.state_budget_bytes)),
    )


def _first_slot_bytes(solution: "Solution") -> float:
    """What the state pool's share must hold for one slot: its padding slot, their rings, and their snapshots."""
    costs = solution.costs
    if costs.snapshot_drafts:
        drafts = costs.snapshot_drafts
        return costs.slot_bytes * (1 + drafts) + costs.slot_bytes * (1 + drafts / costs.slots_per_request)
    return 2.0 * (costs.slot_bytes + costs.ring_bytes)


def _no_token_memory(solution: "Solution") -> tuple[str, int]:
    costs = solution.costs
    slack = f"the slack {solution.slack_gib:.2f} GiB at mem_fraction_static {costs.mem_fraction_static:g}"
    return (
        f"{slack}, {solution.state_slots} state slots and their snapshots leave no memory for tokens of the "
        f"{solution.available_gib:.2f} GiB free after loading; raise mem_fraction_static or lower the state pool",
        max(1, -int(solution.token_gib * GIB)),
    )


def _no_tokens(solution: "Solution") -> tuple[str, int]:
    costs = solution.costs
    if solution.token_capacity > 0:
        return f"max_total_tokens {costs.max_total_tokens} is under one page of {costs.page_size} tokens; raise it", 0
    return (
        f"{solution.token_budget_bytes} bytes do not hold one page of {costs.page_size} tokens "
        f"({costs.cell_bytes} bytes each); raise mem_fraction_static",
        costs.cell_bytes * costs.page_size - solution.token_budget_bytes,
    )


def _no_requests(solution: "Solution") -> tuple[str, int]:
    costs = solution.costs
    if costs.requests == 0:
        return "max_running_requests is under one a DP worker; give at least one each", 0
    if solution.tokens < LEAST_TOKENS:
        return f"{solution.tokens} token serves no request: one takes {LEAST_TOKENS}; raise max_total_tokens", 0
    short = costs.slots_per_request - solution.state_slots
    return (
        f"{solution.state_slots} state slots serve no request: one takes {costs.slots_per_request}; raise "
        "max_mamba_cache_size, mamba_full_memory_ratio or mem_fraction_static",
        max(0, short) * (costs.slot_bytes + costs.ring_bytes),
    )


_EXPLAINED: dict[str, tuple[Callable[["Solution"], tuple[str, int]], str]] = {
    "no_state_slots": (_no_state_slots, "mem_cache/kv_cache_configurator.py:3382-3397 at 0.5.23"),
    "no_token_memory": (_no_token_memory, "mem_cache/kv_cache_configurator.py:3041-3058 at 0.5.23"),
    "no_tokens": (_no_tokens, "model_executor/pool_configurator.py:94-99 at 0.5.23"),
    "no_requests": (_no_requests, "mem_cache/kv_cache_configurator.py:3153-3161 at 0.5.23"),
}
