"""What every answer about a deployment begins with, whatever the engine."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.show.said import Text


class ModelName(NamedTuple):
    """`origin` is where its config.json came from."""

    name: str
    origin: str


class GpuName(NamedTuple):
    """`assumed`: no GPU was named. `unknown`: no card fits a log, this one stands in."""

    name: str
    memory_mib: int
    assumed: bool
    unknown: bool = False


class Head(NamedTuple):
    """`deployment` has every resolved value under the engine's own name; `gpus` are those of the whole deployment.

    `title` and `layout` say the same in words; `notes` how the input was read.
    """

    kvplan: str
    model: ModelName
    engine: str  # the release
    gpu: GpuName
    gpus: int
    title: Text
    layout: Text
    deployment: Mapping[str, object]
    notes: tuple[Text, ...]

    @property
    def cards(self) -> str:
        """`8 x H200`: those of the whole deployment."""
        return f"{self.gpus} x {self.gpu.name}"
