"""The smallest changes with which a deployment would hold what is expected of it, each found by solving."""

from collections.abc import Set

from glm_kvplan.checks.deployment_file import Expectations
from glm_kvplan.checks.kinds import EXPECTATIONS
from glm_kvplan.checks.knobs import KNOBS
from glm_kvplan.checks.search import SERVES, Change, Search
from glm_kvplan.planner import Plan
from glm_kvplan.sizing.boot import Boot, MemoryGiven

MOST_CHANGES = 4


def smallest_changes(
    plan: Plan, given: MemoryGiven, expect: Expectations, answer: Boot, target: str, holding: Set[str]
) -> tuple[Change, ...]:
    """Changes of one knob each with which the expectation `target` holds, those that break nothing else first.

    `holding` are the expectations that hold now. Every change has been solved, memory to serve from included; none is
    extrapolated. Empty where no single knob helps.
    """
    kept = [name for name in EXPECTATIONS if name in holding and name not in (target, "boots", "host_memory")]
    if answer.headroom is not None and answer.headroom.verdict != "short":
        kept.append(SERVES)
    search = Search(plan, given, expect, answer, target, tuple(kept))
    found: list[Change] = []
    for knob in KNOBS:
        for change in knob(search):
            if search.holds(change):
                found.append(change._replace(then_short=search.short(change)))
                break
    return tuple(sorted(found, key=lambda change: len(change.then_short))[:MOST_CHANGES])
