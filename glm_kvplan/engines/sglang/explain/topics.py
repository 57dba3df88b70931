"""The topics by name: the map, the article's list of misreadings in its order, and two loads side by side."""

from collections.abc import Callable

from glm_kvplan.engines.explanation import Explanation, refuse_other_topic
from glm_kvplan.engines.sglang.explain import load_topic
from glm_kvplan.engines.sglang.explain import state_topics as state
from glm_kvplan.engines.sglang.explain import token_topics as tokens
from glm_kvplan.engines.sglang.explain.topic import Ground
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, estimate

WHERE, LOADS = "where", "loads"

TOPICS: dict[str, tuple[str, Callable[[Ground], Explanation]]] = {
    "row": ("512, 528 or 576: how wide a token's row is", tokens.row),
    "token": ("what the bytes of a token leave out", tokens.token),
    "page": ("tokens of a page, and what index_kpool groups", tokens.page),
    "tail": ("the compress tail, and why the host has none", state.tail),
    "pools": ("one hybrid pool with two sub-pools", state.pools),
    "indexer": ("whether HiCache copies the index keys", tokens.host_index),
    "slot": ("KDA state by slots: how many, how large", state.slot),
    "tp": ("attention TP, and what it divides", state.tp),
    "mtp": ("what speculation adds", tokens.mtp),
    LOADS: ("two loads side by side: what grows with tokens, what with requests", load_topic.loads),
}
TITLES = {WHERE: "the map: what lies where in HBM and DRAM", **{name: title for name, (title, _) in TOPICS.items()}}


def ground(plan: Plan, workload: Workload, beside: Workload | None = None) -> Ground:
    """The deployment a topic speaks of. Raises as `estimate`."""
    return Ground(plan, estimate(plan, workload), beside)


def explain(found: Ground, topic: str) -> Explanation:
    """The answer of one of TOPICS for this deployment. Raises InputError for another name."""
    check_topic(topic)
    return TOPICS[topic][1](found)


def check_topic(topic: str) -> None:
    """Raise InputError, naming the nearest, for what is no topic."""
    refuse_other_topic(topic, TITLES)
