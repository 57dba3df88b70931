"""A config.json read from disk with its guard up: bounded, regular files only, strict JSON."""

import codecs
import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from glm_kvplan.errors import InputError

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
    text = _read(path, shown)
    repeated: list[str] = []

    def no_constant(name: str) -> NoReturn:
        raise InputError(f"{shown}: holds {name}, which is not JSON; write a number")

    def last_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        value = json.loads(text, parse_constant=no_constant, object_pairs_hook=last_wins)
    except RecursionError:
        raise InputError(f"{shown}: is nested too deeply to be a config.json") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{shown}: is not JSON ({error.msg} at line {error.lineno}, column {error.colno})") from None
    except InputError:
        raise
    except ValueError:  # Python refuses to turn thousands of digits into an int
        raise InputError(f"{shown}: holds a number with too many digits") from None
    if not isinstance(value, dict):
        kind = {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number or a boolean")
        raise InputError(f"{shown}: is {kind}; a config.json is a JSON object")
    warnings = (f"{shown}: key {repeated[0][:60]!r} stands more than once; the last one counts",) if repeated else ()
    return value, warnings


def _read(path: Path, shown: str) -> str:
    try:
        found = path.stat()
        # Opening a pipe would wait for a writer, opening a device may act on it.
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{shown}: is not a regular file; give a config.json or the directory that holds it")
        if found.st_size > LARGEST_FILE:
            raise InputError(
                f"{shown}: is {found.st_size} bytes; a config.json over {LARGEST_FILE} bytes is refused unread"
            )
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{shown}: cannot be read ({reason})") from None
    if len(data) > LARGEST_FILE:
        raise InputError(f"{shown}: holds more than {LARGEST_FILE} bytes; a config.json that long is refused")
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
    """A path as one printable line, whatever bytes its name holds."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)
