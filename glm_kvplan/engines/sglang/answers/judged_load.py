"""The verdict of a load, the same on every page that judges it."""

from functools import partial

from glm_kvplan.engines.load_verdict import load_verdict
from glm_kvplan.engines.sglang.answers.advise_answer import AdviseAnswer
from glm_kvplan.engines.sglang.answers.memory_verdict import in_memory
from glm_kvplan.memory.budget_words import at_most
from glm_kvplan.show.page import Verdict


def judged_load(answer: AdviseAnswer) -> Verdict:
    memory = answer.memory
    verdict = load_verdict(
        answer.head,
        answer.demand,
        answer.now,
        advised=answer.holds,
        known=not memory.upper_bound,
        number=partial(at_most, budget=memory),
    )
    return in_memory(answer.head, verdict)
