"""The options that say what is known of a rank's memory."""

from typing import Annotated

import typer

_PANEL = "Memory of one GPU"

PreGib = Annotated[
    float | None,
    typer.Option(
        "--pre-gib",
        help="Free before the weights load (the log's first `avail mem`).",
        rich_help_panel=_PANEL,
        metavar="GIB",
    ),
]
AvailableGib = Annotated[
    float | None,
    typer.Option("--available-gib", help="Free after all weights have loaded.", rich_help_panel=_PANEL, metavar="GIB"),
]
WeightsGib = Annotated[
    float | None,
    typer.Option("--weights-gib", help="Target weights on one GPU.", rich_help_panel=_PANEL, metavar="GIB"),
]
DraftWeightsGib = Annotated[
    float | None,
    typer.Option("--draft-weights-gib", help="Draft (MTP) weights on one GPU.", rich_help_panel=_PANEL, metavar="GIB"),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        help="Weight format to estimate from: fp8, bf16, nvfp4, ... [as the model says]",
        rich_help_panel=_PANEL,
        metavar="FORMAT",
    ),
]
