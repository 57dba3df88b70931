"""Tensor specs against the pools that the engine's own classes built: every record, tensor by tensor."""

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from paths import DATA

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile, load_profile, page_size
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.attribution import attribution
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.tensor import TensorSpec, device_bytes

RECORD_FILE = DATA / "pools.jsonl.gz"
GEOMETRY = bundled_geometry()
RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")


@cache
def records() -> tuple[dict[str, Any], ...]:
    with gzip.open(RECORD_FILE, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def deployment_of(inputs: dict[str, Any], profile: EngineProfile) -> Deployment:
    """The resolved deployment that a record's inputs describe (`tp_size` there is the attention width)."""
    drafts = inputs["draft_tokens"]
    return Deployment(
        tp_size=inputs["tp_size"] * inputs["attn_dp_size"],
        attn_dp_size=inputs["attn_dp_size"],
        linear_attn_tp_size=inputs["tp_size"],
        pp_size=inputs["pp_size"],
        page_size=page_size(GEOMETRY, profile),
        kv_layout=inputs["kv_layout"],
        context_length=inputs["context_len"] or GEOMETRY.max_position_embeddings,
        disable_radix_cache=inputs["disable_radix_cache"],
        mamba_radix_cache_strategy=inputs["strategy"],
        disable_overlap_schedule=not inputs["overlap"],
        mamba_ssm_dtype=inputs.get("ssm_dtype", inputs.get("mamba_ssm_dtype")) or "float32",
        enable_linear_replayssm_spec=inputs["replayssm_spec"],
        speculative_algorithm="EAGLE" if drafts else None,
        speculative_num_steps=drafts - 1 if drafts else None,
        speculative_eagle_topk=1 if drafts else None,
        speculative_num_draft_tokens=drafts,
        max_draft_tokens=drafts,
        disaggregation_mode=inputs["disaggregation_mode"],
    )


def specs_of(record: dict[str, Any]) -> tuple[TensorSpec, ...]:
    """Our tensors for a record. A `pp` record shows a stage without its draft worker, so those are left out."""
    inputs = record["inputs"]
    profile = load_profile(record["engine"].removeprefix("sglang-"))
    sizes = PoolSizes(inputs["tokens"], inputs["state_slots"], inputs["max_running_requests"])
    stage = range(*inputs["stage_layers"])
    specs = tensor_specs(Rank(GEOMETRY, deployment_of(inputs, profile), profile, stage), sizes)
    return tuple(spec for spec in specs if record["kind"] != "pp" or spec.pool != "draft")


def recorded_name(spec: TensorSpec) -> str:
    if spec.name == "intermediate_conv_window":
        return f"{spec.name}(physical)"
    return f"{spec.name}(host)" if spec.place == "host" else spec.name


def test_the_records_are_all_there() -> None:
    assert Counter(record["engine"] for record in records()) == {f"sglang-{release}": 393 for release in RELEASES}


@pytest.mark.parametrize("release", RELEASES)
def test_every_tensor_of_every_record(release: str) -> None:
    for record in records():
        if record["engine"] != f"sglang-{release}":
            continue
        specs = specs_of(record)
        ours = {recorded_name(spec): [spec.nbytes, [[spec.count, spec.dtype, list(spec.shape)]]] for spec in specs}
        assert ours == record["tensors"], record["inputs"]
        assert len(ours) == len(specs)
        assert device_bytes(specs) == record["device_total_bytes"]


# The engine's budget pays for token rows, index keys, states, snapshots and rings, of the target and of drafts; not for
# tables, tails, cursors and what lies on the host.
_PAID = re.compile(
    r"(draft\.)?(kv|index_k)_buffer|conv_state|temporal_state|intermediate_ssm|replayssm_(d|k|g|raw.|beta)"
)


# Whose each tensor is: the pool's short name in tables and JSON, by the tensor's first words.
_OWNERS = {
    "kv_buffer": "latent_kv", "data_ptrs": "latent_kv", "index_k": "indexer", "draft.": "draft", "replayssm": "state",
    "intermediate": "state", "conv_state": "state", "temporal_state": "state", "compress_tail": "compress_tail",
    "req_": "requests", "mamba_allocator": "allocator", "token_allocator": "allocator",
}  # fmt: skip


def test_every_tensor_is_of_the_pool_that_its_name_says() -> None:
    for record in records():
        for spec in specs_of(record):
            (pool,) = (pool for begin, pool in _OWNERS.items() if spec.name.startswith(begin))
            assert spec.pool == pool, spec.name


def test_what_the_budget_pays_for() -> None:
    for record in records():
        replay = "replayssm_rawk" in record["tensors"]
        for spec in specs_of(record):
            if spec.name == "intermediate_conv_window":  # the ring pays instead
                assert spec.charged == (not replay)
            else:
                assert spec.charged == (_PAID.fullmatch(spec.name) is not None), spec.name


@pytest.mark.parametrize("release", RELEASES)
def test_page_width_and_layers(release: str) -> None:
    profile = load_profile(release)
    for record in records():
        if record["engine"] != f"sglang-{release}":
            continue
        specs = {spec.name: spec for spec in specs_of(record)}
        deployment = deployment_of(record["inputs"], profile)
        assert deployment.page_size == record["page_size"]
        assert deployment.attn_tp_size == record["attn_tp_size"]
        assert specs["conv_state"].shape[0] == record["state_layers"]
        assert specs["kv_buffer"].count == record["full_layers"]


SIZING = DATA / "sizing.jsonl.gz"


@cache
def solved() -> tuple[dict[str, Any], ...]:
    """The records of the engine's own sizing that reached allocation."""
    with gzip.open(SIZING, "rt", encoding="utf-8") as lines:
        return tuple(record for record in map(json.loads, lines) if "alloc_bytes" in record["outputs"])


@pytest.mark.parametrize("release", RELEASES)
def test_allocation_and_charge_of_every_solved_record(release: str) -> None:
    """Allocated bytes are the engine's; charged bytes are its prices times its counts; the parts explain the rest."""
    profile = load_profile(release)
    for record in solved():
        if record["engine"] != f"sglang-{release}":
            continue
        inputs, outputs = record["inputs"], record["outputs"]
        deployment = replace(
            deployment_of(inputs | {"tp_size": inputs["tp_size"] // inputs["attn_dp_size"]}, profile),
            max_running_requests=inputs["max_running_requests"],
            max_mamba_cache_size=inputs["max_mamba_cache_size"],
            skip_decode_lock=inputs["skip_decode_lock"],
        )
        sizes = PoolSizes(
            outputs["max_total_num_tokens"], outputs["max_mamba_cache_size"], outputs["max_running_requests"]
        )
        stage = range(*outputs["layers"])
        specs = [spec for spec in tensor_specs(Rank(GEOMETRY, deployment, profile, stage), sizes)]
        if inputs["pp_size"] > 1:
            specs = [spec for spec in specs if spec.pool != "draft"]
        assert {recorded_name(spec): spec.nbytes for spec in specs} == outputs["alloc_bytes"], inputs
        assert device_bytes(specs) == outputs["alloc_device_total_bytes"]

        found = attribution(Rank(GEOMETRY, deployment, profile, stage), sizes)
        assert costs(Rank(GEOMETRY, deployment, profile, stage)).cell_bytes == outputs["cell_size"]
        charged = {each.component: each.charged for each in found.components}
        tokens = charged["latent_kv"] + charged["indexer"] + charged["draft_kv"]
        assert tokens == outputs["cell_size"] * sizes.tokens
        if inputs["pp_size"] == 1:
            assert charged["kda_state"] == outputs["mamba_cache_per_req"] * (sizes.state_slots + 1)
        assert found.charged == sum(charged.values())
        assert found.rest == 0 and not any(each.rest for each in found.components)
        assert len({part.name for part in found.parts}) == len(found.parts)
