"""The state pool: radix strategy, tracking, dtypes and the linear-attention kernels that allow them."""

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site, switched_on
from glm_kvplan.errors import RefusedError

_STRATEGY = "arg_groups/overrides.py:454-487 at 0.5.23"
_EXTRA_BUFFER = Reason(
    "overlap scheduling or paged tokens, with the triton KDA kernels: tracked states get slots", _STRATEGY
)
_NO_BUFFER = Reason("no overlap and pages of one token, or other KDA kernels than triton: no tracking slots", _STRATEGY)
_NO_RADIX = Reason("stays unresolved: without the radix cache nothing is tracked", _STRATEGY)
_NO_OVERLAP = Reason("no_buffer runs without the overlap scheduler", _STRATEGY)

_SPARSE_HEAD = Reason(
    "SGLANG_EMBEDDINGS_SPARSE_HEAD is set: no overlap schedule", "arg_groups/model_hook.py:739 at 0.5.23"
)

_STATE_FLAG = Reason(
    "--mamba-ssm-dtype, handed on as SGLANG_MAMBA_SSM_DTYPE", "arg_groups/serving_hook.py:439-440 at 0.5.23"
)
_STATE_VARIABLE = Reason("SGLANG_MAMBA_SSM_DTYPE", "configs/mamba_utils.py:94-103 at 0.5.23")
_STATE_DEFAULT = Reason(
    "the engine's default: the checkpoint's own mamba_ssm_dtype is not read for this model",
    "configs/mamba_utils.py:73-110 at 0.5.23",
)
_STATE_REPLAY = Reason(
    "--enable-linear-replayssm-spec keeps float32 states", "arg_groups/attention_hook.py:506-516 at 0.5.23"
)
_CONV_VARIABLE = Reason("SGLANG_MAMBA_CONV_DTYPE", "configs/mamba_utils.py:70 at 0.5.23")
_CONV_DEFAULT = Reason("the engine's default", "configs/mamba_utils.py:70 at 0.5.23")
_DTYPES = ("float32", "bfloat16", "float16")


def radix_strategy(a: Arguments, site: Site) -> None:
    """Whether running requests keep tracking slots beside their own state, decided before PP switches overlap off.

    Source: arg_groups/overrides.py:438-487, arg_groups/mamba_hook.py:115-163 at 0.5.23.
    """
    if a.disable_radix_cache:
        if a.mamba_radix_cache_strategy == "auto":
            a.because["mamba_radix_cache_strategy"] = _NO_RADIX
        return
    page = a.page_size or 1
    if a.mamba_radix_cache_strategy == "auto":
        if (not a.disable_overlap_schedule or page > 1) and a.linear_attn_backend == "triton":
            a.mamba_radix_cache_strategy = "extra_buffer"
            a.because["mamba_radix_cache_strategy"] = _EXTRA_BUFFER
        else:
            a.mamba_radix_cache_strategy, a.disable_overlap_schedule = "no_buffer", True
            a.because["mamba_radix_cache_strategy"] = _NO_BUFFER
            a.because["disable_overlap_schedule"] = _NO_OVERLAP
    if a.mamba_radix_cache_strategy == "no_buffer":
        _check_no_buffer(a, page)
    else:
        _check_extra_buffer(a, page)


def sparse_head_overlap(a: Arguments, site: Site) -> None:
    """A sparse embedding head switches overlap off, after the state strategy was chosen; any value counts."""
    if "SGLANG_EMBEDDINGS_SPARSE_HEAD" in site.environment and not a.disable_overlap_schedule:
        a.disable_overlap_schedule = True
        a.because["disable_overlap_schedule"] = _SPARSE_HEAD


def _check_no_buffer(a: Arguments, page: int) -> None:
    if page > 1:
        other = a.linear_attn_backend != "triton"
        cause = f" that --linear-attn-backend {a.linear_attn_backend} leads to" if other else ""
        raise RefusedError(
            f"the no_buffer state strategy{cause} needs pages of 1 token, this model has {page}; use extra_buffer or "
            "--disable-radix-cache",
            "arg_groups/mamba_hook.py:157 at 0.5.23",
        )
    if not a.disable_overlap_schedule:
        raise RefusedError("no_buffer needs --disable-overlap-schedule", "arg_groups/mamba_hook.py:158 at 0.5.23")


def _check_extra_buffer(a: Arguments, page: int) -> None:
    if a.linear_attn_backend != "triton":
        raise RefusedError(
            f"{a.mamba_radix_cache_strategy} needs --linear-attn-backend triton, not {a.linear_attn_backend}",
            "arg_groups/mamba_hook.py:117 at 0.5.23",
        )
    if a.mamba_radix_cache_strategy == "extra_buffer_lazy" and a.disaggregation_mode != "null":
        raise RefusedError(
            "extra_buffer_lazy does not run under PD disaggregation; use extra_buffer",
            "arg_groups/mamba_hook.py:125 at 0.5.23",
        )
    interval, drafts = a.mamba_track_interval, a.speculative_num_draft_tokens
    if interval % page or (drafts is not None and interval < drafts):
        raise RefusedError(
            f"--mamba-track-interval {interval} must be whole {page}-token pages and no less than the draft tokens",
            "arg_groups/mamba_hook.py:131-135 at 0.5.23, :135 at 0.5.23",
        )


def linear_backends(a: Arguments, site: Site) -> None:
    """What the KDA kernels of decode and verification require, and the replay rings' own conditions.

    Source: arg_groups/attention_hook.py:281-525 at 0.5.23.
    """
    if a.linear_attn_decode_backend == "flashkda":
        raise RefusedError(
            "--linear-attn-decode-backend flashkda: it is a prefill kernel",
            "arg_groups/attention_hook.py:318-322 at 0.5.23",
        )
    decode = a.linear_attn_decode_backend or a.linear_attn_backend
    bf16_state = a.mamba_ssm_dtype == "bfloat16"
    if a.linear_attn_decode_backend is None:
        if site.gpu.sm100 and bf16_state and a.linear_attn_backend != "helion":
            decode = "flashinfer"
        elif decode == "flashkda":
            decode = "triton"
    if "flashinfer" in (decode, a.linear_attn_verify_backend) and site.gpu.blackwell and not bf16_state:
        raise RefusedError(
            "the flashinfer KDA kernels need --mamba-ssm-dtype bfloat16 on Blackwell",
            "arg_groups/attention_hook.py:341 at 0.5.23",
        )
    if (a.linear_attn_prefill_backend or a.linear_attn_backend) == "flashinfer" and site.gpu.blackwell:
        a.warnings.append(
            "the flashinfer KDA prefill kernel needs CUDA 13 on Blackwell, or the engine refuses to start"
        )
    if a.enable_linear_replayssm:
        _check_replay(a, decode)
    if a.enable_linear_replayssm_spec:
        _check_replay_verify(a, decode)


def _check_replay(a: Arguments, decode: str) -> None:
    source = "arg_groups/attention_hook.py:409-441 at 0.5.23"
    if decode not in ("triton", "helion"):
        raise RefusedError(f"--enable-linear-replayssm does not run with the {decode} KDA decode kernel", source)
    if not a.disable_radix_cache and a.mamba_radix_cache_strategy != "no_buffer":
        raise RefusedError(
            "--enable-linear-replayssm needs the no_buffer state strategy: add --disable-radix-cache",
            "arg_groups/attention_hook.py:418 at 0.5.23",
        )
    if a.disaggregation_mode != "null":
        raise RefusedError("--enable-linear-replayssm does not run under PD disaggregation", source)


def _check_replay_verify(a: Arguments, decode: str) -> None:
    source = "arg_groups/attention_hook.py:443-525 at 0.5.23"
    if a.speculative_eagle_topk not in (None, 1):
        raise RefusedError("--enable-linear-replayssm-spec needs --speculative-eagle-topk 1", source)
    if decode not in ("triton", "flashinfer"):
        raise RefusedError(f"--enable-linear-replayssm-spec does not run with the {decode} KDA decode kernel", source)
    if a.disaggregation_mode == "prefill":
        raise RefusedError("--enable-linear-replayssm-spec: a PD prefill server never verifies drafts", source)
    if a.enable_linear_replayssm:
        raise RefusedError("--enable-linear-replayssm-spec and --enable-linear-replayssm exclude each other", source)
    if a.mamba_ssm_dtype is None:
        a.mamba_ssm_dtype = "float32"
        a.because["mamba_ssm_dtype"] = _STATE_REPLAY


def check_ring(a: Arguments, site: Site) -> None:
    """The ring's length against the drafts it must hold, once both are known.

    Source: mem_cache/memory_pool.py:819-831, mem_cache/kv_cache_configurator.py:1708-1717 at 0.5.23.
    """
    if not a.enable_linear_replayssm_spec:
        return
    if not site.profile.replay_rings:
        if a.speculative_algorithm in ("DFLASH", "DSPARK"):
            raise RefusedError(
                f"--enable-linear-replayssm-spec does not run with {a.speculative_algorithm} in this release; "
                + site.profile.otherwise(replay_rings=True),
                "mem_cache/kv_cache_configurator.py:1113-1121 at 0.5.20",
            )
        return
    records, drafts = a.linear_replayssm_cache_len, a.max_draft_tokens or 0
    source = "mem_cache/memory_pool.py:819-831 at 0.5.23"
    if records & (records - 1):
        raise RefusedError(f"--linear-replayssm-cache-len {records} is no power of two", source)
    if records < 2 * drafts:
        raise RefusedError(
            f"--enable-linear-replayssm-spec: a ring of {records} records is under twice the {drafts} draft tokens; "
            "raise --linear-replayssm-cache-len or lower --speculative-num-draft-tokens",
            source,
        )


def checkpoints(a: Arguments, site: Site) -> None:
    """The int8 checkpoint pool: never charged to the budget, and not beside a host cache."""
    if not a.enable_int8_mamba_checkpoint:
        return
    if a.enable_hierarchical_cache:
        raise RefusedError(
            "--enable-int8-mamba-checkpoint does not run with --enable-hierarchical-cache",
            "arg_groups/mamba_hook.py:84 at 0.5.23",
        )
    a.warnings.append(
        "--enable-int8-mamba-checkpoint adds a pool (two slots a state slot) that the engine's budget does not charge "
        "and that is not among the ledgers below (mem_cache/mamba_checkpoint_pool.py:301-345 at 0.5.23)"
    )


def state_dtypes(a: Arguments, site: Site) -> None:
    """The dtypes of the convolution window and of the recurrent state.

    Source: configs/mamba_utils.py:47-104 at 0.5.23.
    """
    conv = site.environment.get("SGLANG_MAMBA_CONV_DTYPE")
    a.mamba_conv_dtype = conv if conv in _DTYPES else "bfloat16"
    a.because["mamba_conv_dtype"] = _CONV_DEFAULT if conv is None else _CONV_VARIABLE
    if conv is not None and conv not in _DTYPES:
        a.warnings.append(f"SGLANG_MAMBA_CONV_DTYPE={conv!r} is no dtype the engine knows: it takes bfloat16")
    variable = site.environment.get("SGLANG_MAMBA_SSM_DTYPE")
    if a.mamba_ssm_dtype is not None:
        a.because.setdefault("mamba_ssm_dtype", _STATE_FLAG)
    elif variable is not None and variable in _DTYPES:
        a.mamba_ssm_dtype = variable
        a.because["mamba_ssm_dtype"] = _STATE_VARIABLE
    else:
        a.mamba_ssm_dtype = "float32"
        a.because["mamba_ssm_dtype"] = _STATE_DEFAULT
        if variable is not None:
            a.warnings.append(f"SGLANG_MAMBA_SSM_DTYPE={variable!r} is no dtype the engine knows: it takes float32")
    a.skip_decode_lock = switched_on(site.environment, "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK")
