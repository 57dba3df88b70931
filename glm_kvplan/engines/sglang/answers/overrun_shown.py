"""What an answer says of the memory a PD decode server takes beyond its budget, and the warning that follows."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.engines.sglang.components.decode_overrun import DecodeOverrun
from glm_kvplan.show.format import decimal, whole
from glm_kvplan.show.said import Said, say


class PartShown(NamedTuple):
    name: str
    nbytes: int


class OverrunShown(NamedTuple):
    """`parts` are tensors and bytes that no budget charges, the largest first; `bytes` is their sum."""

    running_requests: int
    prealloc_requests: int
    request_rows: int
    budgeted_slots: int
    slots: int
    slot_factor: float
    parts: tuple[PartShown, ...]
    nbytes: int


def show_overrun(overrun: DecodeOverrun | None) -> OverrunShown | None:
    """None unless the server is, or may become, a PD decode server."""
    if overrun is None:
        return None
    return OverrunShown(
        overrun.running_requests,
        overrun.prealloc_requests,
        overrun.request_rows,
        overrun.budgeted_slots,
        overrun.slots,
        overrun.slot_factor,
        tuple(PartShown(*part) for part in overrun.parts),
        overrun.nbytes,
    )


def overrun_warnings(overrun: OverrunShown | None) -> Iterator[Said]:
    """What a decode server allocates without a budget for it, where there is anything."""
    if overrun is None or not overrun.nbytes:
        return
    held: Said | str = ""
    if overrun.slots > overrun.budgeted_slots:
        held = say(
            "{slots} state slots where the budget pays for {budgeted} ({factor} times), ",
            slots=whole(overrun.slots),
            budgeted=whole(overrun.budgeted_slots),
            factor=f"{overrun.slot_factor:.2g}",
        )
    yield say(
        "decode role: the pool holds {held}{rows} request rows for transfers in flight: {size} a rank that no budget "
        "charges ({parts}); lower --disaggregation-decode-extra-slots or --mem-fraction-static",
        held=held,
        rows=whole(overrun.prealloc_requests),
        size=decimal(overrun.nbytes),
        parts=", ".join(f"{part.name} {decimal(part.nbytes)}" for part in overrun.parts[:3]),
    )
