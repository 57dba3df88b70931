"""The head of every answer about one plan: model, engine, GPUs, deployment, and how it is laid out in words."""

from glm_kvplan.engines.answer_head import Head, head_of_plan
from glm_kvplan.engines.sglang.deployment import SIZING, Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.show.format import count
from glm_kvplan.show.said import Said, say

_ROWS = {"bf16": "bf16 rows", "fp8_scaled": "FP8 rows with scales", "fp8_raw": "raw FP8 rows"}


def head_of(plan: Plan) -> Head:
    """The head of an answer about `plan`."""
    deployment = plan.deployment
    values = {
        **dict(zip(SIZING, deployment.sizing, strict=True)),
        "attn_tp_size": deployment.attn_tp_size,
        "slots_per_request": deployment.slots_per_request,
        "kernels_missing": deployment.kernels_missing,
    }
    return head_of_plan(plan, plan.profile.release, _parts(deployment), values)


def _parts(deployment: Deployment) -> tuple[Said, ...]:
    """The parallel layout, row layout, state type and speculation."""
    parts = [say("TP {width}", width=deployment.tp_size)]
    for template, width in (
        ("PP {width}", deployment.pp_size),
        ("attention DP {width}", deployment.attn_dp_size),
        ("attention CP {width}", deployment.attn_cp_size),
        ("replicas {width}", deployment.replicas),
    ):
        if width > 1:
            parts.append(say(template, width=width))
    parts += [
        say("attention TP {width}", width=deployment.attn_tp_size),
        say(_ROWS[deployment.kv_layout]),
        say("{dtype} state", dtype=deployment.mamba_ssm_dtype),
        say("{slots} a request", slots=count(deployment.slots_per_request, "slot")),
    ]
    if deployment.speculative:
        parts.append(
            say(
                "{algorithm} with {count} draft tokens",
                algorithm=deployment.speculative_algorithm,
                count=deployment.speculative_num_draft_tokens,
            )
        )
    if deployment.disaggregation_mode != "null":
        parts.append(say("{mode} role", mode=deployment.disaggregation_mode))
    return tuple(parts)
