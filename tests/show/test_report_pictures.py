"""The series behind the charts: worked out again by other arithmetic, and against the engine's own sizing."""

import gzip
import json
from typing import Any

import pytest
from paths import DATA

from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.frontier_points import lengths
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer, answer_report
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.host_answer import HostGiven
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

MTP = {
    "tp_size": 4,
    "kv_cache_dtype": "fp8_e4m3",
    "dsa_prefill_backend": "trtllm",
    "dsa_decode_backend": "trtllm",
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 5,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 6,
    "max_running_requests": 96,
    "mem_fraction_static": 0.8,
}
DP = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "kv_cache_dtype": "fp8_e4m3"}
PLANS: dict[str, tuple[dict[str, Any], str, MemoryGiven]] = {
    "mtp": (MTP, "b200", MemoryGiven(176.28, 127.586)),
    "dp": (DP, "h200", MemoryGiven()),
    "plain": ({"tp_size": 8}, "h200", MemoryGiven()),
    "fixed slots": ({"tp_size": 8, "max_mamba_cache_size": 300}, "h200", MemoryGiven()),
    "token cap": ({"tp_size": 8, "max_total_tokens": 1_000_001}, "h200", MemoryGiven()),
    "no radix": ({"tp_size": 8, "disable_radix_cache": True, "max_running_requests": 64}, "h200", MemoryGiven()),
    "pipeline": ({"tp_size": 4, "pp_size": 2}, "h200", MemoryGiven()),
    "replay": ({**MTP, "enable_linear_replayssm_spec": True}, "b200", MemoryGiven(176.28, 127.586)),
    "short context": ({"tp_size": 8, "context_length": 5000}, "h200", MemoryGiven()),
    "shortest context": ({"tp_size": 8, "context_length": 5}, "h200", MemoryGiven()),
}


def seen(name: str, context: str | None = None, concurrency: int = 64) -> ReportAnswer:
    flags, gpu, given = PLANS[name]
    usual = str(min(4096, flags.get("context_length", 4096)))
    return answer_report(plan(flags, gpu=gpu), Demand(parse_contexts(context or usual), concurrency), given)


def engine_record(case: str, engine: str) -> dict[str, Any]:
    data = gzip.decompress((DATA / "sizing.jsonl.gz").read_bytes())
    records = (json.loads(line) for line in data.splitlines())
    return next(record for record in records if record["case"] == case and record["engine"] == engine)


@pytest.mark.parametrize("release", ["0.5.20", "0.5.21"])
def test_the_engines_own_sizes(release: str) -> None:
    """The sizes, the map's pools and the last steps are what the engine's own classes gave for this launch."""
    outputs = engine_record("prodfit_mf0.80_D6", f"sglang-{release}")["outputs"]
    made = answer_report(plan(MTP, gpu="b200", engine=release), Demand(parse_contexts("4k"), 64), PLANS["mtp"][2])
    sizes = ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests")
    assert tuple(made.start.sizes) == tuple(outputs[name] for name in sizes)
    values = {step.name: step.value for step in made.steps}
    assert {name: values[name] for name in sizes} == {name: outputs[name] for name in sizes}
    assert made.start.memory_map is not None
    pools = (segment.nbytes for segment in made.start.memory_map.segments if segment.components)
    assert sum(pools) == outputs["alloc_device_total_bytes"]


@pytest.mark.parametrize("name", PLANS)
def test_steps_are_formulas(name: str) -> None:
    """Each formula, evaluated with its values, is the number beside it, bit for bit; so is the formula in numbers."""
    made = seen(name)
    scope = {"int": int, "min": min, "max": max}
    for step in made.steps:
        assert eval(step.formula, {}, {**scope, **dict(step.terms)}) == step.value, step.name
        assert eval(step.formula_in_numbers, {}, scope) == step.value, step.name
    assert [step.value for step in made.steps if step.name.startswith("max_")] == [
        made.start.sizes.state_slots,
        made.start.sizes.tokens,
        made.start.sizes.running_requests,
    ]


def test_steps_stop_where_the_engine_does() -> None:
    made = answer_report(
        plan({"tp_size": 4, "max_mamba_cache_size": 9000}, gpu="b200"),
        Demand(parse_contexts("4k"), 1),
        MemoryGiven(176.25, 130.0),
    )
    assert made.start.failure is not None and made.advised.now.failure is not None
    assert made.steps[-1].name == "token_memory" and made.steps[-1].value <= 0
    assert made.frontier is None and made.ratio is None and made.start.prices is None


def holds(sizes: PoolSizes, requests: int, context: int, slots_per_request: int, reserve: int) -> bool:
    """Requests of one worker fit: by counting pages, slots and the cap one by one."""
    pages = sum(-(-(context + reserve) // 64) for _ in range(requests)) * 64
    return (
        requests <= sizes.running_requests
        and requests * slots_per_request <= sizes.state_slots
        and pages <= sizes.tokens
        and context < sizes.tokens
    )


@pytest.mark.parametrize("name", PLANS)
def test_frontier_by_counting(name: str) -> None:
    made = seen(name)
    assert made.frontier is not None
    deployment, sizes = plan(PLANS[name][0], gpu=PLANS[name][1]).deployment, made.start.sizes
    workers = deployment.attn_dp_size * deployment.replicas
    counted = (deployment.slots_per_request, deployment.decode_reserve)
    for point in made.frontier.marks:
        each = point.requests // workers
        assert point.requests == each * workers
        assert each == 0 or holds(sizes, each, point.context, *counted)
        assert not holds(sizes, each + 1, point.context, *counted)
        assert point.advised >= point.requests
    contexts = [point.context for point in made.frontier.points]
    assert contexts == sorted(set(contexts)) and contexts[-1] == deployment.context_length
    requests = [point.requests for point in made.frontier.points]
    assert requests == sorted(requests, reverse=True)


def test_frontier_names_the_limit_that_binds() -> None:
    by_context = {point.context: point.limit for point in seen("mtp").frontier.marks}  # type: ignore[union-attr]
    assert by_context[1024] == "max_running_requests"  # 96, where 574 slots at 5 a request would hold 114
    assert by_context[1 << 20] == "tokens"
    plain = seen("plain").frontier
    assert plain is not None and plain.points[0].limit == "state slots"


@pytest.mark.parametrize("longest", [1, 63, 1024, 1025, 131072, 1048576])
def test_lengths(longest: int) -> None:
    found = lengths(longest)
    assert found[-1] == longest and list(found) == sorted(set(found))
    first = 10 if longest > 1024 else 0
    assert all(1 << power in found for power in range(first, longest.bit_length()))


@pytest.mark.parametrize("name", ["mtp", "dp", "plain", "fixed slots"])
def test_ratio_curve_is_solved_anew(name: str) -> None:
    """Each point is what a launch with that ratio sizes; more of it never gives fewer slots or more tokens."""
    flags, gpu, given = PLANS[name]
    curve = seen(name).ratio
    assert curve is not None and curve.moves and curve.default is not None
    for point in curve.points[::5]:
        free = {key: value for key, value in flags.items() if key != "max_mamba_cache_size"}
        again = boot(plan({**free, "mamba_full_memory_ratio": point.ratio}, gpu=gpu), given)
        assert (point.tokens, point.slots, point.requests) == tuple(again.solution.sizes)
    assert [point.slots for point in curve.points] == sorted(point.slots for point in curve.points)
    assert [point.tokens for point in curve.points] == sorted((point.tokens for point in curve.points), reverse=True)
    assert curve.default.ratio == 0.9
    assert (curve.present.ratio is None) == (name == "fixed slots")


def test_ratio_does_nothing_without_a_radix_cache() -> None:
    curve = seen("no radix").ratio
    assert curve is not None and not curve.moves


@pytest.mark.parametrize("name", ["mtp", "dp", "plain"])
def test_advised_flags_give_what_is_said(name: str) -> None:
    """The flags to paste are the plan's with the advised ones: a plan of these sizes what the advice says."""
    flags, gpu, given = PLANS[name]
    made = seen(name, "0.8:8k,0.2:128k", 150)
    assert made.advised.sizes is not None
    again = boot(plan({**flags, **made.advised.flags}, gpu=gpu), given)
    assert again.solution.sizes == made.advised.sizes


def test_needs_of_the_workload() -> None:
    """64 requests over 8 workers: 8 each, 2048 pages of 64 tokens and 5 slots a request."""
    curve = seen("dp", "128k").ratio
    assert curve is not None
    assert (curve.need_tokens, curve.need_slots) == (8 * 131072, 8 * 5)


def test_holds() -> None:
    assert seen("mtp", "4k", 64).holds
    assert not seen("mtp", "128k", 960).holds
    assert not seen("mtp", "128k", 64).advised.now.serves(seen("mtp", "128k", 64).demand)
    tight = answer_report(
        plan({**DP, "enable_hierarchical_cache": True, "hicache_ratio": 2.0}, gpu="h200"),
        Demand(parse_contexts("4k"), 8),
        MemoryGiven(),
        HostGiven(host_bytes=64 << 30),
    )
    assert tight.served.requests == 8 and tight.start.host is not None and not tight.start.host.holds
    now = tight.advised.now
    assert not now.serves(tight.demand) and str(now.failure) == "the host's memory does not hold the HiCache pools"
    assert tight.holds  # by smaller host pools


def test_a_context_the_server_refuses() -> None:
    made = seen("short context", "8k")
    assert made.advised.now.requests == 0 and made.advised.now.limit == "context length"


def test_prices_are_the_librarys() -> None:
    from glm_kvplan.engines.sglang.sizing.prices import prices

    flags, gpu, given = PLANS["mtp"]
    assert list(seen("mtp").start.prices or ()) == prices(Server(plan(flags, gpu=gpu), given))
