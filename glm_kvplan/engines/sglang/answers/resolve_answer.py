"""What the engine makes of the flags: the answer of `kvplan resolve`."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.show.said import Text


class ResolveAnswer(NamedTuple):
    """One choice a flag, with its reason and source."""

    head: Head
    choices: tuple[Choice, ...]
    warnings: tuple[Text, ...] = ()


def answer_resolve(plan: Plan) -> ResolveAnswer:
    return ResolveAnswer(head_of(plan), plan.choices)
