"""Each ledger by itself: its words, its formula against its bytes, and the corners no deployment of today reaches."""

from dataclasses import replace

import pytest
from hand_counted import one_rank

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.components import compress_tail, decode_ring, latent_kv
from glm_kvplan.engines.sglang.components import host_pools as host
from glm_kvplan.engines.sglang.components import index_keys as indexer
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile, page_size
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, estimate
from glm_kvplan.model.loader import bundled_geometry

GEOMETRY = bundled_geometry()
EVERYTHING = {"tp_size": 4, "speculative_algorithm": "EAGLE", "kv_cache_dtype": "fp8_e4m3"}


def formula_holds(ledger: Ledger) -> bool:
    """The printed formula with the printed values is the price: ints all the way."""
    value = eval(ledger.formula_in_numbers, {"__builtins__": {}})
    exact = type(value) is int and type(ledger.bytes_per_unit) is int and type(ledger.units) is int
    return exact and value == ledger.bytes_per_unit


def test_what_is_said_of_each_ledger() -> None:
    """Name, title, unit, whether the budget pays, whether DRAM can hold a copy (in 0.5.22 the index too)."""
    ledgers = {}
    for more in ({}, {"enable_linear_replayssm_spec": True}):
        answer = estimate(plan({**EVERYTHING, **more}, gpu="h200", engine="0.5.21"), Workload(4096, 8))
        ledgers |= {ledger.account.name: ledger for ledger in answer.stages[0].ledgers}
    assert [(name, *ledger.account[1:3], *ledger.account[5:]) for name, ledger in ledgers.items()] == [
        ("latent_kv", "MLA latent KV", "token", True, True),
        ("indexer", "DSA indexer", "token", True, False),
        ("draft_kv", "Draft KV + index", "token", True, True),
        ("kda_state", "KDA state", "state slot", True, True),
        ("verify_snapshot", "Verify snapshots", "request row", True, False),
        ("compress_tail", "Compress tail", "request row", False, False),
        ("request_table", "Request table", "request row", False, False),
        ("replay_ring", "Replay ring", "state slot", True, False),
    ]
    assert all(formula_holds(ledger) for ledger in ledgers.values())
    assert all(" at 0.5.2" in ledger.account.source for ledger in ledgers.values())
    later = estimate(plan(EVERYTHING, gpu="h200", engine="0.5.22"), Workload(4096, 8)).stages[0].ledgers
    assert next(ledger for ledger in later if ledger.account.name == "indexer").account.backed_up


@pytest.mark.parametrize(
    ("layout", "row"), [("bf16", 1024), ("fp8_scaled", 528), ("fp8_raw", 512), ("fp8_padded", 656)]
)
def test_a_patched_build_may_fix_the_scaled_row_alone(layout: latent_kv.KvLayout, row: int) -> None:
    """A profile's `scaled_row_bytes` replaces the scaled row, and the formula says so; the other layouts stay."""
    plain, patched = load_profile("0.5.21"), load_profile("0.5.21")._replace(scaled_row_bytes=656)
    deployment, sizes = Deployment(kv_layout=layout), PoolSizes(64, 1, 1)
    before, after = (latent_kv.ledger(one_rank(deployment, profile), sizes) for profile in (plain, patched))
    assert (before.bytes_per_unit, before.units, before.total) == (11 * row, 64, 704 * row)
    assert formula_holds(before) and formula_holds(after)
    if layout != "fp8_scaled":
        assert after == before
        return
    assert latent_kv.row_bytes(GEOMETRY, layout, patched) == 656
    assert after.account.formula == "full_attention_layers * scaled_row_bytes"
    assert after.terms == (("full_attention_layers", 11), ("scaled_row_bytes", 656))
    assert (after.bytes_per_unit, after.units) == (11 * 656, 64)


def test_the_payload_of_an_index_key() -> None:
    """Pooled keys serve `index_kpool` tokens where the checkpoint compresses, rounded up to whole bytes."""
    assert indexer.written_bytes(GEOMETRY) == 33
    assert indexer.written_bytes(replace(GEOMETRY, index_kpool=8)) == 17  # 132 / 8 is 16.5
    assert indexer.written_bytes(replace(GEOMETRY, index_kpool_compress=False)) == 132
    assert type(indexer.written_bytes(GEOMETRY)) is int


@pytest.mark.parametrize(("release", "reserved"), [("0.5.21", 132), ("0.5.22", 33)])
def test_reserve_and_payload_of_the_indexer(release: str, reserved: int) -> None:
    rank, sizes = one_rank(Deployment(), load_profile(release)), PoolSizes(64, 1, 1)
    ledger = indexer.ledger(rank, sizes)
    assert (ledger.bytes_per_unit, ledger.written, ledger.total) == (11 * reserved, 11 * 33, 64 * 11 * reserved)
    plain = latent_kv.ledger(rank, sizes)
    assert plain.written == plain.bytes_per_unit


def test_tails_only_where_keys_are_pooled() -> None:
    """A pool of one token has no tail, nor has a checkpoint without pooling (memory_pool.py:4983 at 0.5.21)."""
    assert compress_tail.row_bytes(GEOMETRY, 4, 11) == 11 * 2 * 8 * 128 * 2
    for bare in (replace(GEOMETRY, index_kpool=1), replace(GEOMETRY, index_kpool_compress=False)):
        drafts = Deployment(speculative_algorithm="EAGLE", max_draft_tokens=4)
        rank = one_rank(drafts, load_profile("0.5.21"), bare)
        ledger = compress_tail.ledger(rank, PoolSizes(64, 1, 8))
        assert (ledger.bytes_per_unit, ledger.units, ledger.total) == (0, 10, 0)
        assert formula_holds(ledger) and not compress_tail.tensors(rank, PoolSizes(64, 1, 8))
    rank = one_rank(Deployment(), load_profile("0.5.21"), replace(GEOMETRY, index_kpool=2))
    specs = compress_tail.tensors(rank, PoolSizes(64, 1, 8))
    assert {spec.shape for spec in specs} == {(10, 2, 128)}
    assert sum(spec.nbytes for spec in specs) == compress_tail.ledger(rank, PoolSizes(64, 1, 8)).total > 0


def test_the_formula_of_decode_rings_holds() -> None:
    rank = one_rank(Deployment(tp_size=8, linear_attn_tp_size=8, enable_linear_replayssm=True), load_profile("0.5.23"))
    ledger = decode_ring.ledger(rank, PoolSizes(64, 9, 8))
    assert ledger is not None and formula_holds(ledger)
    specs = decode_ring.tensors(rank, PoolSizes(64, 9, 8))
    assert {spec.pool for spec in specs} == {"state"} and ledger.total > 0


# Rows, checked and allocated, of one token in one layer of the KV host pool: mem_cache/pool_host/mla.py:233-264 and
# 297-376 at 0.5.21. The split layout keeps 128 index elements of the pool's dtype beside the row, and allocates FP8
# rows as wide as the device's.
@pytest.mark.parametrize(
    ("release", "mem_layout", "layout", "checked", "allocated"),
    [
        ("0.5.21", "page_first", "bf16", 1024, 1024),
        ("0.5.21", "page_first", "fp8_scaled", 512, 512),
        ("0.5.22", "page_first", "fp8_scaled", 528, 528),
        ("0.5.21", "page_first", "fp8_raw", 512, 512),
        ("0.5.21", "page_first_kv_split", "bf16", 1024 + 256, 1024 + 256),
        ("0.5.21", "page_first_kv_split", "fp8_scaled", 512 + 128, 528 + 128),
        ("0.5.21", "page_first_kv_split", "fp8_raw", 512 + 128, 512 + 128),
    ],
)
def test_host_rows(release: str, mem_layout: str, layout: latent_kv.KvLayout, checked: int, allocated: int) -> None:
    profile = load_profile(release)
    page = page_size(GEOMETRY, profile)
    deployment = Deployment(page_size=page, kv_layout=layout, hicache_mem_layout=mem_layout)
    pool = host.kv_pool(one_rank(deployment, profile), 12, 100 * page)
    assert (pool.name, pool.pages, pool.units, pool.layers) == ("kv", 101, 101 * page, 12)
    assert (pool.row_bytes, pool.requested_bytes) == (checked, 101 * page * 12 * checked)
    assert (pool.nbytes, pool.ledger.total) == (101 * page * 12 * allocated,) * 2
    assert pool.staging_bytes == (64 * page * 12 * allocated if mem_layout == "page_first" else 0)
    assert formula_holds(pool.ledger) and type(pool.row_bytes) is int
    assert pool.ledger.account[:3] == ("host_kv", "Host latent KV", "token")


def test_host_states_and_index() -> None:
    profile = load_profile("0.5.22")
    page = page_size(GEOMETRY, profile)
    deployment = Deployment(page_size=page)
    states = host.state_pool(34, 1_085_440, 318)
    assert (states.units, states.nbytes, states.requested_bytes) == (319, 319 * 34 * 1_085_440, 319 * 34 * 1_085_440)
    assert states.ledger.account[:3] == ("host_mamba", "Host KDA state", "state slot")
    kv = host.kv_pool(one_rank(deployment, profile), 12, 20 * page)
    index = host.index_pool(one_rank(deployment, profile), 12, kv)
    assert (index.pages, index.row_bytes, index.bytes_per_unit) == (21, 33, 33 * 12)
    assert index.requested_bytes == 21 * 12 * 8448
    assert (index.nbytes, index.staging_bytes) == (22 * 12 * 8448, 22 * 12 * 8448)  # 64 pages at the most
    assert index.ledger.account[:3] == ("host_indexer", "Host index keys", "page")
    assert type(index.row_bytes) is int
    assert all(formula_holds(pool.ledger) for pool in (states, index))
    assert not any(pool.ledger.account.charged or pool.ledger.account.backed_up for pool in (states, index, kv))


def test_one_request_by_the_unit_it_is_paid_in() -> None:
    """The article's request of 128K: 7,260 B a token, five slots, and its rows: tails, 4 B a column."""
    flags = {"kv_cache_dtype": "fp8_e4m3"}
    rank = estimate(plan(flags, gpu="h200", engine="0.5.21"), Workload(131_072, 3)).largest
    assert rank.request_bytes(131_072) == {
        "token": 7260 * 131_072,
        "state slot": 5 * 147_619_840,
        "request row": 2 * 11 * 4 * 128 * 2 + 4 * (1_048_576 + 4),
    }
    assert rank.request_bytes(1)["token"] == 7260
