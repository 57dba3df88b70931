"""Host memory beside an advised server: the ratio or size with which HiCache's pools fit, where they would not."""

from typing import TYPE_CHECKING, Any, NamedTuple

from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import RefusedError
from glm_kvplan.workload import UNKNOWN_HOST, HostGiven

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer


class Hosts(NamedTuple):
    """What is known of a host, and how many servers share it."""

    given: HostGiven
    servers: int = 1

    @property
    def of_one(self) -> HostGiven:
        """What one of the servers may count on: an even share, the reserve aside."""
        from glm_kvplan.engines.sglang.sizing.host_sizes import RESERVE_BYTES

        if self.servers == 1 or self.given.host_bytes is None:
            return self.given
        return self.given._replace(host_bytes=RESERVE_BYTES + (self.given.host_bytes - RESERVE_BYTES) // self.servers)


UNKNOWN_HOSTS = Hosts(UNKNOWN_HOST)


class HostAdvice(NamedTuple):
    """HiCache's pools on the hosts of a server. `flags` let them fit, empty where they do as they are or nothing does.

    `answer` is one server's with these flags; where several share a host, it has an even share of it.
    """

    flags: dict[str, Any]
    answer: "HostAnswer"
    servers: int


def host_advice(server: Server, hosts: Hosts) -> HostAdvice | None:
    """The host pools of a server that starts, held against what is known of a host; None without HiCache.

    Where they do not fit, what the flags size them by is lowered: the size, else the ratio. Where several servers share
    a host, what the engine would pick by itself is typed: each one would count the same free memory as its own. Raises
    RefusedError for a host layout that the engine refuses.
    """
    if not server.deployment.enable_hierarchical_cache:
        return None
    found = _answer(server, hosts.of_one)
    flags = _fitting(server, found, hosts.servers)
    other = server.tried(**flags) if flags else None
    lowered = None if other is None else _answer(other, hosts.of_one)
    if lowered is None or not lowered.fits:
        return HostAdvice({}, found, hosts.servers)
    return HostAdvice(flags, lowered, hosts.servers)


def fits_hosts(server: Server, hosts: Hosts) -> bool:
    """False only where a known host does not hold the pools of a server that starts, or the engine refuses them."""
    if hosts.given.unknown or not server.deployment.enable_hierarchical_cache:
        return True
    try:
        return _answer(server, hosts.of_one).fits
    except RefusedError:
        return False


def _answer(server: Server, given: HostGiven) -> "HostAnswer":
    from glm_kvplan.engines.sglang.sizing.host_answer import host_answer

    found = host_answer(server.plan, server.sizes, given)
    assert found is not None
    return found


def _fitting(server: Server, found: "HostAnswer", servers: int) -> dict[str, Any]:
    """What to type for the pools to fit; nothing where they do, or nothing is known of the host."""
    fit, sized = found.fit, found.plan.sizing
    if fit is None or (fit.fits and (servers == 1 or sized != "automatic")):
        return {}
    if server.deployment.hicache_size > 0:
        return {"hicache_size": fit.largest_size} if fit.largest_size else {}
    if not fit.largest_ratio:
        return {}
    return {"hicache_ratio": min(fit.largest_ratio, server.deployment.hicache_ratio or fit.largest_ratio)}
