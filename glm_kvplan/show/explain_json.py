"""`kvplan explain --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.answers.explain.location_topic import Place
from glm_kvplan.answers.explain.topic import Explanation
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.show.plan_json import plan_document

_HEAD: dict[str, Any] = {"schema": "glm-kvplan/explain", "schema_version": 1}


def topics_document(titles: dict[str, str]) -> dict[str, Any]:
    return {**_HEAD, "topics": titles}


def document(plan: Plan, topic: str, found: Explanation) -> dict[str, Any]:
    """One topic: its sentences and its numbers."""
    figures = [figure._asdict() for figure in found.figures]
    return {**_HEAD, **plan_document(plan), "topic": topic, **found._asdict(), "figures": figures}


def where_document(plan: Plan, places: tuple[Place, ...]) -> dict[str, Any]:
    """The map: one entry a kind of object, bytes of one rank."""
    return {**_HEAD, **plan_document(plan), "topic": "where", "places": [_place(place) for place in places]}


def _place(place: Place) -> dict[str, Any]:
    return {
        **place.location._asdict(),
        "pool": place.pool,
        "bytes": place.nbytes,
    }
