"""The engine's sizing of one rank written out: each step's formula, its values and where it was read."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from glm_kvplan.engines.sglang.sizing.solver import LEAST_REQUESTS, MOST_REQUESTS, REQUESTS_PER_CONTEXT, Solution
from glm_kvplan.units import GIB

Terms = tuple[tuple[str, int | float], ...]


class Step(NamedTuple):
    """One step. `formula` is a Python expression over the names of `terms`; its value is `value`, to the last bit."""

    name: str
    unit: Literal["GiB", "B", "slots", "tokens", "requests"]
    formula: str
    terms: Terms
    value: int | float
    source: str

    @property
    def formula_in_numbers(self) -> str:
        """The formula with every name replaced by its value."""
        values = {name: repr(value) for name, value in self.terms}
        return re.sub(r"[a-z_A-Z]+", lambda word: values.get(word[0], word[0]), self.formula)


def sizing_steps(solution: Solution) -> tuple[Step, ...]:
    """The steps of a solution in the engine's order, up to the one that failed."""
    if solution.failure == "no_state_slots":
        return (*_memory(solution), *_slots(solution))
    steps = (*_memory(solution), *_slots(solution), *_snapshots(solution), *_tokens(solution))
    return steps if solution.failure else (*steps, _requests(solution))


def _memory(solution: Solution) -> Iterator[Step]:
    costs = solution.costs
    yield Step(
        "slack",
        "GiB",
        "pre * (1 - mem_fraction_static)",
        (("pre", solution.pre_gib), ("mem_fraction_static", costs.mem_fraction_static)),
        solution.slack_gib,
        "mem_cache/kv_cache_configurator.py:3007 at 0.5.23",
    )
    yield Step(
        "budget",
        "GiB",
        "available - slack - multimodal_reserve",
        (
            ("available", solution.available_gib),
            ("slack", solution.slack_gib),
            ("multimodal_reserve", costs.reserve_gib),
        ),
        solution.budget_gib,
        "mem_cache/kv_cache_configurator.py:3038 at 0.5.23",
    )


def _slots(solution: Solution) -> Iterator[Step]:
    costs = solution.costs
    name = "max_mamba_cache_size"
    if costs.state_slots is not None:
        terms = (("slots_by_flags", costs.state_slots),)
        yield Step(
            name,
            "slots",
            "slots_by_flags",
            terms,
            solution.state_slots,
            "mem_cache/kv_cache_configurator.py:3304-3336 at 0.5.23",
        )
        return
    ratio = costs.state_ratio
    yield Step(
        "state_budget",
        "B",
        "budget * ratio / (1 + ratio) * GiB",
        (("budget", solution.budget_gib), ("ratio", ratio), ("GiB", GIB)),
        solution.state_budget_bytes,
        "mem_cache/kv_cache_configurator.py:3352-3357 at 0.5.23",
    )
    budget = ("state_budget", solution.state_budget_bytes)
    if costs.snapshot_drafts:
        yield Step(
            name,
            "slots",
            "int((state_budget - slot * (1 + drafts)) // (slot * (1 + drafts / slots_per_request)))",
            (
                budget,
                ("slot", costs.slot_bytes),
                ("drafts", costs.snapshot_drafts),
                ("slots_per_request", costs.slots_per_request),
            ),
            solution.state_slots,
            "mem_cache/kv_cache_configurator.py:3364-3370 at 0.5.23",
        )
        return
    yield Step(
        name,
        "slots",
        "int((state_budget - (slot + ring)) // (slot + ring))",
        (budget, ("slot", costs.slot_bytes), ("ring", costs.ring_bytes)),
        solution.state_slots,
        "mem_cache/kv_cache_configurator.py:3379-3386 at 0.5.23",
    )


def _snapshots(solution: Solution) -> Iterator[Step]:
    costs = solution.costs
    if not costs.snapshot_drafts:
        return
    terms = (
        ("slot", costs.slot_bytes),
        ("requests", costs.requests or 0),
        ("slots", solution.state_slots),
        ("per_request", costs.slots_per_request),
        ("drafts", costs.snapshot_drafts),
    )
    formula = "slot * (min(requests, slots // per_request) + 1) * drafts"
    yield Step(
        "snapshots",
        "B",
        formula,
        terms,
        solution.snapshot_bytes,
        "mem_cache/kv_cache_configurator.py:3312-3377 at 0.5.23",
    )


def _tokens(solution: Solution) -> Iterator[Step]:
    costs = solution.costs
    terms: Terms = (
        ("budget", solution.budget_gib),
        ("slots", solution.state_slots),
        ("slot", costs.slot_bytes),
        ("ring", costs.ring_bytes),
        ("GiB", GIB),
    )
    formula = "budget - (slots + 1) * (slot + ring) / GiB"
    if costs.snapshot_drafts:
        formula = "budget - snapshots / GiB - (slots + 1) * (slot + ring) / GiB"
        terms = (*terms, ("snapshots", solution.snapshot_bytes))
    yield Step(
        "token_memory",
        "GiB",
        formula,
        terms,
        solution.token_gib,
        "mem_cache/kv_cache_configurator.py:3405-3409 at 0.5.23",
    )
    if solution.failure == "no_token_memory":
        return
    if costs.cell_bytes:
        yield Step(
            "token_capacity",
            "tokens",
            "int(token_memory * GiB) // cell // page * page",
            (
                ("token_memory", solution.token_gib),
                ("GiB", GIB),
                ("cell", costs.cell_bytes),
                ("page", costs.page_size),
            ),
            solution.token_capacity,
            "model_executor/pool_configurator.py:642-646 at 0.5.23",
        )
    yield _pool(solution)


def _pool(solution: Solution) -> Step:
    """The token pool after the user's cap and the other pipeline stages."""
    costs, name, source = (
        solution.costs,
        "max_total_num_tokens",
        "mem_cache/kv_cache_configurator.py:3092-3119 at 0.5.23",
    )
    capacity = ("token_capacity", solution.token_capacity)
    cap, asked = solution.token_capacity, costs.max_total_tokens
    if asked is not None:
        cap = min(cap, asked // costs.page_size * costs.page_size)
    if solution.tokens < cap:
        terms: Terms = (("least_over_stages", solution.tokens),)
        return Step(name, "tokens", "least_over_stages", terms, solution.tokens, source)
    if asked is not None and cap < solution.token_capacity:
        terms = (("max_total_tokens", asked), ("page", costs.page_size))
        return Step(name, "tokens", "max_total_tokens // page * page", terms, solution.tokens, source)
    return Step(name, "tokens", "token_capacity", (capacity,), solution.tokens, source)


def _requests(solution: Solution) -> Step:
    costs = solution.costs
    rest: Terms = (
        ("tokens", solution.tokens),
        ("slots", solution.state_slots),
        ("per_request", costs.slots_per_request),
    )
    if costs.requests is not None:
        wanted, terms = "cap", (("cap", costs.requests), *rest)
    else:
        wanted = f"max(min(int(tokens / context_length * {REQUESTS_PER_CONTEXT}), {MOST_REQUESTS}), {LEAST_REQUESTS})"
        terms = (("context_length", costs.context_length), *rest)
    return Step(
        "max_running_requests",
        "requests",
        f"min({wanted}, tokens // 2, slots // per_request)",
        terms,
        solution.running_requests,
        "mem_cache/kv_cache_configurator.py:3119-3150 at 0.5.23",
    )
