"""The two readings of memory in words."""

from glm_kvplan.memory.budget import CALIBRATED, MemoryBudget, show_gib
from glm_kvplan.show.said import Said, say


def memory_line(budget: MemoryBudget) -> Said:
    """What is free on a GPU before and after the load, and how far that may be off."""
    template = "{pre} GiB free before the load, {available} GiB after it"
    if budget.how == CALIBRATED:
        template += " (calibrated, +-{error} GiB)"
    elif budget.how != "measured":
        template += " (estimated, +-{error} GiB)"
    return say(
        template,
        pre=show_gib(budget.pre_gib, budget.how),
        available=show_gib(budget.available_gib, budget.how),
        error=f"{max(budget.error_gib, 0.1):.1f}",
    )
