"""Every plan that vLLM's own code made: dtype, backend, block, groups, blocks, the printed line, and its refusals."""

from typing import Any

import pytest
from vllm_oracle import blocks, flags_of, records, resolved

from glm_kvplan.engines.vllm.start import start
from glm_kvplan.errors import RefusedError

KINDS = {"MLAAttentionSpec": "tokens", "MambaSpec": "states", "KpoolTailSpec": "tail", "CircularBufferSpec": "tail"}
PUBLIC = [record for record in records() if record["kind"] == "public boot log"]
# The planning code plans a pipeline; the model class cannot run one (see `test_vllm_refusals`).
PIPELINES = [record for record in records() if "pipeline_parallel_size" in record["input"]]


def test_the_records_are_all_there() -> None:
    assert len(records()) == 969
    assert len(PUBLIC) == 9 and len(PIPELINES) == 16
    assert sum("refused" in record for record in records()) == 85


def one_stage(record: dict[str, Any]) -> dict[str, object]:
    given = flags_of(record)
    given.pop("pipeline_parallel_size", None)
    return given


@pytest.mark.parametrize("release", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"])
@pytest.mark.parametrize("gpu", ["h200", "b200", "rtxpro6000", "gb10"])
def test_every_plan_is_vllms_own(release: str, gpu: str) -> None:
    seen = 0
    for record in records():
        if (record["release"], record["gpu"]) != (release, gpu) or "refused" in record:
            continue
        seen += 1
        given, said, plan = one_stage(record), record["resolved"], record["plan"]
        found = blocks(given, release, gpu)
        deployment = found.rank.deployment
        assert deployment.cache_dtype == said["cache_dtype"], given
        assert deployment.mla_backend == said["mla_backend"], given
        assert deployment.block_size == said["block_size"], given
        assert deployment.enable_prefix_caching == said["prefix_caching"], given
        assert deployment.max_num_seqs == said["max_num_seqs"], given
        assert deployment.max_num_batched_tokens == said["max_num_batched_tokens"], given
        assert deployment.gpu_memory_utilization == said["gpu_memory_utilization"], given
        assert found.nbytes == plan["bytes_per_block"], given
        groups = [(group.holds, group.layers, group.nbytes) for group in found.groups]
        assert groups == [(KINDS[group["of"]], group["layers"], group["bytes"]) for group in plan["groups"]], given
        begun = start(found, record["input"]["available"])
        assert begun.max_model_len == plan["max_model_len"], given
        assert begun.count == plan["num_blocks"], given
        assert found.needed(begun.max_model_len) == plan["blocks_per_request"], given
        assert begun.printed_tokens == plan["kv_cache_size_tokens"], given
        assert begun.concurrency == plan["max_concurrency"], given
        assert begun.line == plan["line"], given
    assert seen >= 53


def test_what_a_group_takes_a_request_is_vllms_own() -> None:
    for record in records():
        if "refused" in record:
            continue
        found = blocks(one_stage(record), record["release"], record["gpu"])
        context = record["plan"]["max_model_len"]
        taken = {
            "tokens": found.token_blocks(context),
            "states": found.rank.deployment.states_per_request,
            "tail": 1,
        }
        for group, said in zip(found.groups, record["plan"]["groups"], strict=True):
            assert taken[group.holds] == said["blocks_per_request_at_max_len"]


def test_every_state_and_page_is_vllms_own() -> None:
    """Bytes of the pages by vLLM's layer classes, before they are grouped."""
    from glm_kvplan.engines.vllm.components import compress_tail, index_keys, kda_state, latent_rows

    for record in records():
        if "refused" in record or "layer_specs" not in record:
            continue
        rank = blocks(one_stage(record), record["release"], record["gpu"]).rank
        sizes = {"float32": 4, "bfloat16": 2}
        for spec in record["layer_specs"]:
            if spec["class"] == "MambaSpec":
                assert spec["layers"] == rank.state_layers
                nbytes = [
                    sizes[dtype] * prod_of(shape) for dtype, shape in zip(spec["dtypes"], spec["shapes"], strict=True)
                ]
                assert sum(nbytes) == kda_state.layer_bytes(rank)
                # the platform pads by what it sizes with; 0.30 and 0.31 pad further as they group
                assert spec["page_size_padded"] == rank.deployment.block_size * rank.deployment.sized_row_bytes
            elif spec["class"] != "MLAAttentionSpec":
                assert spec["layers"] == rank.token_layers
                assert spec["block_size"] == rank.deployment.tail_slots
                assert spec["page_size_bytes"] == compress_tail.layer_bytes(rank)
            elif spec["tokens_per_state"] == 1:
                assert spec["layers"] == rank.token_layers
                assert spec["page_size_bytes"] == latent_rows.page_bytes(rank)
            else:
                assert spec["page_size_bytes"] == index_keys.page_bytes(rank)


def prod_of(shape: list[int]) -> int:
    total = 1
    for width in shape:
        total *= width
    return total


@pytest.mark.parametrize("record", PUBLIC, ids=lambda record: f"{record['release']} {record['input']['name']}")
def test_public_boots_print_what_is_planned(record: dict[str, Any]) -> None:
    """Three boots of an H200 server of the first releases, whose lines are public; 0.33 would print less."""
    begun = start(blocks(flags_of(record), record["release"], "h200"), record["input"]["available"])
    observed = record["input"]["observed"]
    if record["release"] != "0.33.0":
        assert begun.printed_tokens == observed["tokens"]
        assert round(begun.concurrency, 2) == observed.get("concurrency", round(begun.concurrency, 2))
    assert begun.printed_tokens <= observed["tokens"]


REFUSED = [record for record in records() if "refused" in record]


@pytest.mark.parametrize("release", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"])
def test_what_vllm_refuses_is_refused_with_our_reason(release: str) -> None:
    for record in REFUSED:
        if record["release"] != release:
            continue
        with pytest.raises(RefusedError) as refused:
            resolved(flags_of(record), release, record["gpu"])
        assert release in refused.value.source
        assert record["refused"]["message"] not in str(refused.value)
