"""A start in the words that every engine has: each measure is the engine's own number, of whom it is said."""

from functools import cache
from typing import Any

import pytest

from glm_kvplan.contexts import contexts, parse_contexts
from glm_kvplan.engines.measures import Measure, Started
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.components import allocated_bytes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.served_requests import served
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

DP8 = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
STARTS: dict[str, tuple[dict[str, Any], str, MemoryGiven]] = {
    "one": ({"tp_size": 4}, "b200", MemoryGiven(176.25, 130.0)),
    "workers": (DP8, "h200", MemoryGiven(138.5, 84.0)),
    "replicas": ({"tp_size": 4, "dp_size": 2}, "h200", MemoryGiven(138.5, 84.0)),
    "refused": ({"tp_size": 4, "max_mamba_cache_size": 9000}, "b200", MemoryGiven(176.25, 130.0)),
    "short": ({"tp_size": 4, "context_length": 65_536}, "b200", MemoryGiven(176.25, 130.0)),
}
LENGTH = 131_072


@cache
def made(kind: str) -> Plan:
    flags, gpu, _ = STARTS[kind]
    found: Plan = plan(flags, gpu=gpu, engine="0.5.23")
    return found


@cache
def start(kind: str, mix: str = "") -> Started:
    found: Started = made(kind).started(STARTS[kind][2], LENGTH, None, parse_contexts(mix) if mix else None)
    return found


@cache
def booted(kind: str) -> Boot:
    return boot(made(kind), STARTS[kind][2])


def measures(kind: str, mix: str = "") -> dict[str, Measure]:
    found = start(kind, mix).measures
    assert len({measure.name for measure in found}) == len(found)
    return {measure.name: measure for measure in found}


@pytest.mark.parametrize(("kind", "workers"), [("one", 1), ("workers", 8), ("replicas", 2)])
def test_sizes_of_a_worker_and_of_all(kind: str, workers: int) -> None:
    sizes, found = booted(kind).solution.sizes, measures(kind)
    assert found["gpus"][1:] == (made(kind).gpus, "GPU", "deployment")
    assert found["max_total_num_tokens"][1:] == (sizes.tokens, "token", "worker")
    assert found["max_mamba_cache_size"][1:] == (sizes.state_slots, "state slot", "worker")
    assert found["max_running_requests"][1:] == (sizes.running_requests, "request", "worker")
    everybody = {name for name in found if name.endswith("of all workers")}
    assert everybody == ({"tokens of all workers", "requests of all workers"} if workers > 1 else set())
    if workers > 1:
        assert found["tokens of all workers"][1:] == (sizes.tokens * workers, "token", "deployment")
        assert found["requests of all workers"][1:] == (sizes.running_requests * workers, "request", "deployment")


@pytest.mark.parametrize(("kind", "row"), [("one", 512), ("workers", 1024)])
def test_what_is_served_and_what_it_takes(kind: str, row: int) -> None:
    """Rows of raw FP8 on a B200, of bf16 on an H200; a pooled key of 33 bytes beside each, in 11 layers."""
    plan_, sizes, found = made(kind), booted(kind).solution.sizes, measures(kind)
    deployment = plan_.deployment
    one = served(Demand(contexts([(LENGTH, 1)]), 1 << 48), deployment, sizes).requests
    assert found["requests_at_context"][1:] == (one, "request", "deployment")
    assert found["longest_context"][1:] == (deployment.context_length, "token", "deployment")
    every = sum(allocated_bytes(rank, sizes) for rank in ranks(plan_)) * plan_.gpus
    assert found["cache_bytes"][1:] == (every, "byte", "deployment")
    token = 11 * (row + 33)
    slots = deployment.slots_per_request * (147_619_840 // deployment.attn_tp_size)
    assert found["token_bytes"][1:] == (token, "byte", "GPU")
    fixed = found["fixed_bytes"]
    assert fixed.value - slots == 22_528 + 4_194_320  # the tail and the request table's row
    assert fixed[2:] == ("byte", "GPU")
    assert found["request_bytes"][1:] == (fixed.value + LENGTH * token, "byte", "GPU")


def test_a_mix_is_counted_where_one_is_asked_for() -> None:
    assert "requests_of_mix" not in measures("one")
    mix = parse_contexts("0.8:8k,0.2:128k")
    expected = served(Demand(mix, 1 << 48), made("one").deployment, booted("one").solution.sizes).requests
    assert measures("one", "0.8:8k,0.2:128k")["requests_of_mix"][1:] == (expected, "request", "deployment")


def test_a_start_that_is_refused_has_nothing() -> None:
    found = start("refused", "0.8:8k,0.2:128k")
    nothing = {measure.name for measure in found.measures if measure.value == 0}
    assert nothing == {
        "requests_of_mix", "requests_at_context", "longest_context", "cache_bytes", "max_total_num_tokens",
        "max_mamba_cache_size", "max_running_requests",
    }  # fmt: skip
    assert found.failure == str(booted("refused").failure) and found.parts == {} and found.bounds == ()
    assert found.ledgers and start("one").failure is None


def test_requests_beyond_the_admitted_context_are_none() -> None:
    found = measures("short")
    assert found["requests_at_context"].value == 0 and found["longest_context"].value == 65_536
    assert start("short").context == LENGTH


def test_the_map_and_what_binds() -> None:
    found, answer = start("one"), booted("one")
    assert answer.map is not None and answer.limits is not None and answer.headroom is not None
    assert found.parts == {segment.name: segment.nbytes for segment in answer.map.segments}
    tokens, requests = answer.limits.tokens[0], answer.limits.requests[0]
    slots, headroom = answer.limits.slots, answer.headroom
    limit = served(Demand(contexts([(LENGTH, 1)]), 1 << 48), made("one").deployment, answer.solution.sizes).limit
    assert [tuple(bound) for bound in found.bounds] == [
        ("requests bound by", limit, "at 131,072 tokens each"),
        ("tokens bound by", tokens.name, tokens.text),
        ("running requests bound by", requests.name, requests.text),
        ("state slots bound by", slots.name, slots.text),
        ("headroom", headroom.verdict, str(headroom.message)),
    ]
