"""What a comparison is made of: one thing that differs, and the differences of two tables."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from glm_kvplan.engines.ledger import Ledger


class Change(NamedTuple):
    """One thing that differs. `nbytes` is what the change adds (or frees) on the fullest rank, 0 where it has none.

    `why` is the later side's reason, where it has one.
    """

    kind: Literal["flag", "unit", "tensor", "rank", "limit", "pool", "size", "served"]
    name: str
    before: object
    after: object
    nbytes: int = 0
    why: str = ""


def byte_changes(
    kind: Literal["tensor", "pool"], before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[Change]:
    """The names whose bytes differ; a name that one side lacks has none there."""
    for name, old, new in _differences(before, after):
        yield Change(kind, name, old, new, new - old)


def unit_changes(a: Iterable[Ledger], b: Iterable[Ledger]) -> Iterator[Change]:
    """The ledgers whose unit (a token, a state slot, a request row) costs another number of bytes."""
    before, after = ({_unit(ledger): ledger.bytes_per_unit for ledger in side} for side in (a, b))
    for name, old, new in _differences(before, after):
        yield Change("unit", name, old, new)


def _unit(ledger: Ledger) -> str:
    return f"{ledger.account.name}, bytes per {ledger.account.unit}"


def _differences(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    for name in {**before, **after}:
        old, new = before.get(name, 0), after.get(name, 0)
        if old != new:
            yield name, old, new
