"""What can be turned: each knob one step on, as flags to resolve and start anew with."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.start import Start

UTILIZATION_STEP = 0.01
HIGHEST_UTILIZATION = 0.97
GIB_STEP = 1 << 30
NO_DRAFT: Mapping[str, object] = dict.fromkeys(("speculative_config", "spec_method", "spec_model", "spec_tokens"))


class Move(NamedTuple):
    """One knob turned. `flags` is what to change (None takes a flag back). `measured`: it changes nothing that is
    taken before the blocks, so memory that a log printed still counts.
    """

    name: str
    before: str
    after: str
    flags: Mapping[str, object]
    measured: bool


def moves(plan: Plan, start: Start) -> Iterator[Move]:
    """Every knob of this deployment, one step on. Some may be refused; some help nobody: prices tell."""
    deployment = plan.deployment
    yield from _dtypes(plan)
    if deployment.enable_prefix_caching:
        yield Move("--enable-prefix-caching", "on", "off", {"enable_prefix_caching": False}, True)
        if deployment.prefill_checkpoint:
            kernel = {"kda_prefill_backend": "triton"}
            yield Move("--kda-prefill-backend", "flashkda", "triton", kernel, True)
    drafted = deployment.num_speculative_tokens
    if drafted > 1:
        config = {"method": deployment.speculative_method, "num_speculative_tokens": drafted - 1}
        flags = {**NO_DRAFT, "speculative_config": config}
        yield Move("num_speculative_tokens", str(drafted), str(drafted - 1), flags, True)
    if drafted:
        yield Move("--speculative-config", f"{drafted} draft tokens", "none", NO_DRAFT, not deployment.draft_layers)
    wider = 2 * deployment.tensor_parallel_size
    yield Move("--tensor-parallel-size", str(wider // 2), str(wider), {"tensor_parallel_size": wider}, False)
    shared = 2 * deployment.decode_context_parallel_size
    if deployment.tensor_parallel_size % shared == 0:
        flags = {"decode_context_parallel_size": shared}
        yield Move("--decode-context-parallel-size", str(shared // 2), str(shared), flags, True)
    yield from _memory(plan)
    size = 2 * deployment.block_size
    yield Move("--block-size", str(deployment.block_size), str(size), {"block_size": size}, True)
    if start.count and deployment.max_num_seqs > start.count and deployment.full_cuda_graphs:
        seqs = str(deployment.max_num_seqs)
        yield Move("--max-num-seqs", seqs, str(start.count), {"max_num_seqs": start.count}, True)
    longest = start.blocks.longest_context(start.count)
    if 0 < longest < deployment.max_model_len and not deployment.fits_max_model_len:
        length = str(deployment.max_model_len)
        yield Move("--max-model-len", length, str(longest), {"max_model_len": longest}, True)


def _dtypes(plan: Plan) -> Iterator[Move]:
    deployment = plan.deployment
    for dtype in ("bfloat16", "fp8", "fp8_ds_mla"):
        same = deployment.cache_dtype in (dtype, "fp8_e4m3" if dtype == "fp8" else dtype)
        if not same and not (dtype == "bfloat16" and deployment.cache_dtype == "auto"):
            yield Move("--kv-cache-dtype", deployment.cache_dtype, dtype, {"kv_cache_dtype": dtype}, True)
    other = "bfloat16" if deployment.state_dtype == "float32" else "float32"
    flags = {"mamba_ssm_cache_dtype": other}
    yield Move("--mamba-ssm-cache-dtype", deployment.state_dtype, other, flags, True)


def _memory(plan: Plan) -> Iterator[Move]:
    deployment = plan.deployment
    if deployment.kv_cache_memory_bytes is not None:
        more = deployment.kv_cache_memory_bytes + GIB_STEP
        flags = {"kv_cache_memory_bytes": more}
        yield Move("--kv-cache-memory-bytes", str(more - GIB_STEP), str(more), flags, True)
        return
    now = deployment.gpu_memory_utilization
    then = round(now + UTILIZATION_STEP, 4)
    if then <= HIGHEST_UTILIZATION:
        yield Move("--gpu-memory-utilization", f"{now:g}", f"{then:g}", {"gpu_memory_utilization": then}, True)
    if deployment.cuda_graphs and deployment.graphs_reserved:
        yield Move("--enforce-eager", "off", "on", {"enforce_eager": True}, False)
