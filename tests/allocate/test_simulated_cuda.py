"""`validate` on GPUs that are simulated: the allocator's bounds, running out, devices that fail, which GPU is taken."""

import sys
from typing import Any

import pytest
from simulated_cuda import MIB, AcceleratorError, Card, OutOfMemoryError, Torch
from test_pools import records, specs_of
from test_validate import SMALL, build, shrink

from glm_kvplan.allocate.allocation import Allocation
from glm_kvplan.allocate.allocator_rounding import Allocator, cuda_bounds, this_allocator
from glm_kvplan.allocate.device import Device, find_device
from glm_kvplan.allocate.device_failures import AllocationError, DeviceFailedError, as_failure
from glm_kvplan.allocate.validation import Allocating, Validation, validate
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.errors import InputError
from glm_kvplan.tensor import TensorSpec
from glm_kvplan.units import GIB

LARGEST = 1 << 50
GPU = Device("cuda:0", "SIM")
EXPANDABLE = "expandable_segments:True"


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)


def on(monkeypatch: pytest.MonkeyPatch, *cards: Card) -> Torch:
    torch = Torch(*cards)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def run(device: str = "cuda", **options: Any) -> Validation[PoolSizes]:
    return validate(build, SMALL, Allocating(device, **options), shrink=shrink)


def tensor(nbytes: int, count: int = 1, name: str = "x") -> TensorSpec:
    return TensorSpec(name, "pool", count, "uint8", (nbytes,), "device", True, "", "")


@pytest.mark.parametrize("allocator", ["native", "expandable"])
def test_every_recorded_plan_stays_within_the_bounds(allocator: Allocator, monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(LARGEST, expandable=allocator == "expandable")
    on(monkeypatch, card)
    for record in records():
        specs = specs_of(record)
        bounds = cuda_bounds(specs, allocator)
        with Allocation(GPU) as allocation:
            allocation.take(specs, touch=False)
            allocated, reserved = (card.stats()[f"{name}_bytes.all.current"] for name in ("allocated", "reserved"))
            assert bounds.least_allocated <= allocated <= bounds.most_allocated
            assert allocated <= reserved <= bounds.most_reserved
            if allocator == "expandable":
                assert reserved == bounds.most_reserved
            else:
                assert len(card.segments) <= bounds.most_segments
        assert card.reserved == 0 and not card.blocks


@pytest.mark.parametrize("settings", ["", EXPANDABLE, "garbage_collection_threshold:0.8," + EXPANDABLE])
def test_measures_are_explained(settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", settings)
    on(monkeypatch, Card(64 * GIB, others=GIB, expandable=bool(settings)))
    found = run()
    assert found.ok and found.device == GPU and found.free_bytes == 63 * GIB
    assert [measure.explained for measure in found.measures] == [True] * 4
    assert ("expandable" in found.measures[2].explanation) == bool(settings)


@pytest.mark.parametrize("settings", ["max_split_size_mb:64", "roundup_power2_divisions:[256:1,512:2]", "backend:x"])
def test_nothing_is_said_of_other_allocators(settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", settings)
    on(monkeypatch, Card(64 * GIB))
    assert this_allocator() == "other"
    assert [measure.explained for measure in run().measures[1:3]] == [None, None]
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:False")
    assert this_allocator() == "native"


def test_out_of_memory_gives_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(100 * MIB)
    on(monkeypatch, card)
    with pytest.raises(AllocationError, match=rf"after {60 * MIB} bytes; everything was freed") as caught:
        Allocation(GPU).take((tensor(30 * MIB, 2), tensor(50 * MIB, name="y")))
    assert "\n" not in str(caught.value)
    assert card.reserved == 0 and not card.blocks  # while the exception is alive


CODES = [
    ("CUDA error: an illegal memory access was encountered", 700, DeviceFailedError),
    ("CUDA error: uncorrectable ECC error encountered", 214, DeviceFailedError),
    ("CUDA error: out of memory", 2, AllocationError),
    ("CUDA error: unspecified launch failure", 719, DeviceFailedError),
]


@pytest.mark.parametrize(("text", "code", "kind"), CODES)
@pytest.mark.parametrize("with_code", [True, False])
def test_failures_by_their_code(
    text: str, code: int, kind: type[Exception], with_code: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An illegal memory access is no lack of memory, and an ECC error no traceback."""
    card = Card(64 * GIB)
    on(monkeypatch, card)
    long = f"{text}\nCUDA kernel errors might be asynchronously reported at some other API call."
    failure: RuntimeError = AcceleratorError(long, code) if with_code else RuntimeError(long)

    def fail(_: int) -> None:
        card.failure = failure

    with pytest.raises(kind) as caught:
        run(progress=fail)
    said = str(caught.value)
    assert "\n" not in said and said.startswith("--device cuda:0: ")
    if kind is DeviceFailedError:
        assert text.removeprefix("CUDA error: ") in said and (f"cudaError {code}" in said) == with_code
        assert "out of memory" not in said and "everything was freed" not in said


def test_a_device_that_has_failed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(64 * GIB)
    card.failure = AcceleratorError("CUDA error: CUDA-capable device(s) is/are busy or unavailable", 46)
    on(monkeypatch, card)
    with pytest.raises(DeviceFailedError, match="busy or unavailable, cudaError 46"):
        run()


@pytest.mark.parametrize("error", [RuntimeError("the memory of this function is a bug"), ValueError("memory")])
def test_what_is_no_failure_of_the_device_stays_as_it_is(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, Card(64 * GIB))
    assert as_failure(error, GPU, 0) is None

    def fail(_: int) -> None:
        raise error

    with pytest.raises(type(error), match="memory") as caught:
        run(progress=fail)
    assert caught.value is error


def test_auto_takes_the_gpu_with_the_most_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, free, lost = Card(80 * GIB, others=70 * GIB), Card(80 * GIB, others=GIB), Card(80 * GIB)
    lost.failure = AcceleratorError("CUDA error: uncorrectable ECC error encountered", 214)
    on(monkeypatch, busy, free, lost)
    assert find_device("auto").name == "cuda:1"
    assert find_device("cuda").name == "cuda:0"
    assert find_device("cuda:2").name == "cuda:2"
    on(monkeypatch, Card(80 * GIB), Card(80 * GIB))
    assert find_device("auto").name == "cuda:0"
    on(monkeypatch, lost)
    assert find_device("auto").name == "cuda:0"
    on(monkeypatch)
    assert find_device("auto").name == "cpu"


def test_the_named_gpu_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Card(64 * GIB), Card(64 * GIB, name="SECOND MIG 1g.18gb")
    on(monkeypatch, first, second)
    seen: list[int] = []

    def look(_: int) -> None:
        seen.append(first.reserved)
        assert second.reserved

    found = run("cuda:1", progress=look)
    assert found.ok and found.device == Device("cuda:1", "SECOND MIG 1g.18gb")
    assert set(seen) == {0}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("MIG-41b3359c-e721-56e5-8009-12e5797ed514", "CUDA_VISIBLE_DEVICES=MIG-41b3359c"),
        ("cuda:MIG-41b3359c", "CUDA_VISIBLE_DEVICES=MIG-41b3359c"),
        ("GPU-41b3359c", "CUDA_VISIBLE_DEVICES=GPU-41b3359c"),
        ("pinned", "pinned host memory is not taken here"),
        ("cuda:9", "there are 1 GPUs here"),
        ("cuda:٣", "is not known"),
        ("cuda:+1", "is not known"),
    ],
)
def test_names_that_torch_does_not_take(name: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, Card(64 * GIB))
    with pytest.raises(InputError, match=says):
        find_device(name)


def test_the_simulation_itself() -> None:
    """11 MiB take a segment of 12 MiB; 20 MiB hold three blocks of 5 MiB and more; 512-byte blocks share 2 MiB."""
    card = Card(GIB)
    held = [card.allocate(nbytes) for nbytes in (11 * MIB + 1, 5 * MIB, 5 * MIB, 5 * MIB, 1, 700)]
    assert card.stats() == {
        "requested_bytes.all.current": 26 * MIB + 702,
        "allocated_bytes.all.current": 12 * MIB + 15 * MIB + 512 + 1024,
        "reserved_bytes.all.current": 12 * MIB + 20 * MIB + 2 * MIB,
    }
    with pytest.raises(OutOfMemoryError):
        card.allocate(GIB)
    for block in held:
        card.release(block)
    card.empty_cache()
    assert card.reserved == 0


class Engine:
    """A stand-in for the engine's pools: the second pool's constructor runs out after its first buffers."""

    def __init__(self, torch: Torch, nbytes: int) -> None:
        self.buffers = [torch.empty((nbytes,), dtype="uint8", device="cuda:0") for _ in range(3)]


def test_running_out_in_the_engines_second_pool_frees_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool whose constructor fails is held by its frame alone; 203 MB stayed on the card."""
    from hand_counted import one_rank
    from test_validate import DEPLOYMENT, PROFILE

    from glm_kvplan.engines.sglang import own_pools

    card = Card(200 * MIB)
    torch = on(monkeypatch, card)

    class Context:
        def get_parallel(self) -> "Context":
            return self

        def override(self, **_: object) -> "Context":
            return self

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    class Pools(own_pools.EnginePools):
        def _build(self, _: Any) -> None:
            first = Engine(torch, 20 * MIB)
            self._pools.append(first)
            self._tensors["first"] = list(first.buffers)
            Engine(torch, 60 * MIB)

    monkeypatch.setattr(own_pools, "_import", lambda _: Context())
    pools = Pools(one_rank(DEPLOYMENT, PROFILE), GPU, SMALL)
    with pytest.raises(AllocationError, match=rf"after {60 * MIB} bytes; everything was freed"):
        pools.take(build(SMALL))
    assert card.reserved == 0
    assert not pools.taken()
