"""How the model is launched, every engine default already filled in (see `resolve`)."""

from dataclasses import dataclass
from typing import Literal

KvLayout = Literal["bf16", "fp8_scaled", "fp8_raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One resolved deployment, in the engine's own flag names.

    The field defaults are the neutral values (one GPU, nothing switched on), not the engine's decisions:
    those are made, with their reasons, in `resolve` alone. Global values stay global here
    (`max_running_requests`, `max_mamba_cache_size`); the `..._per_worker` properties divide them.
    """

    # parallel layout
    tp_size: int = 1
    pp_size: int = 1
    attn_dp_size: int = 1  # attention-DP width (1 when attention DP is off)
    attn_cp_size: int = 1
    replicas: int = 1  # plain data parallelism: whole copies of the engine
    ep_size: int = 1
    moe_dp_size: int = 1
    moe_dense_tp_size: int | None = None
    moe_a2a_backend: str = "none"
    nnodes: int = 1
    linear_attn_tp_size: int = 1  # how many ranks share one KDA state
    pipeline_partition: tuple[int, ...] | None = None  # layers per PP stage, None for the engine's split

    # token pool
    page_size: int = 64
    kv_cache_dtype: str = "bfloat16"
    kv_layout: KvLayout = "bf16"
    dsa_prefill_backend: str = "flashmla_sparse"
    dsa_decode_backend: str = "fa3"
    max_total_tokens: int | None = None
    context_length: int = 1048576

    # state pool
    disable_radix_cache: bool = False
    mamba_radix_cache_strategy: str = "extra_buffer"  # auto (radix off), extra_buffer, extra_buffer_lazy, no_buffer
    disable_overlap_schedule: bool = False
    linear_attn_backend: str = "triton"
    mamba_conv_dtype: str = "bfloat16"
    mamba_ssm_dtype: str = "float32"
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: int | None = None
    skip_decode_lock: bool = False  # SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK
    enable_linear_replayssm_spec: bool = False

    # requests and batches
    max_running_requests: int | None = None
    chunked_prefill_size: int = 8192
    max_prefill_tokens: int = 16384
    decode_graph: str = "full"  # full or disabled
    decode_graph_max_bs: int = 256
    prefill_graph: str = "disabled"  # breakable or disabled
    prefill_graph_max_bs: int = 0

    # speculation
    speculative_algorithm: str | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_num_draft_tokens: int | None = None
    max_draft_tokens: int | None = None  # the adaptive maximum; equal to the draft tokens otherwise

    # memory
    mem_fraction_static: float = 0.9
    multimodal: bool = True
    mm_reserve_mib: int = 100  # SGLANG_VLM_CACHE_SIZE_MB, plus the feature cache where features stay on the GPU

    # roles
    disaggregation_mode: Literal["null", "prefill", "decode"] = "null"
    disaggregation_decode_extra_slots: int = 0
    enable_pd_role_switch: bool = False

    # host cache
    enable_hierarchical_cache: bool = False
    hicache_ratio: float | None = 2.0  # None: a PD decode server; it settles on 2.0 as its pools are built
    hicache_size: int = 0  # GB (10**9) per rank; 0: by ratio
    hicache_mem_layout: str = "page_first"
    hicache_io_backend: str = "kernel"
    hicache_host_memory_fraction: float | None = None

    @property
    def attn_tp_size(self) -> int:
        """How many ranks share one request's attention: tp / attention DP / CP (runtime_context.py:73-78 at 0.5.21)."""
        return self.tp_size // self.attn_dp_size // self.attn_cp_size

    @property
    def world_size(self) -> int:
        """Ranks (GPUs) of one engine: tp * pp. Plain data parallelism multiplies it by `replicas`."""
        return self.tp_size * self.pp_size

    @property
    def speculative(self) -> bool:
        return self.speculative_algorithm is not None

    @property
    def eagle(self) -> bool:
        """The draft is the checkpoint's own MTP layer, with pools of the target's layout (NEXTN resolves to EAGLE)."""
        return self.speculative_algorithm is not None and self.speculative_algorithm.startswith("EAGLE")

    @property
    def extra_buffer(self) -> bool:
        """The radix cache keeps ping-pong tracking slots (configs/model_override_base.py:238-245 at 0.5.21)."""
        return not self.disable_radix_cache and self.mamba_radix_cache_strategy in (
            "extra_buffer",
            "extra_buffer_lazy",
        )

    @property
    def tracking_slots(self) -> int:
        """State slots reserved for a request's tracking buffer: 2 with overlap, 1 without or lazily, 0 without one.

        The buffer itself has two entries under the lazy strategy, too (`pools.counts.ping_pong_slots`).
        """
        if not self.extra_buffer:
            return 0
        return 2 if self.mamba_radix_cache_strategy == "extra_buffer" and not self.disable_overlap_schedule else 1

    @property
    def slots_per_request(self) -> int:
        """State slots the engine reserves for a running request: 5, 4, 3 or 1.

        Source: mem_cache/kv_cache_configurator.py:174-184, 2232-2261 at 0.5.21 (`_calculate_mamba_ratio`).
        """
        if self.disable_radix_cache:
            return 1
        if self.extra_buffer:
            return (2 if self.skip_decode_lock else 3) + self.tracking_slots
        return 3  # no_buffer: base 3, or base 2 and one more with SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK

    @property
    def decode_reserve(self) -> int:
        """Tokens a running request is given ahead of its context (mem_cache/allocation_sizing.py:34-59 at 0.5.21).

        Twice a step's drafts, because of the overlap schedule; 0 without speculation, where the next token's place is
        taken when it comes.
        """
        if not self.speculative:
            return 0
        steps = (self.speculative_num_steps or 0) * (self.speculative_eagle_topk or 1)
        return 2 * max(steps, self.max_draft_tokens or 0)

    @property
    def request_table_extra(self) -> int:
        """Columns of the request table beyond the context length (mem_cache/allocation_sizing.py:85-108 at 0.5.21)."""
        extra = 4 + (self.max_draft_tokens or 0)
        if self.speculative and self.page_size > 1:
            extra = max(extra, self.decode_reserve + self.page_size - 1)
        return extra

    def requests_per_worker(self, requests: int, least: int = 0) -> int:
        """A global request count divided over the attention-DP workers, with the release's floor."""
        return max(least, requests // self.attn_dp_size)
