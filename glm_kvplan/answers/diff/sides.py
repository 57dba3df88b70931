"""Starts the two sides of `kvplan diff`: one or two deployment files, each under an engine and on a GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.answers.check.deployment_file import DeploymentFile, read_deployment_file
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.answers.diff.starts import Side
from glm_kvplan.contexts import Contexts
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.workload import DEFAULT_CONTEXT


class Asked(NamedTuple):
    """One side as it was asked for: a file, under another engine or on another GPU where one is given."""

    path: str
    engine: str | None = None
    gpu: str | None = None
    root: Path | None = None  # where files that it names may lie, beside its own folder
    shown: str | None = None  # what messages call it


def sides_of(a: Asked, b: Asked) -> tuple[Side, Side]:
    """Both sides started; requests of both are counted at the same lengths: those that a file expects, else 128K.

    Raises InputError for a file that cannot be used, RefusedError where the engine refuses its flags; both name it.
    """
    planned = [plan_side(side) for side in (a, b)]
    load = common_load(planned)
    first, second = (start_side(one, load) for one in planned)
    return first, second


class Planned(NamedTuple):
    """One side planned, not started."""

    asked: Asked
    file: DeploymentFile
    plan: Any  # the engine's own


def plan_side(side: Asked) -> Planned:
    """One side read and planned. Raises InputError, RefusedError."""
    file = read_deployment_file(side.path, side.root, side.shown)
    try:
        return Planned(side, file, plan_of(file, engine=side.engine, gpu=side.gpu, root=side.root).plan)
    except RefusedError as error:
        raise _refused(file, side, error) from None


class Load(NamedTuple):
    """The requests that are counted on both sides: of `context` tokens each, and of a mix where a file expects one."""

    context: int
    mix: Contexts | None


def common_load(planned: Sequence[Planned]) -> Load:
    """What a file expects, the first of them that does; else 128K, where every server takes that."""
    expected = [side.file.content.expect.wanted for side in planned]
    asked = next((one.longest for one in expected if one.longest is not None), DEFAULT_CONTEXT)
    longest: list[int] = [side.plan.context_length for side in planned]
    mixes = (one.contexts for one in expected if one.contexts is not None and len(one.contexts.lengths) > 1)
    return Load(min([asked, *longest]), next(mixes, None))


def start_side(planned: Planned, load: Load) -> Side:
    """One side started. Raises InputError, RefusedError."""
    side, file, plan = planned
    longest = file.content.expect.wanted.longest
    try:
        return Side(file.path, plan, plan.started(file.content.memory.given, load.context, longest, load.mix))
    except RefusedError as error:
        raise _refused(file, side, error) from None
    except InputError as error:
        if error.is_no:
            raise _refused(file, side, RefusedError(str(error))) from None
        if str(error).startswith(file.path):
            raise
        raise file.error(str(error), "memory") from None


def _refused(file: DeploymentFile, side: Asked, error: RefusedError) -> RefusedError:
    return RefusedError(
        f"{file.path} on {side.engine or file.content.engine or file.engine.assumed}: {error.reason}", error.source
    )
