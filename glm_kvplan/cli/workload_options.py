"""The options that describe a workload of equal requests."""

from typing import Annotated

import typer

_PANEL = "Workload"

Context = Annotated[
    str | None,
    typer.Option(
        "--context", help="Tokens of one request: 131072, 128k, 1m. [128k]", rich_help_panel=_PANEL, metavar="TOKENS"
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        "--concurrency",
        help="Requests at once, over the whole deployment. [--max-running-requests, or 1]",
        rich_help_panel=_PANEL,
        metavar="N",
    ),
]
