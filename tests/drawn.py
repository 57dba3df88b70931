"""Deployments of both engines drawn by chance: flags, switches, memory and workload, as words and as a file."""

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.flag_words import flag_word
from glm_kvplan.memory.gpu import known_gpus

_FILE_NAMES = {"weights_gib": "target_weights_gib"}  # of memory readings, where a deployment file has another


class Drawn(NamedTuple):
    """One deployment and what it is to serve."""

    engine: str
    release: str
    gpu: str
    flags: dict[str, Any]
    environment: dict[str, str]
    memory: dict[str, Any]  # readings, by the names of --pre-gib and its like
    contexts: str  # lengths of the requests, as --context takes them
    concurrency: int

    @property
    def words(self) -> list[str]:
        """The options of the deployment; its memory is `memory_words`."""
        known = {flag.name: flag for flag in engine_named(self.engine).flags}
        found = ["--engine", f"{self.engine}-{self.release}", "--gpu", self.gpu]
        for name, value in self.flags.items():
            option, _, text = flag_word(known, name, value).partition(" ")
            found += [option, text.strip("'")] if text else [option]
        return found + [word for name, value in self.environment.items() for word in ("--env", f"{name}={value}")]

    @property
    def memory_words(self) -> list[str]:
        return [word for name, value in self.memory.items() for word in (f"--{name.replace('_', '-')}", str(value))]

    def file(self, **expect: Any) -> str:
        """The same as the text of a deployment file."""
        memory = {_FILE_NAMES.get(name, name): value for name, value in self.memory.items()}
        parts = {"flags": self.flags, "environment": self.environment, "memory": memory, "expect": expect}
        head = {"engine": f"{self.engine}-{self.release}", "gpu": self.gpu}
        return json.dumps({**head, **{name: part for name, part in parts.items() if part}})


# What may be given, a part of a launch after the other: choices between bars.
_SGLANG = {
    "layout": """
        tp_size=8 | tp_size=8 | tp_size=8 | tp_size=4 | tp_size=4 | tp_size=2 | tp_size=16 | tp_size=16 nnodes=2 |
        tp_size=8 dp_size=8 enable_dp_attention | tp_size=8 dp_size=2 enable_dp_attention |
        tp_size=4 dp_size=4 enable_dp_attention | tp_size=8 dp_size=4 enable_dp_attention ep_size=8 |
        tp_size=4 dp_size=2 | tp_size=8 ep_size=8 | tp_size=4 pp_size=2 | tp_size=8 pp_size=2 |
        tp_size=2 pp_size=3 | tp_size=2 pp_size=8 | tp_size=8 pp_size=2 dp_size=2 enable_dp_attention |
        tp_size=8 dcp_size=2 | tp_size=8 dcp_size=8 |
        tp_size=8 enable_prefill_cp attn_cp_size=8 cp_strategy=interleave |
        tp_size=8 enable_prefill_cp cp_strategy=zigzag
    """,
    "speculation": """
        speculative_algorithm=EAGLE |
        speculative_algorithm=EAGLE speculative_num_steps=3 speculative_eagle_topk=1 speculative_num_draft_tokens=4 |
        speculative_algorithm=EAGLE speculative_num_steps=5 speculative_eagle_topk=4 speculative_num_draft_tokens=8 |
        speculative_algorithm=NEXTN speculative_adaptive |
        speculative_algorithm=EAGLE enable_linear_replayssm_spec | speculative_algorithm=NGRAM
    """,
    "role": """
        disaggregation_mode=prefill | disaggregation_mode=decode |
        disaggregation_mode=decode disaggregation_decode_extra_slots=7 |
        disaggregation_mode=decode disaggregation_decode_enable_radix_cache |
        disaggregation_mode=prefill enable_pd_role_switch
    """,
    "states": """
        mamba_ssm_dtype=bfloat16 | disable_radix_cache | mamba_radix_cache_strategy=extra_buffer_lazy |
        mamba_radix_cache_strategy=no_buffer | disable_overlap_schedule | mamba_track_interval=512 |
        enable_linear_replayssm
    """,
    "pools": """
        max_mamba_cache_size=640 | max_mamba_cache_size=7 | mamba_full_memory_ratio=0.3 |
        mamba_full_memory_ratio=17.0 | max_total_tokens=200000 | max_total_tokens=50 |
        max_running_requests=48 max_mamba_cache_size=300 max_total_tokens=1000001
    """,
    "requests": "max_running_requests=1 | max_running_requests=40 | max_running_requests=513",
    "rows": """
        kv_cache_dtype=fp8_e4m3 | kv_cache_dtype=bfloat16 | context_length=131072 | context_length=9000 |
        page_size=64
    """,
    "prefill": """
        chunked_prefill_size=-1 | chunked_prefill_size=1000 | chunked_prefill_size=2048 |
        chunked_prefill_size=6400 | chunked_prefill_size=32768 |
        chunked_prefill_size=4096 max_prefill_tokens=10001
    """,
    "fraction": """
        mem_fraction_static=0.3 | mem_fraction_static=0.7 | mem_fraction_static=0.8725 | mem_fraction_static=0.95
    """,
    "host": """
        enable_hierarchical_cache | enable_hierarchical_cache hicache_ratio=1.5 |
        enable_hierarchical_cache hicache_size=30 hicache_mem_layout=page_first |
        enable_hierarchical_cache hicache_write_policy=write_back hicache_io_backend=direct
    """,
    "graphs": "disable_cuda_graph | cuda_graph_max_bs_decode=300 | attention_backend=aiter | enable_mixed_chunk",
    "weights": """
        quantization=fp8 | quantization=modelopt_fp4 | cpu_offload_gb=8 | language_only | moe_a2a_backend=deepep
    """,
}
_VLLM = {
    "layout": """
        tensor_parallel_size=8 | tensor_parallel_size=8 | tensor_parallel_size=8 | tensor_parallel_size=4 |
        tensor_parallel_size=4 | tensor_parallel_size=2 | tensor_parallel_size=4 data_parallel_size=2 |
        tensor_parallel_size=1 data_parallel_size=8 enable_expert_parallel |
        tensor_parallel_size=8 enable_expert_parallel | tensor_parallel_size=4 pipeline_parallel_size=2 |
        tensor_parallel_size=8 decode_context_parallel_size=2
    """,
    "rows": """
        kv_cache_dtype=fp8 | kv_cache_dtype=bfloat16 | kv_cache_dtype=fp8_ds_mla | block_size=128 | block_size=64
    """,
    "length": "max_model_len=131072 | max_model_len=9000 | max_model_len=-1",
    "states": """
        enable_prefix_caching=false | enable_prefix_caching | mamba_ssm_cache_dtype=bfloat16 |
        mamba_cache_mode=align | kda_prefill_backend=triton | use_replayssm
    """,
    "batch": """
        max_num_seqs=1 | max_num_seqs=40 | max_num_seqs=1500 | max_num_batched_tokens=1000 |
        max_num_batched_tokens=16384 | max_num_batched_tokens=8192 max_num_seqs=64 | performance_mode=throughput
    """,
    "speculation": """
        speculative_config={"method":"mtp","num_speculative_tokens":1} |
        speculative_config={"method":"mtp","num_speculative_tokens":5}
    """,
    "memory": """
        gpu_memory_utilization=0.97 | gpu_memory_utilization=0.5 | kv_cache_memory_bytes=21474836480 |
        kv_cache_memory_bytes=104857600 | num_gpu_blocks_override=500 | num_gpu_blocks_override=9
    """,
    "graphs": "enforce_eager | max_cudagraph_capture_size=1024",
    "weights": "quantization=fp8 | language_model_only | cpu_offload_gb=8.0 | dtype=bfloat16",
}


def _choices(table: str) -> tuple[dict[str, Any], ...]:
    return tuple(dict(map(_value, choice.split())) for choice in table.split("|"))


def _value(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    try:
        return name, json.loads(text) if equals else True
    except ValueError:
        return name, text


_SWITCHES: dict[str, tuple[dict[str, str], ...]] = {
    "sglang": (
        {},
        {},
        {},
        {"SGLANG_ENABLE_PP_SPEC": "1"},
        {"SGLANG_MAMBA_CONV_DTYPE": "float32"},
        {"SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK": "1"},
        {"SGLANG_USE_AITER": "1"},
        {"SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": "1"},
    ),
    "vllm": ({}, {}, {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"}),
}
_PARTS = {
    engine: {name: _choices(table) for name, table in parts.items()}
    for engine, parts in {"sglang": _SGLANG, "vllm": _VLLM}.items()
}
_CARDS = ("b200", "h200", "b300", "gb200", "b200", "h200", *known_gpus())
_CONTEXTS = ("1000", "8192", "32768", "131072", "131072", "500001", "0.8:8k,0.2:128k", "60%:1000,30%:32k,10%:131071")
_BEFORE = 3.0  # GiB of a card that its driver and the engine's start take, in readings


@st.composite
def deployments(draw: st.DrawFn, engines: tuple[str, ...] = ("sglang", "sglang", "vllm")) -> Drawn:
    """Mostly such as start; about a third are refused. No more than a few parts are out of the ordinary at once."""
    engine = draw(st.sampled_from(engines))
    parts = _PARTS[engine]
    unusual = draw(st.sets(st.sampled_from(sorted(parts)), max_size=4))
    flags: dict[str, Any] = {}
    for name in parts:
        if name == "layout" or name in unusual:
            flags |= draw(st.sampled_from(parts[name]))
    release = draw(st.sampled_from(engine_named(engine).releases()))
    gpu = draw(st.sampled_from(_CARDS))
    switches = draw(st.sampled_from(_SWITCHES[engine]))
    return Drawn(
        engine,
        release,
        gpu,
        flags,
        switches,
        draw(memories(engine, gpu)),
        draw(st.sampled_from(_CONTEXTS)),
        draw(st.sampled_from((1, 3, 30, 200, 1000))),
    )


@st.composite
def memories(draw: st.DrawFn, engine: str, gpu: str) -> dict[str, Any]:
    """What is known of a rank's memory: often nothing, a weight format, or readings of a boot log."""
    kind = draw(st.sampled_from(("", "", "checkpoint", "weights", "read")))
    before = round(known_gpus()[gpu].memory_mib / 1024 - _BEFORE, 2)
    share = draw(st.sampled_from((0.1, 0.25, 0.45, 0.6, 0.8)))
    if kind == "checkpoint":
        return {"checkpoint": draw(st.sampled_from(("fp8", "bf16", "nvfp4")))}
    if kind == "weights" and engine == "sglang":
        return {"pre_gib": before, "weights_gib": round(before * (1 - share), 2), "draft_weights_gib": 1.5}
    if kind == "read" and engine == "sglang":
        return {"pre_gib": before, "available_gib": round(before * share, 2)}
    return {"available_gib": round(before * share, 2)} if kind == "read" else {}
