"""Every number of the article, computed through the public API. The expectations stand in data/article.toml."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.engines.sglang.components import compress_tail, kda_state
from glm_kvplan.engines.sglang.components import index_keys as indexer
from glm_kvplan.engines.sglang.components.host_pools import HostPool
from glm_kvplan.engines.sglang.components.latent_kv import row_bytes
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.host_sizes import host_pools

ARTICLE = tomllib.loads((DATA / "article.toml").read_text(encoding="utf-8"))["number"]
UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "MiB": 2**20}
CONTEXT_128K = 128 * 1024


@cache
def deployed(**flags: object) -> kv.Plan:
    return kv.plan(flags)


def ledger(name: str, context: int = CONTEXT_128K, concurrency: int = 1, **flags: object) -> kv.Ledger:
    answer = kv.estimate(deployed(**flags), kv.Workload(context, concurrency))
    return next(entry for entry in answer.stages[0].ledgers if entry.account.name == name)


SCALED = {"kv_cache_dtype": "fp8_e4m3"}
RAW = {"kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm"}
DP8 = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
DP4 = {"tp_size": 8, "dp_size": 4, "enable_dp_attention": True}
BF16_STATE = {"mamba_ssm_dtype": "bfloat16"}


def per_token(**flags: object) -> int:
    return sum(ledger(name, **flags).bytes_per_unit for name in ("latent_kv", "indexer"))


def token_bytes(concurrency: int = 1, **flags: object) -> int:
    return sum(ledger(name, concurrency=concurrency, **flags).total for name in ("latent_kv", "indexer"))


def row(layout: kv.KvLayout) -> int:
    plan = deployed()
    return row_bytes(plan.geometry, layout, plan.profile)


def kv_buffer(**flags: object) -> kv.TensorSpec:
    """The token pool's main tensor of one layer; its last axis is the engine's kv_cache_dim."""
    answer = kv.estimate(deployed(**flags), kv.Workload(CONTEXT_128K, 1))
    return next(tensor for tensor in answer.stages[0].tensors if tensor.name == "kv_buffer")


def tensors(**flags: object) -> tuple[kv.TensorSpec, ...]:
    return kv.estimate(deployed(**flags), kv.Workload(CONTEXT_128K, 1)).stages[0].tensors


def tensor(name: str, **flags: object) -> kv.TensorSpec:
    return next(entry for entry in tensors(**flags) if entry.name == name)


def host(**flags: object) -> dict[str, HostPool]:
    plan = deployed(enable_hierarchical_cache=True, **flags)
    sizes = kv.PoolSizes(CONTEXT_128K, 40, 8)
    return {pool.name: pool for pool in host_pools(rank_of(plan), sizes).pools}


GEOMETRY = kv.plan().geometry
LAYER = kda_state.layer_bytes(rank_of(deployed()))  # on one GPU: not sharded

MEASURES: dict[str, Callable[[], float]] = {
    "slots_per_request": lambda: deployed().deployment.slots_per_request,
    "slots_per_request_no_overlap": lambda: deployed(disable_overlap_schedule=True).deployment.slots_per_request,
    "slots_per_request_no_buffer": lambda: (
        replace(deployed().deployment, mamba_radix_cache_strategy="no_buffer").slots_per_request
    ),
    "row_scaled": lambda: row("fp8_scaled"),
    "row_raw": lambda: row("fp8_raw"),
    "attn_tp_dp8": lambda: deployed(**DP8).deployment.attn_tp_size,
    "attn_tp_dp4": lambda: deployed(**DP4).deployment.attn_tp_size,
    "attn_tp_dp1": lambda: deployed(tp_size=8).deployment.attn_tp_size,
    "layers": lambda: GEOMETRY.num_hidden_layers,
    "kda_layers": lambda: len(GEOMETRY.linear_attention_layers),
    "full_layers": lambda: len(GEOMETRY.full_attention_layers),
    "first_full_layer": lambda: GEOMETRY.full_attention_layers[0],
    "second_full_layer": lambda: GEOMETRY.full_attention_layers[1],
    "third_full_layer": lambda: GEOMETRY.full_attention_layers[2],
    "last_full_layer": lambda: GEOMETRY.full_attention_layers[-1],
    "first_full_layer_counted": lambda: GEOMETRY.full_attention_layers[0] + 1,
    "second_full_layer_counted": lambda: GEOMETRY.full_attention_layers[1] + 1,
    "last_full_layer_counted": lambda: GEOMETRY.full_attention_layers[-1] + 1,
    "full_layer_period": lambda: GEOMETRY.full_attention_layers[1] - GEOMETRY.full_attention_layers[0],
    "last_kda_layer": lambda: GEOMETRY.linear_attention_layers[-1],
    "kv_lora_rank": lambda: GEOMETRY.kv_lora_rank,
    "qk_rope_head_dim": lambda: GEOMETRY.qk_rope_head_dim,
    "latent_width": lambda: GEOMETRY.latent_width,
    "latent_width_rope64": lambda: replace(GEOMETRY, qk_rope_head_dim=64).latent_width,
    "kv_bf16": lambda: ledger("latent_kv").bytes_per_unit,
    "kv_scaled": lambda: ledger("latent_kv", **SCALED).bytes_per_unit,
    "kv_raw": lambda: ledger("latent_kv", **RAW).bytes_per_unit,
    "index_head_dim": lambda: GEOMETRY.index_head_dim,
    "index_layer": lambda: indexer.reserved_bytes(GEOMETRY, deployed().profile),
    "index_token": lambda: ledger("indexer", **SCALED).bytes_per_unit,
    "index_token_bf16": lambda: ledger("indexer").bytes_per_unit,
    "index_layers": lambda: len(GEOMETRY.index_layers),
    "index_kpool": lambda: GEOMETRY.index_kpool,
    "index_topk": lambda: GEOMETRY.index_topk,
    "index_page": lambda: tensor("index_k_buffer").shape[-1],
    "index_written_layer": lambda: indexer.written_bytes(GEOMETRY),
    "index_written_token": lambda: len(GEOMETRY.index_layers) * indexer.written_bytes(GEOMETRY),
    "page_size": lambda: deployed().deployment.page_size,
    "groups_per_page": lambda: deployed().deployment.page_size // GEOMETRY.index_kpool,
    "topk_groups": lambda: GEOMETRY.index_topk // GEOMETRY.index_kpool,
    "token_scaled": lambda: per_token(**SCALED),
    "token_raw": lambda: per_token(**RAW),
    "conv_rows": lambda: GEOMETRY.conv_state_shape[0],
    "conv_channels": lambda: GEOMETRY.conv_state_shape[1],
    "temporal_heads": lambda: GEOMETRY.temporal_state_shape[0],
    "temporal_dim": lambda: GEOMETRY.temporal_state_shape[1],
    "conv_layer": lambda: kda_state.conv_bytes(GEOMETRY, "bfloat16", 1),
    "temporal_layer": lambda: kda_state.temporal_bytes(GEOMETRY, "float32", 1),
    "state_layer": lambda: LAYER,
    "slot": lambda: ledger("kda_state").bytes_per_unit,
    "slot_bf16": lambda: ledger("kda_state", **BF16_STATE).bytes_per_unit,
    "state_request": lambda: ledger("kda_state").total,
    "state_request_bf16": lambda: ledger("kda_state", **BF16_STATE).total,
    "mamba_full_memory_ratio": lambda: deployed().deployment.mamba_full_memory_ratio,
    "tail_width": lambda: tensor("compress_tail_k").shape[1],
    "tail_rows_64": lambda: compress_tail.rows(64),
    "tail_64": lambda: ledger("compress_tail", concurrency=64).total,
    "requests_per_worker_dp8": lambda: ledger("compress_tail", concurrency=64, **DP8).units - compress_tail.rows(0),
    "tail_rows_dp8": lambda: ledger("compress_tail", concurrency=64, **DP8).units,
    "tail_dp8": lambda: ledger("compress_tail", concurrency=64, **DP8).total,
    "kv_cache_dim_bf16": lambda: kv_buffer().shape[-1],
    "kv_cache_dim_scaled": lambda: kv_buffer(**SCALED).shape[-1],
    "kv_cache_dim_raw": lambda: kv_buffer(**RAW).shape[-1],
    "kv_pool_layers": lambda: kv_buffer().count,
    "mamba_pool_layers": lambda: tensor("temporal_state").shape[0],
    "both_pools_layers": lambda: kv_buffer().count + tensor("temporal_state").shape[0],
    "prefix_pages_128": lambda: 128 // deployed().deployment.page_size,
    "host_row": lambda: host(**SCALED)["kv"].row_bytes,
    "host_page_size": lambda: host(**SCALED)["kv"].page_size,
    "host_kv_layers": lambda: host(**SCALED)["kv"].layers,
    "host_mamba_layers": lambda: host(**SCALED)["mamba"].layers,
    "host_mamba_page_size": lambda: host(**SCALED)["mamba"].page_size,
    "host_pool_count": lambda: len(host(**SCALED)),
    "host_tail_pools": lambda: sum("tail" in name for name in host(**SCALED)),
    "host_index_pools": lambda: sum("index" in name for name in host(**SCALED)),
    "context_128k": lambda: ledger("latent_kv").units,
    "tokens_128k": lambda: token_bytes(**SCALED),
    "tokens_64": lambda: token_bytes(64, **SCALED),
    "tokens_rank_dp8": lambda: token_bytes(64, **SCALED, **DP8),
    "state_64": lambda: ledger("kda_state", concurrency=64).total,
    "state_64_bf16": lambda: ledger("kda_state", concurrency=64, **BF16_STATE).total,
    "state_dp8": lambda: ledger("kda_state", concurrency=64, **DP8).total,
    "state_dp8_bf16": lambda: ledger("kda_state", concurrency=64, **DP8, **BF16_STATE).total,
    "num_nextn_predict_layers": lambda: GEOMETRY.num_nextn_predict_layers,
    "draft_tensors": lambda: sum(entry.name.startswith("draft.") for entry in tensors()),
}


@pytest.mark.parametrize("number", ARTICLE, ids=lambda number: f"{number['place']}: {number['says']}")
def test_number(number: dict[str, object]) -> None:
    measured = MEASURES[str(number["measure"])]()
    if "unit" in number:
        digits = int(str(number["digits"]))
        measured = round(measured / UNITS[str(number["unit"])], digits)
    assert measured == number["value"]


def test_every_measure_is_used() -> None:
    assert {number["measure"] for number in ARTICLE} == set(MEASURES)


@pytest.mark.parametrize("flags", [{}, SCALED, RAW, DP8, {"speculative_algorithm": "NEXTN"}], ids=str)
@pytest.mark.parametrize("engine", ["0.5.20", "0.5.21", "0.5.22", "0.5.23"])
def test_formulas_in_numbers_evaluate_to_the_bytes(flags: dict[str, object], engine: str) -> None:
    answer = kv.estimate(kv.plan(flags, engine=engine, gpu="b200"), kv.Workload(CONTEXT_128K, 3))
    for entry in answer.stages[0].ledgers:
        assert eval(entry.formula_in_numbers) == entry.bytes_per_unit
