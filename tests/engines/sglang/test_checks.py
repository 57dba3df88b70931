"""What SGLang makes of each expectation of a check, at its edges: judgements, remarks, and what a server lacks."""

from functools import cache
from typing import Any

import pytest

from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.expectations import Expectations, Held, Judgement
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.checks.host_memory import judge_host
from glm_kvplan.engines.sglang.checks.judgements import judge, longest_context
from glm_kvplan.engines.sglang.checks.trial import SERVES, change, flags_changed, lacking, more_memory
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.host_sizes import RESERVE_BYTES
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB

MEASURED = MemoryGiven(176.25, 130.0)
UNKNOWN_DRAFT = {"tp_size": 4, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/nowhere/draft"}
HICACHE = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "enable_hierarchical_cache": True}
STARTS: dict[str, tuple[dict[str, Any], str, MemoryGiven]] = {
    "fits": ({"tp_size": 4}, "b200", MEASURED),
    "refused": ({"tp_size": 4, "max_mamba_cache_size": 9000}, "b200", MEASURED),
    "dies": ({"tp_size": 4, "mem_fraction_static": 0.999}, "b200", MEASURED),
    "short": ({"tp_size": 4, "mem_fraction_static": 0.97}, "b200", MEASURED),
    "tight": ({"tp_size": 4, "mem_fraction_static": 0.93}, "b200", MEASURED),
    "estimated": ({"tp_size": 8}, "h200", MemoryGiven()),
    "bound": (UNKNOWN_DRAFT, "b200", MemoryGiven(177.0, 126.0)),
    "capped": ({"tp_size": 4, "max_running_requests": 8, "max_mamba_cache_size": 10}, "b200", MEASURED),
    "granted": ({"tp_size": 4, "max_running_requests": 8}, "b200", MEASURED),
    "workers": ({**HICACHE, "enable_hierarchical_cache": False, "max_running_requests": 64}, "h200", MemoryGiven()),
    "hicache": ({**HICACHE, "hicache_ratio": 2.0}, "h200", MemoryGiven()),
    "by size": ({**HICACHE, "hicache_size": 90}, "h200", MemoryGiven()),
    "weights": ({"tp_size": 2}, "h100", MemoryGiven()),
}


@cache
def made(kind: str) -> Plan:
    flags, gpu, _ = STARTS[kind]
    found: Plan = plan(flags, gpu=gpu, engine="0.5.23")
    return found


@cache
def started(kind: str) -> Boot:
    return boot(made(kind), STARTS[kind][2])


def held(kind: str, *, host_gib: float | None = None, pod_gib: float | None = None, **expect: Any) -> Held:
    found: Held = made(kind).hold(STARTS[kind][2], Expectations(**expect), host_gib=host_gib, pod_gib=pod_gib)
    return found


def names(found: Held) -> list[str]:
    return [judgement.name for judgement in found.judgements]


def remarks(found: Held) -> list[str]:
    return [remark.name for remark in found.remarks]


def one(found: Held, name: str) -> Judgement:
    (judgement,) = (each for each in found.judgements if each.name == name)
    return judgement


# --- judgements ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "found", "limit"),
    [("fits", "starts", ""), ("refused", "refused", "out of memory"), ("dies", "out of memory", "memory")],
)
def test_whether_it_starts(kind: str, found: str, limit: str) -> None:
    judged = judge(Expectations(), made(kind), started(kind))["boots"]
    failure, headroom = started(kind).failure, started(kind).headroom
    if kind == "refused":
        assert failure is not None
        limit = failure.kind.replace("_", " ")
    assert (judged.name, judged.holds, judged.wanted) == ("boots", kind == "fits", "starts")
    assert (judged.found, judged.limit) == (found, limit)
    if kind == "dies":
        assert headroom is not None and judged.why == str(headroom.message)


def test_the_last_byte_boots() -> None:
    start = started("dies")
    assert start.map is not None
    rest = start.map.usable
    for usable, starts in ((0, True), (-1, False)):
        segments = start.map.segments
        last = segments[-1]._replace(nbytes=segments[-1].nbytes + usable - rest)
        edge = start._replace(map=start.map._replace(segments=(*segments[:-1], last)))
        assert edge.map is not None and edge.map.usable == usable
        assert judge(Expectations(), made("dies"), edge)["boots"].holds == starts


def test_what_binds_each_expectation() -> None:
    """The admitted context, else the first limit of tokens; the requests' own; of lengths what ends them."""
    start, deployment = started("fits"), made("fits").deployment
    limits, sizes = start.limits, start.solution.sizes
    assert limits is not None
    longest = longest_context(deployment, sizes)
    assert longest == deployment.context_length == 1_048_576 < sizes.tokens
    assert longest_context(deployment, PoolSizes(0, 0, 0)) == 0
    found = judge(
        Expectations(min_context=1, min_concurrency=1, min_total_tokens=1, max_running_requests=1), made("fits"), start
    )
    assert (found["min_context"].limit, found["min_context"].found) == ("context_length", longest)
    assert found["min_context"].why == "the server admits 1,048,576 tokens a request"
    tokens, requests = limits.tokens[0], limits.requests[0]
    assert (found["min_total_tokens"].limit, found["min_total_tokens"].why) == (f"tokens ({tokens.name})", tokens.text)
    assert (found["max_running_requests"].limit, found["max_running_requests"].why) == (requests.name, requests.text)
    small = {"tp_size": 4, "max_total_tokens": 64_000}
    capped = plan(small, gpu="b200", engine="0.5.23")
    of_pool = boot(capped, MEASURED)
    bound = judge(Expectations(min_context=1), capped, of_pool)["min_context"]
    assert bound.limit.startswith("tokens (") and bound.found == 64_000 - max(capped.deployment.decode_reserve, 1)


@pytest.mark.parametrize(
    ("kind", "context", "limit"),
    [
        ("fits", 1_048_577, "context_length"),
        ("fits", 1_048_000, "tokens"),
        ("fits", 1024, "requests"),
        ("capped", 1024, "requests"),
    ],
)
def test_what_binds_requests_of_a_length(kind: str, context: int, limit: str) -> None:
    limits = started(kind).limits
    assert limits is not None
    found = judge(Expectations(min_context=context, min_concurrency=1), made(kind), started(kind))["min_concurrency"]
    words = {
        "context_length": ("context_length", "the server admits 1,048,576 tokens a request"),
        "tokens": (f"tokens ({limits.tokens[0].name})", limits.tokens[0].text),
        "requests": (limits.requests[0].name, limits.requests[0].text),
    }
    assert (found.limit, found.why) == words[limit]
    assert (found.found == 0) == (limit == "context_length")


def test_figures_are_of_all_workers() -> None:
    deployment, sizes = made("workers").deployment, started("workers").solution.sizes
    found = judge(
        Expectations(min_total_tokens=1, max_running_requests=sizes.running_requests * 8), made("workers"),
        started("workers"),
    )  # fmt: skip
    assert deployment.attn_dp_size == 8
    assert found["min_total_tokens"].found == 8 * sizes.tokens
    assert found["max_running_requests"].found == 8 * sizes.running_requests and found["max_running_requests"].holds


def test_what_is_estimated_and_what_is_at_most() -> None:
    expect = Expectations(min_total_tokens=1, max_running_requests=1, headroom=1.0)
    found = judge(expect, made("estimated"), started("estimated"))
    assert [each.estimated for each in found.values()] == [False, True, True, True]
    assert not any(each.at_most for each in found.values())
    exact = judge(expect, made("fits"), started("fits"))
    assert not any(each.estimated or each.at_most for each in exact.values())
    bound = judge(expect, made("bound"), started("bound"))
    assert [each.at_most for each in bound.values()] == [False, True, True, True]


@pytest.mark.parametrize("above", [False, True])
def test_a_headroom_in_gib(above: bool) -> None:
    start = started("fits")
    assert start.map is not None
    left = start.map.unallocated / GIB
    wanted = left + above * 1e-6
    found = judge(Expectations(headroom=wanted), made("fits"), start)["headroom"]
    assert (found.holds, found.wanted, found.found) == (not above, wanted, round(left, 2))
    assert found.limit == "mem_fraction_static"
    assert f"keeps {start.solution.slack_gib:.2f} GiB out of the budget" in found.why
    assert f"take {start.map.uncharged / GIB:.2f} GiB that it does not charge" in found.why


@pytest.mark.parametrize(("kind", "verdict"), [("fits", "fits"), ("tight", "tight"), ("short", "short")])
def test_a_headroom_that_fits(kind: str, verdict: str) -> None:
    start = started(kind)
    assert start.headroom is not None
    found = judge(Expectations(headroom="fits"), made(kind), start)["headroom"]
    assert (found.holds, found.wanted, found.found, found.limit) == (verdict != "short", "fits", verdict, "memory")
    assert found.why == str(start.headroom.message) and not found.estimated


# --- holding ---------------------------------------------------------------------------------------------------------


def test_weights_that_do_not_fit() -> None:
    found = held("weights", min_total_tokens=1)
    (boots,) = found.judgements
    assert found.start is None and (boots.name, boots.holds, boots.wanted, boots.found, boots.limit) == (
        "boots", False, "starts", "out of memory", "weights",
    )  # fmt: skip
    assert [change.flags for change in boots.changes] == [{"tp_size": 8}]


def test_expectations_come_in_their_order_and_the_host_s_last() -> None:
    found = held("hicache", host_gib=4000, host_memory="fits", headroom="fits", min_context=1, min_total_tokens=1)
    assert names(found) == ["boots", "min_context", "min_total_tokens", "headroom", "host_memory"]
    assert all(judgement.holds and not judgement.changes for judgement in found.judgements)
    refused = held("refused", min_total_tokens=5, host_memory="fits")
    assert names(refused) == ["boots", "min_total_tokens", "host_memory"]
    for name, wanted in (("min_total_tokens", 5), ("host_memory", "fits")):
        judgement = one(refused, name)
        assert (judgement.holds, judgement.wanted, judgement.found) == (False, wanted, "nothing")
        assert (judgement.limit, judgement.why, judgement.changes) == ("", "the engine does not start", ())
    assert names(held("refused")) == ["boots"] and refused.start.failure is not None


def test_host_memory_is_judged_where_it_is_expected_or_falls_short() -> None:
    assert names(held("hicache")) == names(held("hicache", host_gib=4000)) == ["boots"]
    assert names(held("hicache", host_gib=64)) == names(held("hicache", pod_gib=64)) == ["boots", "host_memory"]
    assert one(held("hicache", host_gib=64), "host_memory").changes
    assert names(held("fits", host_gib=64)) == ["boots"]
    off = one(held("fits", host_memory="fits"), "host_memory")
    assert (off.holds, off.found, off.why) == (True, "no host pools", "HiCache is off")


def test_what_is_remarked() -> None:
    assert remarks(held("fits")) == []
    assert remarks(held("short")) == ["headroom"] == remarks(held("short", headroom=1.0))
    assert remarks(held("short", headroom="fits")) == []  # its judgement says it
    assert remarks(held("tight")) == remarks(held("tight", headroom="fits")) == ["tight_headroom"]
    places = {remark.place for kind in ("short", "tight") for remark in held(kind).remarks}
    assert places == {("expect", "headroom")}
    hazards = held("by size", host_gib=4000).remarks
    assert "size_is_per_rank" in [hazard.name for hazard in hazards]
    assert {hazard.place for hazard in hazards} == {("expect", "host_memory")}
    assert remarks(held("dies")) == remarks(held("refused")) == []
    (capped,) = held("capped").remarks
    limits = started("capped").limits
    assert limits is not None and capped.place == ("flags", "max_running_requests")
    limit = limits.requests[0]
    assert capped.why == f"8 running requests are asked for and 2 granted: {limit.name} ({limit.text})"
    assert remarks(held("granted")) == []
    granted = started("workers").solution.running_requests * 8
    assert (remarks(held("workers")) == ["requests_capped"]) == (granted < 64)
    assert remarks(held("bound")) == []  # the flags' own warning says it


def test_an_estimate_that_only_just_holds_is_remarked() -> None:
    low, high = started("estimated").span
    assert low is not None and high is not None
    tokens = started("estimated").solution.sizes.tokens
    (lost,) = held("estimated", min_total_tokens=tokens).remarks
    assert (lost.name, lost.place) == ("estimated_memory", ("memory",)) and lost.why.startswith(
        "min_total_tokens would fall short with 1.2 GiB less"
    )
    assert remarks(held("estimated", min_total_tokens=low.tokens)) == []
    assert remarks(held("estimated", min_total_tokens=low.tokens + 1)) == ["estimated_memory"]
    assert remarks(held("estimated", min_total_tokens=tokens + 1)) == []  # it falls short as it is


def test_a_start_that_fails_at_the_low_end_of_the_estimate_is_remarked() -> None:
    """The most slots that the middle of the estimate takes are too many with less."""
    flags = {"tp_size": 8, "max_mamba_cache_size": 90_000}
    refused = boot(plan(flags, gpu="h200", engine="0.5.23"), MemoryGiven())
    (most,) = (remedy.flags for remedy in refused.remedies if remedy.flag == "max_mamba_cache_size")
    found = plan({**flags, **most}, gpu="h200", engine="0.5.23").hold(MemoryGiven(), Expectations())
    assert found.start.span[0] is None and one(found, "boots").holds
    (why,) = (remark.why for remark in found.remarks if remark.name == "estimated_memory")
    assert why.startswith("boots would fall short with 1.2 GiB less")


def test_a_mix_says_what_the_mean_would_hold() -> None:
    mix = parse_contexts("0.8:8k,0.2:128k")
    (note,) = map(str, held("fits", contexts=mix, min_concurrency=1).notes)
    assert "by the mean" in note or "mean" in note
    assert held("fits").notes == held("refused", contexts=mix, min_concurrency=1).notes == ()


# --- the host --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "pod", "binds"),
    [
        (4000, None, "host memory"),
        (None, 4000, "container limit"),
        (4000, 3000, "container limit"),
        (3000, 3000, "container limit"),
        (3000, 4000, "host memory"),
    ],
)
def test_which_memory_of_a_host_binds(host: float | None, pod: float | None, binds: str) -> None:
    found = judge_host(made("hicache"), started("hicache").solution.sizes, host, pod).judgement
    assert (found.name, found.holds, found.wanted, found.found) == ("host_memory", True, "fits", "fits")
    assert found.limit == binds and found.changes == ()
    assert f"after the engine's reserve of {RESERVE_BYTES / GIB:g} GiB" in found.why


@pytest.mark.parametrize(("kind", "first"), [("hicache", "hicache_ratio"), ("by size", "hicache_size")])
def test_the_largest_pools_that_a_host_holds(kind: str, first: str) -> None:
    """The flag that is used comes first; each change is the most that fits."""
    found = judge_host(made(kind), started(kind).solution.sizes, 64, None)
    assert not found.judgement.holds and "the engine refuses: " in found.judgement.why
    asked, there = found.judgement.found.split(" GiB of ")
    assert float(asked) > float(there) == 64 - RESERVE_BYTES / GIB
    ratio = next(each for each in found.changes if each.flags.get("hicache_ratio") is not None)
    assert set(found.changes[0].flags) >= {first} and len(found.changes) == 2
    assert ratio.flags["hicache_size"] is None
    assert next(iter(found.changes[0].flags)) == first


def test_a_layout_that_the_host_pools_do_not_take() -> None:
    refused = plan({**HICACHE, "hicache_mem_layout": "layer_first"}, gpu="h200", engine="0.5.23")
    found = judge_host(refused, started("hicache").solution.sizes, 4000, None)
    judged = found.judgement
    assert (judged.holds, judged.wanted, judged.found, judged.limit) == (False, "fits", "refused", "layout")
    assert judged.name == "host_memory" and found.changes == () == found.hazards


# --- what a server lacks ---------------------------------------------------------------------------------------------


def lacks(kind: str, **expect: Any) -> dict[str, str]:
    return {**lacking(Server(made(kind), STARTS[kind][2]), Expectations(**expect))}


def test_what_a_server_lacks() -> None:
    tokens = started("fits").solution.sizes.tokens
    assert lacks("fits") == lacks("tight") == lacks("fits", min_total_tokens=tokens) == {}
    assert lacks("fits", min_total_tokens=tokens + 1) == {"min_total_tokens": "tokens"}
    assert lacks("short") == {SERVES: "free"} == lacks("short", min_total_tokens=1)
    assert lacks("short", headroom="fits") == {SERVES: "free", "headroom": "free"}
    assert lacks("tight", headroom="fits") == {}
    assert lacks("dies") == {"boots": "free", SERVES: "free"}
    assert [*lacks("refused", min_total_tokens=1)] == ["boots"]
    assert lacks("fits", min_context=1_048_577) == {"min_context": "context"}
    assert lacks("fits", min_context=1_048_577, min_concurrency=1) == {
        "min_context": "context", "min_concurrency": "context",
    }  # fmt: skip
    assert lacks("fits", max_running_requests=5000) == {"max_running_requests": "slots"}
    assert lacks("capped", max_running_requests=8) == {"max_running_requests": "slots"}
    assert lacks("granted", max_running_requests=9) == {"max_running_requests": "requests"}
    assert lacks("granted", min_context=1024, min_concurrency=9) == {"min_concurrency": "requests"}
    assert lacks("fits", min_context=1_000_000, min_concurrency=500) == {"min_concurrency": "tokens"}
    left = started("fits").map
    assert left is not None
    assert lacks("fits", headroom=left.unallocated / GIB) == {}
    assert lacks("fits", headroom=left.unallocated / GIB + 1e-6) == {"headroom": "free"}


def test_changes_in_words() -> None:
    """More GPUs are said, and memory that was read for other weights."""
    assert more_memory(1.5, ("x",))[:4] == ({}, "1.50 GiB more free on each GPU after the load", 1.5, ("x",))
    assert flags_changed({"hicache_size": 9})[:4] == ({"hicache_size": 9}, "--hicache-size 9", 0.0, ())
    server = Server(made("fits"), MEASURED)
    more = server.tried(tp_size=8)
    slots = server.tried(max_mamba_cache_size=99)
    assert more is not None and slots is not None
    assert change({"tp_size": 8}, server, more) == (
        {"tp_size": 8}, "--tp-size 8 on 8 GPUs, not 4 (its memory estimated)", 0.0, (), True, False,
    )  # fmt: skip
    assert change({"max_mamba_cache_size": 99}, server, slots, ("a",)) == (
        {"max_mamba_cache_size": 99}, "--max-mamba-cache-size 99", 0.0, ("a",), False, False,
    )  # fmt: skip
