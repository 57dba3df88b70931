"""Start-up checks of the experts: their exchange, their kernels and their placement."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch

_FLASHINFER = ("flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm", "flashinfer_trtllm_routed", "deep_gemm")


def _one_group_a_rank(a: Launch) -> bool:
    return bool(a.enable_dp_attention and a.attn_dp_size == a.tp_size)


def _prefills(a: Launch) -> bool:
    return bool(a.chunked_prefill_size > 0) and a.disaggregation_mode != "decode"


def _pplx_tokens(a: Launch) -> int:
    return int(max(a.chunked_prefill_size, a.cuda_graph_max_bs_decode or 0))


def _draft_exchange(a: Launch) -> str | None:
    if a.speculative_moe_a2a_backend is not None:
        return str(a.speculative_moe_a2a_backend)
    return str(a.moe_a2a_backend) if a.speculative_algorithm is not None else None


def _deepep_v2_prefill(a: Launch) -> int:
    chunk = a.chunked_prefill_size
    return int(chunk if chunk > 0 else a.max_prefill_tokens)


def _deepep_v2_decode(a: Launch) -> int:
    batch = a.decode_graph_max_bs
    if a.max_running_requests is not None:
        batch = min(batch, max(1, a.max_running_requests // a.attn_dp_size))
    return int(batch * (a.max_draft_tokens or 1 if a.speculative_algorithm else 1))


def _deepep_v2_full(a: Launch) -> bool:
    most = a.number("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)
    prefills = a.disaggregation_mode != "decode" and _deepep_v2_prefill(a) > most
    decodes = a.disaggregation_mode != "prefill" and a.decode_graph != "disabled" and _deepep_v2_decode(a) > most
    return prefills or decodes


def _megamoe_budget(a: Launch) -> int | None:
    """Tokens a rank of a MegaMoE server of packed FP4 experts may send; None where nobody looks."""
    if a.moe_a2a_backend != "megamoe" or a.encoder_only or a.site.gpu.vendor != "cuda":
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
    return bool(most < batch * ((a.speculative_num_draft_tokens or 1) if a.speculative_algorithm else 1))


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
    return bool(chunk <= 0 or share <= 0 or share > most)


CHECKS = (
    Check(
        "flashinfer_a2a",
        lambda a: a.moe_a2a_backend == "flashinfer" and not _one_group_a_rank(a),
        "--moe-a2a-backend flashinfer needs as many attention groups as GPUs (--tp-size {a.tp_size})",
        "arg_groups/moe_hook.py:475-486 at 0.5.23",
    ),
    Check(
        "flashinfer_a2a_runner",
        lambda a: a.moe_a2a_backend == "flashinfer" and a.expert_runner not in _FLASHINFER,
        "--moe-a2a-backend flashinfer needs --moe-runner-backend flashinfer_cutlass, flashinfer_cutedsl, "
        "flashinfer_trtllm, flashinfer_trtllm_routed or deep_gemm",
        "arg_groups/moe_hook.py:531 at 0.5.23",
    ),
    Check(
        "flashinfer_dispatch",
        lambda a: a.moe_a2a_backend != "flashinfer" and a.flashinfer_a2a_dispatch_type not in (None, "auto"),
        "--flashinfer-a2a-dispatch-type needs --moe-a2a-backend flashinfer",
        "arg_groups/moe_hook.py:311 at 0.5.23",
    ),
    Check(
        "flashinfer_megamoe",
        lambda a: a.moe_a2a_backend == "flashinfer_megamoe",
        "--moe-a2a-backend flashinfer_megamoe is not validated for this model",
        "arg_groups/moe_hook.py:258 at 0.5.23",
    ),
    Check(
        "megamoe_overlap",
        lambda a: a.moe_a2a_backend == "megamoe" and bool(a.enable_two_batch_overlap or a.enable_single_batch_overlap),
        "--moe-a2a-backend megamoe does not run with two-batch or single-batch overlap",
        "arg_groups/mega_moe_hook.py:31-37 at 0.5.23",
    ),
    Check(
        "megamoe_card",
        lambda a: a.moe_a2a_backend == "megamoe" and a.site.gpu.vendor == "cuda" and not (a.hopper or a.site.gpu.sm100),
        "--moe-a2a-backend megamoe needs a Hopper or a data-centre Blackwell GPU, not a {a.site.gpu.name}",
        "arg_groups/mega_moe_hook.py:43 at 0.5.23",
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
        lambda a: _megamoe_decode(a, capped=True),
        "--moe-a2a-backend megamoe with NVFP4 experts: the largest decode batch times its tokens a request is above "
        "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK (8192)",
        "arg_groups/mega_moe_hook.py:94-106, 161-183 at 0.5.23",
    ),
    Check(
        "megamoe_prefill",
        _megamoe_prefill,
        "--moe-a2a-backend megamoe with NVFP4 experts: a prefill chunk, or its absence, is above "
        "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK (8192); lower --chunked-prefill-size",
        "arg_groups/mega_moe_hook.py:184-256 at 0.5.23",
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
        "pplx",
        lambda a: (
            a.moe_a2a_backend == "pplx"
            and (a.deepep_mode == "normal" or a.attn_dp_size < 2 or a.expert_runner not in ("deep_gemm", "auto"))
        ),
        "--moe-a2a-backend pplx needs two or more attention groups, the deep_gemm runner, and no normal dispatch",
        "arg_groups/moe_hook.py:577-599 at 0.5.23",
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
        "deepep_v2_model",
        lambda a: a.moe_a2a_backend == "deepep_v2",
        "--moe-a2a-backend deepep_v2 is not validated for this model in this release",
        "arg_groups/moe_hook.py:621-624 at 0.5.20",
    ),
    Check(
        "deepep_v2",
        lambda a: (
            a.moe_a2a_backend == "deepep_v2"
            and (
                a.moe_runner_backend not in ("auto", "deep_gemm")
                or bool(a.enable_two_batch_overlap or a.enable_single_batch_overlap or a.enforce_shared_experts_fusion)
            )
        ),
        "--moe-a2a-backend deepep_v2 takes the deep_gemm runner, without batch overlap and fused shared experts",
        "arg_groups/moe_hook.py:414-427 at 0.5.23",
    ),
    Check(
        "deepep_v2_draft",
        lambda a: _draft_exchange(a) == "deepep_v2",
        "deepep_v2 does not serve the draft: give another --speculative-moe-a2a-backend",
        "arg_groups/moe_hook.py:635 at 0.5.23",
    ),
    Check(
        "deepep_v2_tokens",
        lambda a: a.moe_a2a_backend == "deepep_v2" and _deepep_v2_full(a),
        "--moe-a2a-backend deepep_v2: a chunk or decode batch above "
        "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK (128)",
        "arg_groups/moe_hook.py:686-706 at 0.5.23",
    ),
    Check(
        "deepep_cutedsl",
        lambda a: (
            a.moe_a2a_backend == "deepep" and a.moe_runner_backend == "flashinfer_cutedsl" and a.deepep_mode == "normal"
        ),
        "flashinfer_cutedsl experts take deepep's low-latency dispatch only",
        "arg_groups/moe_hook.py:377 at 0.5.23",
    ),
    Check(
        "cutlass_ranks",
        lambda a: a.moe_runner_backend == "cutlass" and a.engine_quantization in ("fp8", "mxfp8") and a.ep_size > 1,
        "--moe-runner-backend cutlass runs FP8 experts without expert parallelism only",
        "arg_groups/moe_hook.py:161 at 0.5.23",
    ),
    Check(
        "runner_ranks",
        lambda a: (
            a.moe_runner_backend in ("flashinfer_cutlass", "flashinfer_cutedsl") and a.ep_size not in (1, a.tp_size)
        ),
        "--moe-runner-backend {a.moe_runner_backend} takes --ep-size 1 or --tp-size",
        "arg_groups/moe_hook.py:85-105 at 0.5.23",
    ),
    Check(
        "cutedsl_exchange",
        lambda a: (
            a.moe_runner_backend == "flashinfer_cutedsl" and a.moe_a2a_backend not in ("none", "deepep", "flashinfer")
        ),
        "--moe-runner-backend flashinfer_cutedsl does not run with --moe-a2a-backend {a.moe_a2a_backend}",
        "arg_groups/moe_hook.py:106 at 0.5.23",
    ),
    Check(
        "dispatch_algorithm",
        lambda a: a.moe_a2a_backend == "none" and a.ep_dispatch_algorithm in ("static", "lp"),
        "--ep-dispatch-algorithm {a.ep_dispatch_algorithm} needs an expert exchange; take dynamic",
        "arg_groups/parallel_hook.py:783 at 0.5.23",
    ),
    Check(
        "eplb",
        lambda a: bool(a.enable_eplb) and a.elastic_ep_join_mode != "scale" and a.ep_size == 1,
        "--enable-eplb needs expert parallelism (--ep-size, or an expert exchange)",
        "arg_groups/parallel_hook.py:791 at 0.5.23",
    ),
    Check(
        "dwdp",
        lambda a: (
            a.dwdp_size > 1
            and (
                a.dwdp_size != a.tp_size
                or a.disaggregation_mode == "decode"
                or bool(a.enable_eplb or a.enable_two_batch_overlap)
                or a.speculative_algorithm is not None
                or a.pp_size > 1
            )
        ),
        "--dwdp-size must be --tp-size, without speculation, EPLB, pipeline stages, two-batch overlap and the decode "
        "role",
        "arg_groups/parallel_hook.py:438-455 at 0.5.23",
    ),
    Check(
        "shared_experts",
        lambda a: a.shared_experts_tp_size is not None,
        "--shared-experts-tp-size is for another model",
        "arg_groups/parallel_hook.py:216-226 at 0.5.23",
    ),
)
