"""What comes of a start in words that every engine has: measures, and what a comparison of two starts looks at."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from glm_kvplan.certainty import Certainty, Whose
from glm_kvplan.engines.ledger import Ledger

# Measures that every engine gives, under these names; an engine's own stand beside them under its own names.
SHARED = {
    "gpus": "GPUs",
    "requests_of_mix": "requests of the expected mix at once",
    "requests_at_context": "requests at once",
    "longest_context": "longest request, tokens",
    "cache_bytes": "caches of all GPUs",
    "token_bytes": "a token, on one GPU",
    "request_bytes": "a request, on one GPU",
    "fixed_bytes": "of it before the first token",
}


class Measure(NamedTuple):
    """One number that comes of a start. `whose` says what it counts over; None: the engine gives none."""

    name: str
    value: int | float | str | None
    unit: Literal["token", "request", "state slot", "block", "byte", "GiB", "GPU", ""]  # "": counted in nothing
    whose: Whose


class Bound(NamedTuple):
    """What binds one thing, and where its number comes from."""

    subject: str  # "tokens", "running requests", ...
    limit: str
    why: str


class Started(NamedTuple):
    """A deployment started. Where the start fails, `failure` says why; then there are no parts and no bounds.

    `measures` are the shared ones of requests of `context` tokens (`requests_of_mix`: of a mix of lengths, where a file
    expects one), then the engine's own; `parts` what lies in the
    memory of the fullest GPU, in bytes; `ledgers` the prices of its units.
    """

    context: int
    failure: str | None
    measures: tuple[Measure, ...]
    parts: Mapping[str, int]
    bounds: tuple[Bound, ...]
    ledgers: tuple[Ledger, ...]
    certainty: Certainty  # of what comes of its memory: sizes, requests, free bytes; prices of units are exact
    notes: tuple[str, ...] = ()  # how its memory was found

    def measure(self, name: str) -> int | float | str | None:
        """The value of a measure; None where there is none of that name."""
        return next((measure.value for measure in self.measures if measure.name == name), None)
