"""One printed number beside the predicted one."""

from typing import Literal, NamedTuple

from glm_kvplan.engines.sglang.boot_log.boot import Boot, Reading
from glm_kvplan.units import GB, GIB

Basis = Literal["flags", "memory", "printed sizes", ""]


class Row(NamedTuple):
    """A number of the log. `explained` is None where kvplan does not predict it (memory left after CUDA graphs).

    `name` is the message and the number in it, `rank` who printed it. `difference` is printed minus predicted, in the
    unit of both. `basis` is what the prediction rests on.
    """

    name: str
    rank: str
    predicted: str
    printed: str
    difference: float | None
    explained: bool | None
    basis: Basis
    note: str = ""


def count_row(name: str, rank: str, predicted: int, printed: str, basis: Basis, note: str = "") -> Row:
    """A whole number: explained when equal."""
    difference = int(printed) - predicted
    return Row(name, rank, str(predicted), printed, difference, difference == 0, basis, note)


def word_row(name: str, rank: str, predicted: str, printed: str, basis: Basis) -> Row:
    return Row(name, rank, predicted, printed, None, predicted == printed, basis)


def bytes_row(name: str, rank: str, predicted: int, printed: str, *, decimal: bool = False) -> Row:
    """Bytes printed with some decimals: explained when they round to the same digits.

    The engine divides by 2**30 for the device and by 10**9 for the host, and prints both as GB.
    """
    value = predicted / (GB if decimal else GIB)
    shown = f"{value:.{decimals(printed)}f}"
    return Row(name, rank, shown, printed, float(printed) - value, shown == printed, "printed sizes")


def telling_digits(printed: str, difference: float) -> int:
    """Decimals to show a prediction and its difference with: as many as were printed, more where that hides it."""
    digits = decimals(printed)
    while difference and digits < 12 and not float(f"{difference:.{digits}f}"):
        digits += 1
    return digits


def decimals(printed: str) -> int:
    return len(printed.partition(".")[2])


def half_step(printed: str) -> float:
    """How far the printed number may be from the one that was rounded."""
    return float(0.5 * 10.0 ** -decimals(printed))


class PrintedSizes(NamedTuple):
    """The three sizes as printed; None where the log does not hold them. Per DP worker."""

    tokens: int | None
    state_slots: int | None
    running_requests: int | None


def printed_sizes(boot: Boot) -> PrintedSizes:
    """The sizes a boot printed. PD decode may have raised its slots after sizing: the sized ones count."""
    tokens = _number(boot.first("token_pool"), "tokens") or _number(boot.first("ready"), "tokens")
    slots = _number(boot.first("decode_slots"), "slots")
    for name in ("state_pool", "slots", "capped"):
        if slots is None:
            slots = _number(boot.first(name), "slots")
    requests = _number(boot.first("ready"), "requests")
    if requests is None:
        requests = _number(boot.first("capped"), "requests")
    return PrintedSizes(tokens, slots, requests)


def _number(reading: Reading | None, name: str) -> int | None:
    return None if reading is None or name not in reading else int(reading[name])
