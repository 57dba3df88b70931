"""What the engine makes of the flags: the answer of `kvplan resolve`."""

from glm_kvplan.engines.resolved_flags import ResolveAnswer
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.plan import Plan


def answer_resolve(plan: Plan) -> ResolveAnswer:
    return ResolveAnswer(head_of(plan), plan.choices)
