"""The page of `kvplan advise --gpus` of a vLLM launch."""

from collections.abc import Iterator

from glm_kvplan.engines.fleet_values import FleetAnswer, FleetShown
from glm_kvplan.engines.fleets_page import fleets_page
from glm_kvplan.engines.vllm.answers.memory_lines import bounds_line, memory_line
from glm_kvplan.engines.vllm.block_bounds import BlockBounds
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.show.page import Line, Page


def fleet_page(answer: FleetAnswer) -> Page:
    return fleets_page(answer, _beside)


def _beside(best: FleetShown) -> Iterator[Line]:
    """Memory of a GPU, and its blocks."""
    assert isinstance(best.memory, Available) and isinstance(best.sizes, BlockBounds)
    yield Line(memory_line(best.memory), "muted")
    yield Line(bounds_line(best.sizes, estimated=best.memory.certainty == "estimated"))
