"""The pages of `kvplan explain` of a vLLM launch."""

from glm_kvplan.engines.explanation import ExplainAnswer, TopicsAnswer
from glm_kvplan.engines.explanation_pages import topic_page, topics_page
from glm_kvplan.show.page import Page


def explain_page(answer: TopicsAnswer | ExplainAnswer) -> Page:
    return topics_page(answer) if isinstance(answer, TopicsAnswer) else topic_page(answer)
