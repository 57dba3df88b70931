"""The smallest changes with which a deployment would hold what is expected of it, each found by solving."""

from collections.abc import Set

from glm_kvplan.answers.check.deployment_file import Expectations
from glm_kvplan.answers.check.expectations import EXPECTATIONS
from glm_kvplan.answers.check.knobs import KNOBS, LAYOUTS
from glm_kvplan.answers.check.trial import SERVES, Change, Search
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.memory.given import MemoryGiven

MOST_CHANGES = 4


def smallest_changes(
    plan: Plan, given: MemoryGiven, expect: Expectations, answer: Boot | None, target: str, holding: Set[str]
) -> tuple[Change, ...]:
    """Changes of one knob each with which the expectation `target` holds, those that break nothing else first.

    `holding` are the expectations that hold now. For a start that is refused (`answer` None: the weights do not fit)
    the changes are those with which all expectations hold, else those with which it starts. Every change has been
    solved, memory to serve from included; none is extrapolated. Empty where no single knob helps.
    """
    expected = [name for name in EXPECTATIONS if getattr(expect, name, None) is not None and name != "host_memory"]
    if answer is None or answer.failure is not None:
        found = _search(Search(plan, given, expect, answer, (*expected, SERVES), ()))
        return found or _search(Search(plan, given, expect, answer, (), (*expected, SERVES)))
    kept = [name for name in expected if name in holding and name != target]
    if answer.headroom is not None and answer.headroom.verdict != "short":
        kept.append(SERVES)
    return _search(Search(plan, given, expect, answer, (target,), tuple(kept)))


def _search(search: Search) -> tuple[Change, ...]:
    found: list[Change] = []
    for knob in LAYOUTS if search.answer is None else KNOBS:
        for change in knob(search):
            if search.holds(change):
                found.append(change._replace(then_short=search.short(change)))
                break
    return tuple(sorted(found, key=lambda change: len(change.then_short))[:MOST_CHANGES])
