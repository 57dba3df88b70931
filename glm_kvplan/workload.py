"""What a deployment is to hold and serve, and what is known of its hosts: the same for every engine."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from glm_kvplan.contexts import Contexts

DEFAULT_CONTEXT = 131072  # where the user names none


class Workload(NamedTuple):
    """What the whole deployment should hold at once: `concurrency` requests of `context` tokens each."""

    context: int
    concurrency: int

    @property
    def mean_context(self) -> float:
        return float(self.context)

    def total(self, requests: int, size: Callable[[int], int]) -> int:
        """What so many of its requests take at once, where one of some tokens takes `size(tokens)`."""
        return requests * size(self.context)


class Demand(NamedTuple):
    """What is to be served at once by one engine, or by all replicas together."""

    contexts: "Contexts"
    concurrency: int
    prefix_states: int = 0  # state slots kept per conversation for shared prefixes, beside a running request's own

    @property
    def context(self) -> int:
        """The longest of the lengths."""
        return self.contexts.longest

    @property
    def mean_context(self) -> float:
        return self.contexts.mean

    def total(self, requests: int, size: Callable[[int], int]) -> int:
        """What so many of its requests take at once, with its confidence: as a workload of one length says it."""
        return self.contexts.total(requests, size)

    @property
    def as_mean(self) -> "Demand":
        """The same, promised for the mean alone."""
        return self._replace(contexts=self.contexts.as_mean)


class HostGiven(NamedTuple):
    """What is known beside the flags: bytes available on one host, a container's limit there, and the tokens of a
    cached prefix (None: 128K, or the server's longest context if that is shorter).
    """

    host_bytes: int | None = None
    pod_bytes: int | None = None
    prefix_tokens: int | None = None

    def serving(self, demand: Demand) -> "HostGiven":
        """The same; prefixes are as long as the demand's requests on average, where nothing else is said."""
        return self._replace(prefix_tokens=self.prefix_tokens or max(1, round(demand.mean_context)))

    @property
    def unknown(self) -> bool:
        """Nothing is known."""
        return self == UNKNOWN_HOST


UNKNOWN_HOST = HostGiven()
