"""Remedies where memory is short by a number of bytes counted by hand."""

from typing import Any

import pytest
from hand_counted import (
    DRAFT_PAGE,
    DRAFTS,
    FIXED,
    PAGE,
    PLAIN,
    SCALED_PAGE,
    SLOT,
    TWO_WORKERS,
    WIDE,
    server_of,
)

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.moves import draft_flags
from glm_kvplan.engines.sglang.sizing.remedies import remedies
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB, MIB

ANEW = " (its memory estimated)"


def found(server: Server) -> dict[str, tuple[Any, str]]:
    return {remedy.flag: (remedy.value, remedy.text) for remedy in remedies(server)}


# -- remedies ----------------------------------------------------------------------------------------------------------


def test_a_server_that_starts_needs_none() -> None:
    assert server_of(FIXED, 101 * SLOT + PAGE).solution.sizes == (64, 100, 20)
    assert found(server_of(FIXED, 101 * SLOT + PAGE)) == {}


@pytest.mark.parametrize(("nbytes", "mib"), [(101 * SLOT + PAGE - 1, 1), (101 * SLOT + PAGE - 10 * MIB - 9, 11)])
def test_the_memory_that_is_missing(nbytes: int, mib: int) -> None:
    server = server_of(FIXED, nbytes)
    more = mib / 1024
    value, text = found(server)["available_gib"]
    assert value == pytest.approx(40 + nbytes / GIB + more, abs=1e-9)
    assert text == f"{more:.2f} GiB more left free by the weights, {value:.2f} GiB in all"
    fraction, text = found(server)["mem_fraction_static"]
    assert (fraction, text) == (0.751, "--mem-fraction-static 0.751")  # a thousandth of 160 GiB is 163.8 MiB


def test_five_thousand_mebibytes_are_missing() -> None:
    many = server_of(FIXED | {"max_mamba_cache_size": 1000}, 1001 * SLOT + PAGE - 5000 * MIB)
    assert found(many)["available_gib"][0] == pytest.approx(40 + (1001 * SLOT + PAGE) / GIB, abs=1e-9)


def test_two_thousandths_of_the_fraction() -> None:
    server = server_of(FIXED, 101 * SLOT + PAGE - 200 * MIB)
    assert found(server)["mem_fraction_static"] == (0.752, "--mem-fraction-static 0.752")


def test_slots_that_fit() -> None:
    short = server_of(FIXED, 91 * SLOT + PAGE)
    assert found(short)["max_mamba_cache_size"] == (90, "--max-mamba-cache-size 90")
    workers = FIXED | TWO_WORKERS | {"max_mamba_cache_size": 200}
    assert found(server_of(workers, 2 * 91 * SLOT + PAGE))["max_mamba_cache_size"] == (
        180, "--max-mamba-cache-size 180",
    )  # fmt: skip
    assert "max_mamba_cache_size" not in found(server_of(FIXED, 6 * SLOT + PAGE - 1))  # five are one request's
    assert found(server_of(FIXED, 6 * SLOT + PAGE))["max_mamba_cache_size"][0] == 5
    value = found(server_of(FIXED | {"max_mamba_cache_size": 10**7}, 91 * SLOT + PAGE))["max_mamba_cache_size"][0]
    assert value == 90 and type(value) is int
    few = FIXED | {"max_mamba_cache_size": 3}
    assert found(server_of(few, 50 * SLOT)) == {"max_mamba_cache_size": (5, "--max-mamba-cache-size 5")}


def test_requests_that_fit() -> None:
    """101 slots, and eight snapshots of one more than the requests; at most 20 by the slots."""
    server = server_of(DRAFTS, (101 + 8 * 18) * SLOT + DRAFT_PAGE)
    assert found(server)["max_running_requests"] == (17, "--max-running-requests 17")
    least = server_of(DRAFTS, (101 + 8 * 2) * SLOT + DRAFT_PAGE)
    assert found(least)["max_running_requests"][0] == 1
    assert "max_running_requests" not in found(server_of(DRAFTS, (101 + 8 * 2) * SLOT + DRAFT_PAGE - 1))
    workers = DRAFTS | TWO_WORKERS | {"max_mamba_cache_size": 200, "max_running_requests": 96}
    twice = server_of(workers, 2 * (101 + 8 * 18) * SLOT + DRAFT_PAGE)
    assert found(twice)["max_running_requests"] == (34, "--max-running-requests 34")
    none = workers | {"max_running_requests": 1}
    assert found(server_of(none, 500 * SLOT))["max_running_requests"] == (2, "--max-running-requests 2")


@pytest.mark.parametrize("drafts", [2, 5, 6, 7])
def test_drafts_that_fit(drafts: int) -> None:
    server = server_of(DRAFTS, (101 + 21 * drafts) * SLOT + DRAFT_PAGE)
    steps = drafts - 1
    assert found(server)["speculative_num_draft_tokens"] == (
        drafts,
        f"--speculative-num-steps {steps} --speculative-eagle-topk 1 --speculative-num-draft-tokens {drafts}",
    )
    assert draft_flags(drafts) == {
        "speculative_num_steps": steps, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": drafts,
    }  # fmt: skip


def test_no_speculation_where_no_number_of_drafts_fits() -> None:
    """Two drafts still take 42 snapshots. Without the draft's weights the memory that was read says nothing."""
    server = server_of(DRAFTS, (101 + 21) * SLOT + DRAFT_PAGE)
    answer = found(server)
    assert "speculative_num_draft_tokens" not in answer
    text = "no speculation (leave --speculative-algorithm out)" + ANEW
    assert answer["speculative_algorithm"] == ("none", text)
    without = {name: value for name, value in DRAFTS.items() if not name.startswith("speculative")}
    again = Server(plan(without), MemoryGiven(160.0))  # as one would type it
    assert again.starts and remedies(server)[-2].flag != "available_gib"
    assert "speculative_algorithm" not in found(server_of(FIXED, 50 * SLOT))


def test_the_nearest_ratio() -> None:
    """The first slot takes two, so of 3.5 slots a ratio of 1.34 gives its share two of them, and 1.33 does not."""
    ratio = PLAIN | {"mamba_full_memory_ratio": 0.9, "disable_radix_cache": True}
    server = server_of(ratio, 3.5 * SLOT)
    assert server.solution.failure == "no_state_slots"
    assert found(server)["mamba_full_memory_ratio"] == (1.34, "--mamba-full-memory-ratio 1.34")
    low = server_of(ratio | {"mamba_full_memory_ratio": 0.1}, 10.01 * SLOT)  # a fifth of it is two
    assert found(low)["mamba_full_memory_ratio"] == (0.25, "--mamba-full-memory-ratio 0.25")
    near = server_of(ratio | {"mamba_full_memory_ratio": 1.33}, 3.5 * SLOT)
    assert found(near)["mamba_full_memory_ratio"][0] == 1.34
    ten = server_of(ratio, 2.2001 * SLOT)
    assert found(ten)["mamba_full_memory_ratio"][0] == 10.0
    assert "mamba_full_memory_ratio" not in found(server_of(ratio, 2.19 * SLOT))
    assert "mamba_full_memory_ratio" not in found(server_of(FIXED, 91 * SLOT))
    # of 22.0103 slots' bytes 22 are states from a ratio of 2,135.923 on, and a hundredth of a slot is no page
    high = server_of(ratio | {"mamba_full_memory_ratio": 9000.0}, 22.0103 * SLOT)
    assert high.solution.failure == "no_tokens"
    assert found(high)["mamba_full_memory_ratio"] == (2135.92, "--mamba-full-memory-ratio 2135.92")


def test_a_cap_under_a_page() -> None:
    memory = 101 * SLOT + 10 * PAGE
    assert found(server_of(FIXED | {"max_total_tokens": 63}, memory)) == {
        "max_total_tokens": (64, "--max-total-tokens 64")
    }
    assert "max_total_tokens" not in found(server_of(FIXED | {"max_total_tokens": 64}, 101 * SLOT))
    assert "max_total_tokens" not in found(server_of(FIXED | {"max_mamba_cache_size": 3}, memory))


def test_dtypes_and_rings() -> None:
    """bf16 states take 36,864 + 524,288 a layer. Rings take the snapshots' place."""
    half = 34 * (36_864 + 524_288)
    assert found(server_of(FIXED, 101 * half + PAGE))["mamba_ssm_dtype"] == ("bfloat16", "--mamba-ssm-dtype bfloat16")
    assert "mamba_ssm_dtype" not in found(server_of(FIXED, 101 * half + PAGE - 1))
    rings = found(server_of(DRAFTS, 150 * SLOT))["enable_linear_replayssm_spec"]
    assert rings == (True, "--enable-linear-replayssm-spec")
    assert "enable_linear_replayssm_spec" not in found(server_of(DRAFTS, 150 * SLOT, "0.5.20"))
    assert "enable_linear_replayssm_spec" not in found(server_of(DRAFTS, 5 * SLOT))
    assert "enable_linear_replayssm_spec" not in found(server_of(FIXED, 5 * SLOT))
    on = DRAFTS | {"enable_linear_replayssm_spec": True}
    assert "enable_linear_replayssm_spec" not in found(server_of(on, 5 * SLOT))


def test_narrower_rows_and_more_gpus() -> None:
    """On an H200 rows of bf16 become FP8 with scales; eight ranks have other weights, and are estimated anew."""
    server = server_of(WIDE, 101 * SLOT + SCALED_PAGE)
    assert server.solution.failure == "no_tokens"
    assert found(server)["kv_cache_dtype"] == ("fp8_e4m3", "--kv-cache-dtype fp8_e4m3")
    assert found(server)["tp_size"] == (8, "--tp-size 8" + ANEW)
    assert "kv_cache_dtype" not in found(server_of(WIDE, 101 * SLOT + SCALED_PAGE - 1))
    assert "kv_cache_dtype" not in found(server_of(FIXED | {"max_mamba_cache_size": 200}, 101 * SLOT + PAGE))
    (wider,) = (remedy for remedy in remedies(server) if remedy.flag == "tp_size")
    assert wider.estimated and wider.flags == {"tp_size": 8}
    again = Server(plan(WIDE | {"tp_size": 8}), MemoryGiven(160.0))
    assert again.starts and again.budget.how == "estimated"


@pytest.mark.parametrize(
    ("slots", "chunk"), [(1000, None), (2000, 32768), (3000, 16384), (3400, 8192), (3690, 2048), (3800, None)]
)
def test_smaller_chunks_raise_the_fraction(slots: int, chunk: int | None) -> None:
    """Two workers: the chunk is halved until what the engine then keeps back is little enough, to 1,024 for each.

    Of an H200's 143,771 MiB it keeps 1.5 a token of the chunk and 6,656 here, 10 GiB at least: 0.27 are pools with
    chunks of 65,536, then 0.612, 0.783, 0.868, 0.911 and 0.929; of these all but 1 of 138 GiB. A slot is 2 * SLOT.
    """
    flags = FIXED | TWO_WORKERS | {"chunked_prefill_size": 65536, "max_mamba_cache_size": slots}
    del flags["mem_fraction_static"]
    server = Server(plan(flags), MemoryGiven(138.0, 137.0))
    assert server.starts == (slots == 1000)
    answer = found(server).get("chunked_prefill_size")
    assert answer == (None if chunk is None else (chunk, f"--chunked-prefill-size {chunk}"))
