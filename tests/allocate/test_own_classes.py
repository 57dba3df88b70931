"""`validate --with sglang` and `--with vllm` around the constructors: releases, imports, what no spec names."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hand_counted import one_rank
from test_validate import DEPLOYMENT, META, PROFILE, SMALL, build

from glm_kvplan.engines.sglang import own_pools
from glm_kvplan.engines.vllm import own_blocks
from glm_kvplan.engines.vllm.profile import load_profile
from glm_kvplan.errors import InputError

VLLM = load_profile("0.33.0")


def installed(monkeypatch: pytest.MonkeyPatch, name: str, release: str | None) -> None:
    """An unpacked copy of an engine on the path."""
    module = ModuleType(name)
    if release is not None:
        module.__version__ = release  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    ("module", "name", "profile", "release"),
    [(own_pools, "sglang", PROFILE, "0.5.21"), (own_blocks, "vllm", VLLM, "0.33.0")],
)
def test_the_release_that_imports_must_be_the_plans(
    module: Any, name: str, profile: Any, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, name, release)
    assert module.check_release(profile) == release
    installed(monkeypatch, name, "0.1.2")
    with pytest.raises(InputError, match=rf"release 0\.1\.2 is here, the plan is for {release}"):
        module.check_release(profile)
    installed(monkeypatch, name, None)
    with pytest.raises(InputError, match="release unknown is here"):
        module.check_release(profile)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(module.MissingEngineError, match=f"--with {name}: {name} does not import here"):
        module.check_release(profile)


def test_a_local_build_of_vllm_is_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "vllm", "0.33.0+cu129")
    assert own_blocks.check_release(VLLM) == "0.33.0+cu129"


def pools_of(*owners: object, **tensors: list[torch.Tensor]) -> own_pools.EnginePools:
    pools = own_pools.EnginePools(one_rank(DEPLOYMENT, PROFILE), META, SMALL)
    pools._pools += owners
    pools._tensors.update(tensors)
    return pools


def test_what_no_spec_names_is_told_from_a_page_on() -> None:
    """Cursors and tables of pointers, under 4,096 bytes, are no pool's."""
    named, small, large = (torch.empty(size, dtype=torch.uint8) for size in (9000, 4095, 4096))
    pool = SimpleNamespace(named=named, cursor=small, listed=[large, "no tensor"], pair=(named, small), size=9000)
    pools = pools_of(pool, kv_buffer=[named], nothing=[])
    assert pools.unexpected() == ("SimpleNamespace.listed (4096,)",)
    assert {name: taken.nbytes for name, taken in pools.taken().items()} == {"kv_buffer": 9000}


def test_storages_count_once_and_the_hosts_not_at_all() -> None:
    buffer, generation = torch.empty(1000, dtype=torch.uint8), torch.empty(70, dtype=torch.uint8)
    pools = pools_of(kv_buffer=[buffer, buffer[10:]], again=[buffer[:5]], req_generation=[generation])
    assert pools.storage_bytes() == 1000


def test_leaving_gives_back_what_only_the_pool_holds_too() -> None:
    held, named = torch.empty(100, dtype=torch.uint8), torch.empty(100, dtype=torch.uint8)
    with pools_of(SimpleNamespace(rest=[held]), kv_buffer=[named]) as pools:
        pass
    assert held.untyped_storage().nbytes() == named.untyped_storage().nbytes() == 0
    assert not pools.taken() and not pools.unexpected()


def test_buffers_of_the_engines_cache_go_by_the_specs_names() -> None:
    """Layers without an indexer of their own keep an empty tensor in its place."""
    one, empty = torch.empty(8, dtype=torch.uint8), torch.empty(0, dtype=torch.uint8)
    pool = SimpleNamespace(
        kv_buffer=[one, one],
        index_key_cache=SimpleNamespace(buffer=[one, empty, one]),
        _compress_tail_k=None,
        _compress_tail_score=[one],
        data_ptrs=one,
    )
    found = own_pools._cache_tensors("draft.", pool)
    assert {name: len(tensors) for name, tensors in found.items()} == {
        "draft.kv_buffer": 2,
        "draft.index_k_buffer": 2,
        "draft.compress_tail_k": 0,
        "draft.compress_tail_score": 1,
        "draft.data_ptrs": 1,
    }


class Width:
    """The engine's context of the decode-context-parallel width."""

    def get_parallel(self) -> "Width":
        return self

    def override(self, *, attn_dcp_size: int) -> "Width":
        assert attn_dcp_size == 1
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_draft_model_of_its_own_is_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_pools, "_import", lambda _: Width())
    drafted = one_rank(replace(DEPLOYMENT, draft_model=cast(Any, "a draft")), PROFILE)
    with pytest.raises(InputError, match="no pools of a draft model of its own; leave --with out"):
        own_pools.EnginePools(drafted, META, SMALL).take(())


def test_what_is_no_failure_of_the_device_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pools(own_pools.EnginePools):
        def _build(self, torch: Any) -> None:
            raise KeyError("a field that the release has no more")

    monkeypatch.setattr(own_pools, "_import", lambda _: Width())
    with pytest.raises(KeyError, match="a field"):
        Pools(one_rank(DEPLOYMENT, PROFILE), META, SMALL).take(())


def test_progress_is_what_the_specs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pools(own_pools.EnginePools):
        def _build(self, torch: Any) -> None: ...

    monkeypatch.setattr(own_pools, "_import", lambda _: Width())
    told: list[int] = []
    specs = build(SMALL)
    Pools(one_rank(DEPLOYMENT, PROFILE), META, SMALL).take(specs, progress=told.append)
    assert told == [sum(spec.nbytes for spec in specs)]
