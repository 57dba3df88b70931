"""Where every cached object lies: its HBM pool, what the radix tree points at, and its copy in DRAM if there is one."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from glm_kvplan.engines.sglang.components.host_pools import KV_SPLIT
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile

_FULL_POOL = "HybridLinearKVPool.full_kv_pool"
_STATE_POOL = "HybridLinearKVPool.mamba_pool"  # the same object as HybridReqToTokenPool.mamba_pool, which builds it
_TAILS = ("compress_tail_k", "compress_tail_score")


class Location(NamedTuple):
    """One kind of object. Pools carry the engine's names; `host_pool` None means that DRAM never holds a copy."""

    name: str
    title: str
    hbm_pool: str
    tensors: tuple[str, ...]  # as in the tensor specs
    tree: Literal["FULL", "MAMBA"] | None  # the radix-tree component whose indices address it
    host_pool: Literal["KV", "MAMBA", "INDEXER"] | None
    reason: str  # how the copy is kept, or why there is none
    source: str


def locations(deployment: Deployment, profile: EngineProfile) -> tuple[Location, ...]:
    """The objects this deployment allocates, in the order KV, index, state, draft, per-request buffers."""
    return (*_outliving(deployment, profile), *_of_running_requests(deployment, profile))


def _outliving(deployment: Deployment, profile: EngineProfile) -> Iterator[Location]:
    """What the radix tree points at, and DRAM may hold a copy of."""
    full: Literal["FULL"] | None = None if deployment.disable_radix_cache else "FULL"
    mamba: Literal["MAMBA"] | None = None if deployment.disable_radix_cache else "MAMBA"
    host = deployment.enable_hierarchical_cache
    off = "the radix cache is off: nothing outlives its request" if full is None else "HiCache is off"
    index_host, index_reason = _index_copy(deployment, profile)

    yield Location(
        "latent_kv",
        "MLA latent KV",
        _FULL_POOL,
        ("kv_buffer",),
        full,
        "KV" if host else None,
        _kv_reason(deployment, profile) if host else off,
        "hybrid_cache/hybrid_pool_assembler.py:1118-1222 at 0.5.21",
    )
    yield Location(
        "indexer",
        "DSA index keys",
        _FULL_POOL + " (own buffer)",
        ("index_k_buffer",),
        full,
        index_host if host else None,
        index_reason if host else off,
        "hybrid_cache/hybrid_pool_assembler.py:1785-1839 at 0.5.21, pool_host/dsa.py at 0.5.22",
    )
    yield Location(
        "kda_state",
        "KDA state",
        _STATE_POOL,
        ("conv_state", "temporal_state"),
        mamba,
        "MAMBA" if host else None,
        "one slot a checkpoint; a hit loads exactly one" if host else off,
        "mem_cache/pool_host/mamba.py:74-123 at 0.5.21",
    )
    if not deployment.eagle:  # another draft's pools are its own model's, which is not planned
        return
    yield Location(
        "draft_kv",
        "Draft (MTP) latent KV",
        "draft DSATokenToKVPool",
        ("draft.kv_buffer",),
        full,
        "KV" if host else None,
        "packed as one more layer of the KV pool; it shares the target's token slots" if host else off,
        "speculative/base_spec_worker.py:37-53, 253-283 at 0.5.21",
    )
    yield Location(
        "draft_indexer",
        "Draft (MTP) index keys",
        "draft DSATokenToKVPool (own buffer)",
        ("draft.index_k_buffer",),
        full,
        index_host if host else None,
        index_reason if host else off,
        "speculative/base_spec_worker.py:37-53, 253-283 at 0.5.21",
    )


def _of_running_requests(deployment: Deployment, profile: EngineProfile) -> Iterator[Location]:
    """What the tree never points at."""
    drafts = deployment.eagle
    if deployment.speculative and (deployment.disaggregation_mode != "prefill" or deployment.enable_pd_role_switch):
        yield Location(
            "verify_snapshot",
            "Verify snapshots",
            _STATE_POOL,
            ("intermediate_ssm", "intermediate_conv_window"),
            None,
            None,
            "live for one verify step of a running request; the tree never points at them",
            "mem_cache/memory_pool.py:777-858 at 0.5.21",
        )
    if deployment.enable_linear_replayssm_spec and profile.replay_rings:
        yield Location(
            "replay_ring",
            "Replay rings",
            _STATE_POOL,
            ("replayssm_d", "replayssm_k", "replayssm_g", "replayssm_rawv", "replayssm_rawk", "replayssm_beta"),
            None,
            None,
            "the last steps of a running request, in its slot; a host copy of a slot holds the state alone",
            "mem_cache/memory_pool.py:656-742 at 0.5.21",
        )
    yield Location(
        "compress_tail",
        "Compress tails",
        _FULL_POOL + " (per request)",
        _TAILS + tuple("draft." + name for name in _TAILS if drafts),
        None,
        None,
        "a running request's last tokens that fill no index pool yet"
        + (", the draft layer's own included" if drafts else "")
        + "; not on the tree",
        "mem_cache/memory_pool.py:4972-5048 at 0.5.21",
    )
    yield Location(
        "request_table",
        "Request table",
        "ReqToTokenPool",
        ("req_to_token",),
        None,
        None,
        "maps a running request's positions to token slots; not on the tree",
        "mem_cache/memory_pool.py:286-309 at 0.5.21",
    )


def _index_copy(deployment: Deployment, profile: EngineProfile) -> tuple[Literal["KV", "INDEXER"] | None, str]:
    """The host pool that holds the index keys where HiCache is on, and how, or why none does."""
    if profile.host_index_pool:
        return "INDEXER", "pages follow the KV pool's pages"
    if deployment.hicache_mem_layout == KV_SPLIT:
        return "KV", "page_first_kv_split keeps index keys beside the latent rows"
    return None, "this release builds host pools for KV and state only; a page comes back without its index keys"


def _kv_reason(deployment: Deployment, profile: EngineProfile) -> str:
    if deployment.kv_layout == "fp8_scaled" and not (
        profile.host_row_is_device_row or deployment.hicache_mem_layout == KV_SPLIT
    ):
        return "stored without its scales: the host row is narrower than the device row"
    return "whole pages, rows as wide as on the device"
