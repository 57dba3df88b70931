"""A stand-in for torch with GPUs: tensors without contents over a simulation of torch's caching allocator.

The allocator's rules are those of c10/cuda/CUDACachingAllocator.cpp of torch 2.13: blocks of 512 bytes, small ones in
segments of 2 MiB, middle ones in segments of 20 MiB, others in whole 2 MiB; best fit; a remainder is split off where it
is large enough. With expandable segments one stretch of small and one of other blocks grow by 2 and by 20 MiB.
"""

from collections.abc import Iterator
from math import prod
from types import SimpleNamespace
from typing import Any

MIB = 1 << 20
BLOCK, SMALL, LARGE = 512, MIB, 10 * MIB
WIDTHS = {
    "uint8": 1,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "int32": 4,
    "int64": 8,
    "uint64": 8,
    "float8_e4m3fn": 1,
}


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError."""


class AcceleratorError(RuntimeError):
    """torch.AcceleratorError: a cudaError with its code."""

    def __init__(self, text: str, error_code: int) -> None:
        super().__init__(text)
        self.error_code = error_code


class Block:
    def __init__(self, size: int, pool: str, segment: int, free: bool) -> None:
        self.size, self.pool, self.segment, self.free = size, pool, segment, free
        self.requested = 0


class Card:
    """One GPU: its memory, what others hold of it, and this process's allocator on it."""

    def __init__(self, total: int, others: int = 0, name: str = "SIM", expandable: bool = False) -> None:
        self.total, self.others, self.name, self.expandable = total, others, name, expandable
        self.blocks: list[Block] = []
        self.segments: dict[int, int] = {}  # bytes asked of the driver, by segment
        self.next_segment = 0
        self.failure: RuntimeError | None = None  # what every call then answers

    @property
    def reserved(self) -> int:
        return sum(self.segments.values())

    @property
    def free(self) -> int:
        return self.total - self.others - self.reserved

    def stats(self) -> dict[str, int]:
        used = [block for block in self.blocks if not block.free]
        return {
            "requested_bytes.all.current": sum(block.requested for block in used),
            "allocated_bytes.all.current": sum(block.size for block in used),
            "reserved_bytes.all.current": self.reserved,
        }

    def allocate(self, nbytes: int) -> Block:
        if self.failure is not None:
            raise self.failure
        size = max(-(-nbytes // BLOCK) * BLOCK, BLOCK)
        pool = "small" if size <= SMALL else "large"
        fitting = [block for block in self.blocks if block.free and block.pool == pool and block.size >= size]
        block = min(fitting, key=lambda block: block.size) if fitting else self._grow(size, pool)
        rest = block.size - size
        if rest >= BLOCK and (self.expandable or pool == "small" or rest > SMALL):
            self.blocks.insert(self.blocks.index(block) + 1, Block(rest, pool, block.segment, True))
            block.size = size
        block.free, block.requested = False, nbytes
        return block

    def _grow(self, size: int, pool: str) -> Block:
        if self.expandable:
            return self._stretch(size, pool)
        asked = 2 * MIB if pool == "small" else 20 * MIB if size < LARGE else -(-size // (2 * MIB)) * 2 * MIB
        self._ask_driver(asked)
        self.next_segment += 1
        self.segments[self.next_segment] = asked
        self.blocks.append(Block(asked, pool, self.next_segment, True))
        return self.blocks[-1]

    def _stretch(self, size: int, pool: str) -> Block:
        """Grow the pool's one segment at its end, joined with what is free there."""
        step = 2 * MIB if pool == "small" else 20 * MIB
        segment = -1 if pool == "small" else -2
        own = [block for block in self.blocks if block.segment == segment]
        last = own[-1] if own and own[-1].free else None
        missing = size - (0 if last is None else last.size)
        asked = -(-missing // step) * step
        self._ask_driver(asked)
        self.segments[segment] = self.segments.get(segment, 0) + asked
        if last is None:
            last = Block(0, pool, segment, True)
            self.blocks.append(last)
        last.size += asked
        return last

    def _ask_driver(self, asked: int) -> None:
        if asked > self.free:
            raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {asked / MIB:.2f} MiB.")

    def release(self, block: Block) -> None:
        block.free, block.requested = True, 0
        self.blocks = list(self._joined())

    def _joined(self) -> Iterator[Block]:
        by_segment: dict[int, list[Block]] = {}
        for block in self.blocks:
            by_segment.setdefault(block.segment, []).append(block)
        for blocks in by_segment.values():
            joined: list[Block] = []
            for block in blocks:
                if joined and joined[-1].free and block.free:
                    joined[-1].size += block.size
                else:
                    joined.append(block)
            yield from joined

    def empty_cache(self) -> None:
        if self.failure is not None:
            raise self.failure
        for block in list(self.blocks):
            if block.free and block.size == self.segments[block.segment]:
                self.blocks.remove(block)
                del self.segments[block.segment]
            elif block.free and self.expandable:  # whole steps at the end go back
                step = 2 * MIB if block.pool == "small" else 20 * MIB
                back = block.size // step * step
                block.size -= back
                self.segments[block.segment] -= back
        self.blocks = [block for block in self.blocks if block.size]


class Storage:
    def __init__(self, card: Card | None, nbytes: int) -> None:
        self.card, self.size = card, nbytes
        self.block = None if card is None else card.allocate(nbytes)

    def nbytes(self) -> int:
        return self.size

    def data_ptr(self) -> int:
        return id(self)

    def resize_(self, size: int) -> None:
        if self.card is not None and self.card.failure is not None:
            raise self.card.failure
        assert size == 0
        self._drop()

    def _drop(self) -> None:
        self.size = 0
        if self.card is not None and self.block is not None:
            self.card.release(self.block)
        self.block = None

    def __del__(self) -> None:
        if getattr(self, "block", None) is not None:
            self._drop()


class Tensor:
    """No contents: a shape, a dtype and a storage that gives its block back when nobody holds it."""

    def __init__(self, torch: "Torch", shape: tuple[int, ...], dtype: str, device: str) -> None:
        self.shape, self.dtype = tuple(shape), f"torch.{dtype}"
        self.nbytes = prod(self.shape) * WIDTHS[dtype]
        self.device = SimpleNamespace(type=device.partition(":")[0])
        self._width = WIDTHS[dtype]
        self._storage = Storage(torch.card(device), self.nbytes)

    def untyped_storage(self) -> Storage:
        return self._storage

    def zero_(self) -> None:
        if self._storage.card is not None and self._storage.card.failure is not None:
            raise self._storage.card.failure

    def view(self, _: int) -> "Tensor":
        return self

    def numel(self) -> int:
        return self.nbytes // self._width

    def element_size(self) -> int:
        return self._width

    def __getitem__(self, _: object) -> "Tensor":
        return self


class Torch:
    """What the package asks of torch, on simulated cards."""

    __version__ = "2.13.0+simulated"
    OutOfMemoryError, AcceleratorError, Tensor = OutOfMemoryError, AcceleratorError, Tensor

    def __init__(self, *cards: Card) -> None:
        self.cards = cards
        self.version = SimpleNamespace(cuda="13.0")
        for name in WIDTHS:
            setattr(self, name, name)
        self.cuda = SimpleNamespace(
            OutOfMemoryError=OutOfMemoryError,
            is_available=lambda: bool(cards),
            device_count=lambda: len(cards),
            get_device_name=lambda number: cards[number].name,
            mem_get_info=self._mem_get_info,
            memory_stats=lambda name: self.card(name).stats(),
            synchronize=self._synchronize,
            empty_cache=self._empty_cache,
            get_allocator_backend=lambda: "native",
        )

    def card(self, device: str) -> Any:
        kind, _, number = device.partition(":")
        return self.cards[int(number or 0)] if kind == "cuda" else None

    def empty(self, shape: tuple[int, ...], dtype: str, device: str) -> Tensor:
        return Tensor(self, shape, dtype, device)

    def zeros(self, size: int, device: str) -> Tensor:
        return Tensor(self, (size,), "float32", device)

    def _mem_get_info(self, name: str) -> tuple[int, int]:
        card = self.card(name)
        if card.failure is not None:
            raise card.failure
        return card.free, card.total

    def _synchronize(self, name: str) -> None:
        if self.card(name).failure is not None:
            raise self.card(name).failure

    def _empty_cache(self) -> None:
        for card in self.cards:
            card.empty_cache()
