"""The head of every answer about one plan: model, engine, GPUs, deployment, and how it is laid out in words."""

from dataclasses import fields

from glm_kvplan.engines.answer_head import Head, head_of_plan
from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.show.format import count
from glm_kvplan.show.said import Said, say

_ROWS = {
    "auto": "bf16 rows",
    "bfloat16": "bf16 rows",
    "float16": "float16 rows",
    "fp8": "FP8 rows",
    "fp8_e4m3": "FP8 rows",
}
_SCALED = "FP8 rows with scales"


def head_of(plan: Plan) -> Head:
    """The head of an answer about `plan`. The engine's name stands before its release, as --engine takes it."""
    deployment = plan.deployment
    apart = ("choices", "warnings")
    values = {field.name: getattr(deployment, field.name) for field in fields(deployment) if field.name not in apart}
    values["states_per_request"] = deployment.states_per_request
    return head_of_plan(plan, f"{plan.profile.engine.name}-{plan.profile.release}", _parts(deployment), values)


def _parts(deployment: Deployment) -> tuple[Said, ...]:
    """The parallel layout, rows, state and speculation."""
    parts = [say("TP {width}", width=deployment.tensor_parallel_size)]
    for template, width in (
        ("DP {width}", deployment.data_parallel_size),
        ("decode CP {width}", deployment.decode_context_parallel_size),
    ):
        if width > 1:
            parts.append(say(template, width=width))
    parts += [
        say(_ROWS.get(deployment.cache_dtype, _SCALED)),
        say("{dtype} state", dtype=deployment.state_dtype),
        say("{states} a request", states=count(deployment.states_per_request, "state")),
        say("prefix caching on" if deployment.enable_prefix_caching else "prefix caching off"),
    ]
    if deployment.num_speculative_tokens:
        parts.append(
            say(
                "{method} with {count} draft tokens",
                method=deployment.speculative_method,
                count=deployment.num_speculative_tokens,
            )
        )
    return tuple(parts)
