"""What serving needs and whether what stays free is enough: bounds, roles and words, all counted by hand."""

from dataclasses import replace
from typing import Any

import pytest
from hand_counted import one_rank

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.headroom import headroom, judge
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap, Segment
from glm_kvplan.engines.sglang.sizing.transients import (
    Transient,
    Transients,
    bounded_logits_bytes,
    graph_bytes,
    largest_context,
    logits_budget,
    query_rows,
    transients,
)
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB, MIB

GEOMETRY = bundled_geometry()
TOKEN_MIB = 7.5 * MIB  # of CUDA graphs, a captured token


# -- the indexer's logits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "free", "fraction", "rocm", "budget"),
    [
        (1000, 900, 0.75, False, 50),  # a fifth of the 250 that were to stay free
        (1000, 109, 0.5, False, 21),  # a fifth of what is free, cut to an int
        (1000, 900, 1.5, False, 1),  # nothing was to stay free: one byte, never none
        (1000, -5, 0.5, False, 1),
        (1000, 5, 0.5, False, 1),
        (1000, 900, 0.75, True, 50),
        (1 << 40, 1 << 40, 0.5, True, 2**31 - 1),  # HIP kernels take no more
        (1 << 40, 1 << 40, 0.5, False, int((1 << 39) * 0.2)),
    ],
)
def test_the_budget_of_one_logits_matrix(total: int, free: int, fraction: float, rocm: bool, budget: int) -> None:
    assert logits_budget(total, free, fraction, rocm=rocm) == budget
    assert rocm or logits_budget(total, free, fraction) == budget


def test_logits_are_split_only_where_they_are_large_and_exceed_the_budget() -> None:
    """A million index rows are 3,907 groups of 256 columns: 4,000,768 bytes a query row."""
    row = 3907 * 256 * 4
    assert bounded_logits_bytes(8, 1_000_000, 8 * 1_000_000 * 4) == 8 * row  # the bare matrix is what is compared
    assert bounded_logits_bytes(8, 1_000_000, 8 * 1_000_000 * 4 - 1) == 7 * row
    assert bounded_logits_bytes(8, 1_000_000, 2 * row) == 2 * row
    assert bounded_logits_bytes(8, 1_000_000, 2 * row - 1) == row
    assert bounded_logits_bytes(8, 1_000_000, 1) == row  # one row at least
    assert bounded_logits_bytes(7, 1_142_857, 1) == 7 * 4465 * 256 * 4  # 7,999,999 elements: never looked at
    assert bounded_logits_bytes(2, 4_000_000, 100 * row) == 2 * 15625 * 256 * 4  # no more rows than there are


def test_the_largest_context_of_a_batch() -> None:
    three = 10 * 4 * 3 * 256  # ten query rows of 768 columns
    assert largest_context(three, 10, 4) == 768 * 4 + 3 and type(largest_context(three, 10, 4)) is int
    assert largest_context(three - 1, 10, 4) == 512 * 4 + 3
    assert largest_context(three, 10, 1) == 768
    assert largest_context(0, 10, 4) == largest_context(-(10**9), 10, 4) == 3  # less than a pool has no row


def test_query_rows_are_a_ranks_share_of_the_chunk() -> None:
    assert query_rows(Deployment(chunked_prefill_size=8192)) == 8192
    assert query_rows(Deployment(chunked_prefill_size=1, max_prefill_tokens=500)) == 1
    assert query_rows(Deployment(chunked_prefill_size=0, max_prefill_tokens=500)) == 500
    assert query_rows(Deployment(chunked_prefill_size=-1)) == 16384
    assert query_rows(Deployment(chunked_prefill_size=8192, attn_cp_size=3)) == 2731


# -- CUDA graphs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "running", "tokens"),
    [
        ({}, 100, 100),
        ({}, 300, 256),  # the largest batch that is captured
        ({"speculative_num_draft_tokens": 4, "max_draft_tokens": 4}, 100, 400),
        ({"speculative_num_draft_tokens": 4}, 100, 400),
        ({"speculative_num_draft_tokens": 4, "max_draft_tokens": 8}, 100, 100 * (1 + 2 + 4 + 6 + 8)),
        ({"speculative_num_draft_tokens": 4, "max_draft_tokens": 7}, 100, 100 * (1 + 2 + 4 + 6)),
        ({"speculative_num_draft_tokens": 2, "max_draft_tokens": 3}, 10, 10 * (1 + 2)),
    ],
)
def test_graphs_grow_with_the_captured_tokens(changes: dict[str, Any], running: int, tokens: int) -> None:
    deployment = Deployment(**changes)
    decode = GIB / 2 + TOKEN_MIB * tokens
    assert graph_bytes(deployment, running) == decode
    assert graph_bytes(deployment, running, 7) == GIB / 2 + TOKEN_MIB * 7
    breakable = replace(deployment, prefill_graph="breakable")
    assert graph_bytes(breakable, running) == 1536 * MIB + decode
    for without in ({"decode_graph": "disabled"}, {"disaggregation_mode": "prefill"}):
        assert graph_bytes(replace(deployment, **without), running, 7) == 0
        assert graph_bytes(replace(breakable, **without), running, 7) == 1536 * MIB


# -- one prompt --------------------------------------------------------------------------------------------------------

SIZES = PoolSizes(500_032, 40, 16)
GRAPHS = int(GIB / 2 + TOKEN_MIB * 16)


def needs(
    release: str = "0.5.21",
    *,
    prompt_tokens: int | None = None,
    free_bytes: int = 20 * GIB,
    rocm: bool = False,
    sizes: PoolSizes = SIZES,
    **changes: Any,
) -> Transients:
    return transients(
        one_rank(Deployment(**changes), load_profile(release)),
        sizes,
        free_bytes=free_bytes,
        total_bytes=100 * GIB,
        rocm=rocm,
        prompt_tokens=prompt_tokens,
    )


def amounts(found: Transients) -> dict[str, int]:
    return {item.name: item.nbytes for item in found.items}


def test_a_prompt_on_a_release_that_bounds_the_logits() -> None:
    found = needs()
    assert found.prompt_tokens == 500_032 - 6  # admission keeps six tokens
    assert found.largest_context is None and found.pool_tokens == 500_032
    rows = -(-(500_026 // 4) // 64) * 64
    budget = int(int(100 * GIB * (1 - 0.9)) * 0.2)
    row = -(-rows // 256) * 256 * 4
    assert amounts(found) == {
        "CUDA graphs": GRAPHS,
        "activations": 384 * 1024 * 8192,
        "image processing": 100 * MIB,
        "indexer logits": budget // row * row,
    }
    assert [item.certainty for item in found.items] == ["estimated", "estimated", "estimated", "derived"]
    assert found.nbytes == GRAPHS + 384 * 1024 * 8192 + 100 * MIB + budget // row * row
    assert found.unsure_bytes == int((GRAPHS + 384 * 1024 * 8192 + 100 * MIB) * 0.4)
    assert f"{budget / GIB:.2f} GiB" in found.items[-1].bound
    assert all(item.bound and item.source for item in found.items)


def test_graphs_are_taken_before_the_logits_look_at_what_is_free() -> None:
    free = GRAPHS + 1000 * MIB
    rows = 122 * 1024
    found = needs(free_bytes=free, prompt_tokens=rows * 4)
    assert amounts(found)["indexer logits"] == int(1000 * MIB * 0.2) // (rows * 4) * rows * 4


def test_rocm_takes_no_matrix_above_two_gib() -> None:
    rows = 122 * 1024
    given: dict[str, Any] = {"prompt_tokens": rows * 4, "free_bytes": 90 * GIB, "mem_fraction_static": 0.5}
    assert amounts(needs(rocm=True, **given))["indexer logits"] == (2**31 - 1) // (rows * 4) * rows * 4
    assert amounts(needs(rocm=False, **given))["indexer logits"] == 8192 * rows * 4
    unsaid = transients(
        one_rank(Deployment(mem_fraction_static=0.5), load_profile("0.5.21")),
        SIZES,
        free_bytes=90 * GIB,
        total_bytes=100 * GIB,
        prompt_tokens=rows * 4,
    )
    assert amounts(unsaid)["indexer logits"] == 8192 * rows * 4


def test_a_prompt_on_a_release_that_does_not() -> None:
    found = needs("0.5.20", prompt_tokens=40_000)
    assert amounts(found)["indexer logits"] == 8192 * 40 * 256 * 4  # 10,000 index rows: 157 pages, 40 groups of columns
    assert found.items[-1].certainty == "exact" and all(item.bound and item.source for item in found.items)
    left = 20 * GIB - GRAPHS - 384 * 1024 * 8192 - 100 * MIB
    assert found.largest_context == left // (8192 * 4) // 256 * 256 * 4 + 3
    assert amounts(needs("0.5.20", prompt_tokens=1000))["indexer logits"] == 1000 * 256 * 4  # a chunk is cut short, too
    without = needs("0.5.20", prompt_tokens=40_000, multimodal=False, decode_graph="disabled")
    assert list(amounts(without)) == ["activations", "indexer logits"]
    assert without.largest_context == (20 * GIB - 384 * 1024 * 8192) // (8192 * 4) // 256 * 256 * 4 + 3


def test_the_longest_prompt_and_the_shortest() -> None:
    assert needs(context_length=1000).prompt_tokens == 994
    assert needs(context_length=5).prompt_tokens == 1
    assert needs(prompt_tokens=7).prompt_tokens == 7


def test_activations_of_workers_and_of_decode_servers() -> None:
    one = 384 * 1024
    assert amounts(needs(chunked_prefill_size=1024))["activations"] == one * 2048  # no fewer
    assert amounts(needs(attn_dp_size=4, chunked_prefill_size=2049))["activations"] == one * 2049 * 4
    decode: dict[str, Any] = {"disaggregation_mode": "decode", "attn_dp_size": 2}
    served = needs(max_draft_tokens=400, **decode)
    assert amounts(served)["activations"] == one * 16 * 400 * 2
    assert "indexer logits" not in amounts(served) and served.largest_context is None
    assert amounts(needs(**decode))["activations"] == one * 2048 * 2
    wide = needs(sizes=SIZES._replace(running_requests=3000), **decode)
    assert amounts(wide)["activations"] == one * 3000 * 2


def test_every_token_is_its_own_row_where_the_index_is_not_pooled() -> None:
    single = replace(GEOMETRY, index_kpool=1)
    found = transients(
        one_rank(Deployment(), load_profile("0.5.20"), single),
        SIZES,
        free_bytes=20 * GIB,
        total_bytes=100 * GIB,
        prompt_tokens=9,
    )
    assert amounts(found)["indexer logits"] == 9 * 256 * 4
    assert found.items[-1].certainty == "derived" and found.largest_context is None


# -- the verdict -------------------------------------------------------------------------------------------------------

ESTIMATED = (Transient("graphs", GIB, "", "estimated", ""), Transient("logits", 3 * GIB, "", "exact", ""))


def served(limit: int | None = None) -> Transients:
    """Needs 4 GiB, 0.4 of them unsure; a pool of 5,000 tokens."""
    return Transients(ESTIMATED, 1234, limit, 5000)


@pytest.mark.parametrize(
    ("free", "limit", "verdict", "decided_by"),
    [
        (-1, None, "short", "pools"),
        (0, None, "short", "prompt"),
        (4 * GIB - int(0.4 * GIB) - 1, None, "short", "prompt"),
        (4 * GIB - int(0.4 * GIB), None, "tight", "error"),
        (4 * GIB + int(0.4 * GIB) - 1, None, "tight", "error"),
        (4 * GIB + int(0.4 * GIB), None, "fits", "nothing"),
        (40 * GIB, 4999, "tight", "batch"),
        (40 * GIB, 5000, "fits", "nothing"),
    ],
)
def test_what_decides(free: int, limit: int | None, verdict: str, decided_by: str) -> None:
    assert judge(free, served(limit)) == (verdict, decided_by)
    found = headroom(MemoryMap(0, (Segment("free", free, False, "derived", ""),)), served(limit))
    assert (found.verdict, found.usable, found.needed) == (verdict, free, 4 * GIB)


def said(free: int, limit: int | None = None, certainty: str = "derived", returned: int = 0) -> str:
    segments = (Segment("draft embedding and head", returned, True, "estimated", ""),) if returned else ()
    memory = MemoryMap(0, (*segments, Segment("free", free, False, certainty, "")))
    return str(headroom(memory, served(limit)).message)


def test_the_numbers_of_the_verdict_in_words() -> None:
    listed = "(graphs ~1.0, logits ~3.0)"
    assert said(-int(2.5 * GIB)).startswith("the pools with what the budget does not charge take 2.5 GiB more than")
    assert "take ~2.5 GiB" in said(-int(2.5 * GIB), certainty="estimated")
    assert f"prompt of 1,234 tokens dies: 2.0 GiB stay free, it needs ~4.0 GiB {listed}; lower" in said(2 * GIB)
    error = said(4 * GIB)
    assert error.startswith("4.0 GiB stay free and a prompt of 1,234 tokens needs ~4.0 GiB " + listed)
    assert ", +-0.4 GiB: lower --mem-fraction-static" in error
    batch = said(40 * GIB, 4999)
    assert batch.startswith("40.0 GiB stay free: one prompt of 1,234 tokens fits")
    assert "more than 4,999 tokens (cached prefixes count; the pool holds 5,000) dies" in batch
    assert said(9 * GIB) == f"9.0 GiB stay free, serving a prompt of 1,234 tokens needs ~4.0 GiB {listed}"
    assert said(9 * GIB, certainty="estimated").startswith("~9.0 GiB stay free,")
    dropped = said(9 * GIB, returned=GIB)
    assert dropped.startswith("10.0 GiB stay free (the draft's embedding and head among them), serving")
