"""A deployment file written from what a command found: the document as YAML, and the file, whole or not at all."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from glm_kvplan.engines.by_name import assumed_engine
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError
from glm_kvplan.model.loader import BUNDLED_ID, BUNDLED_ORIGIN
from glm_kvplan.reading.secret_words import public
from glm_kvplan.show.whole_file import destination
from glm_kvplan.workload import Demand

_HOSTS = "nnodes"  # the flag that `nodes` is, where an engine has it


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


def save(path: str, text: str, *, force: bool = False, option: str = "--save") -> None:
    """Write the file whole or not at all. Raises InputError where one is there already (without `force`)."""
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{option} {path}: is not a file; give the name of one, or - to print it")
    with destination(path, replace=force, option=option) as file:
        file.write(text)


def plan_document(plan: Any, expected: Demand | None) -> dict[str, object]:
    """A deployment file of one server that expects a load: `kvplan check` of it is the same verdict."""
    found: dict[str, object] = {
        "model": model_named(plan),
        "engine": engine_key(plan),
        "gpu": plan.gpu.name,
        "flags": {name: public(value) for name, value in plan.flags.items() if name != _HOSTS},
        "expect": expected_of(expected),
    }
    if plan.hosts > 1:
        found["nodes"] = plan.hosts
    if plan.environment:
        found["environment"] = dict(plan.environment)
    return found


def engine_key(plan: Any) -> str:
    """The release as `engine` names it."""
    engine: Engine = plan.profile.engine
    release: str = plan.profile.base_release
    return release if engine is assumed_engine() else f"{engine.name}-{release}"


def expected_of(load: Demand | None) -> dict[str, object]:
    """What `expect` says of a load: its requests at once, how long they are, and that serving fits beside."""
    found: dict[str, object] = {"headroom": "fits"}
    if load is None:
        return found
    found = {"min_concurrency": load.concurrency, **found}
    if len(load.contexts.lengths) == 1:
        return {"min_context": load.context, **found}
    return {**found, "contexts": load.contexts.shares, "confidence": load.contexts.confidence or "mean"}


def model_named(plan: Any) -> str:
    """The model as a launch command or a file names it."""
    named: str = plan.served or (
        BUNDLED_ID if plan.model.origin == BUNDLED_ORIGIN else plan.model.path or plan.model.name
    )
    return named
