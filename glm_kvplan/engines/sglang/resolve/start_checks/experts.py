"""Start-up checks of the experts: their exchange, their kernels and their placement."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch
from glm_kvplan.engines.weight_format import UNREAD

_FLASHINFER = ("flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm", "flashinfer_trtllm_routed", "deep_gemm")


def _one_group_a_rank(a: Launch) -> bool:
    return bool(a.enable_dp_attention and a.attn_dp_size == a.tp_size)


def _draft_exchange(a: Launch) -> str | None:
    if a.speculative_moe_a2a_backend is not None:
        return str(a.speculative_moe_a2a_backend)
    return str(a.moe_a2a_backend) if a.speculative_algorithm is not None else None


def _dispatches_otherwise(a: Launch) -> bool:
    """A dispatch format that is named, but is not that of the experts or of their kernels."""
    named, method = a.flashinfer_a2a_dispatch_type, a.engine_quantization
    if named == "nvfp4":
        return method not in ("modelopt_fp4", UNREAD)
    if named == "mxfp8" or (named == "auto" and method == "mxfp8"):
        return method not in ("mxfp8", UNREAD) or not a.expert_runner.startswith("flashinfer_trtllm")
    return False


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
        "flashinfer_dispatch_type",
        lambda a: a.moe_a2a_backend == "flashinfer" and _dispatches_otherwise(a),
        "--flashinfer-a2a-dispatch-type {a.flashinfer_a2a_dispatch_type}: nvfp4 goes with NVFP4 experts, mxfp8 with "
        "--quantization mxfp8 on the flashinfer_trtllm_routed kernels",
        "arg_groups/moe_hook.py:190-206 at 0.5.23",
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
        "pplx",
        lambda a: (
            a.moe_a2a_backend == "pplx"
            and (a.deepep_mode == "normal" or a.attn_dp_size < 2 or a.expert_runner not in ("deep_gemm", "auto"))
        ),
        "--moe-a2a-backend pplx needs two or more attention groups, the deep_gemm runner, and no normal dispatch",
        "arg_groups/moe_hook.py:577-599 at 0.5.23",
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
                a.expert_runner not in ("auto", "deep_gemm")
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
        "deepep_cutedsl",
        lambda a: (
            a.moe_a2a_backend == "deepep" and a.expert_runner == "flashinfer_cutedsl" and a.deepep_mode == "normal"
        ),
        "flashinfer_cutedsl experts take deepep's low-latency dispatch only",
        "arg_groups/moe_hook.py:377 at 0.5.23",
    ),
    Check(
        "cutlass_ranks",
        lambda a: a.moe_runner_backend == "cutlass" and a.engine_quantization in ("fp8", "mxfp8") and a.asked_ranks > 1,
        "--moe-runner-backend cutlass runs FP8 experts without expert parallelism only",
        "arg_groups/moe_hook.py:161 at 0.5.23",
    ),
    Check(
        "runner_ranks",
        lambda a: (
            a.expert_runner in ("flashinfer_cutlass", "flashinfer_cutedsl") and a.asked_ranks not in (1, a.tp_size)
        ),
        "--moe-runner-backend {a.expert_runner} takes --ep-size 1 or --tp-size",
        "arg_groups/moe_hook.py:85-105 at 0.5.23",
    ),
    Check(
        "cutedsl_exchange",
        lambda a: (
            a.expert_runner == "flashinfer_cutedsl"
            and (
                a.moe_a2a_backend not in ("none", "deepep", "flashinfer")
                or a.given.get("moe_a2a_backend") == "ascend_tp"  # not yet none when this is asked
                or (a.moe_a2a_backend == "deepep" and a.engine_quantization == "nvfp4_online")
            )
        ),
        "--moe-runner-backend flashinfer_cutedsl takes --moe-a2a-backend none, flashinfer or, but for nvfp4_online, "
        "deepep",
        "arg_groups/moe_hook.py:106-121 at 0.5.23",
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
