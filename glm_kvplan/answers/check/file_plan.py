"""The plan of a deployment file: its launch read, its flags laid over it, its defaults resolved."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.answers.check.deployment_file import DeploymentFile
from glm_kvplan.engines.engine import Release, find_release
from glm_kvplan.engines.launches import LaunchCommand
from glm_kvplan.engines.planner import plan, read_launch
from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.errors import InputError
from glm_kvplan.launch.launch import Container
from glm_kvplan.launch.launch_file import read_launch_file
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.reading.yaml_text import KeyPath


class FilePlan(NamedTuple):
    """The plan of a file, the launch command it came from, and the container where a manifest held it."""

    plan: Plan
    command: Any
    container: Container | None


def plan_of(
    file: DeploymentFile, *, engine: str | None = None, gpu: str | None = None, config_root: Path | None = None
) -> FilePlan:
    """Plan a deployment file, under another engine or on another GPU where one is given.

    The --config file of its launch must lie in the deployment file's folder, or in `config_root`.

    Raises PlacedError where the file names something that cannot be used, RefusedError where the engine refuses.
    """
    release = engine if engine is not None else _beside(file, file.engine, ".toml")
    try:
        under = find_release(release)
    except InputError as error:
        raise file.error(str(error), "engine") from None
    command, container = _launch(file, under, config_root or file.folder)
    served = command or LaunchCommand()
    if file.model is not None:  # named as a launch names it: it may lie on another machine
        served = replace(served, model=_model(file, file.model), revision=None)
    if file.revision is not None:
        served = replace(served, revision=file.revision)
    try:
        made = plan(
            file.flags,
            launch=served,
            gpu=gpu or file.gpu,
            engine=release,
            environment=file.environment,
        )
    except InputError as error:
        raise file.error(str(error), *_culprit(file, str(error))) from None
    return FilePlan(made, command, container)


def _beside(file: DeploymentFile, name: str, suffix: str = "") -> str:
    """A path beside the deployment file where there is one, else the name as it is."""
    path = file.folder / name
    return str(path) if name.endswith(suffix) and path.exists() else name


def _model(file: DeploymentFile, name: str) -> str:
    """The model beside the deployment file, else as it is named. Raises PlacedError for a file that is not there."""
    found = _beside(file, name)
    if found == name and (name.startswith((".", "~")) or name.endswith(".json")) and not Path(name).exists():
        raise file.error(f"model {name}: no such file or directory", "model")
    if not Path(found).exists():
        try:
            refuse_other_model(name)
        except InputError as error:
            raise file.error(str(error), "model") from None
    return found


def _launch(file: DeploymentFile, release: Release, root: Path) -> tuple[Any, Container | None]:
    if file.launch is not None:
        try:
            return read_launch(file.launch, release, within=root).command, None
        except InputError as error:
            raise file.error(f"launch: {error}", "launch") from None
    if file.launch_file is None:
        return None, None
    try:
        found = read_launch_file(file.folder / file.launch_file, SERVERS, name=f"launch_file {file.launch_file}")
        one = read_launch(found, release, file.container, root)
    except InputError as error:
        named = str(error).startswith("launch_file ")
        raise file.error(f"{'' if named else f'{file.launch_file}: '}{error}", "launch_file") from None
    return one.command, one.container


def _culprit(file: DeploymentFile, message: str) -> KeyPath:
    """The key of the file that a message most likely speaks of."""
    for name in file.flags:
        if f"--{name.replace('_', '-')}" in message.split() or name in message.split():
            return "flags", name
    for word, key in (("--gpu", "gpu"), ("--model", "model"), ("--revision", "revision")):
        if word in message.split():
            return (key,)
    if file.model is not None and file.model in message:
        return ("model",)
    return ("flags",)
