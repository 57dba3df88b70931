"""The smallest changes with which a deployment would hold what is expected of it, each found by solving."""

from collections.abc import Callable, Iterable, Set

from glm_kvplan.bisection import least
from glm_kvplan.engines.expectations import EXPECTATIONS, Change, Expectations
from glm_kvplan.engines.sglang.checks.trial import SERVES, change, lacking, more_memory
from glm_kvplan.engines.sglang.knob_search import Lacks, Wish, nearest
from glm_kvplan.engines.sglang.moves import MOVES
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_host import UNKNOWN_HOSTS, Hosts, fits_hosts
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

MOST_CHANGES = 4


def smallest_changes(
    plan: Plan,
    given: MemoryGiven,
    expect: Expectations,
    answer: Boot | None,
    target: str,
    holding: Set[str],
    hosts: Hosts = UNKNOWN_HOSTS,
) -> tuple[Change, ...]:
    """Changes of one knob each with which the expectation `target` holds, those that break nothing else first.

    `holding` are the expectations that hold now. For a start that is refused (`answer` None: the weights do not fit)
    the changes are those with which all expectations hold, else those with which it starts. Every change has been
    solved, memory to serve from included; none is extrapolated. Where no single knob helps they are what `kvplan
    advise` finds for these requests, several flags at once; empty where that does not serve them either. Those ask for
    no more memory than known `hosts` have; of a single knob that does it is said.
    """
    server = Server(plan, given)
    if answer is None or answer.failure is not None:
        everything = (*EXPECTATIONS, SERVES)
        found = _changes(server, expect, answer, everything, (), hosts)
        found = found or _changes(server, expect, answer, (), everything, hosts)
        return found or _advised(server, expect, everything, (), hosts)
    kept = [name for name in EXPECTATIONS if name in holding and name != target]
    if answer.headroom is not None and answer.headroom.verdict != "short":
        kept.append(SERVES)
    found = _changes(server, expect, answer, (target,), kept, hosts)
    return found or _advised(server, expect, (target,), kept, hosts)


def _advised(
    server: Server, expect: Expectations, targets: Iterable[str], kept: Iterable[str], hosts: Hosts
) -> tuple[Change, ...]:
    """The set of flags that `kvplan advise` finds on this layout, else on another, if all of `targets` hold."""
    if not expect.requests:
        return ()
    demand = Demand(expect.lengths, expect.requests)
    own = server.plan.flags
    try:
        keep_fraction = "mem_fraction_static" in own
        found = advise(server, demand, keep_fraction=keep_fraction, nearest=1, hosts=hosts)
    except KvplanError:
        return ()
    sets = [found.flags] if found.holds else [layout.flags for layout in found.layouts]
    for flags in sets:
        turned = {name: value for name, value in flags.items() if own.get(name) != value}
        other = server.tried(**turned) if turned else None
        if other is None:
            continue
        short = lacking(other, expect)
        if not short.keys() & {"boots", *targets}:
            broken = tuple(name for name in kept if name in short)
            return (change(turned, server, other, broken)._replace(together=True),)
    return ()


def _changes(
    server: Server,
    expect: Expectations,
    answer: Boot | None,
    targets: Iterable[str],
    kept: Iterable[str],
    hosts: Hosts,
) -> tuple[Change, ...]:
    """`kept` should go on holding; `boots` and all of `targets` must begin to."""
    wanted = ("boots", *targets)
    fits_now = answer is not None and answer.failure is None and fits_hosts(server, hosts)

    def lacks(other: Server) -> Lacks:
        short = lacking(other, expect)
        return frozenset(short[name] for name in wanted if name in short)

    def broken(other: Server) -> tuple[str, ...]:
        short = lacking(other, expect)
        beyond = () if fits_hosts(other, hosts) or not fits_now else ("host_memory",)
        return (*(name for name in kept if name in short), *beyond)

    deployment = server.deployment
    workers = deployment.attn_dp_size * deployment.replicas
    requests = -(-expect.requests // workers)
    wish = Wish(requests, expect.longest or 0, serve=True)
    found: list[Change] = []
    for move in MOVES:
        if answer is None and move.kind != "layout":
            continue  # the weights alone do not fit: only what spreads them helps
        turned = nearest(server, move, wish, lacks)
        if turned is not None:
            found.append(change(turned.flags, server, turned.server, broken(turned.server)))
    if answer is not None and (more := _more_memory(server, lacks)) is not None:
        found.append(more_memory(more, broken(server.with_more(more))))
    return tuple(sorted(found, key=lambda found: len(found.then_short))[:MOST_CHANGES])


def _more_memory(server: Server, lacks: Callable[[Server], Lacks]) -> float | None:
    """GiB more left by the weights that would do, in steps of 1/100."""
    most = int((server.budget.pre_gib - server.budget.available_gib) * 100)

    def holds(step: int) -> bool:
        return not lacks(server.with_more(step / 100))

    return least(holds, 0, most) / 100 if holds(most) else None
