"""Which limit binds, what the next one would be, and at what rate the pools trade."""

from typing import NamedTuple

from glm_kvplan.sizing.solver import LEAST_REQUESTS, MOST_REQUESTS, REQUESTS_PER_CONTEXT, Solution


class Limit(NamedTuple):
    """One upper bound on tokens or on running requests of a worker."""

    name: str
    value: int
    text: str  # where the number comes from, in numbers


class Limits(NamedTuple):
    """The bounds of one rank, tightest first: the first binds, the second is what would bind next.

    Equal bounds keep the order in which the engine applies them.
    """

    tokens: tuple[Limit, ...]
    requests: tuple[Limit, ...]
    slots: Limit  # what fixed the number of state slots
    tokens_per_slot: float  # tokens that one state slot's bytes would buy


def limits(solution: Solution) -> Limits:
    """The limits of a solution."""
    costs = solution.costs
    slot = costs.slot_bytes + costs.ring_bytes
    return Limits(
        tuple(sorted(_token_limits(solution), key=lambda limit: limit.value)),
        tuple(sorted(_request_limits(solution), key=lambda limit: limit.value)),
        _slot_limit(solution),
        slot / costs.cell_bytes if costs.cell_bytes else float("inf"),
    )


def _token_limits(solution: Solution) -> list[Limit]:
    costs, page = solution.costs, solution.costs.page_size
    found = [
        Limit(
            "memory",
            solution.token_capacity,
            f"{solution.token_budget_bytes:,} B left // {costs.cell_bytes:,} B a token, in pages of {page}",
        )
    ]
    cap = costs.max_total_tokens
    if cap is not None:
        found.append(Limit("max_total_tokens", cap // page * page, f"the user's cap of {cap:,}, in pages of {page}"))
    if solution.tokens < min(limit.value for limit in found):
        found.append(Limit("pipeline stages", solution.tokens, "another stage holds fewer tokens"))
    return found


def _request_limits(solution: Solution) -> list[Limit]:
    costs, tokens = solution.costs, solution.tokens
    if costs.requests is None:
        found = [_estimate(solution)]
    else:
        found = [Limit("max_running_requests", costs.requests, "the cap on running requests, for one DP worker")]
    ratio = costs.slots_per_request
    found.append(Limit("token pool", tokens // 2, f"{tokens:,} tokens // 2"))
    found.append(
        Limit("state slots", solution.state_slots // ratio, f"{solution.state_slots:,} slots // {ratio} a request")
    )
    return found


def _estimate(solution: Solution) -> Limit:
    """Without a cap the engine starts from the contexts that would fit, held between two bounds."""
    contexts = solution.tokens / solution.costs.context_length * REQUESTS_PER_CONTEXT
    value = max(min(int(contexts), MOST_REQUESTS), LEAST_REQUESTS)
    formula = f"{solution.tokens:,} tokens / {solution.costs.context_length:,} * {REQUESTS_PER_CONTEXT}"
    if value == int(contexts):
        return Limit("engine's estimate", value, formula)
    bound = "least" if value == LEAST_REQUESTS else "most"
    return Limit("engine's clamp", value, f"{formula} = {int(contexts):,}, held at the {bound}, {value:,}")


def _slot_limit(solution: Solution) -> Limit:
    costs = solution.costs
    if costs.state_slots is None:
        share = f"mamba_full_memory_ratio {costs.state_ratio:g} gives states {solution.state_budget_bytes:,.0f} B"
        return Limit("mamba_full_memory_ratio", solution.state_slots, share)
    return Limit("flags", solution.state_slots, "fixed: max_mamba_cache_size, or the requests without a radix cache")
