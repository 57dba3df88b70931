"""What is promised of a mix of context lengths: for how much of the time, and beside it the mean."""

from glm_kvplan.show.format import whole
from glm_kvplan.show.said import Said, say


def promised(confidence: float, mean_requests: int) -> Said:
    """What follows a number of requests at once."""
    if not confidence:
        return say("by the mean: lengths that come by chance need more half of the time")
    return say(
        "{share} of the time, each request's length drawn by chance; {mean} by the mean",
        share=f"{100 * confidence:g}%",
        mean=whole(mean_requests),
    )
