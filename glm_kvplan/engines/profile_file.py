"""What a release does differently, as TOML: the files of an engine's folder, and a user's own on top of one of them."""

import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from glm_kvplan.errors import InputError, one_line

_LARGEST_FILE = 256 << 10
_LARGEST_FIELD = 1 << 20  # no page, row or chunk comes near it


def releases_in(folder: Path) -> tuple[str, ...]:
    """The releases with a file in it, oldest first."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def installed_release(package: str) -> str | None:
    """The release of an engine installed here, from its metadata; None if there is none. Nothing is imported."""
    return _installed_in(package, tuple(sys.path))


@cache
def _installed_in(package: str, places: tuple[str, ...]) -> str | None:
    # Most machines that plan have no engine: a look at the directories spares them the import below.
    if not any(Path(place).is_dir() and any(Path(place).glob(f"{package}-*.dist-info")) for place in places):
        return None
    from importlib.metadata import version

    return version(package)


def release_fields(file: Path, known: Iterable[str]) -> dict[str, Any]:
    """The fields of a release of ours. Raises InputError for one that is not `known`."""
    return _known(tomllib.loads(file.read_text(encoding="utf-8")), known, file.stem)


def own_fields(
    path: Path,
    engine: str,
    releases: Collection[str],
    standard_of: Callable[[str], Mapping[str, Any]],
    above_zero: Collection[str] = (),
) -> dict[str, Any]:
    """The fields of a user's own file: `base = "RELEASE"`, whose fields are `standard_of`, then those that differ.

    Raises InputError for a file that cannot be read or is too large, for an unknown field, and for a value of another
    type than the release's, or one that cannot be.
    """
    from glm_kvplan.reading.guarded_file import read_text
    from glm_kvplan.reading.toml_text import read_toml
    from glm_kvplan.reading.unreadable import UnreadableError

    origin = f"--engine {path}"
    try:
        data = read_toml(read_text(path, origin, most=_LARGEST_FILE, advice="a profile is a few KiB"))
    except UnreadableError as error:
        place = f" at line {error.line}" if error.line else ""
        raise InputError(f"{origin}: is not TOML ({error.problem}{place})") from None
    if not data:
        raise InputError(f"{origin}: is empty; write base = one of {', '.join(releases)}, then the fields that differ")
    base = str(data.pop("base", "")).removeprefix(f"{engine}-")
    if base not in releases:
        raise InputError(f"{origin}: write base = one of {', '.join(releases)}, then the fields that differ")
    standard = standard_of(base)
    for name, value in data.items():
        if name in standard:
            _check_field(origin, name, value, standard[name], 1 if name in above_zero else 0)
    data = {
        name: {**standard.get(name, {}), **value} if isinstance(value, dict) else value for name, value in data.items()
    }
    return _known({**standard, "release": f"{base} with {one_line(path.name)}", **data}, standard, origin)


def _known(data: dict[str, Any], known: Iterable[str], origin: str) -> dict[str, Any]:
    names = tuple(known)
    unknown = sorted(data.keys() - set(names))
    if unknown:
        raise InputError(f"{origin}: unknown profile field {unknown[0]!r}; fields are: {', '.join(names)}")
    return data


_TAKES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a table"}


def _check_field(origin: str, name: str, value: object, standard: object, least: int) -> None:
    kind = int if standard is None else type(standard)  # a field that may be None is a number of bytes
    if type(value) is not kind:
        raise InputError(f"{origin}: {name} = {value!r}: it takes {_TAKES.get(kind, kind.__name__)}")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_field(origin, f"{name}.{one_line(key)}", inner, "", least)
    if isinstance(value, str) and not value.isprintable():
        raise InputError(f"{origin}: {name} holds characters that cannot be shown")
    if isinstance(value, int) and not least <= value <= _LARGEST_FIELD:
        raise InputError(f"{origin}: {name} = {value} must lie between {least} and {_LARGEST_FIELD:,}")
