"""A vLLM launch with every default filled in, and the reason of each value."""

from dataclasses import dataclass

from glm_kvplan.engines.flag import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One resolved deployment, in vLLM's own names. Made by `resolve.resolver.resolve` alone.

    The values of one engine: with data parallelism each of the `data_parallel_size` engines has them.
    """

    # parallel layout
    tensor_parallel_size: int
    data_parallel_size: int
    decode_context_parallel_size: int
    nnodes: int  # hosts that the GPUs of all engines lie on
    enable_expert_parallel: bool
    all2all_backend: str

    # token cache
    kv_cache_dtype: str  # as asked
    cache_dtype: str  # as the cache has it: auto and bfloat16 (2 bytes an element), fp8, fp8_e4m3, fp8_ds_mla
    mla_backend: str
    row_bytes: int  # one token's latent row in one layer
    sized_row_bytes: int  # what the block is sized with; not always the row itself
    block_size: int  # tokens

    # state
    enable_prefix_caching: bool
    conv_dtype: str
    state_dtype: str
    prefill_checkpoint: bool  # one state more a request: FlashKDA's own checkpoint in a prefill
    tail_slots: int  # raw keys a request's tail holds in one layer

    # speculation
    speculative_method: str | None
    num_speculative_tokens: int
    draft_layers: int  # cache layers the draft adds: the MTP layer, or none

    # requests and batches
    max_model_len: int  # tokens; the model's own where it is fitted
    fits_max_model_len: bool  # --max-model-len -1: lowered to what the blocks can hold
    max_num_seqs: int
    max_num_batched_tokens: int
    full_cuda_graphs: bool  # then a start needs a block for each of max_num_seqs
    cuda_graphs: bool
    largest_capture: int | None  # --max-cudagraph-capture-size or the largest of --cudagraph-capture-sizes, where given

    # memory
    gpu_memory_utilization: float
    kv_cache_memory_bytes: int | None
    num_gpu_blocks_override: int | None
    graphs_reserved: bool  # the estimate of CUDA graphs is taken from the cache
    multimodal: bool
    mm_ipc_gpu_memory_gb: float
    cpu_offload_gb: float

    choices: tuple[Choice, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs of the whole deployment."""
        return self.tensor_parallel_size * self.data_parallel_size

    @property
    def states_per_request(self) -> int:
        """States a request holds in each state group while it runs.

        One that is written and one that is read with prefix caching, one without, one a draft token, and the
        prefill's checkpoint. Source: MambaSpec.max_memory_usage_bytes, v1/kv_cache_interface.py:1135 at 0.33.0.
        """
        if not self.enable_prefix_caching:
            return 1 + self.num_speculative_tokens
        return 2 + self.num_speculative_tokens + self.prefill_checkpoint

    def choice(self, flag: str) -> Choice:
        """The resolved value of one flag with its reason. Raises KeyError for a flag that was not resolved."""
        for choice in self.choices:
            if choice.flag == flag:
                return choice
        raise KeyError(flag)
