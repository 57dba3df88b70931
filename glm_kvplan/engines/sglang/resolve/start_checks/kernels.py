"""Start-up checks of attention kernels, quantization and plug-ins against the card and the checkpoint."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch
from glm_kvplan.engines.weight_format import UNREAD

_PAGES = "arg_groups/overrides.py:1144-1200, mem_cache/memory_pool.py:5371-5373 at 0.5.23"
# Kernels that set their own page, by the position (base, prefill, decode) in which they do, and kernels of any.
_PAGED = {
    "flashmla": (0, 2),
    "trtllm_mla": (0, 2),
    "tokenspeed_mla": (0, 2),
    "cutedsl_mla": (0, 1, 2),
    "trtllm_mha": (0, 1, 2),
    "hpc_ops": (0, 1, 2),
}
_DETERMINISTIC = ("ascend", "fa3", "fa4", "triton")
# --quantization that a checkpoint of any method takes beside its own, and what one of this method takes.
_REQUANTIZED = ("quark_mxfp4", "humming", "unquant")
_COMPATIBLE: dict[str | None, tuple[str, ...]] = {
    "fp8": ("modelopt_fp4", "nvfp4_online"),
    "modelopt": ("modelopt_fp8", "modelopt_fp4", "modelopt_mixed", "petit_nvfp4"),
    "mxfp8": (),
    "w4afp8": (),
}


def _own_page(a: Launch) -> bool:
    """Whether a kernel changes the page this model needs, where it groups index keys."""
    if any(position in _PAGED.get(kernel or "", ()) for position, kernel in enumerate(a.explicit_attention)):
        return True
    return a.given.get("speculative_draft_attention_backend") == "trtllm_mha" or "intel_xpu" in a.attention


def _mla(a: Launch, kernel: str) -> bool:
    return kernel in (a.attention_backend, a.decode_attention_backend)


def _deterministic(a: Launch) -> bool:
    return bool(a.enable_deterministic_inference) or a.rl_on_policy_target is not None


def _rejection(a: Launch) -> bool:
    if not a.speculative_use_rejection_sampling or a.speculative_algorithm is None:
        return False
    thresholds = (a.speculative_accept_threshold_single, a.speculative_accept_threshold_acc)
    return (
        a.speculative_algorithm not in ("EAGLE", "EAGLE3") or a.speculative_eagle_topk != 1 or thresholds != (1.0, 1.0)
    )


def _other_quantization(a: Launch) -> bool:
    """Whether the flag names another method than the checkpoint; ModelOpt's own algorithms win over the flag."""
    asked, kernels = a.quantization, a.site.kernels
    if kernels in ("modelopt_fp4", "modelopt_fp8", "modelopt_mixed"):
        return kernels == "modelopt_fp4" and asked == "nvfp4_online"
    if asked is None or kernels not in _COMPATIBLE or (asked, kernels) == (a.site.quantization, "mxfp8"):
        return False  # MXFP8 that ModelOpt wrote is asked for by either name
    return asked not in (kernels, *_REQUANTIZED, *_COMPATIBLE[kernels])


def _unknown_quantization(a: Launch) -> bool:
    """A method of other machines, or one without kernels, where no checkpoint names its own."""
    return a.quantization in ("gptq", "mlx_q4", "mlx_q8") and a.site.kernels is None


CHECKS = (
    Check(
        "kernel_page",
        lambda a: a.site.profile.page_size_times_index_kpool and a.site.geometry.index_kpool > 1 and _own_page(a),
        "attention kernels with a page of their own (flashmla, trtllm_mla, trtllm_mha, cutedsl_mla, tokenspeed_mla, "
        "hpc_ops, intel_xpu) end in the pool's assertion: this model needs pages of {a.page_size} tokens",
        _PAGES,
    ),
    Check(
        "trtllm_mla",
        lambda a: _mla(a, "trtllm_mla") and (not a.site.gpu.blackwell or a.kv_cache_dtype != "fp8_e4m3"),
        "the trtllm_mla attention kernels need a Blackwell GPU and FP8 rows",
        "arg_groups/overrides.py:1211 at 0.5.23",
    ),
    Check(
        "tokenspeed_mla",
        lambda a: _mla(a, "tokenspeed_mla") and (not a.site.gpu.blackwell or a.kv_cache_dtype != "fp8_e4m3"),
        "the tokenspeed_mla attention kernels need a Blackwell GPU and FP8 rows",
        "arg_groups/overrides.py:1154-1158 at 0.5.21, arg_groups/serving_hook.py:304-329 at 0.5.23",
    ),
    Check(
        "cutedsl_mla",
        lambda a: (
            "cutedsl_mla" in a.explicit_attention
            and (a.prefill_attention_backend == "cutedsl_mla" or not a.site.gpu.sm100)
        ),
        "the cutedsl_mla attention kernels decode only, on data-centre Blackwell GPUs",
        "arg_groups/overrides.py:1241-1245 at 0.5.23",
    ),
    Check(
        "trtllm_mha",
        lambda a: "trtllm_mha" in a.attention and not (a.hopper or a.site.gpu.sm100 or a.sm120),
        "the trtllm_mha attention kernels need a Hopper or Blackwell GPU",
        "arg_groups/attention_hook.py:203-225 at 0.5.23",
    ),
    Check(
        "trtllm_mha_fp8",
        lambda a: a.attention[0] == "trtllm_mha" and a.sm120 and a.kv_cache_dtype == "fp8_e4m3",
        "the trtllm_mha prefill kernels read no FP8 rows on this GPU",
        "arg_groups/attention_hook.py:218 at 0.5.23",
    ),
    Check(
        "trtllm_mha_context",
        lambda a: a.attention[0] == "trtllm_mha" and not a.site.gpu.sm100 and a.attn_cp_size > 1,
        "prefill context parallelism with trtllm_mha needs a data-centre Blackwell GPU",
        "arg_groups/attention_hook.py:233 at 0.5.23",
    ),
    Check(
        "flex_attention",
        lambda a: a.attention_backend == "flex_attention" and a.speculative_algorithm is not None,
        "flex_attention does not run with speculation",
        "arg_groups/attention_hook.py:161 at 0.5.23",
    ),
    Check(
        "deterministic",
        lambda a: _deterministic(a) and a.attention_backend not in (None, *_DETERMINISTIC),
        "deterministic inference takes the attention kernels fa3, fa4 or triton here, not {a.attention_backend}",
        "arg_groups/overrides.py:1119, arg_groups/attention_hook.py:645 at 0.5.23",
    ),
    Check(
        "deterministic_fa4",
        lambda a: _deterministic(a) and a.attention_backend == "fa4" and not a.site.gpu.sm100,
        "deterministic inference with fa4 needs a data-centre Blackwell GPU",
        "arg_groups/attention_hook.py:649 at 0.5.23",
    ),
    Check(
        "item_scoring",
        lambda a: bool(a.enable_mis) and a.attention != ("flashinfer", "flashinfer"),
        "--enable-mis needs the flashinfer attention kernels",
        "arg_groups/attention_hook.py:573 at 0.5.23",
    ),
    Check(
        "dequantized_prefill",
        lambda a: a.prefill_kv_cache_dequant_dtype != "auto",
        "--prefill-kv-cache-dequant-dtype goes with NVFP4 token rows, which this model does not take",
        "arg_groups/kv_cache_hook.py:41 at 0.5.23",
    ),
    Check(
        "quantization",
        _other_quantization,
        "--quantization {a.quantization}: the checkpoint says {a.site.quantization} in its config.json",
        "layers/quantization/base_config.py:223-254, configs/model_config.py:2143 at 0.5.23",
    ),
    Check(
        "unknown_quantization",
        _unknown_quantization,
        "--quantization {a.quantization} is no method of this engine on CUDA and ROCm",
        "layers/quantization/__init__.py:118-146, configs/model_config.py:2152 at 0.5.23",
    ),
    Check(
        "nvfp4_online",
        lambda a: a.quantization == "nvfp4_online" and not a.site.gpu.sm100,
        "--quantization nvfp4_online needs a data-centre Blackwell GPU",
        "arg_groups/overrides.py:1458 at 0.5.23",
    ),
    Check(
        "nvfp4_online_runner",
        lambda a: (
            a.quantization == "nvfp4_online"
            and a.moe_runner_backend
            not in ("auto", "flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl")
        ),
        "--quantization nvfp4_online takes the flashinfer_trtllm or flashinfer_cutedsl expert kernels",
        "arg_groups/overrides.py:1471 at 0.5.23",
    ),
    Check(
        "cutlass_runner",
        lambda a: (
            a.expert_runner == "flashinfer_cutlass"
            and a.engine_quantization not in ("modelopt_fp4", "modelopt_fp8", "modelopt_mixed", UNREAD, None)
        ),
        "--moe-runner-backend flashinfer_cutlass runs ModelOpt or BF16 experts, not {a.engine_quantization}",
        "arg_groups/moe_hook.py:81 at 0.5.23",
    ),
    Check(
        "cutedsl_runner",
        lambda a: (
            a.expert_runner == "flashinfer_cutedsl"
            and a.engine_quantization not in ("modelopt_fp4", "modelopt_mixed", "nvfp4_online", UNREAD)
        ),
        "--moe-runner-backend flashinfer_cutedsl runs NVFP4 experts only (--quantization modelopt_fp4)",
        "arg_groups/moe_hook.py:96 at 0.5.23",
    ),
    Check(
        "rejection_sampling",
        _rejection,
        "--speculative-use-rejection-sampling: EAGLE with top-k 1 and without accept thresholds only",
        "arg_groups/speculative_hook.py:1216-1235 at 0.5.23",
    ),
    Check(
        "block_verification",
        lambda a: bool(a.speculative_use_block_verification) and a.speculative_algorithm in (None, "STANDALONE"),
        "--speculative-use-block-verification needs EAGLE, EAGLE3, DFLASH or DSPARK speculation",
        "arg_groups/speculative_hook.py:177 at 0.5.23",
    ),
    Check(
        "context_decode",
        lambda a: bool(a.enable_cp_decode_attn_tp),
        "--enable-cp-decode-attn-tp is for other models",
        "arg_groups/model_hook.py:199 at 0.5.23",
    ),
    Check(
        "layer_split",
        lambda a: (
            bool(a.enable_dsa_cache_layer_split)
            and (
                a.disaggregation_mode != "prefill"
                or not a.enable_prefill_cp
                or a.cp_strategy != "interleave"
                or a.disaggregation_transfer_backend not in ("mooncake", "mooncake_tcp")
                or a.pp_size > 1
            )
        ),
        "--enable-dsa-cache-layer-split: on a PD prefill server with prefill CP (interleave) and mooncake only",
        "arg_groups/model_hook.py:368-410 at 0.5.23",
    ),
    Check(
        "lm_head_exchange",
        lambda a: (
            bool(a.enable_tp_lm_head_all_to_all)
            and (a.attn_dp_size == 1 or a.enable_dp_lm_head or a.attn_dp_size != a.tp_size)
        ),
        "--enable-tp-lm-head-all-to-all needs as many attention groups as GPUs, without --enable-dp-lm-head and CP",
        "arg_groups/overrides.py:1429-1441 at 0.5.23",
    ),
    Check(
        "decode_context",
        lambda a: a.dcp_size == 1 and (a.dcp_comm_backend in ("a2a", "fi_a2a") or bool(a.dcp_replicate_q_proj)),
        "--dcp-comm-backend and --dcp-replicate-q-proj need --dcp-size above 1",
        "arg_groups/parallel_hook.py:252-267 at 0.5.23",
    ),
    Check(
        "mamba_backend",
        lambda a: a.mamba_backend == "flashinfer",
        "--mamba-backend flashinfer: this model's states are KDA's, and the kernels are not in the engine's images",
        "arg_groups/mamba_hook.py:70 at 0.5.23",
    ),
    Check(
        "fp4_indexer",
        lambda a: bool(a.enable_deepseek_v4_fp4_indexer) and not (a.site.gpu.sm100 or a.sm120),
        "--enable-deepseek-v4-fp4-indexer needs a Blackwell GPU",
        "arg_groups/serving_hook.py:467 at 0.5.23",
    ),
    Check(
        "layernorm",
        lambda a: bool(a.enable_layernorm_sp),
        "--enable-layernorm-sp is for other models",
        "arg_groups/layernorm_sp_hook.py:131 at 0.5.23",
    ),
    Check(
        "encoder_replay",
        lambda a: bool(a.enable_encoder_swa_bounded_replay),
        "--enable-encoder-swa-bounded-replay is for another model",
        "arg_groups/model_hook.py:1045 at 0.5.23",
    ),
    Check(
        "whole_model_kernels",
        lambda a: bool(a.enable_amd_monokernel or a.enable_nvidia_megakernel),
        "--enable-amd-monokernel and --enable-nvidia-megakernel do not know this model",
        "kernel_plugins/nvidia/binding.py:380, kernel_plugins/amd/binding.py:215 at 0.5.23",
    ),
    Check(
        "expert_pack",
        lambda a: a.load_format == "expert_pack",
        "--load-format expert_pack reads checkpoints of other models",
        "arg_groups/expert_pack_hook.py:192 at 0.5.23",
    ),
)
