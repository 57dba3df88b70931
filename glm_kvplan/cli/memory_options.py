"""The options that say what is known of a rank's memory: six, the group MEMORY."""

from typing import Annotated

import typer

from glm_kvplan.cli.option_groups import OptionGroup
from glm_kvplan.memory.given import MemoryGiven

_PANEL = "Memory of one GPU"


def _formats() -> list[str]:
    from glm_kvplan.model.checkpoints import CHECKPOINTS

    return [*CHECKPOINTS]


_PreGib = Annotated[
    float | None,
    typer.Option(
        "--pre-gib",
        help="Free before the weights load (the log's first `avail mem`).",
        rich_help_panel=_PANEL,
        metavar="GIB",
    ),
]
_AvailableGib = Annotated[
    float | None,
    typer.Option("--available-gib", help="Free after all weights have loaded.", rich_help_panel=_PANEL, metavar="GIB"),
]
_WeightsGib = Annotated[
    float | None,
    typer.Option("--weights-gib", help="Target weights on one GPU.", rich_help_panel=_PANEL, metavar="GIB"),
]
_DraftWeightsGib = Annotated[
    float | None,
    typer.Option("--draft-weights-gib", help="Draft (MTP) weights on one GPU.", rich_help_panel=_PANEL, metavar="GIB"),
]
_Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        help="Weight format to estimate from: fp8, bf16, nvfp4, ... [as the model says]",
        rich_help_panel=_PANEL,
        metavar="FORMAT",
        autocompletion=_formats,
    ),
]
_Calibrate = Annotated[
    str | None,
    typer.Option(
        "--calibrate",
        help="A boot of yours on these cards: its log, or a file of `reconcile --save`.",
        rich_help_panel=_PANEL,
        metavar="LOG",
    ),
]


def memory(
    pre_gib: _PreGib = None,
    available_gib: _AvailableGib = None,
    weights_gib: _WeightsGib = None,
    draft_weights_gib: _DraftWeightsGib = None,
    checkpoint: _Checkpoint = None,
    calibrate: _Calibrate = None,
) -> MemoryGiven:
    """What is known of a rank's memory."""
    boot = None
    if calibrate is not None:
        from glm_kvplan.answers.check.calibrating_boot import read_calibration

        boot = read_calibration(calibrate)
    return MemoryGiven(pre_gib, available_gib, weights_gib, draft_weights_gib, checkpoint, boot)


MEMORY = OptionGroup(memory)
