"""Prices of one unit more, and refusals, where memory is a number of bytes counted by hand."""

from dataclasses import replace
from typing import Any

import pytest
from hand_counted import (
    DRAFT_PAGE,
    DRAFTS,
    FIXED,
    GEOMETRY,
    PAGE,
    SCALED_PAGE,
    SLOT,
    TWO_WORKERS,
    WIDE,
    WIDE_PAGE,
    server_of,
)

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.sizing.failures import SizingError, refusal
from glm_kvplan.engines.sglang.sizing.prices import Price, prices
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import size
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB


def priced(server: Server) -> dict[str, Price]:
    return {price.knob: price for price in prices(server)}


def test_every_turn_is_named_as_typed() -> None:
    server = server_of(DRAFTS, 500 * SLOT)
    assert [(price.knob, price.before, price.after) for price in prices(server)] == [
        ("context_length", "1048576", "1047552"),
        ("max_running_requests with its state slots", "20", "21"),
        ("max_mamba_cache_size", "100", "101"),
        ("mem_fraction_static", "0.75", "0.76"),
        ("speculative_num_draft_tokens", "8", "9"),
        ("enable_linear_replayssm_spec", "off", "on"),
        ("mamba_ssm_dtype", "float32", "bfloat16"),
        ("dp_size", "1", "2"),
        ("tp_size", "4", "8"),
    ]
    assert "context_length" in priced(server_of(FIXED | {"context_length": 1024}, 500 * SLOT))
    short = priced(server_of(FIXED | {"context_length": 2048}, 500 * SLOT))["context_length"]
    assert (short.before, short.after) == ("2048", "3072")
    model = replace(GEOMETRY, max_position_embeddings=1025)
    for context, after in ((1_047_552, "1048576"), (1025, "1"), (1024, None)):
        end = server_of(FIXED | {"context_length": context}, 500 * SLOT)
        if context <= 1025:
            ends_here = replace(end.plan, model=replace(end.plan.model, geometry=model))
            end = Server(ends_here, end.given)
        price = priced(end).get("context_length")
        assert (price and price.after) == after
    assert "speculative_num_draft_tokens" not in priced(server_of(FIXED, 500 * SLOT))
    assert "mem_fraction_static" not in priced(server_of(FIXED | {"mem_fraction_static": 0.99}, 500 * SLOT))
    with pytest.raises(SizingError):
        prices(server_of(FIXED, 5 * SLOT))


def test_a_draft_token_costs_a_snapshot_of_each_request() -> None:
    """21 snapshots: 21 slots' bytes of tokens fewer, within a page."""
    price = priced(server_of(DRAFTS, 500 * SLOT))["speculative_num_draft_tokens"]
    assert (price.slots, price.requests, price.total_requests, price.failure) == (0, 0, 0, None)
    rings = priced(server_of(DRAFTS, 500 * SLOT))["enable_linear_replayssm_spec"]
    assert rings.tokens > 100 * SLOT // (DRAFT_PAGE // 64)  # 168 snapshots less, rings of 101 slots more
    assert abs(price.tokens * DRAFT_PAGE // 64 + 21 * SLOT) <= DRAFT_PAGE


def test_longer_contexts_take_what_stays_free() -> None:
    """20 requests and a spare row, 1,024 tokens of four bytes each."""
    price = priced(server_of(FIXED | {"context_length": 1_047_552}, 500 * SLOT))["context_length"]
    assert (price.tokens, price.free_bytes) == (0, -21 * 1024 * 4)


def test_a_request_that_the_slots_still_hold() -> None:
    held = FIXED | {"max_mamba_cache_size": 105, "max_running_requests": 20}
    price = priced(server_of(held, 500 * SLOT))["max_running_requests"]
    assert (price.slots, price.requests) == (0, 1)
    assert "max_running_requests" not in priced(server_of(held | {"max_mamba_cache_size": 104}, 500 * SLOT))


def test_prices_of_workers() -> None:
    """Slots and requests are typed for both workers and priced for one; requests of all workers stand beside."""
    workers = FIXED | TWO_WORKERS | {"max_mamba_cache_size": 200, "max_running_requests": 20}
    server = server_of(workers, 500 * SLOT)
    slot, request = priced(server)["max_mamba_cache_size"], priced(server)["max_running_requests"]
    assert (slot.before, slot.after, slot.slots, slot.total_requests) == ("200", "202", 1, 0)
    assert (request.before, request.after, request.requests, request.total_requests) == ("20", "22", 1, 2)
    full = priced(server_of(workers | {"max_running_requests": 40}, 500 * SLOT))
    both = full["max_running_requests with its state slots"]
    assert (both.before, both.after, both.slots, both.requests, both.total_requests) == ("40", "42", 5, 1, 2)
    wider = priced(server)["dp_size"]
    assert (wider.before, wider.after, wider.flags) == ("2", "4", {"dp_size": 4, "enable_dp_attention": True})
    assert (wider.slots, wider.requests, wider.total_requests) == (-50, -5, 0)  # 10 a worker of two, 5 of four
    assert (wider.total_slots, wider.gpus) == (0, 0)
    assert (slot.total_slots, slot.total_tokens, slot.gpus) == (2, 2 * slot.tokens, 0)
    assert priced(server)["tp_size"].gpus == server.plan.gpus
    assert wider.estimated  # attention weights lie otherwise


def test_rows_are_priced_both_ways() -> None:
    """What 101 slots leave of 500, in pages of bf16 rows or of FP8 rows with their scales."""
    left = 500 * SLOT - 101 * SLOT
    wide = priced(server_of(WIDE, 500 * SLOT))["kv_cache_dtype"]
    narrow = priced(server_of(WIDE | {"kv_cache_dtype": "fp8_e4m3"}, 500 * SLOT))["kv_cache_dtype"]
    assert (wide.before, wide.after) == ("bfloat16", "fp8_e4m3") == (narrow.after, narrow.before)
    assert wide.tokens == 64 * (left // SCALED_PAGE - left // WIDE_PAGE) == -narrow.tokens
    assert "kv_cache_dtype" not in priced(server_of(FIXED, 500 * SLOT))  # rows of a build of one's own stay


def test_other_weights_are_estimated_anew() -> None:
    """Eight ranks' slots take half the bytes; what was read of four ranks' memory says nothing of them."""
    server = server_of(FIXED, 500 * SLOT)
    price = priced(server)["tp_size"]
    assert (price.before, price.after, price.estimated, price.flags) == ("4", "8", True, {"tp_size": 8})
    assert not priced(server)["max_mamba_cache_size"].estimated
    again = Server(plan(FIXED | {"tp_size": 8}), MemoryGiven(160.0))
    assert again.budget.how == "estimated"
    assert price.tokens == again.sizes.tokens - server.sizes.tokens
    estimated = priced(Server(server.plan, MemoryGiven()))["tp_size"]
    assert not estimated.estimated  # nothing was read
    nobody_knows = replace(server.plan.model, geometry=replace(GEOMETRY, kv_lora_rank=256))
    assert "tp_size" not in priced(Server(replace(server.plan, model=nobody_knows), server.given))


def test_a_turn_that_does_not_start_has_no_deltas() -> None:
    price = priced(server_of(FIXED, 101 * SLOT + PAGE))["max_mamba_cache_size"]
    flags = {"max_mamba_cache_size": 101}
    nothing = (0,) * 8
    assert price == Price("max_mamba_cache_size", "100", "101", *nothing, "no_token_memory", False, flags)


# -- refusals ----------------------------------------------------------------------------------------------------------

COSTS = Costs(
    cell_bytes=1024, target_bytes=1024, index_bytes=0, slot_bytes=GIB, ring_bytes=GIB // 2, slots_per_request=5,
    snapshot_drafts=0, state_slots=None, state_ratio=1.0, page_size=64, max_total_tokens=None, no_cell_tokens=1 << 20,
    context_length=1 << 20, requests=None, mem_fraction_static=1.0, reserve_gib=0.0,
)  # fmt: skip


def refused(available: float, **changes: Any) -> SizingError:
    return refusal(size(COSTS._replace(**changes), 0.0, available))


def test_refusals_count_what_is_missing() -> None:
    """The first slot takes two of a GiB and a half; half of 4 GiB are the states'."""
    slots = refused(4.0)
    assert (slots.kind, slots.missing_bytes) == ("no_state_slots", GIB)
    assert "(2.00 GiB) holds no state slot (the first costs 3.00 GiB)" in str(slots) and "; 1 GiB short" in str(slots)
    assert slots.solution is not None and slots.solution.failure == "no_state_slots"
    assert slots.source.startswith("mem_cache/kv_cache_configurator.py:")
    drafts = refused(4.0, snapshot_drafts=4, ring_bytes=0, requests=48)  # 1 + 4 before and 1 + 4/5 for the first
    assert (drafts.kind, drafts.missing_bytes) == ("no_state_slots", int(6.8 * GIB - 2 * GIB))
    one_token = refused(3.0 + 1024 / GIB, state_slots=9, slot_bytes=GIB * 3 // 10, ring_bytes=0, page_size=1)
    assert (one_token.kind, one_token.missing_bytes) == ("no_requests", 0)
    hair = refused(3.5 / GIB, slot_bytes=1, ring_bytes=0)
    assert (hair.kind, hair.missing_bytes) == ("no_state_slots", 1)  # three quarters of a byte
    assert refused(4.0, state_slots=0).missing_bytes == 0
    tokens = refused(2.5, state_slots=2, ring_bytes=0)
    assert (tokens.kind, tokens.missing_bytes) == ("no_token_memory", GIB // 2)
    assert "the slack 0.00 GiB at mem_fraction_static 1, 2 state slots" in str(tokens)
    assert refused(3.0, state_slots=2, ring_bytes=0).missing_bytes == 1  # nothing is left: a byte is missing
    page = refused(3.0 + 30_000 / GIB, state_slots=2, ring_bytes=0)
    assert (page.kind, page.missing_bytes) == ("no_tokens", 65_536 - 30_000)
    assert "30000 bytes do not hold one page of 64 tokens (1024 bytes each)" in str(page)
    cap = refused(9.0, state_slots=2, ring_bytes=0, max_total_tokens=63)
    assert (cap.kind, cap.missing_bytes) == ("no_tokens", 0)
    assert "max_total_tokens 63 is under one page of 64 tokens" in str(cap)
    requests = refused(20.0, state_slots=3)
    assert (requests.kind, requests.missing_bytes) == ("no_requests", 2 * (GIB + GIB // 2))
    assert "3 state slots serve no request: one takes 5" in str(requests)
    none = refused(20.0, state_slots=9, requests=0)
    assert (none.kind, none.missing_bytes) == ("no_requests", 0) and "max_running_requests is under one" in str(none)
    one = refused(20.0, state_slots=3, requests=1)
    assert one.missing_bytes == 2 * (GIB + GIB // 2)
    assert SizingError("no_tokens", "why", "where").missing_bytes == 0
