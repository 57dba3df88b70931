"""What a remedy, a price or advice promises, typed in as flags from nothing: it comes out so, on any server."""

from typing import Any

from drawn import deployments
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.prices import prices
from glm_kvplan.engines.sglang.sizing.remedies import remedies
from glm_kvplan.engines.sglang.sizing.served_requests import served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import default_split
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand


@st.composite
def servers(draw: st.DrawFn) -> Server:
    drawn = draw(deployments(("sglang",)))
    try:
        made = plan(drawn.flags, gpu=drawn.gpu, engine=drawn.release, environment=drawn.environment)
        server = Server(made, MemoryGiven(**drawn.memory))
        assert server.solutions and server.budget
    except KvplanError:
        assume(False)
    return server


def typed(server: Server, flags: dict[str, Any], estimated: bool) -> Server:
    """The server that one gets by typing it: what was read of other weights is left out."""
    all_flags = {name: value for name, value in {**server.plan.flags, **flags}.items() if value is not None}
    made = plan(all_flags, gpu=server.plan.gpu.name, engine=server.plan.profile, environment=server.plan.environment)
    given = server.given
    if estimated:
        same_load = (server.deployment.world_size == 1) == (made.deployment.world_size == 1)
        given = MemoryGiven(given.pre_gib if same_load else None, checkpoint=given.checkpoint)
    return Server(made, given)


@settings(max_examples=60)
@given(servers())
def test_remedies_start_the_engine_and_prices_are_what_it_answers(server: Server) -> None:
    if not server.starts:
        found = remedies(server)
        failure = server.refusal()
        for remedy in found:
            if remedy.flag == "available_gib":
                more_gib = float(remedy.value) - server.budget.available_gib
                assert server.with_more(more_gib).starts
                assert failure.missing_bytes in (0, int(more_gib * 2**30 + 0.5))  # one amount on one screen
            else:
                assert typed(server, remedy.flags, remedy.estimated).starts, remedy
        return
    for price in prices(server):
        other = typed(server, price.flags, price.estimated)
        if price.failure is not None:
            assert other.failed is not None and other.failed.failure == price.failure
            continue
        assert other.sizes.tokens - server.sizes.tokens == price.tokens, price
        assert other.sizes.state_slots - server.sizes.state_slots == price.slots, price
        assert other.sizes.running_requests - server.sizes.running_requests == price.requests, price
        assert other.unallocated - server.unallocated == price.free_bytes, price


@settings(max_examples=40)
@given(servers(), st.sampled_from((1000, 32_768, 500_000)), st.sampled_from((1, 30, 400)))
def test_advice_is_what_its_flags_serve(server: Server, context: int, concurrency: int) -> None:
    demand = Demand(Contexts((context,), (1,)), concurrency)
    try:
        advice = advise(server, demand, nearest=2)
    except InputError:
        return  # no pool serves it
    assert advice.served.requests >= default_split(server, demand).requests
    if advice.flags:
        other = typed(server, advice.flags, False)
        assert advice.solution is not None and other.sizes == advice.solution.sizes
        assert served(demand, other.deployment, other.sizes).requests == advice.served.requests
        assert other.usable == advice.headroom.usable
    for layout in advice.layouts:
        wider = typed(server, layout.changes, layout.estimated)
        assert advise(wider, demand, keep_fraction=True, nearest=0).holds, layout
