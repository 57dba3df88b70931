"""What changes between two plans: resolved flags, prices of a unit, and the bytes a rank allocates by tensor."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Literal, NamedTuple

from glm_kvplan.ledgers.ledger import Ledger
from glm_kvplan.planner import Plan
from glm_kvplan.sizing.estimate import Estimate, RankEstimate, Workload, estimate


class Change(NamedTuple):
    """One thing that differs. `nbytes` is what the change adds (or frees) on the fullest rank, 0 where it has none.

    `why` is the later side's reason, where it has one.
    """

    kind: Literal["flag", "unit", "tensor", "rank", "limit", "pool", "size"]
    name: str
    before: object
    after: object
    nbytes: int = 0
    why: str = ""


def changes(a: Plan, b: Plan, workload: Workload) -> tuple[Change, ...]:
    """Everything that differs from `a` to `b` under one workload, the most bytes first, flags last."""
    before, after = estimate(a, workload), estimate(b, workload)
    found = [
        *_rank(before, after),
        *_tensors(before.largest, after.largest),
        *unit_changes(before.largest.ledgers, after.largest.ledgers),
        *_flags(a, b),
    ]
    return tuple(sorted(found, key=lambda change: -abs(change.nbytes)))


def _flags(a: Plan, b: Plan) -> Iterable[Change]:
    for field in fields(a.deployment):
        before, after = getattr(a.deployment, field.name), getattr(b.deployment, field.name)
        if before != after:
            yield Change("flag", field.name, before, after, 0)


def unit_changes(a: Iterable[Ledger], b: Iterable[Ledger]) -> Iterable[Change]:
    """The ledgers whose unit (a token, a state slot, a request row) costs another number of bytes."""
    before = {ledger.account.name: ledger for ledger in a}
    after = {ledger.account.name: ledger for ledger in b}
    for name in {**before, **after}:
        old = before[name].bytes_per_unit if name in before else 0
        new = after[name].bytes_per_unit if name in after else 0
        if old != new:
            unit = (before.get(name) or after[name]).account.unit
            yield Change("unit", f"{name}, bytes per {unit}", old, new)


def _tensors(a: RankEstimate, b: RankEstimate) -> Iterable[Change]:
    before = {tensor.name: tensor.nbytes for tensor in a.tensors if tensor.place == "device"}
    after = {tensor.name: tensor.nbytes for tensor in b.tensors if tensor.place == "device"}
    for name in {**before, **after}:
        old, new = before.get(name, 0), after.get(name, 0)
        if old != new:
            yield Change("tensor", name, old, new, new - old)


def _rank(a: Estimate, b: Estimate) -> Iterable[Change]:
    old, new = a.largest.attribution, b.largest.attribution
    if old.allocated != new.allocated:
        yield Change("rank", "allocated on a rank", old.allocated, new.allocated, new.allocated - old.allocated)
