"""Remedies where memory is short by a number of bytes counted by hand."""

from dataclasses import replace
from typing import Any

import pytest
from setups import DRAFT_PAGE, DRAFTS, FIXED, PAGE, PLAIN, SLOT, setup_of

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.sizing.remedies import remedies
from glm_kvplan.engines.sglang.sizing.what_if import Setup, draft_flags
from glm_kvplan.errors import RefusedError
from glm_kvplan.units import GIB, MIB


def found(setup: Setup) -> dict[str, tuple[Any, str]]:
    return {remedy.flag: (remedy.value, remedy.text) for remedy in remedies(setup)}


# -- remedies ----------------------------------------------------------------------------------------------------------


def test_a_setup_that_starts_needs_none() -> None:
    assert setup_of(FIXED, 101 * SLOT + PAGE).solution().sizes == (64, 100, 20)
    assert found(setup_of(FIXED, 101 * SLOT + PAGE)) == {}


@pytest.mark.parametrize(("nbytes", "mib"), [(101 * SLOT + PAGE - 1, 1), (101 * SLOT + PAGE - 10 * MIB - 9, 11)])
def test_the_memory_that_is_missing(nbytes: int, mib: int) -> None:
    setup = setup_of(FIXED, nbytes)
    more = mib / 1024
    value, text = found(setup)["available_gib"]
    assert value == pytest.approx(40 + nbytes / GIB + more, abs=1e-9)
    assert text == f"{more:.2f} GiB more left free by the weights, {value:.2f} GiB in all"
    fraction, text = found(setup)["mem_fraction_static"]
    assert (fraction, text) == (0.751, "--mem-fraction-static 0.751")  # a thousandth of 160 GiB is 163.8 MiB


def test_five_thousand_mebibytes_are_missing() -> None:
    many = setup_of(replace(FIXED, max_mamba_cache_size=1000), 1001 * SLOT + PAGE - 5000 * MIB)
    assert found(many)["available_gib"][0] == pytest.approx(40 + (1001 * SLOT + PAGE) / GIB, abs=1e-9)


def test_two_thousandths_of_the_fraction() -> None:
    setup = setup_of(FIXED, 101 * SLOT + PAGE - 200 * MIB)
    assert found(setup)["mem_fraction_static"] == (0.752, "--mem-fraction-static 0.752")


def test_slots_that_fit() -> None:
    short = setup_of(FIXED, 91 * SLOT + PAGE)
    assert found(short)["max_mamba_cache_size"] == (90, "--max-mamba-cache-size 90")
    workers = replace(FIXED, attn_dp_size=2, linear_attn_tp_size=2, max_mamba_cache_size=200)
    assert found(setup_of(workers, 2 * 91 * SLOT + PAGE))["max_mamba_cache_size"] == (
        180, "--max-mamba-cache-size 180",
    )  # fmt: skip
    assert "max_mamba_cache_size" not in found(setup_of(FIXED, 6 * SLOT + PAGE - 1))  # five are one request's
    assert found(setup_of(FIXED, 6 * SLOT + PAGE))["max_mamba_cache_size"][0] == 5
    value = found(setup_of(replace(FIXED, max_mamba_cache_size=10**7), 91 * SLOT + PAGE))["max_mamba_cache_size"][0]
    assert value == 90 and type(value) is int
    few = replace(FIXED, max_mamba_cache_size=3)
    assert found(setup_of(few, 50 * SLOT)) == {"max_mamba_cache_size": (5, "--max-mamba-cache-size 5")}


def test_requests_that_fit() -> None:
    """101 slots, and eight snapshots of one more than the requests; at most 20 by the slots."""
    setup = setup_of(DRAFTS, (101 + 8 * 18) * SLOT + DRAFT_PAGE)
    assert found(setup)["max_running_requests"] == (17, "--max-running-requests 17")
    least = setup_of(DRAFTS, (101 + 8 * 2) * SLOT + DRAFT_PAGE)
    assert found(least)["max_running_requests"][0] == 1
    assert "max_running_requests" not in found(setup_of(DRAFTS, (101 + 8 * 2) * SLOT + DRAFT_PAGE - 1))
    workers = replace(DRAFTS, attn_dp_size=2, linear_attn_tp_size=2, max_mamba_cache_size=200, max_running_requests=96)
    twice = setup_of(workers, 2 * (101 + 8 * 18) * SLOT + DRAFT_PAGE)
    assert found(twice)["max_running_requests"] == (34, "--max-running-requests 34")
    none = replace(workers, max_running_requests=1)
    assert found(setup_of(none, 500 * SLOT))["max_running_requests"] == (2, "--max-running-requests 2")


@pytest.mark.parametrize("drafts", [2, 5, 6, 7])
def test_drafts_that_fit(drafts: int) -> None:
    setup = setup_of(DRAFTS, (101 + 21 * drafts) * SLOT + DRAFT_PAGE)
    steps = drafts - 1
    assert found(setup)["speculative_num_draft_tokens"] == (
        drafts,
        f"--speculative-num-steps {steps} --speculative-eagle-topk 1 --speculative-num-draft-tokens {drafts}",
    )
    assert draft_flags(drafts) == {
        "speculative_num_steps": steps, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": drafts,
    }  # fmt: skip


def test_no_speculation_where_no_number_of_drafts_fits() -> None:
    asked: list[dict[str, Any]] = []

    def resolver(**changes: Any) -> Deployment:
        asked.append(changes)
        if "speculative_algorithm" not in changes:
            raise RefusedError("not here")
        return FIXED

    setup = setup_of(DRAFTS, (101 + 21) * SLOT + DRAFT_PAGE, resolver)
    assert found(setup)["speculative_algorithm"] == ("none", "no speculation (leave --speculative-algorithm out)")
    drafts = [changes["speculative_num_draft_tokens"] for changes in asked if changes.get("speculative_eagle_topk")]
    assert drafts == [7, 6, 5, 4, 3, 2]
    flags = ("speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    assert dict.fromkeys(flags) in asked
    asked.clear()
    found(setup_of(replace(FIXED, speculative_num_draft_tokens=8), 50 * SLOT, resolver))
    assert not any("speculative_algorithm" in changes for changes in asked)


def test_the_nearest_ratio() -> None:
    """The first slot takes two, so of 3.5 slots a ratio of 1.34 gives its share two of them, and 1.33 does not."""
    ratio = replace(PLAIN, mamba_full_memory_ratio=0.9, disable_radix_cache=True)
    setup = setup_of(ratio, 3.5 * SLOT)
    assert setup.solution().failure == "no_state_slots"
    assert found(setup)["mamba_full_memory_ratio"] == (1.34, "--mamba-full-memory-ratio 1.34")
    low = setup_of(replace(ratio, mamba_full_memory_ratio=0.1), 10.01 * SLOT)  # a fifth of it is two
    assert found(low)["mamba_full_memory_ratio"] == (0.25, "--mamba-full-memory-ratio 0.25")
    near = setup_of(replace(ratio, mamba_full_memory_ratio=1.33), 3.5 * SLOT)
    assert found(near)["mamba_full_memory_ratio"][0] == 1.34
    ten = setup_of(ratio, 2.2001 * SLOT)
    assert found(ten)["mamba_full_memory_ratio"][0] == 10.0
    assert "mamba_full_memory_ratio" not in found(setup_of(ratio, 2.19 * SLOT))
    assert "mamba_full_memory_ratio" not in found(setup_of(FIXED, 91 * SLOT))


def test_a_cap_under_a_page() -> None:
    memory = 101 * SLOT + 10 * PAGE
    assert found(setup_of(replace(FIXED, max_total_tokens=63), memory)) == {
        "max_total_tokens": (64, "--max-total-tokens 64")
    }
    assert "max_total_tokens" not in found(setup_of(replace(FIXED, max_total_tokens=64), 101 * SLOT))
    assert "max_total_tokens" not in found(setup_of(replace(FIXED, max_mamba_cache_size=3), memory))


def test_dtypes_and_rings() -> None:
    """bf16 states take 36,864 + 524,288 a layer. Rings take the snapshots' place."""
    half = 34 * (36_864 + 524_288)
    assert found(setup_of(FIXED, 101 * half + PAGE))["mamba_ssm_dtype"] == ("bfloat16", "--mamba-ssm-dtype bfloat16")
    assert "mamba_ssm_dtype" not in found(setup_of(FIXED, 101 * half + PAGE - 1))
    rings = found(setup_of(DRAFTS, 150 * SLOT))["enable_linear_replayssm_spec"]
    assert rings == (True, "--enable-linear-replayssm-spec")
    assert "enable_linear_replayssm_spec" not in found(setup_of(DRAFTS, 150 * SLOT, release="0.5.20"))
    assert "enable_linear_replayssm_spec" not in found(setup_of(DRAFTS, 5 * SLOT))
    on = replace(DRAFTS, enable_linear_replayssm_spec=True)
    assert not setup_of(on, 0).may_replay and setup_of(DRAFTS, 0).may_replay and not setup_of(FIXED, 0).may_replay


def test_knobs_the_resolver_turns() -> None:
    wide = replace(FIXED, kv_layout="bf16", kv_cache_dtype="bfloat16")

    def resolver(**changes: Any) -> Deployment:
        if changes == {"kv_cache_dtype": "fp8_e4m3"}:
            return FIXED
        if changes == {"tp_size": 8}:
            return replace(wide, tp_size=8, linear_attn_tp_size=8)
        raise RefusedError("not here")

    setup = setup_of(wide, 101 * SLOT + PAGE, resolver)
    assert found(setup)["kv_cache_dtype"] == ("fp8_e4m3", "--kv-cache-dtype fp8_e4m3")
    assert found(setup)["tp_size"] == (8, "--tp-size 8")
    assert "kv_cache_dtype" not in found(setup_of(wide, 101 * SLOT + PAGE - 1, resolver))
    raw = replace(FIXED, max_mamba_cache_size=200)
    assert "kv_cache_dtype" not in found(setup_of(raw, 101 * SLOT + PAGE, resolver))
    assert "tp_size" not in found(setup_of(FIXED, 91 * SLOT))


@pytest.mark.parametrize(("chunk", "most", "value"), [(8192, 2048, 4096), (256, 64, 128), (192, 64, None)])
def test_smaller_chunks_raise_the_fraction(chunk: int, most: int, value: int | None) -> None:
    """Two workers: the chunk is halved until the resolver's fraction rises, down to a page."""
    short = replace(FIXED, attn_dp_size=2, linear_attn_tp_size=2, max_mamba_cache_size=200, chunked_prefill_size=chunk)

    def resolver(chunked_prefill_size: int = 0, **changes: Any) -> Deployment:
        assert isinstance(chunked_prefill_size, int)
        if changes or not chunked_prefill_size:
            raise RefusedError("not here")
        fraction = 0.76 if 64 <= chunked_prefill_size // 2 <= most else 0.75
        return replace(short, mem_fraction_static=fraction, chunked_prefill_size=chunked_prefill_size // 2)

    answer = found(setup_of(short, 2 * 101 * SLOT, resolver)).get("chunked_prefill_size")
    assert answer == (None if value is None else (value, f"--chunked-prefill-size {value}"))
