"""What a PD role adds to an answer in the terminal."""

from rich.text import Text

from glm_kvplan.engines.sglang.components.decode_overrun import DecodeOverrun
from glm_kvplan.show.console import console
from glm_kvplan.show.format import decimal, whole


def render_overrun(overrun: DecodeOverrun | None) -> None:
    """Warn of what a decode server allocates without a budget for it."""
    if overrun is None or not overrun.nbytes:
        return
    held = ""
    if overrun.slots > overrun.budgeted_slots:
        held = (
            f"{whole(overrun.slots)} state slots where the budget pays for {whole(overrun.budgeted_slots)} "
            f"({overrun.slot_factor:.2g} times), "
        )
    rows = whole(overrun.prealloc_requests)
    biggest = ", ".join(f"{name} {decimal(nbytes)}" for name, nbytes in overrun.parts[:3])
    console().print(
        Text(
            f"! decode role: the pool holds {held}{rows} request rows for transfers in flight: "
            f"{decimal(overrun.nbytes)} a rank that no budget charges ({biggest}); lower "
            "--disaggregation-decode-extra-slots or --mem-fraction-static",
            style="yellow",
        )
    )
