"""What every answer about a deployment begins with, whatever the engine."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan import __version__
from glm_kvplan.memory.gpu import UNKNOWN_CARD
from glm_kvplan.show.said import Said, Text, say

if TYPE_CHECKING:
    from glm_kvplan.engines.protocol import Plan


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


def head_of_plan(plan: "Plan", engine: str, parts: tuple[Said, ...], deployment: Mapping[str, object]) -> Head:
    """The head of an answer about `plan`; its engine gives `engine`, its release, and the layout's `parts`."""
    given = plan.given
    gpu = GpuName(given.gpu.name, given.gpu.memory_mib, given.gpu_assumed)
    return Head(
        kvplan=__version__,
        model=ModelName(given.model.name, given.model.origin),
        engine=engine,
        gpu=gpu,
        gpus=plan.gpus,
        title=deployment_title(given.model.name, _release(plan), gpu.name, gpu.assumed),
        layout=say("{parts}", parts=parts),
        deployment=deployment,
        notes=(*given.notes, *plan.warnings),
    )


def deployment_title(model: str, engine: str, gpus: str, assumed: bool) -> Said:
    """`GLM-5.3-Flash on SGLang 0.5.21, H200 (assumed: no --gpu given)`."""
    return say(
        "{model} on {engine}, {gpu} (assumed: no --gpu given)" if assumed else "{model} on {engine}, {gpu}",
        model=model,
        engine=engine,
        gpu=gpus,
    )


def head_of_boot(head: Head, plan: "Plan", chosen: Text, *, guessed: bool, unknown: bool) -> Head:
    """The same of a boot's log: `chosen` says why this release, and the card may be `guessed`, or `unknown`."""
    template = "{model} on {engine} ({chosen}), {gpu}"
    if unknown and plan.gpu.name == UNKNOWN_CARD:
        template = "{model} on {engine} ({chosen}), {gpu} (--gpu says it)"
    elif unknown:
        template = (
            "{model} on {engine} ({chosen}), {gpu} only stands in: the log does not tell the card (--gpu says it)"
        )
    elif guessed:
        template = "{model} on {engine} ({chosen}), {gpu} (guessed from the log; --gpu says it)"
    title = say(template, model=head.model.name, engine=_release(plan), chosen=chosen, gpu=head.gpu.name)
    return head._replace(gpu=head.gpu._replace(assumed=guessed, unknown=unknown), title=title)


def _release(plan: "Plan") -> str:
    """`SGLang 0.5.21`."""
    profile = plan.given.profile
    return f"{profile.engine.title} {profile.release}"
