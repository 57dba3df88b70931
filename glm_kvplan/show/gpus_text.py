"""`kvplan gpus` in the terminal."""

from collections.abc import Sequence

from rich.table import Table

from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.show.console import console
from glm_kvplan.show.format import whole


def render(cards: Sequence[Gpu]) -> None:
    """Print one row a card."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("GPU", "MiB", "capability", "source"):
        table.add_column(title, justify="right" if title == "MiB" else "left", overflow="fold")
    for card in cards:
        table.add_row(card.name, whole(card.memory_mib), f"{card.capability[0]}.{card.capability[1]}", card.source)
    console().print(table)
