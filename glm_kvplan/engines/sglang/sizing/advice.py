"""The inverse of the solver: flags that serve a workload, and the proof that they do."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from glm_kvplan.bisection import least
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.moves import chunk_flag, smaller_chunks
from glm_kvplan.engines.sglang.sizing.layouts import Layout, serving_layouts
from glm_kvplan.engines.sglang.sizing.served_requests import Served, check_demand, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_headroom import (
    ServingHeadroom,
    headroom_of,
    raised_fraction,
    with_headroom,
)
from glm_kvplan.engines.sglang.sizing.serving_host import UNKNOWN_HOSTS, HostAdvice, Hosts, host_advice
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.split import (
    Split,
    best_split,
    conversations_kept,
    default_split,
    requests_wanted,
    slots_needed,
    split_flags,
)
from glm_kvplan.units import MIB
from glm_kvplan.workload import Demand


class Shortage(NamedTuple):
    """How far a layout is from serving the demand."""

    missing_requests: int
    missing_bytes: int | None  # more bytes free on each rank that would do; None where no memory would
    limit: str  # what stopped one more request


class Advice(NamedTuple):
    """Flags, and what the engine makes of them.

    `flags` are the engine's argument names; empty where not one request of the demand fits. `solution` is the engine's
    sizing under exactly these flags, `served` what it serves; `default` is what the engine's own split serves.
    """

    flags: dict[str, Any]
    solution: Solution | None
    served: Served
    default: Served
    conversations_kept: int  # finished conversations a worker keeps cached beside its running requests
    headroom: ServingHeadroom
    shortage: Shortage | None  # None: the whole demand is served
    layouts: tuple[Layout, ...]  # where there is a shortage, layouts of one server without one
    host: HostAdvice | None = None  # HiCache's pools under the flags; None without it

    @property
    def holds(self) -> bool:
        """The whole demand is served, and a host that is known holds HiCache's pools."""
        return self.shortage is None and (self.host is None or self.host.answer.fits)


def advise(
    server: Server,
    demand: Demand,
    *,
    state_dtype: str | None = None,
    keep_fraction: bool = False,
    nearest: int = 5,
    hosts: Hosts = UNKNOWN_HOSTS,
) -> Advice:
    """Flags that serve the demand on this server, or as much of it as fits.

    State slots are fixed at what the requests need and tokens take the rest; memory that is spare then keeps finished
    conversations cached. The memory fraction is the server's, written out. Where that does not serve the demand,
    smaller chunks are tried (the engine then reserves less) and, unless `keep_fraction`, a higher fraction as far as
    what stays free covers what serving needs, uncertainty included. `state_dtype` tries another state dtype as well:
    accuracy is the caller's business. Last, room for serving is made where the pools leave too little. Where what
    serves the demand would not at the low end of the memory's estimate, the same is tried with so much memory.

    "Requests of the workload served at once" is what `served_requests.served` counts. They are never fewer than under
    the engine's default split (`split.default_split`) of the same server, because the engine's own slots, requests and
    tokens are among the splits searched. Raises InputError for a demand no pool size can serve, SizingError for a
    strategy the engine refuses. Where the server refuses the longest of the demand, a larger context_length is tried.
    With HiCache the host pools are lowered until `hosts` holds them (`host_advice`), those of other layouts too.
    """
    check_demand(demand, server.deployment)
    server.solutions  # noqa: B018  # a strategy that the engine refuses is refused here
    given, longer = server, _longer(server, demand)
    if longer is None:
        nothing = Split(server, {}, None, served(demand, server.deployment, PoolSizes(0, 0, 0)))
        return _advice(nothing, demand, nothing.served, Shortage(demand.concurrency, None, nothing.served.limit), ())
    server = server.with_flags(**longer) if longer else server
    best: Split | None = None
    for split in _splits(server, demand, state_dtype, keep_fraction):
        if best is None or split.served.requests > best.served.requests:
            best = split
        if best.served.requests >= demand.concurrency:
            break
    assert best is not None
    best = with_headroom(best, demand)
    best = _surer(server, demand, best, state_dtype, keep_fraction) or best
    host = None if best.solution is None else host_advice(best.server, hosts)
    if host is not None and host.flags:
        best = best._replace(server=best.server.with_flags(**host.flags), flags={**best.flags, **host.flags})
    shortage = None
    layouts: tuple[Layout, ...] = ()
    if best.served.requests < demand.concurrency:
        shortage = _shortage(best, demand)
        near = serving_layouts(server, demand, nearest, hosts)
        layouts = tuple(layout._replace(changes={**longer, **layout.changes}) for layout in near)
    if best.flags:
        best = best._replace(flags={**longer, **best.flags})
    return _advice(best, demand, default_split(given, demand), shortage, layouts, host)


def _longer(server: Server, demand: Demand) -> dict[str, Any] | None:
    """What lets the server take the longest of the demand; None where nothing does."""
    if demand.context <= server.deployment.context_length:
        return {}
    flags = {"context_length": demand.context}
    return None if server.tried(**flags) is None else flags


def _advice(
    best: Split,
    demand: Demand,
    default: Served,
    shortage: Shortage | None,
    layouts: tuple[Layout, ...],
    host: HostAdvice | None = None,
) -> Advice:
    return Advice(
        best.flags,
        best.solution,
        best.served,
        default,
        conversations_kept(best, demand),
        headroom_of(best, demand),
        shortage,
        layouts,
        host,
    )


def served_within(server: Server, demand: Demand, advice: Advice, error_gib: float) -> tuple[int, int]:
    """Requests of the demand that the advised flags serve with `error_gib` less and more memory after the load."""
    advised = server.tried(**advice.flags)
    if not error_gib or not advice.flags or advised is None:
        return advice.served.requests, advice.served.requests
    return _served_with(advised, demand, -error_gib), _served_with(advised, demand, error_gib)


def _served_with(server: Server, demand: Demand, more_gib: float) -> int:
    """Requests of the demand that the server serves with so much more memory after the load."""
    solution = server.sized_with(server.budget.available_gib + more_gib)
    return 0 if solution.failure is not None else served(demand, server.deployment, solution.sizes).requests


def _surer(server: Server, demand: Demand, best: Split, state_dtype: str | None, keep_fraction: bool) -> Split | None:
    """A split that serves the whole demand at the low end of the memory's estimate, too; None where the best does, or
    there is none.
    """
    error_gib, wanted = server.budget.error_gib, demand.concurrency
    if not error_gib or best.served.requests < wanted or _served_with(best.server, demand, -error_gib) >= wanted:
        return None
    dtype = state_dtype if "mamba_ssm_dtype" in best.flags else None
    for low in _splits(server.with_more(server.more_gib - error_gib), demand, dtype, keep_fraction):
        if low.served.requests < wanted:
            continue
        low = with_headroom(low, demand)
        other = server.tried(**low.flags)
        if headroom_of(low, demand).short <= 0 and other is not None and _served_with(other, demand, 0.0) >= wanted:
            return low._replace(server=other, solution=other.solution)
    return None


def _splits(server: Server, demand: Demand, state_dtype: str | None, keep_fraction: bool) -> Iterator[Split]:
    """The best split of the server, then of smaller chunks, of a higher fraction, and of another state dtype."""
    first = best_split(server, demand)
    yield first
    for smaller in _smaller_chunks(server):
        yield best_split(smaller, demand)
    if not keep_fraction and (raised := raised_fraction(server, first, demand)) is not None:
        yield raised
    if state_dtype is not None and state_dtype != server.deployment.mamba_ssm_dtype:
        other = server.tried(mamba_ssm_dtype=state_dtype)
        if other is not None:
            split = best_split(other, demand)
            yield split._replace(flags={**split.flags, "mamba_ssm_dtype": state_dtype} if split.flags else {})


def _smaller_chunks(server: Server) -> Iterator[Server]:
    """The server with its chunk halved again and again, where that raises the memory fraction the engine picks."""
    for chunk in smaller_chunks(server):
        other = server.tried(**chunk_flag(server, chunk))
        if other is not None and other.deployment.mem_fraction_static > server.deployment.mem_fraction_static:
            yield other


def _shortage(split: Split, demand: Demand) -> Shortage:
    server = split.server
    wanted = requests_wanted(server, demand)
    other = server.tried(**split_flags(server, wanted, slots_needed(server, demand, wanted)))
    missing = None if other is None else _missing_bytes(other, demand, wanted)
    return Shortage(demand.concurrency - split.served.requests, missing, split.served.limit)


def _missing_bytes(server: Server, demand: Demand, wanted: int) -> int | None:
    """The least number of MiB more on a rank with which the server serves the demand, in bytes; None: none does."""
    available_gib = server.budget.available_gib

    def holds(mib: int) -> bool:
        solution = server.sized_with(available_gib + mib / 1024)
        return solution.failure is None and served(demand, server.deployment, solution.sizes).per_worker >= wanted

    most = 1 << 24
    return least(holds, -1, most) * MIB if holds(most) else None
