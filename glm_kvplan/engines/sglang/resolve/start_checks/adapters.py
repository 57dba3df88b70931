"""Start-up checks of LoRA adapters and of the kernels that serve them."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch


def _adapters(a: Launch) -> bool:
    return bool(a.enable_lora) or (bool(a.lora_paths) and a.enable_lora is not False)


def _adapter_ranks(a: Launch) -> bool:
    if not _adapters(a):
        return False
    named = len(a.lora_paths or ())
    few = a.max_loaded_loras is not None and (a.max_loaded_loras < a.max_loras_per_batch or named > a.max_loaded_loras)
    overlap = bool(a.enable_lora_overlap_loading) and not 0 < (a.max_loaded_loras or 0) <= 2 * a.max_loras_per_batch
    every = "all" in (a.lora_target_modules or ()) and len(set(a.lora_target_modules)) > 1
    return bool(few or overlap or every or a.lora_drain_wait_threshold < 0)


CHECKS = (
    Check(
        "lora_speculation",
        lambda a: (
            _adapters(a)
            and a.speculative_algorithm is not None
            and (
                a.speculative_algorithm == "STANDALONE"
                or bool(a.speculative_adaptive)
                or "experimental_sgl_trtllm" in (a.moe_runner_backend, a.speculative_moe_runner_backend)
            )
        ),
        "LoRA does not run with {a.speculative_algorithm} speculation, adaptive steps or the experimental expert "
        "kernels",
        "arg_groups/lora_hook.py:240-300 at 0.5.23",
    ),
    Check(
        "lora_start",
        lambda a: _adapters(a) and not a.lora_paths and not (a.max_lora_rank and a.lora_target_modules),
        "--enable-lora needs --lora-paths, or --max-lora-rank and --lora-target-modules",
        "arg_groups/lora_hook.py:152 at 0.5.23",
    ),
    Check(
        "lora_numbers",
        _adapter_ranks,
        "the LoRA options do not fit together",
        "arg_groups/lora_hook.py:69-179 at 0.5.23",
    ),
    Check(
        "lora_batch",
        lambda a: a.max_loras_per_batch <= 0,
        "--max-loras-per-batch must be above 0",
        "arg_groups/lora_hook.py:59 at 0.5.23",
    ),
    Check(
        "lora_draft_runner",
        lambda a: a.speculative_algorithm is not None and str(a.speculative_moe_runner_backend).startswith("lora"),
        "--speculative-moe-runner-backend {a.speculative_moe_runner_backend}: a draft has no adapters",
        "arg_groups/lora_hook.py:192 at 0.5.23",
    ),
    Check(
        "lora_runner",
        lambda a: (
            a.moe_runner_backend.startswith("lora")
            and (
                not _adapters(a)
                or a.lora_backend != "triton_v2"
                or a.moe_a2a_backend != "none"
                or a.elastic_ep_join_mode is not None
                or bool(a.enable_eplb or a.ep_num_redundant_experts)
                or a.init_expert_location != "trivial"
            )
        ),
        "--moe-runner-backend {a.moe_runner_backend} needs --enable-lora and --lora-backend triton_v2, without an "
        "expert exchange, elastic ranks and moved experts",
        "arg_groups/lora_hook.py:201-234 at 0.5.23",
    ),
    Check(
        "lora_v2",
        lambda a: (
            _adapters(a)
            and a.lora_backend == "triton_v2"
            and bool(a.attn_dp_size > 1 or a.enable_pdmux or a.enable_two_batch_overlap or a.site.gpu.vendor != "cuda")
        ),
        "--lora-backend triton_v2: not with attention DP, pdmux, two-batch overlap or on ROCm",
        "arg_groups/lora_hook.py:30 at 0.5.23",
    ),
)
