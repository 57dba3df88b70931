"""The answers of `kvplan explain`: the list of topics, one topic for a deployment, and the map of where all lies."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.explanation import ExplainAnswer, TopicsAnswer
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.components.component import Location
from glm_kvplan.engines.sglang.explain import topics
from glm_kvplan.engines.sglang.explain.location_topic import places
from glm_kvplan.engines.sglang.explain.topic import Ground
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.errors import InputError
from glm_kvplan.workload import Workload


class PlaceShown(NamedTuple):
    """One kind of object (`head`), the pool it lies in, and its bytes on one rank."""

    head: Location
    pool: str
    nbytes: int


class PlacesAnswer(NamedTuple):
    """The map. `host_cache`: DRAM may hold copies; `tree_pages`: tokens of a page of the tree, None without a tree."""

    head: Head
    topic: str
    places: tuple[PlaceShown, ...]
    host_cache: bool
    tree_pages: int | None


def answer_explain(
    plan: Plan | None, workload: Workload | None, topic: str | None, beside: Workload | None = None
) -> TopicsAnswer | ExplainAnswer | PlacesAnswer:
    """One topic for a deployment under a workload, or without one the list of topics.

    `beside` is the other load of `loads`; without it, the same tokens in shorter requests. Raises InputError.
    """
    if topic is None:
        return TopicsAnswer(topics.TITLES)
    topics.check_topic(topic)
    assert plan is not None and workload is not None
    if beside is not None and topic != topics.LOADS:
        raise InputError(f"--beside: explain {topic} shows one load; explain {topics.LOADS} takes two")
    ground = topics.ground(plan, workload, beside)
    if topic == topics.WHERE:
        return _places(ground)
    return ExplainAnswer(head_of(plan), topic, *topics.explain(ground, topic))


def _places(ground: Ground) -> PlacesAnswer:
    deployment = ground.plan.deployment
    return PlacesAnswer(
        head_of(ground.plan),
        topics.WHERE,
        tuple(PlaceShown(place.location, place.pool, place.nbytes) for place in places(ground)),
        deployment.enable_hierarchical_cache,
        None if deployment.disable_radix_cache else deployment.page_size,
    )
