"""Where every cached object lies: pools, tensors, tree component, host pool, and why, in every case there is."""

import pytest
from hand_counted import one_rank

from glm_kvplan.engines.sglang.components import locations
from glm_kvplan.engines.sglang.components.component import Location
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile

FULL, STATE = "HybridLinearKVPool.full_kv_pool", "HybridLinearKVPool.mamba_pool"
DRAFT = "draft DSATokenToKVPool"
SERVER = {"enable_hierarchical_cache": True, "speculative_algorithm": "EAGLE", "max_draft_tokens": 4}


def found(release: str = "0.5.21", **fields: object) -> dict[str, Location]:
    places = locations(one_rank(Deployment(**fields), load_profile(release)))  # type: ignore[arg-type]
    assert len({place.name for place in places}) == len(places)
    assert all(" at 0.5.2" in place.source and place.title and place.reason for place in places)
    return {place.name: place for place in places}


def test_everything_there_is() -> None:
    """HybridLinearKVPool holds the target's caches, a pool of its own the draft's. Replay keeps no states of drafts."""
    places = found(enable_linear_replayssm_spec=True, **SERVER)
    assert [(name, place.hbm_pool, place.tensors, place.tree) for name, place in places.items()] == [
        ("latent_kv", FULL, ("kv_buffer",), "FULL"),
        ("indexer", FULL + " (own buffer)", ("index_k_buffer",), "FULL"),
        ("draft_kv", DRAFT, ("draft.kv_buffer",), "FULL"),
        ("draft_indexer", DRAFT + " (own buffer)", ("draft.index_k_buffer",), "FULL"),
        ("kda_state", STATE, ("conv_state", "temporal_state"), "MAMBA"),
        (
            "replay_ring",
            STATE,
            ("replayssm_d", "replayssm_k", "replayssm_g", "replayssm_rawv", "replayssm_rawk", "replayssm_beta"),
            None,
        ),
        ("verify_snapshot", STATE, ("intermediate_conv_window",), None),
        (
            "compress_tail",
            FULL + " (per request)",
            ("compress_tail_k", "compress_tail_score", "draft.compress_tail_k", "draft.compress_tail_score"),
            None,
        ),
        ("request_table", "ReqToTokenPool", ("req_to_token",), None),
    ]
    assert [place.title for place in places.values()] == [
        "MLA latent KV",
        "DSA index keys",
        "Draft (MTP) latent KV",
        "Draft (MTP) index keys",
        "KDA state",
        "Replay rings",
        "Verify snapshots",
        "Compress tails",
        "Request table",
    ]


def test_a_plain_server_has_the_five() -> None:
    places = found()
    assert list(places) == ["latent_kv", "indexer", "kda_state", "compress_tail", "request_table"]
    assert places["compress_tail"].tensors == ("compress_tail_k", "compress_tail_score")
    assert ("draft" in places["compress_tail"].reason, "draft" in found(**SERVER)["compress_tail"].reason) == (
        False,
        True,
    )
    assert {place.host_pool for place in places.values()} == {None}
    for name in ("latent_kv", "indexer", "kda_state"):
        assert places[name].reason == "HiCache is off"


def test_rings_need_the_flag_and_the_release() -> None:
    assert "replay_ring" not in found(**SERVER)
    assert "replay_ring" not in found("0.5.20", enable_linear_replayssm_spec=True, **SERVER)


@pytest.mark.parametrize(
    ("mode", "switch", "there"),
    [("null", False, True), ("decode", False, True), ("prefill", False, False), ("prefill", True, True)],
)
def test_a_server_that_only_prefills_has_no_snapshots(mode: str, switch: bool, there: bool) -> None:
    places = found(disaggregation_mode=mode, enable_pd_role_switch=switch, **SERVER)
    assert ("verify_snapshot" in places) is there


def test_without_a_tree_nothing_outlives_its_request() -> None:
    places = found(disable_radix_cache=True, speculative_algorithm="EAGLE", max_draft_tokens=4)
    assert {place.tree for place in places.values()} == {None}
    for name in ("latent_kv", "indexer", "kda_state", "draft_kv", "draft_indexer"):
        assert places[name].reason == "the radix cache is off: nothing outlives its request"


# hybrid_cache/hybrid_pool_assembler.py:1785-1839 at 0.5.21, pool_host/dsa.py at 0.5.22; page_first_kv_split packs the
# index keys into the KV pool.
@pytest.mark.parametrize(
    ("release", "mem_layout", "index", "words"),
    [
        ("0.5.21", "page_first", None, "KV and state only"),
        ("0.5.22", "page_first", "INDEXER", "follow the KV pool"),
        ("0.5.21", "page_first_kv_split", "KV", "beside the latent rows"),
        ("0.5.22", "page_first_kv_split", "INDEXER", "follow the KV pool"),
    ],
)
def test_copies_in_host_memory(release: str, mem_layout: str, index: str | None, words: str) -> None:
    places = found(release, hicache_mem_layout=mem_layout, **SERVER)
    assert {name: place.host_pool for name, place in places.items()} == {
        "latent_kv": "KV",
        "indexer": index,
        "kda_state": "MAMBA",
        "draft_kv": "KV",
        "draft_indexer": index,
        "verify_snapshot": None,
        "compress_tail": None,
        "request_table": None,
    }
    assert words in places["indexer"].reason and words in places["draft_indexer"].reason
    assert "loads exactly one" in places["kda_state"].reason
    assert "packed" in places["draft_kv"].reason


@pytest.mark.parametrize(
    ("release", "mem_layout", "layout", "loses"),
    [
        ("0.5.21", "page_first", "fp8_scaled", True),
        ("0.5.22", "page_first", "fp8_scaled", False),
        ("0.5.21", "page_first_kv_split", "fp8_scaled", False),
        ("0.5.21", "page_first", "fp8_raw", False),
        ("0.5.21", "page_first", "bf16", False),
    ],
)
def test_scales_are_lost_where_the_host_row_is_narrower(
    release: str, mem_layout: str, layout: str, loses: bool
) -> None:
    place = found(release, hicache_mem_layout=mem_layout, kv_layout=layout, **SERVER)["latent_kv"]
    assert place.reason == (
        "stored without its scales: the host row is narrower than the device row"
        if loses
        else "whole pages, rows as wide as on the device"
    )
