"""A deployment file written from what a command found: the document as YAML, and the file, whole or not at all."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from glm_kvplan.errors import InputError
from glm_kvplan.show.whole_file import destination


def to_yaml(document: Mapping[str, object]) -> str:
    """The document as YAML, written by hand: two levels of plain values, which JSON scalars spell in YAML too."""
    return "\n".join(_yaml_lines(document)) + "\n"


def _yaml_lines(document: Mapping[str, object], indent: str = "") -> Iterator[str]:
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:" if value else f"{indent}{name}: {{}}"
            yield from _yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{name}: {json.dumps(value)}"


def save(path: str, text: str, *, force: bool = False) -> None:
    """Write the file whole or not at all. Raises InputError where one is there already (without `force`)."""
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"--save {path}: is not a file; give the name of one, or - to print it")
    with destination(path, replace=force, option="--save") as file:
        file.write(text)
