"""Start-up checks of the experts' exchange: tokens a rank sends at once, against the buffer it has for them."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch

_FLASHINFER_MOST = "SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK"


def _prefills(a: Launch) -> bool:
    return bool(a.chunked_prefill_size > 0) and a.disaggregation_mode != "decode"


def _pplx_tokens(a: Launch) -> int:
    return int(max(a.chunked_prefill_size, a.cuda_graph_max_bs_decode or 0))


def _largest_chunk(a: Launch) -> int:
    """Tokens of the largest prefill chunk; 0 without chunks (arg_groups/overrides.py:1865-1883 at 0.5.23)."""
    chunk = int(max(a.chunked_prefill_size, 0))
    if chunk and a.enable_dynamic_chunking and a.pp_size > 1:
        return max(chunk, int(a.max_prefill_tokens), -(-chunk * 5 // 4))
    return chunk


def _decode_tokens(a: Launch) -> int:
    """Tokens of the largest decode graph on a rank; 0 where none is captured."""
    if a.disaggregation_mode == "prefill" or a.decode_graph == "disabled":
        return 0
    batch = a.decode_graph_max_bs
    if a.max_running_requests is not None:
        batch = min(batch, max(1, a.max_running_requests // a.attn_dp_size))
    return int(batch * (a.max_draft_tokens if a.speculative_algorithm else 1))


def _deepep_v2_full(a: Launch, ranks: int) -> bool:
    """Whether the share of one of `ranks` in a prefill, or a decode graph, is more than a rank may send."""
    most = a.number("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)
    prefill = 0 if a.disaggregation_mode == "decode" else _largest_chunk(a) or a.max_prefill_tokens
    return bool(max(-(-prefill // ranks), _decode_tokens(a)) > most)


def _cutedsl_full(a: Launch) -> bool:
    """A step's tokens against what all ranks may send, where prefill steps are not divided."""
    if a.disaggregation_mode == "decode":
        return False
    decode = a.decode_graph_max_bs * (a.speculative_num_draft_tokens if a.speculative_algorithm else 1)
    tokens = max(a.max_prefill_tokens, decode)
    if a.prefill_graph == "tc_piecewise":
        tokens = max(tokens, a.prefill_graph_max_bs)
    return bool((a.number(_FLASHINFER_MOST, 0) or 1024) * a.ep_size < tokens)


def _flashinfer_full(a: Launch) -> bool:
    """The largest chunk or graph of a rank against what it may send; or prefill steps without a bound."""
    chunk, tokens = _largest_chunk(a), _decode_tokens(a)
    if a.disaggregation_mode != "decode":
        if not chunk:
            return True
        tokens = max(tokens, chunk)
        if a.prefill_graph != "disabled":
            tokens = max(tokens, a.prefill_graph_max_bs)
    return bool(tokens > a.number(_FLASHINFER_MOST, max(chunk, 4096)))


def _megamoe_budget(a: Launch) -> int | None:
    """Tokens a rank of a MegaMoE server of packed FP4 experts may send; None where nobody looks."""
    if a.moe_a2a_backend != "megamoe" or a.site.gpu.vendor != "cuda":
        return None
    if a.given.get("quantization") != "modelopt_fp4" and a.site.kernels != "modelopt_fp4":
        return None
    return a.number("SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK", 8192)


def _megamoe_decode(a: Launch, capped: bool) -> bool:
    most = _megamoe_budget(a)
    if most is None or a.disaggregation_mode == "prefill":
        return False
    batch = a.decode_graph_max_bs
    if capped and a.max_running_requests is not None:
        group = a.tp_size // a.attn_dp_size
        batch = min(batch, -(-(a.max_running_requests // a.attn_dp_size) // group) * group)
    return bool(most < batch * (a.speculative_num_draft_tokens if a.speculative_algorithm else 1))


def _megamoe_prefill(a: Launch) -> bool:
    """The chunk, which is divided among attention groups once more, or its absence."""
    most = _megamoe_budget(a)
    if most is None or a.disaggregation_mode == "decode" or (a.pp_size > 1 and a.enable_dynamic_chunking):
        return False
    chunk = a.chunked_prefill_size
    if a.enable_prefill_cp:
        share = -(-chunk // a.attn_cp_size)
    else:
        group = max(a.tp_size // a.attn_dp_size // a.attn_cp_size, 1)
        share = -(-(chunk // a.attn_dp_size) // group) * group
    return not 0 < share <= most


CHECKS = (
    Check(
        "flashinfer_cutedsl_tokens",
        lambda a: a.moe_a2a_backend == "flashinfer" and a.expert_runner == "flashinfer_cutedsl" and _cutedsl_full(a),
        "--moe-a2a-backend flashinfer with flashinfer_cutedsl: a step of --max-prefill-tokens, or the largest decode "
        f"batch, is above {_FLASHINFER_MOST} (1024) times --ep-size; raise it, or lower --max-prefill-tokens",
        "arg_groups/moe_hook.py:621-655 at 0.5.21",
    ),
    Check(
        "flashinfer_tokens",
        lambda a: a.moe_a2a_backend == "flashinfer" and _flashinfer_full(a),
        f"--moe-a2a-backend flashinfer: a chunk or graph is above {_FLASHINFER_MOST} (the chunk, 4096 at least), or "
        "prefill runs without chunks",
        "arg_groups/moe_hook.py:734-775 at 0.5.23",
    ),
    Check(
        "megamoe_decode",
        lambda a: _megamoe_decode(a, capped=False),
        "--moe-a2a-backend megamoe with NVFP4 experts: the largest decode graph times its tokens a request is above "
        "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK (8192)",
        "arg_groups/mega_moe_hook.py:101-123 at 0.5.22",
    ),
    Check(
        "megamoe_decode_capped",
        lambda a: not a.encoder_only and _megamoe_decode(a, capped=True),
        "--moe-a2a-backend megamoe with NVFP4 experts: the largest decode batch times its tokens a request is above "
        "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK (8192)",
        "arg_groups/mega_moe_hook.py:94-106, 161-183 at 0.5.23",
    ),
    Check(
        "megamoe_prefill",
        lambda a: not a.encoder_only and _megamoe_prefill(a),
        "--moe-a2a-backend megamoe with NVFP4 experts: a prefill chunk, or its absence, is above "
        "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK (8192); lower --chunked-prefill-size",
        "arg_groups/mega_moe_hook.py:184-256 at 0.5.23",
    ),
    Check(
        "megamoe_encoder",
        lambda a: bool(a.encoder_only) and _megamoe_prefill(a),
        "--moe-a2a-backend megamoe with NVFP4 experts and --encoder-only: a prefill chunk, or its absence, is "
        "above SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK (8192); lower --chunked-prefill-size",
        "arg_groups/mega_moe_hook.py:77-88 at 0.5.22, :187-251 at 0.5.23",
    ),
    Check(
        "mori_tokens",
        lambda a: (
            a.moe_a2a_backend == "mori"
            and _prefills(a)
            and a.chunked_prefill_size > a.number("SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 4096)
        ),
        "--moe-a2a-backend mori: the chunk of {a.chunked_prefill_size} tokens a rank is above "
        "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK (4096)",
        "arg_groups/moe_hook.py:567 at 0.5.23",
    ),
    Check(
        "pplx_tokens",
        lambda a: (
            a.moe_a2a_backend == "pplx"
            and _prefills(a)
            and _pplx_tokens(a) > a.number("SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)
        ),
        "--moe-a2a-backend pplx: a chunk or decode batch above SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK (128)",
        "arg_groups/moe_hook.py:615 at 0.5.23",
    ),
    Check(
        "deepep_v2_tokens",
        lambda a: a.moe_a2a_backend == "deepep_v2" and _deepep_v2_full(a, 1),
        "--moe-a2a-backend deepep_v2: a chunk or decode batch above "
        "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK (128)",
        "arg_groups/moe_hook.py:547-587 at 0.5.21",
    ),
    Check(
        "deepep_v2_share",
        lambda a: a.moe_a2a_backend == "deepep_v2" and _deepep_v2_full(a, max(1, a.tp_size // a.attn_dp_size)),
        "--moe-a2a-backend deepep_v2: a chunk's share of each GPU of an attention group, or a decode batch, is above "
        "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK (128)",
        "arg_groups/moe_hook.py:641-706 at 0.5.23",
    ),
)
