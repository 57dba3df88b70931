"""What vLLM makes of the flags: the answer of `kvplan resolve`."""

from glm_kvplan.engines.resolved_flags import ResolveAnswer
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.plan import Plan


def answer_resolve(plan: Plan) -> ResolveAnswer:
    return ResolveAnswer(head_of(plan), plan.choices)
