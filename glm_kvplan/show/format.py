"""Numbers as people read them. Decimal GB and binary GiB are different units, and each is named."""

from collections.abc import Iterable

from glm_kvplan.units import GB, GIB, KB, KIB, MB, MIB

_DECIMAL = (("GB", GB), ("MB", MB), ("kB", KB))
_BINARY = (("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
SHORT_UNIT = {
    "token": "token",
    "state slot": "slot",
    "request row": "row",
    "rank": "rank",
}  # a ledger's unit where room is short


def decimal(count: int) -> str:
    """Bytes in decimal units, three digits or more: `60.9 GB`, `147.6 MB`, `132 B`."""
    return _scaled(count, _DECIMAL)


def binary(count: int) -> str:
    """Bytes in binary units: `1.42 MiB`."""
    return _scaled(count, _BINARY)


def gib(count: int) -> str:
    """Bytes as `18.8 GiB`: of amounts that are estimated in part."""
    return f"{count / GIB:.1f} GiB"


def whole(count: int) -> str:
    """An integer with its thousands marked: `147,619,840`."""
    return f"{count:,}"


def count(number: int, noun: str) -> str:
    """`1 request`, `64 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def three_digits(number: int) -> str:
    """An estimated count: `5,770,000` for 5,765,312."""
    return whole(round(number, -max(len(str(abs(number))) - 3, 0)))


def free_change(nbytes: int) -> str:
    """A change of free memory in GiB with two decimals, four where two would say that nothing changes."""
    gib = nbytes / GIB
    return f"{gib:+.2f}" if abs(gib) >= 0.01 else f"{gib:+.4f}" if abs(gib) >= 0.0001 else "0"


def about(value: int, ends: Iterable[int | None]) -> str:
    """A value that follows from an estimate, to three digits (`~5,770,000`); whole where both ends of it agree."""
    return whole(value) if all(end == value for end in ends) else f"~{three_digits(value)}"


def shown(value: object) -> str:
    """A flag's value as people read it: `on`, `1,048,576`, `-` for none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        import json  # few answers hold one

        return json.dumps(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _scaled(count: int, units: tuple[tuple[str, int], ...]) -> str:
    for name, size in units:
        if abs(count) >= size:
            value = count / size
            return f"{value:,.{2 if abs(value) < 10 else 1}f} {name}"
    return f"{count} B"


def bar(share: float, width: int, ascii_only: bool) -> str:
    """A bar of `width` cells, filled to `share` (0 to 1) in eighths of a cell, or in `#` for plain terminals."""
    share = min(max(share, 0.0), 1.0)
    if ascii_only:
        return ("#" * round(share * width)).ljust(width)
    eighths = round(share * width * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(width)
