"""What pages and JSON documents say of a kind of memory, whatever the engine: its words, and its bill on one rank."""

from typing import Literal, NamedTuple


class Account(NamedTuple):
    """What is true of a component's ledger whatever the sizes: its words, its formula and where it was read.

    `formula` is a Python expression over the names of the ledger's `terms`; its value is the bytes per unit.
    """

    name: str  # as in `TensorSpec.component`
    title: str
    unit: Literal["token", "page", "state slot", "request row", "state", "request", "block", "rank"]
    formula: str
    source: str  # file:line at the release it was read from
    charged: bool  # the engine's memory budget pays for it
    backed_up: bool  # DRAM can hold a copy


class Ledger(NamedTuple):
    """One cost of one rank: an account, its price per unit and how many units there are."""

    account: Account
    bytes_per_unit: int
    units: int
    terms: tuple[tuple[str, int], ...]
    written_per_unit: int | None = None  # bytes of a unit that are really written; None: all of them

    @property
    def total(self) -> int:
        """Bytes of all units."""
        return self.bytes_per_unit * self.units

    @property
    def written(self) -> int:
        """Bytes of one unit that the engine really writes; the rest is reserve."""
        return self.bytes_per_unit if self.written_per_unit is None else self.written_per_unit

    @property
    def formula_in_numbers(self) -> str:
        """The account's formula with every name replaced by its value."""
        numbers = self.account.formula
        for name, value in sorted(self.terms, key=lambda term: -len(term[0])):
            numbers = numbers.replace(name, str(value))
        return numbers
