"""The page of `kvplan advise --gpus` of an SGLang launch."""

from collections.abc import Iterator

from glm_kvplan.engines.fleet_values import FleetAnswer, FleetShown
from glm_kvplan.engines.fleets_page import fleets_page
from glm_kvplan.engines.sglang.answers.host_page import host_line
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.budget_words import bound_said, memory_line
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Line, Page
from glm_kvplan.show.said import say


def fleet_page(answer: FleetAnswer) -> Page:
    return fleets_page(answer, _beside)


def _beside(best: FleetShown) -> Iterator[Line]:
    """Memory of a GPU, and a worker's pool."""
    memory, sizes = best.memory, best.sizes
    assert isinstance(memory, MemoryBudget) and isinstance(sizes, PoolSizes)
    yield Line(memory_line(memory), "muted")
    if memory.upper_bound:
        yield Line(bound_said(memory), "careful")
    yield Line(
        say(
            "a worker's tokens: {tokens}; the load needs {floor}, memory gives {ceiling}",
            tokens=whole(sizes.tokens),
            floor=whole(best.floor_tokens),
            ceiling=whole(best.ceiling_tokens),
        )
    )
    if (host := best.host) is not None:
        yield host_line(host.nbytes, host.available_bytes, fits=host.fits, at_most=host.at_most)
