"""One GPU's memory as a stack: what is taken before the blocks, the blocks by what fills them, what stays unused."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import Begun
from glm_kvplan.engines.vllm.workload_cost import WorkloadCost, workload_cost
from glm_kvplan.show.chart import Look
from glm_kvplan.show.said import Text, say
from glm_kvplan.units import GIB
from glm_kvplan.workload import Workload

OUTSIDE = ("kept by the driver", "left to others")  # of the share that vLLM takes
_WEIGHTS, _OFFLOADED = "target weights", "offloaded weights"
_LOOKS: dict[str, Look] = {"latent_rows": "latent", "mtp_layer": "latent", "index_keys": "index", "kda_state": "states"}


class Segment(NamedTuple):
    """Bytes of one GPU. `look` is a bar's; `outside`: not of the share of the card that vLLM takes."""

    name: str
    nbytes: int
    look: Look
    estimated: bool
    outside: bool = False
    note: Text = ""


class CardMap(NamedTuple):
    """Segments that add up to `total_bytes`, the card's; the last may be negative. `requests` of one engine are in."""

    segments: tuple[Segment, ...]
    total_bytes: int
    requests: int


def card_map(begun: Begun, contexts: Contexts, concurrency: int) -> CardMap:
    """The map of a plan that starts, with as many requests as are wanted and fit, of each length its share."""
    plan, start = begun.plan, begun.start
    total, block = plan.gpu.memory_mib << 20, start.blocks.nbytes
    moved = begun.certainty == "estimated"
    requests = min(served(start, contexts).per_engine, -(-concurrency // plan.deployment.data_parallel_size))
    while (costs := _costs(begun, contexts, requests)) and _blocks(costs) > start.count:
        requests -= 1  # shares round up
    filled = tuple(_filled(costs))
    spare = (start.count - _blocks(costs)) * block
    segments = [*_before(begun, total), *filled, Segment("blocks for more requests", spare, "free", moved)]
    rest = total - sum(segment.nbytes for segment in segments)
    segments.append(Segment("too little for a block", rest, "free" if rest >= 0 else "alarm", moved))
    return CardMap(tuple(segments), total, requests)


def _costs(begun: Begun, contexts: Contexts, requests: int) -> list[WorkloadCost]:
    """What the requests of each length take; one without requests says which block is never given out."""
    engines = begun.plan.deployment.data_parallel_size
    pairs = zip(contexts.lengths, contexts.shared(requests), strict=True)
    found = [workload_cost(begun.plan.blocks, Workload(length, number * engines)) for length, number in pairs if number]
    return found or [workload_cost(begun.plan.blocks, Workload(1, 0))]


def _blocks(costs: list[WorkloadCost]) -> int:
    """Blocks that are filled or never given out."""
    return 1 + sum(cost.blocks - cost.unused_blocks for cost in costs)


def _before(begun: Begun, total: int) -> Iterator[Segment]:
    """What is taken before the blocks: by name where it is estimated, else as one."""
    memory = begun.memory
    if memory.how != "estimated":
        yield Segment(
            "everything beside the blocks", total - memory.nbytes, "loaded", False, note=memory.parts[0].source
        )
        return
    parts = {part.name: part for part in memory.parts[1:]}  # the first is the card
    offloaded = parts.pop(_OFFLOADED, None)
    for name, part in parts.items():
        gib = -part.gib - (offloaded.gib if offloaded is not None and name == _WEIGHTS else 0.0)
        yield Segment(name, int(gib * GIB), "loaded", part.how == "estimated", name in OUTSIDE, part.source)


def _filled(costs: list[WorkloadCost]) -> Iterator[Segment]:
    """The blocks of the requests by what they hold, then what of them nothing is written to."""
    held: Counter[str] = Counter()
    titles = {}
    for cost in costs:
        for ledger in cost.ledgers:
            held[ledger.account.name] += ledger.total
            titles[ledger.account.name] = ledger.account.title
    for name, nbytes in held.items():
        if nbytes:
            yield Segment(titles[name], nbytes, _LOOKS.get(name, "other"), False)
    rests: Counter[str] = Counter()
    reasons = {}
    for cost in costs:
        for rest in cost.rests:
            rests[rest.name] = rest.nbytes if rest.name == "the unused block" else rests[rest.name] + rest.nbytes
            reasons[rest.name] = say(rest.reason)
    for name, nbytes in rests.items():
        yield Segment(name, nbytes, "other", False, note=reasons[name])
