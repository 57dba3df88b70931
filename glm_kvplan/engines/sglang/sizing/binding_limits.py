"""Which limit binds, what the next one would be, and at what rate the pools trade."""

from operator import itemgetter
from typing import NamedTuple

from glm_kvplan.engines.sglang.sizing.solver import (
    LEAST_REQUESTS,
    REQUESTS_PER_CONTEXT,
    Solution,
    default_requests,
    fitting_requests,
)

_value = itemgetter(1)


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
        _limits(_token_bounds(solution), solution),
        _limits(_request_bounds(solution), solution),
        _slot_limit(solution),
        slot / costs.cell_bytes if costs.cell_bytes else float("inf"),
    )


def _limits(bounds: list[tuple[str, int]], solution: Solution) -> tuple[Limit, ...]:
    return tuple(Limit(name, value, _text(name, value, solution)) for name, value in sorted(bounds, key=_value))


def binding(solution: Solution) -> tuple[str, str]:
    """Names of what binds the tokens and the requests: the first of `limits`, without their words."""
    tokens, requests = _token_bounds(solution), _request_bounds(solution)
    return min(tokens, key=_value)[0], min(requests, key=_value)[0]


def _token_bounds(solution: Solution) -> list[tuple[str, int]]:
    costs, page = solution.costs, solution.costs.page_size
    found = [("memory", solution.token_capacity)]
    if costs.max_total_tokens is not None:
        found.append(("max_total_tokens", costs.max_total_tokens // page * page))
    if solution.tokens < min([value for _, value in found]):
        found.append(("pipeline stages", solution.tokens))
    return found


def _request_bounds(solution: Solution) -> list[tuple[str, int]]:
    costs, tokens = solution.costs, solution.tokens
    first = _estimate(solution) if costs.requests is None else ("max_running_requests", costs.requests)
    return [first, ("token pool", tokens // 2), ("state slots", solution.state_slots // costs.slots_per_request)]


def _fitting(solution: Solution) -> int:
    return fitting_requests(solution.tokens, solution.costs.context_length)


def _estimate(solution: Solution) -> tuple[str, int]:
    """Without a cap the engine starts from the contexts that would fit, held between two bounds."""
    value = default_requests(solution.tokens, solution.costs.context_length)
    return ("engine's estimate" if value == _fitting(solution) else "engine's clamp"), value


def _text(name: str, value: int, solution: Solution) -> str:
    """Where a bound's number comes from, in numbers."""
    costs = solution.costs
    if name == "memory":
        left, page = solution.token_budget_bytes, costs.page_size
        return f"{left:,} B left // {costs.cell_bytes:,} B a token, in pages of {page}"
    if name == "max_total_tokens":
        return f"the user's cap of {costs.max_total_tokens:,}, in pages of {costs.page_size}"
    if name == "pipeline stages":
        return "another stage holds fewer tokens"
    if name == "max_running_requests":
        return "the cap on running requests, for one DP worker"
    if name == "token pool":
        return f"{solution.tokens:,} tokens // 2"
    if name == "state slots":
        return f"{solution.state_slots:,} slots // {costs.slots_per_request} a request"
    formula = f"{solution.tokens:,} tokens / {costs.context_length:,} * {REQUESTS_PER_CONTEXT}"
    if name == "engine's estimate":
        return formula
    bound = "least" if value == LEAST_REQUESTS else "most"
    return f"{formula} = {_fitting(solution):,}, held at the {bound}, {value:,}"


def _slot_limit(solution: Solution) -> Limit:
    costs = solution.costs
    if costs.state_slots is None:
        share = f"mamba_full_memory_ratio {costs.state_ratio:g} gives states {solution.state_budget_bytes:,.0f} B"
        return Limit("mamba_full_memory_ratio", solution.state_slots, share)
    return Limit("flags", solution.state_slots, "fixed: max_mamba_cache_size, or the requests without a radix cache")
