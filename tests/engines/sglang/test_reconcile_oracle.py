"""The engine's own sizes and bytes, printed as it prints them, must all be explained."""

import gzip
import json
from functools import cache
from typing import Any

import pytest
from boots import read_log
from paths import DATA

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.boot_log.log_launch import flags_of
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile, rows_of
from glm_kvplan.errors import RefusedError
from glm_kvplan.units import GB, GIB

RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")


@cache
def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).splitlines()]


LAYOUTS = {
    "bf16": ("bfloat16", "flashmla_sparse", "fa3"),
    "fp8_scaled": ("fp8_e4m3", "flashmla_kv", "flashmla_kv"),
    "fp8_raw": ("fp8_e4m3", "trtllm", "trtllm"),
}


_RING = "GDN ReplaySSM ring buffers allocated (record_len=16, fold=False): {d}, {k}, {g} {rawv}, {rawk}, {beta} "


def log_of(record: dict[str, Any]) -> list[str]:
    """The boot log of one record: the engine's own integers and bytes in its own messages."""
    inputs, outputs = record["inputs"], record["outputs"]
    dtype, prefill, decode = LAYOUTS[inputs["kv_layout"]]
    drafts, width = inputs["draft_tokens"], inputs["attn_dp_size"]
    arguments = {
        "tp_size": inputs["tp_size"],
        "dp_size": width,
        "enable_dp_attention": width > 1,
        "kv_cache_dtype": dtype,
        "dsa_prefill_backend": prefill,
        "dsa_decode_backend": decode,
        "mem_fraction_static": inputs["mem_fraction_static"],
        "mamba_full_memory_ratio": inputs["mamba_full_memory_ratio"],
        "max_mamba_cache_size": inputs["max_mamba_cache_size"],
        "max_running_requests": inputs["max_running_requests"],
        "max_total_tokens": inputs["max_total_tokens"],
        "context_length": inputs["context_len"],
        "mm_feature_transport": inputs["mm_feature_transport"],
        "mamba_ssm_dtype": inputs["mamba_ssm_dtype"],
        "mamba_radix_cache_strategy": "auto" if inputs["disable_radix_cache"] else inputs["strategy"],
        "disable_radix_cache": inputs["disable_radix_cache"],
        "disable_overlap_schedule": not inputs["overlap"],
        "enable_linear_replayssm_spec": inputs["replayssm_spec"],
        "speculative_algorithm": None if drafts is None else "EAGLE",
        "speculative_num_steps": None if drafts is None else drafts - 1,
        "speculative_eagle_topk": None if drafts is None else 1,
        "speculative_num_draft_tokens": drafts,
        "disaggregation_mode": inputs["disaggregation_mode"],
        "chunked_prefill_size": 2048,
    }
    stamp = "[2026-05-14 08:11:02 TP0] "
    nbytes = outputs["alloc_bytes"]

    def gib(*names: str) -> str:
        return f"{sum(nbytes.get(name, 0) for name in names) / GIB:.2f}"

    state = (
        f"Mamba Cache is allocated. max_mamba_cache_size: {outputs['max_mamba_cache_size']}, "
        f"conv_state size: {gib('conv_state')}GB, ssm_state size: {gib('temporal_state')}GB "
    )
    if inputs["draft_tokens"] is not None and "intermediate_conv_window(physical)" in nbytes:
        state += f"intermediate_ssm_state_cache size: {gib('intermediate_ssm')}GB "
        state += f"intermediate_conv_window_cache size: {gib('intermediate_conv_window(physical)')}GB "
    rings = [name for name in ("d", "k", "g", "rawv", "rawk", "beta") if f"replayssm_{name}" in nbytes]
    ring = {name: f"{name}={nbytes[f'replayssm_{name}'] / GIB:.3f}GB" for name in rings}
    kv = f"KV Cache is allocated. dtype: torch.{'bfloat16' if dtype == 'bfloat16' else 'float8_e4m3fn'}, "
    kv += f"#tokens: {outputs['max_total_num_tokens']}, KV size: "
    lines = [
        f"Load weight begin. avail mem={inputs['pre_gib']:.2f} GB",
        f"Load weight end. elapsed=1.00 s, type=Glm, avail mem={inputs['avail_gib']:.2f} GB, mem usage=1.00 GB.",
        state,
        *([_RING.format(**ring)] if ring else []),
        f"{kv}{gib('kv_buffer', 'index_k_buffer')} GB",
    ]
    if drafts is not None:
        lines.append(f"{kv}{gib('draft.kv_buffer', 'draft.index_k_buffer')} GB")
    lines.append(
        f"max_total_num_tokens={outputs['max_total_num_tokens']}, chunked_prefill_size={2048}, "
        f"max_prefill_tokens=16384, max_running_requests={outputs['max_running_requests']}, "
        f"context_len={inputs['context_len'] or 1048576}, available_gpu_mem=1.00 GB"
    )
    return [f"[2026-05-14 08:11:00] server_args={arguments!r}", *(stamp + line for line in lines)]


def plain(record: dict[str, Any]) -> bool:
    """Records whose flags a server's arguments can say: one stage, and a vision tower."""
    inputs = record["inputs"]
    return (
        inputs["pp_size"] == 1
        and inputs["multimodal"]
        and "alloc_bytes" in record["outputs"]
        and (inputs["disable_radix_cache"] or inputs["strategy"] != "no_buffer")
    )


@pytest.mark.parametrize("release", RELEASES)
def test_the_engines_own_boots_are_explained(release: str) -> None:
    """Every size is the engine's; memory is printed with two decimals, and that alone may move a prediction."""
    own = [record for record in records("sizing") if record["engine"] == f"sglang-{release}" and plain(record)]
    checked = 0
    for record in own:
        gpu = "b300" if record["inputs"]["kv_layout"] == "fp8_raw" else "h200:275040"
        boot = read_log(log_of(record))[0]
        switches = {"SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK": "1"} if record["inputs"]["skip_decode_lock"] else {}
        try:
            answer = reconcile(boot, BesideLog(engine=release, gpu=gpu, environment=switches))
        except RefusedError:
            continue  # the record's flags were given to the sizing alone; the whole engine would refuse them
        assert answer.explained, (record["case"], answer.first_unexplained)
        checked += 1
    assert checked > 100


def host_log_of(record: dict[str, Any]) -> list[str]:
    """Device sizes and host pools of one HiCache record."""
    inputs, host, release = record["inputs"], record["host"], record["engine"].removeprefix("sglang-")
    dtype, prefill, decode = LAYOUTS[inputs["kv_layout"]]
    drafts = inputs["draft_tokens"]
    arguments = {
        "tp_size": inputs["tp_size"],
        "kv_cache_dtype": dtype,
        "dsa_prefill_backend": prefill,
        "dsa_decode_backend": decode,
        "mem_fraction_static": 0.8,
        "max_running_requests": inputs["max_running_requests"],
        "mamba_ssm_dtype": inputs["ssm_dtype"],
        "speculative_algorithm": None if drafts is None else "EAGLE",
        "speculative_num_steps": None if drafts is None else drafts - 1,
        "speculative_eagle_topk": None if drafts is None else 1,
        "speculative_num_draft_tokens": drafts,
        "disaggregation_mode": inputs["disagg"],
        "enable_hierarchical_cache": True,
        "hicache_ratio": inputs["hicache_ratio"],
        "hicache_size": inputs["hicache_size"],
        "hicache_mem_layout": inputs["mem_layout"],
        "hicache_io_backend": inputs["io_backend"],
        "hicache_host_memory_fraction": inputs["host_memory_fraction"],
        "chunked_prefill_size": 4096,
    }
    kv, mamba, index = host["kv"], host["mamba"], host.get("indexer")
    kv_bytes = kv["size"] * kv["row_bytes"] * kv["layer_num"]
    packed = "." if drafts is None else ", packed MTP KV layers: target_layers=11, draft_layers=1, total_layers=12."
    slots = f"{mamba['size']} state slots, " if release == "0.5.23" else ""
    lines = [
        f"KV Cache is allocated. dtype: torch.x, #tokens: {inputs['tokens']}, KV size: 1.00 GB",
        f"Mamba Cache is allocated. max_mamba_cache_size: {inputs['state_slots']}, conv_state size: 1.00GB, "
        "ssm_state size: 1.00GB ",
        f"Allocating KV hierarchical KV host pool: {kv['size']} tokens, {kv_bytes / GB:.2f} GB host memory{packed}",
        f"Allocating {mamba['size'] * mamba['size_per_token'] / GB:.2f} GB host memory for hierarchical Mamba cache "
        f"({slots}layout={inputs['mem_layout']}).",
        f"max_total_num_tokens={inputs['tokens']}, chunked_prefill_size=4096, max_prefill_tokens=16384, "
        f"max_running_requests={inputs['max_running_requests']}, context_len=1048576, available_gpu_mem=1.00 GB",
    ]
    if index is not None:
        nbytes = index["page_num"] * index["layer_num"] * 8448
        lines.append(f"Allocating {nbytes / GB:.2f} GB host memory for DSA indexer (layout={inputs['mem_layout']}).")
    return [f"server_args={arguments!r}", *(f"[2026-05-14 08:11:02 TP0] {line}" for line in lines)]


@pytest.mark.parametrize("release", RELEASES)
def test_the_engines_own_host_pools_are_explained(release: str) -> None:
    kinds: dict[str, int] = {}
    for record in records("hicache"):
        kind = record["kind"]
        if (
            record["engine"] != f"sglang-{release}"
            or kind in ("pp", "pd_prefill", "pd_decode")
            or "kv" not in record.get("host", ())
        ):
            continue
        if record["inputs"]["mem_layout"] == "page_first_kv_split":
            continue  # its rows are checked bare and allocated wide: see test_host.py
        gpu = "b300" if record["inputs"]["kv_layout"] == "fp8_raw" else "h200:275040"
        boot = read_log(host_log_of(record))[0]
        made = plan(flags_of(boot.arguments), gpu=gpu, engine=release)
        rows = [row for row in rows_of(made, boot)[1] if row.name.startswith(("host", "HiCache"))]
        assert len(rows) >= 3
        assert all(row.explained for row in rows), (record["inputs"], [row for row in rows if not row.explained])
        kinds[kind] = kinds.get(kind, 0) + 1
    assert kinds["kv"] > 50
    assert kinds["state"] > 50
    assert ("auto" in kinds) == (release != "0.5.20")
