"""What a search for GPUs asks of an engine, and what it finds: the values of `kvplan advise --gpus`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.demand_shown import DemandShown
from glm_kvplan.show.said import Text
from glm_kvplan.workload import Demand, HostGiven

_Flags = Mapping[str, Any]


class Sizes(Protocol):
    """What an engine sizes in a server, in its own words."""


class Memory(Protocol):
    """What an engine says of one GPU's memory."""

    @property
    def certainty(self) -> Certainty: ...


class OnHost(NamedTuple):
    """Pools in the memory of the fullest host; `available_bytes` is what it has for them, None where nobody said.

    `at_most`: the engine lowers them at its start.
    """

    nbytes: int
    available_bytes: int | None
    fits: bool
    at_most: bool
    given: HostGiven  # what one server may count on

    def times(self, servers: int) -> "OnHost":
        """Those of so many servers with an even share each."""
        available = None if self.available_bytes is None else self.available_bytes * servers
        return self._replace(nbytes=self.nbytes * servers, available_bytes=available)


class Advised(NamedTuple):
    """A server as its engine advises it for a share of the load; the fields are those of `FleetShown`, of one server.

    `plan` has every flag, `flags` those beside the layout's and what was tried. `served` is at most the share, and
    `at_least` what it is at the low end of the memory's estimate. `failure`: why it does not start.
    """

    plan: Any
    flags: _Flags
    holds: bool
    served: int
    most: int
    limit: str
    sizes: Sizes | None
    floor_tokens: int
    ceiling_tokens: int
    memory: Memory
    warnings: tuple[Text, ...]
    at_least: Callable[[], int]
    admitted: int = 0
    host: OnHost | None = None
    failure: str = ""


class Layouts(NamedTuple):
    """What an engine gives to the search.

    `layouts` are the flags of every layout of one server of a plan on so many GPUs or a part of them, on hosts of so
    many; none beside a layout of the user's. `advise` gives a plan's server what serves its share, or as much of it as
    fits, where so many servers share a host, itself among them (raises KvplanError). `command` is the whole command
    that starts one server, a flag a line; of several hosts, on each of them.
    """

    layouts: Callable[[Any, int, int], Iterator[_Flags]]
    advise: Callable[[Any, Demand, int], Advised]
    command: Callable[[Any], str]


class FleetShown(NamedTuple):
    """`servers` copies of one server on `gpus` GPUs of `hosts` hosts; requests are those of all servers.

    A server of several hosts (`hosts_of_a_server`) has its command run on each of them.

    `flags` are all that the user did not give. `served` is how much of the demand they serve, `served_at_least` what
    they do at the low end of the memory's estimate, `most` how many requests of it they could hold at once, `admitted`
    those that the flags admit. `sizes` are the engine's own. Of one worker's tokens the load needs `floor_tokens`,
    memory gives `ceiling_tokens`. `limit` is what stops one more: than are served, of what holds than `most`. `memory`
    is one GPU's, `host` what lies in the memory of the fullest host. `command` and `plan_file`, a deployment file for
    `kvplan check`, are those of one server; `left_out` are options of the launch that the command lacks.
    """

    gpus: int
    servers: int
    hosts: int
    hosts_of_a_server: int
    holds: bool
    served: int
    served_at_least: int
    most: int
    admitted: int
    limit: str
    layout: Text
    flags: Mapping[str, object]
    sizes: Sizes | None
    floor_tokens: int
    ceiling_tokens: int
    memory: Memory
    host: OnHost | None
    command: str
    left_out: tuple[str, ...]
    plan_file: Mapping[str, object]


class Unserved(NamedTuple):
    """A number of GPUs of which no server holds a request: the largest one that was tried takes `server_gpus`.

    `reason`: what keeps it from starting, or what ends its requests. None where no server takes so many: `server_gpus`
    are then those of one that does not divide them, None where no layout is known that does.
    """

    gpus: int
    server_gpus: int | None
    reason: str | None


class FleetAnswer(NamedTuple):
    """`best` is the cheapest that serves the demand, `runner_up` the next; None where there is none.

    `layouts` has the best of each number of GPUs that was tried, whether it serves all or not. `head` is of the
    deployment as it was given, whose own layout counts for nothing here; `kept` are the numbers of it that the launch
    gave. Where none of the numbers serves, `serving_gpus` is one that does, where the next fewer of parts of a host, of
    whole hosts and of copies of one server does not; None where none was found up to 1,024. `unserved` are the numbers
    of which no server holds a request.
    """

    head: Head
    demand: DemandShown
    gpus_per_host: int
    holds: bool
    best: FleetShown | None
    runner_up: FleetShown | None
    kept: tuple[str, ...]
    serving_gpus: int | None
    unserved: tuple[Unserved, ...]
    layouts: tuple[FleetShown, ...]
    warnings: tuple[Text, ...]
