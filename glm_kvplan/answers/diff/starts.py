"""What changes between two servers as they start: what they hold, memory, sizes, limits, prices, resolved flags."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.engines.changes import Change, byte_changes, unit_changes
from glm_kvplan.engines.measures import SHARED, Measure, Started
from glm_kvplan.engines.protocol import Plan

KINDS = ("served", "pool", "size", "limit", "unit", "flag")


class Side(NamedTuple):
    """One server of a comparison: its plan, and its start with the memory it has."""

    label: str
    plan: Plan
    start: Started


def one_engine(a: Side, b: Side) -> bool:
    """Whether both are of the same engine, whose names then mean the same."""
    return a.plan.given.profile.engine is b.plan.given.profile.engine


def start_changes(a: Side, b: Side) -> tuple[Change, ...]:
    """Everything that differs from `a` to `b`: what moves the most bytes first, then measures, limits, units, flags.

    Of two engines what both have: the measures, and what ends their requests. Their memory, other limits and flags have
    other names and other meanings.
    """
    found = list(_measures(a, b))
    if one_engine(a, b):
        if a.start.failure is None and b.start.failure is None:
            found += byte_changes("pool", a.start.parts, b.start.parts)
        found += [*unit_changes(a.start.ledgers, b.start.ledgers), *_flags(a, b)]
    found += _limits(a, b)
    return tuple(sorted(found, key=lambda change: (-abs(change.nbytes), KINDS.index(change.kind))))


def alike(a: Side, b: Side) -> tuple[int, int | None]:
    """How many measures are the same on both, and how many resolved flags of one engine."""
    numbers = ({(each.name, each.value) for each in side.start.measures} for side in (a, b))
    flags = ({(each.flag, _shown(each.value)) for each in side.plan.choices} for side in (a, b))
    return len(set.intersection(*numbers)), len(set.intersection(*flags)) if one_engine(a, b) else None


def _measures(a: Side, b: Side) -> Iterator[Change]:
    """The measures that differ; one that only one of two engines has is left out."""
    before, after = (_by_name(side.start) for side in (a, b))
    for name in dict.fromkeys((*before, *after)):
        if not one_engine(a, b) and not (name in before and name in after):
            continue
        old, new = (side[name].value if name in side else None for side in (before, after))
        if old != new:
            yield Change("served" if name in SHARED else "size", name, old, new)


def _by_name(start: Started) -> dict[str, Measure]:
    state = Measure("start", start.failure or "starts", "", "deployment")
    return {measure.name: measure for measure in (*start.measures, state)}


def _limits(a: Side, b: Side) -> Iterator[Change]:
    """Which limit binds what, where both start."""
    after = {bound.subject: bound for bound in b.start.bounds}
    for before in a.start.bounds:
        now = after.get(before.subject)
        if now is not None and now.limit != before.limit:
            yield Change("limit", before.subject, before.limit, now.limit, why=now.why)


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
