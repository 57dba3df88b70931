"""What changes between two servers as they start: pools, sizes, limits, prices of a unit, resolved flags."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.changes import Change, byte_changes, unit_changes
from glm_kvplan.engines.component import Ledger
from glm_kvplan.engines.sglang.components import rank_ledgers
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.binding_limits import Limit
from glm_kvplan.engines.sglang.sizing.start import Boot

KINDS = ("pool", "size", "limit", "unit", "flag")


class Side(NamedTuple):
    """One server of a comparison: its plan, and its start with the memory it has."""

    label: str
    plan: Plan
    answer: Boot


def boot_changes(a: Side, b: Side) -> tuple[Change, ...]:
    """Everything that differs from `a` to `b`: what moves the most bytes first, then sizes, limits, units and flags."""
    found = [
        *_pools(a.answer, b.answer),
        *_sizes(a, b),
        *_limits(a.answer, b.answer),
        *unit_changes(_ledgers(a), _ledgers(b)),
        *_flags(a, b),
    ]
    return tuple(sorted(found, key=lambda change: (-abs(change.nbytes), KINDS.index(change.kind))))


def _pools(a: Boot, b: Boot) -> Iterator[Change]:
    """The segments of the two memory maps, where both engines start."""
    if a.map is not None and b.map is not None:
        before, after = ({segment.name: segment.nbytes for segment in each.segments} for each in (a.map, b.map))
        yield from byte_changes("pool", before, after)


def _sizes(a: Side, b: Side) -> Iterator[Change]:
    """What the engine prints, a DP worker's, and what all workers have together."""
    before, after = _printed(a), _printed(b)
    for name in before:
        if before[name] != after[name]:
            yield Change("size", name, before[name], after[name])


def _printed(side: Side) -> Mapping[str, int | str | None]:
    answer, deployment = side.answer, side.plan.deployment
    started = answer.failure is None
    sizes = answer.solution.sizes if started else PoolSizes(0, 0, 0)
    workers = deployment.attn_dp_size * deployment.replicas
    return {
        "start": "starts" if started else str(answer.failure),
        "max_total_num_tokens": sizes.tokens,
        "max_mamba_cache_size": sizes.state_slots,
        "max_running_requests": sizes.running_requests,
        "tokens of all workers": sizes.tokens * workers if workers > 1 else None,
        "requests of all workers": sizes.running_requests * workers if workers > 1 else None,
    }


def _limits(a: Boot, b: Boot) -> Iterator[Change]:
    """Which limit binds tokens, requests and slots."""
    if a.limits is None or b.limits is None:
        return
    pairs: tuple[tuple[str, Limit, Limit], ...] = (
        ("tokens", a.limits.tokens[0], b.limits.tokens[0]),
        ("running requests", a.limits.requests[0], b.limits.requests[0]),
        ("state slots", a.limits.slots, b.limits.slots),
    )
    for name, before, after in pairs:
        if before.name != after.name:
            yield Change("limit", f"{name} bound by", before.name, after.name, why=after.text)
    if a.headroom is not None and b.headroom is not None and a.headroom.verdict != b.headroom.verdict:
        yield Change("limit", "headroom", a.headroom.verdict, b.headroom.verdict, why=b.headroom.message)


def _ledgers(side: Side) -> tuple[Ledger, ...]:
    """The ledgers of the fullest rank; only their units' prices are looked at."""
    plan, answer = side.plan, side.answer
    one = PoolSizes(plan.deployment.page_size, 1, 1)
    return rank_ledgers(rank_of(plan, answer.stage), one)


def _flags(a: Side, b: Side) -> Iterator[Change]:
    """Every resolved flag that bears on memory, with the later side's reason."""
    before = {choice.flag: choice for choice in a.plan.choices}
    after = {choice.flag: choice for choice in b.plan.choices}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old is None or new is None or old.value != new.value:
            yield Change(
                "flag",
                name,
                None if old is None else _shown(old.value),
                None if new is None else _shown(new.value),
                why="" if new is None else new.reason,
            )


def _shown(value: object) -> int | float | str | None:
    if value is None or isinstance(value, int | float | str):
        return ("on" if value else "off") if isinstance(value, bool) else value
    return str(value)
