"""Allocation and its measures, on the meta device and on the CPU; the GPU tests skip where there is none."""

import weakref
from fractions import Fraction
from typing import Any

import pytest
from hand_counted import one_rank
from test_pools import records, specs_of

from glm_kvplan.allocate import device as devices
from glm_kvplan.allocate import validation as module
from glm_kvplan.allocate.allocation import Allocation
from glm_kvplan.allocate.allocator_rounding import cuda_bounds
from glm_kvplan.allocate.device import Device, available_memory, find_device, resident_memory
from glm_kvplan.allocate.device_failures import AllocationError
from glm_kvplan.allocate.validation import Allocating, Validation, validate
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.errors import InputError
from glm_kvplan.tensor import TensorSpec
from glm_kvplan.units import GIB, MIB

PROFILE = load_profile("0.5.21")
SMALL = PoolSizes(tokens=1024, state_slots=2, running_requests=2)
DEPLOYMENT = Deployment(
    tp_size=8,
    linear_attn_tp_size=8,
    context_length=4096,
    speculative_algorithm="EAGLE",
    speculative_num_steps=3,
    speculative_eagle_topk=1,
    speculative_num_draft_tokens=4,
    max_draft_tokens=4,
    max_running_requests=2,
)
META = Device("meta", "")
CPU = Device("cpu", "")


def build(sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    return tensor_specs(one_rank(DEPLOYMENT, PROFILE), sizes)


def shrink(sizes: PoolSizes, factor: Fraction) -> PoolSizes:
    return sizes.scaled(factor, 64)


def run(device: str, **options: Any) -> Validation[PoolSizes]:
    return validate(build, SMALL, Allocating(device, **options), shrink=shrink)


def tensor(nbytes: int, count: int = 1) -> TensorSpec:
    return TensorSpec("x", "pool", count, "uint8", (nbytes,), "device", True, "", "")


def test_every_record_on_meta() -> None:
    """Torch's own shapes, dtypes and bytes of all records are the engine's."""
    for record in records():
        specs = specs_of(record)
        with Allocation(META) as allocation:
            allocation.take(specs)
            taken = allocation.taken()
            assert allocation.storage_bytes() == record["device_total_bytes"]
        for spec in specs:
            suffix = "(host)" if spec.place == "host" else ""
            name = spec.name if spec.name != "intermediate_conv_window" else f"{spec.name}(physical)"
            nbytes, [[count, dtype, shape]] = record["tensors"][name + suffix]
            assert taken[spec.name] == (count, dtype, tuple(shape), nbytes)


def test_the_cpu_takes_what_the_specs_say() -> None:
    done: list[int] = []
    found = run("cpu", progress=done.append)
    assert found.ok
    assert found.taken == found.predicted == sum(done) == sum(spec.nbytes for spec in build(SMALL))
    framework, driver = found.measures
    assert framework.nbytes == found.taken - next(s.nbytes for s in build(SMALL) if s.place == "host")
    assert framework.difference == 0
    assert driver.explained or resident_memory() is None


def test_untouched_memory_is_not_resident() -> None:
    before = resident_memory()
    if before is None:
        pytest.skip("no /proc/self/statm here")
    touched, untouched = (run("cpu", touch=touch).measures[1].nbytes or 0 for touch in (True, False))
    assert untouched < touched / 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_any_exception_frees_everything(error: type[BaseException]) -> None:
    """Even while the exception, whose traceback holds the tensors, is alive."""
    storages: list[Any] = []
    allocation = Allocation(CPU)

    def stop(_: int) -> None:
        storages.extend(t.untyped_storage() for _, tensors in allocation._tensors for t in tensors)
        if len(storages) > 5:
            raise error

    with pytest.raises(error):
        allocation.take(build(SMALL), progress=stop)
    assert len(storages) > 5
    assert all(storage.nbytes() == 0 for storage in storages)
    assert not allocation.taken()


def test_out_of_memory_is_one_line_and_frees() -> None:
    specs = (tensor(MIB), TensorSpec("y", "pool", 1, "uint8", (1 << 60,), "device", True, "", ""))
    with pytest.raises(AllocationError, match=f"after {MIB} bytes; everything was freed"):
        Allocation(CPU).take(specs)


def test_leaving_the_block_frees() -> None:
    with Allocation(CPU) as allocation:
        allocation.take((tensor(MIB),))
        reference = weakref.ref(allocation._tensors[0][1][0])
        assert reference() is not None
    assert reference() is None


def test_what_does_not_fit_is_refused_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    need = sum(spec.nbytes for spec in build(SMALL))
    monkeypatch.setattr(module, "available_memory", lambda _: need + 1000)
    monkeypatch.setattr(Allocation, "take", lambda *_, **__: pytest.fail("memory was taken"))
    with pytest.raises(InputError, match=f"{need} bytes are needed and {need - 1} are free"):
        run("cpu", keep_free=1001)


def test_scale_shrinks_all_three_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = PoolSizes(tokens=65536, state_slots=64, running_requests=32)
    whole = sum(spec.nbytes for spec in build(asked))
    monkeypatch.setattr(module, "available_memory", lambda _: whole // 2)
    found = validate(build, asked, Allocating("cpu", keep_free=0, scale=True), shrink=shrink)
    assert found.ok and found.asked == asked
    assert 0.3 < found.scale < 0.6
    assert found.sizes == asked.scaled(found.scale, 64)
    assert PoolSizes(1000, 11, 5).scaled(Fraction(1, 2), 64) == (448, 5, 2)  # whole pages
    assert PoolSizes(1000, 11, 5).scaled(Fraction(1, 100), 64) == (64, 1, 1)
    assert whole // 4 < found.taken <= whole // 2
    with pytest.raises(InputError, match="not even the smallest pools"):
        validate(build, asked, Allocating("cpu", keep_free=whole, scale=True), shrink=shrink)


def test_the_largest_deployments_on_meta() -> None:
    """A node's worth of tokens: no memory, and no time to speak of."""
    largest = PoolSizes(tokens=1 << 30, state_slots=100_000, running_requests=4096)
    found = validate(build, largest, Allocating("meta"), shrink=shrink)
    assert found.ok and found.free_bytes is None
    assert found.taken > 1 << 43
    assert found.seconds < 1.0


def test_a_wrong_spec_fails_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Allocation.taken

    def one_byte_short(self: Allocation) -> dict[str, Any]:
        found = taken(self)
        name = "kv_buffer"
        return {**found, name: found[name]._replace(nbytes=found[name].nbytes - 1)}

    monkeypatch.setattr(Allocation, "taken", one_byte_short)
    found = run("meta")
    assert not found.ok
    assert [row.spec.name for row in found.rows if not row.equal] == ["kv_buffer"]


@pytest.mark.parametrize("text", ["gpu", "cpu:0", "meta:1", "cuda:x", "cuda:", "", "cuda:-1"])
def test_unknown_devices(text: str) -> None:
    with pytest.raises(InputError):
        find_device(text)


def test_cuda_bounds_of_known_blocks() -> None:
    """512-byte blocks; 2 MiB segments below 1 MiB; 20 MiB below 10 MiB; whole 2 MiB above."""
    assert cuda_bounds((tensor(1),))[:3] == (512, 512, 2 * MIB + 0)
    assert cuda_bounds((tensor(5 * MIB),))[:3] == (5 * MIB, 6 * MIB, 20 * MIB)
    assert cuda_bounds((tensor(11 * MIB + 1, 3),)) == (
        3 * (11 * MIB + 512),
        3 * (12 * MIB + 512),
        36 * MIB,
        3,
    )


def test_free_memory_of_this_machine() -> None:
    free = available_memory(CPU)
    assert free is not None and 64 * MIB < free < 1 << 60
    assert available_memory(META) is None


def test_container_limit_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_host_memory", lambda: 8 * GIB)
    monkeypatch.setattr(devices, "_container_headroom", lambda: 3 * GIB)
    assert available_memory(CPU) == 3 * GIB
    monkeypatch.setattr(devices, "_container_headroom", lambda: None)
    assert available_memory(CPU) == 8 * GIB
