"""The answers of `kvplan explain` of a vLLM launch: the list of topics, and one topic for a deployment."""

from glm_kvplan.engines.explanation import ExplainAnswer, TopicsAnswer, refuse_other_topic
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.explain.ground import Ground
from glm_kvplan.engines.vllm.explain.topics import TITLES, TOPICS
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.errors import InputError
from glm_kvplan.workload import Workload


def answer_explain(
    plan: Plan | None, workload: Workload | None, topic: str | None, beside: Workload | None = None
) -> TopicsAnswer | ExplainAnswer:
    """One topic for a deployment under a workload, or without one the list of topics. Raises InputError."""
    if topic is None:
        return TopicsAnswer(TITLES)
    refuse_other_topic(topic, TITLES)
    if beside is not None:
        raise InputError(f"--beside: explain {topic} shows one load; kvplan sweep --over context=8k,128k shows several")
    assert plan is not None and workload is not None
    return ExplainAnswer(head_of(plan), topic, *TOPICS[topic][1](Ground(plan, workload)))
