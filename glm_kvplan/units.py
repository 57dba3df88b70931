"""Byte units, and the sizes people type. Everything inside the package is an int of bytes."""

import re

from glm_kvplan.errors import InputError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
KB, MB, GB = 10**3, 10**6, 10**9

_COUNT = r"(\d{1,20}(?:\.\d{1,20})?)\s*([kKmM]?)"
COUNT_FACTOR = {"": 1, "k": KIB, "m": MIB}  # people mean binary thousands of tokens
LARGEST_COUNT = 1 << 48
LARGEST_GIB = float(1 << 30)

_SIZE = r"(\d+(?:\.\d+)?)\s*(kB|KiB|MB|MiB|GB|GiB|B|)"
_SIZE_FACTOR = {"": 1, "B": 1, "kB": KB, "KiB": KIB, "MB": MB, "MiB": MIB, "GB": GB, "GiB": GIB}


def parse_count(text: str, name: str) -> int:
    """A count of tokens or requests as people write it: `131072`, `128k` (times 1024), `1m` (times 1024**2)."""
    match = re.fullmatch(_COUNT, text.strip())
    if match is None:
        raise InputError(f"{name}: {text[:60]!r} is not a count; write a whole number such as 131072 or 128k")
    number, suffix = match.groups()
    factor = COUNT_FACTOR[suffix.lower()]
    value = int(number) * factor if "." not in number else float(number) * factor
    if value != int(value):
        raise InputError(f"{name}: {text!r} is not a whole number")
    if not 0 < value <= LARGEST_COUNT:
        raise InputError(f"{name}: {text!r} is out of range; it must lie between 1 and 2**48")
    return int(value)


def is_count(text: str) -> bool:
    """Whether `parse_count` can read `text`, whatever it then says of the number."""
    return re.fullmatch(_COUNT, text.strip()) is not None


def parse_size(text: str, name: str) -> int:
    """Bytes as people write them: `1GiB` (2**30), `500MB` (10**6), or a plain number. Raises InputError."""
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise InputError(f"{name}: {text[:60]!r} is not a size; write bytes, or a unit such as 500MB, 2GB or 2GiB")
    value = float(match[1]) * _SIZE_FACTOR[match[2]]
    if value > LARGEST_COUNT:
        raise InputError(f"{name}: {text[:60]!r} is out of range; it must be at most 2**48 bytes")
    return int(value)
