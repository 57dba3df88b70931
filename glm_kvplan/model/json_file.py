"""A config.json read from disk with its guard up: bounded, regular files only, strict JSON."""

import codecs
import os
from pathlib import Path
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.reading.guarded_file import read_bytes
from glm_kvplan.reading.json_text import read_json
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.reading.unreadable import UnreadableError

LARGEST_FILE = 16 << 20
_MARKS = (
    (codecs.BOM_UTF8, "a UTF-8 byte-order mark"),
    (codecs.BOM_UTF16_LE, "a UTF-16 byte-order mark"),
    (codecs.BOM_UTF16_BE, "a UTF-16 byte-order mark"),
)


def read_json_object(path: Path, shown: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The JSON object in `path`, and warnings about it. `shown` names the file in messages.

    Raises InputError for everything that is not a plain UTF-8 file of at most 16 MiB with one finite JSON object.
    """
    try:
        value, repeated = read_json(_text(path, shown))
    except UnreadableError as error:
        suffix = " to be a config.json" if "deeply" in error.problem else ""
        raise InputError(f"{shown}: {error.problem}{suffix}") from None
    if not isinstance(value, dict):
        kind = {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number or a boolean")
        raise InputError(f"{shown}: is {kind}; a config.json is a JSON object")
    warnings = (f"{shown}: key {repeated[0][:60]!r} stands more than once; the last one counts",) if repeated else ()
    return value, warnings


def _text(path: Path, shown: str) -> str:
    data = read_bytes(path, shown, most=LARGEST_FILE, advice="a config.json is a few KiB", pipes=False)
    if not data.strip():
        raise InputError(f"{shown}: is empty")
    for mark, words in _MARKS:
        if data.startswith(mark):
            raise InputError(f"{shown}: starts with {words}; save it as plain UTF-8 (the engine reads nothing else)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{shown}: is not UTF-8 text (byte {error.start})") from None


def shown_path(path: str | os.PathLike[str]) -> str:
    """A path or address as one printable line, whatever bytes its name holds; no user and password of an address."""
    text = without_userinfo(os.fspath(path))
    return text if text.isprintable() else ascii(text)
