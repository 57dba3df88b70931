"""What comes of a vLLM start for `diff` and `sweep`: each measure is the start's number, none where it fails."""

from functools import cache

import pytest

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.measures import SHARED, Started
from glm_kvplan.engines.vllm.answers.started import started
from glm_kvplan.engines.vllm.answers.sweep_point import COLUMNS, CONTEXT_FLAG, size_point
from glm_kvplan.engines.vllm.components import ledgers
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import token_bytes
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
FLAGS: dict[str, tuple[dict[str, object], float | None]] = {
    "estimated": ({"data_parallel_size": 2, "speculative_config": MTP3}, None),
    "offloaded": ({"cpu_offload_gb": 0.5}, None),
    "measured": ({"max_model_len": 200_000, "max_num_seqs": 20}, 45.07),
    "refused": ({}, 4.0),
}


@cache
def made(name: str) -> tuple[Plan, MemoryGiven, Begun]:
    flags, memory = FLAGS[name]
    plan: Plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine="vllm-0.33.0", gpu="h200")
    given = MemoryGiven(available_gib=memory)
    return plan, given, begin(plan, given)


def outcome(name: str, context: int = 131072, mix: str | None = None) -> Started:
    plan, given, _ = made(name)
    return started(plan, given, context, None, None if mix is None else parse_contexts(mix))


@pytest.mark.parametrize("name", ["estimated", "measured"])
def test_every_measure_is_the_starts(name: str) -> None:
    plan, _, begun = made(name)
    blocks, start, engines = plan.blocks, begun.start, plan.deployment.data_parallel_size
    held = min((start.count - 1) // blocks.needed(131072), plan.deployment.max_num_seqs)
    found = outcome(name)
    assert {one.name: one.value for one in found.measures} == {
        "gpus": 4 * engines,
        "requests_at_context": engines * held,
        "longest_context": min(plan.context_length, blocks.longest_context(start.count)),
        "cache_bytes": start.count * blocks.nbytes * 4 * engines,
        "token_bytes": token_bytes(blocks),
        "request_bytes": blocks.needed(131072) * blocks.nbytes,
        "fixed_bytes": blocks.fixed * blocks.nbytes,
        "num_gpu_blocks": start.count,
        "block_size": blocks.size,
        "block_bytes": blocks.nbytes,
        "blocks of a request before its first token": blocks.fixed,
        "printed cache tokens": start.printed_tokens,
    }
    assert {one.name for one in found.measures} >= SHARED.keys() - {"requests_of_mix"}
    units = {one.name: (one.unit, one.whose) for one in found.measures}
    assert units["requests_at_context"] == ("request", "deployment")
    assert units["blocks of a request before its first token"] == ("block", "GPU")
    limit = "blocks" if name == "estimated" else "--max-num-seqs"
    (bound,) = found.bounds
    assert (bound.subject, bound.limit, bound.why) == ("requests bound by", limit, "at 131,072 tokens each")
    assert (found.context, found.failure) == (131072, None)


def test_a_mix_is_counted_where_one_is_expected() -> None:
    plan, _, begun = made("measured")
    mixed = outcome("measured", 8192, "0.8:8k,0.2:128k")
    assert [one.name for one in mixed.measures][:3] == ["gpus", "requests_of_mix", "requests_at_context"]
    assert mixed.measure("requests_of_mix") == 20 == mixed.measure("requests_at_context")
    assert outcome("measured").measure("requests_of_mix") is None and begun.plan is plan


def test_a_start_that_fails_has_its_prices_and_nothing_else() -> None:
    plan, _, begun = made("refused")
    found = outcome("refused")
    assert begun.failure is not None and found.failure == begun.failure.reason
    values = {one.name: one.value for one in found.measures}
    zero = {"requests_at_context", "longest_context", "cache_bytes", "num_gpu_blocks", "printed cache tokens"}
    assert {name for name, value in values.items() if not value} == zero
    assert (found.parts, found.bounds) == ({}, ()) and values["block_bytes"] == plan.blocks.nbytes
    assert found.ledgers == ledgers(plan.rank, tokens=131072, states=3, requests=1)


def test_parts_are_what_is_taken_and_the_blocks() -> None:
    for name in ("estimated", "measured", "offloaded"):
        plan, _, begun = made(name)
        found = outcome(name).parts
        taken = {part.name: part.gib for part in begun.memory.parts if part.gib < 0}
        assert list(found) == [*taken, "blocks"]
        assert found["blocks"] == begun.start.count * plan.blocks.nbytes
        assert all(abs(found[part] + gib * GIB) <= 1 for part, gib in taken.items())
        assert bool(taken) == (name != "measured") and "offloaded weights" not in taken


def test_notes_are_the_weights_where_these_are_estimated() -> None:
    _, _, begun = made("estimated")
    assert begun.weights is not None and outcome("estimated").notes == tuple(begun.weights.notes)
    assert outcome("measured").notes == ()


@pytest.mark.parametrize("name", ["estimated", "measured"])
def test_a_point_of_a_sweep_is_the_start(name: str) -> None:
    plan, given, begun = made(name)
    start, blocks, engines = begun.start, plan.blocks, plan.deployment.data_parallel_size
    point = size_point(plan, given, None)
    assert CONTEXT_FLAG == "max_model_len" and point.context_length == plan.context_length
    held = engines * min((start.count - 1) // blocks.needed(8192), plan.deployment.max_num_seqs)
    found = dict(
        zip((column.name for column in COLUMNS), point.values(Demand(parse_contexts("8k"), 10**9)), strict=True)
    )
    assert found == {
        "gpus": 4 * engines,
        "served": held,
        "served_per_gpu": held / (4 * engines),
        "served_bound_by": "blocks" if name == "estimated" else "--max-num-seqs",
        "longest_context": start.longest_context,
        "request_bytes": blocks.needed(8192) * blocks.nbytes,
        "fixed_bytes": blocks.fixed * blocks.nbytes,
        "token_bytes": token_bytes(blocks),
        "cache_bytes": start.count * blocks.nbytes * 4 * engines,
        "certainty": "estimated" if name == "estimated" else "derived",
        "num_blocks": start.count,
        "block_size": blocks.size,
        "block_bytes": blocks.nbytes,
        "request_blocks": blocks.needed(8192),
        "fixed_blocks": blocks.fixed,
        "printed_tokens": start.printed_tokens,
        "printed_concurrency": start.count / blocks.needed(plan.context_length),
        "max_num_seqs": plan.deployment.max_num_seqs,
        "available_bytes": begun.memory.nbytes,
        "available_gib": begun.memory.nbytes / GIB,
    }
    for asked, served, limit in ((held - 1, held - 1, "concurrency"), (held, held, "concurrency")):
        values = point.values(Demand(parse_contexts("8k"), asked))
        assert values[1:4:2] == (served, limit)
    assert point.values(Demand(parse_contexts("8k"), held + 1))[1] == held


def test_a_point_that_cannot_be_is_refused() -> None:
    plan, given, begun = made("refused")
    assert begun.failure is not None
    with pytest.raises(RefusedError) as refused:
        size_point(plan, given, None)
    assert (refused.value.reason, refused.value.source) == (begun.failure.reason, begun.failure.source)
    plan, given, _ = made("measured")
    with pytest.raises(InputError, match="prefix_states are not planned for this engine"):
        size_point(plan, given, None).values(Demand(parse_contexts("8k"), 4, 1))


def test_columns_of_a_table_leave_it_in_their_order() -> None:
    own = {
        column.name: column.spare for column in COLUMNS if column.spare and column.whose in ("GPU", "worker", "request")
    }
    assert sorted(own.values()) == sorted(own.values(), key=int)
    shown = {column.name: (str(column.title), column.spare) for column in COLUMNS[10:] if column.title}
    assert shown == {"num_blocks": ("blocks per GPU", 0), "fixed_blocks": ("fixed per request", 3),
                     "printed_tokens": ("printed tokens", 2), "available_gib": ("GiB per GPU", 1)}  # fmt: skip
    kinds = {column.kind for column in COLUMNS[10:]}
    assert kinds == {"int", "float"}
    assert [column.name for column in COLUMNS if column.kind == "float"] == [
        "served_per_gpu", "printed_concurrency", "available_gib"
    ]  # fmt: skip
