"""The lines above every answer: which model, engine and GPU, how it is laid out, and in what memory."""

from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.memory.budget import MemoryBudget, show_gib
from glm_kvplan.show.format import count

_LAYOUTS = {
    "bf16": "bf16 rows",
    "fp8_scaled": "FP8 rows with scales",
    "fp8_raw": "raw FP8 rows",
    "fp8_padded": "FP8 rows of 656 B",
}


def headline(plan: Plan) -> str:
    """`GLM-5.3-Flash on SGLang 0.5.21, H200 (assumed: no --gpu given)`."""
    gpu = f"{plan.gpu.name} (assumed: no --gpu given)" if plan.gpu_assumed else plan.gpu.name
    return f"{plan.model.name} on SGLang {plan.profile.release}, {gpu}"


def layer_span(stage: range) -> str:
    """`layers 0-21` of a pipeline stage, `layer 7` where it has one."""
    return f"layers {stage.start}-{stage.stop - 1}" if len(stage) > 1 else f"layer {stage.start}"


def layout(plan: Plan) -> str:
    """The parallel layout, row layout, state type and speculation in one line."""
    deployment = plan.deployment
    parts = [f"TP {deployment.tp_size}"]
    for name, width in (
        ("PP", deployment.pp_size),
        ("attention DP", deployment.attn_dp_size),
        ("attention CP", deployment.attn_cp_size),
        ("replicas", deployment.replicas),
    ):
        if width > 1:
            parts.append(f"{name} {width}")
    parts += [
        f"attention TP {deployment.attn_tp_size}",
        _LAYOUTS[deployment.kv_layout],
        f"{deployment.mamba_ssm_dtype} state",
        f"{count(deployment.slots_per_request, 'slot')} a request",
    ]
    if deployment.speculative:
        parts.append(f"{deployment.speculative_algorithm} with {deployment.speculative_num_draft_tokens} draft tokens")
    if deployment.disaggregation_mode != "null":
        parts.append(f"{deployment.disaggregation_mode} role")
    return ", ".join(parts)


def memory_line(budget: MemoryBudget) -> str:
    """What is free on a GPU before and after the load, and how far that may be off."""
    how = "" if budget.how == "measured" else f" ({budget.how}, +-{max(budget.error_gib, 0.1):.1f} GiB)"
    return (
        f"{show_gib(budget.pre_gib, budget.how)} GiB free before the load, "
        f"{show_gib(budget.available_gib, budget.how)} GiB after it{how}"
    )
