"""Values out of fuzzer bytes. Plain Python, so that a kept input replays without the fuzzer."""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

# Where counts go wrong: signs, powers, and one beside them.
EDGES = (0, 1, -1, 2, 3, 4, 7, 8, 16, 45, 46, 48, 63, 64, 65, 127, 128, 255, 256, 257, 1000, 4096, 8192, 131072)
HUGE = (1 << 20, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 48, (1 << 48) + 1, 1 << 63, 1 << 64, 10**30, -(1 << 63))


class Draw:
    """Reads its bytes from the front; past the end every byte is 0, so any prefix of an input is an input."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def more(self) -> bool:
        """Bytes are left."""
        return self.at < len(self.data)

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def below(self, bound: int) -> int:
        """0 to bound - 1."""
        if bound <= 256:
            return self.byte() % bound
        return (self.byte() << 8 | self.byte()) % bound

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def one_in(self, chances: int) -> bool:
        """False where the bytes have ended."""
        return self.byte() % chances == chances - 1

    def count(self) -> int:
        """An int: mostly small or at an edge, sometimes absurd."""
        kind = self.byte()
        if kind < 96:
            return kind
        if kind < 208:
            return self.pick(EDGES)
        if kind < 240:
            return self.byte() << 8 | self.byte()
        return self.pick(HUGE)

    def real(self, top: float) -> float:
        """A float: mostly in [0, top], sometimes no number at all."""
        kind = self.byte()
        if kind < 200:
            return (self.byte() << 8 | self.byte()) / 65535 * top
        if kind < 235:
            return float(self.pick((0, 1, -1, 0.5, 0.9, top)))
        return self.pick((1e-300, 1e300, -1e300, 1e-12, 1e12, float("inf"), float("nan"), 5e-324, -0.0))

    def text(self, most: int = 12) -> str:
        """Any text, broken UTF-8 and lone surrogates with it."""
        size = self.below(most + 1)
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken.decode("utf-8", "surrogateescape" if size % 2 else "replace")

    def rest(self) -> bytes:
        taken = self.data[self.at :]
        self.at = len(self.data)
        return taken
