"""The two readings of memory in words."""

from glm_kvplan.memory.budget import CALIBRATED, MemoryBudget, show_gib
from glm_kvplan.show.said import Said, say


def memory_line(budget: MemoryBudget) -> Said:
    """What is free on a GPU before and after the load, and how far that may be off."""
    template = "{pre} GiB free before the load, {available} "
    template += "GiB after it" if budget.checkpoint is None else "after {checkpoint} weights"
    if budget.how == CALIBRATED:
        template += " (calibrated, +-{error} GiB)"
    elif budget.how != "measured":
        template += " (estimated, +-{error} GiB)"
    return say(
        template,
        pre=show_gib(budget.pre_gib, budget.how),
        available=show_gib(budget.available_gib, budget.how),
        checkpoint=budget.checkpoint or "",
        error=f"{max(budget.error_gib, 0.1):.1f}",
    )


def bound_said(budget: MemoryBudget) -> Said:
    """Of a budget that is an upper bound: why it is one, and what that means."""
    template = "the {uncounted} is not counted: every token, slot, request and free byte here is the most there can be"
    return say(template, uncounted=say(budget.uncounted))


def at_most(text: Said | str, budget: MemoryBudget) -> Said | str:
    """A number with `at most` before it where the budget is an upper bound."""
    return say("at most {value}", value=text) if budget.upper_bound else text
