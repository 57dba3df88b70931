"""The plan of a deployment file: its launch read, its flags laid over it, its defaults resolved."""

from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.answers.check.deployment_file import DeploymentFile
from glm_kvplan.answers.check.named_files import HOW, launches_of_file, launches_of_text, local_file, named_file
from glm_kvplan.engines.by_name import find_release
from glm_kvplan.engines.planner import card_of, plan, read_launch
from glm_kvplan.engines.protocol import Command, Release
from glm_kvplan.errors import InputError
from glm_kvplan.launch.forms import LARGEST_TEXT
from glm_kvplan.launch.launch import Container
from glm_kvplan.launch.launch_file import ADVICE
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.model.loader import Model
from glm_kvplan.model.served import stand_in
from glm_kvplan.reading.guarded_file import read_text
from glm_kvplan.reading.yaml_text import KeyPath


class FilePlan(NamedTuple):
    """The plan of a file, the launch command it came from, and the container where a manifest held it."""

    plan: Any  # the engine's own
    command: Command | None
    container: Container | None


def plan_of(
    file: DeploymentFile, *, engine: str | None = None, gpu: str | None = None, root: Path | None = None
) -> FilePlan:
    """Plan a deployment file, under another release or on another GPU where one is given.

    What the file names is read in its own folder, or in `root`.

    Raises PlacedError where the file names something that cannot be used, RefusedError where the engine refuses.
    """
    root = root or file.folder
    release = _release(file, engine, root)
    command, container = _launch(file, release, root)
    _check_named(file, command, root)
    content = file.content
    try:
        made = plan(
            file.flags,
            launch=command,
            served=None if content.model is None else _model(file, content.model, root),
            model=_unread(command, root) if content.model is None else None,
            revision=content.revision,
            gpu=gpu or content.gpu or (None if container is None else card_of(container, [])),
            engine=release,
            environment=file.environment,
        )
    except InputError as error:
        raise file.error(str(error), *_culprit(file, str(error))) from None
    return FilePlan(made, command, container)


def _release(file: DeploymentFile, asked: str | None, root: Path) -> Release:
    """The release that the caller asks for, else the file's; of the engine whose flags the file has."""
    name = asked or file.content.engine
    try:
        if asked is None and name is not None and name.endswith(".toml"):
            name = str(named_file(file.folder, root, name, f"engine {name}"))
        release = find_release(name, file.engine if asked is None else None)
    except InputError as error:
        raise file.error(str(error), "engine") from None
    if release.engine is not file.engine:
        raise file.error(f"--engine {asked}: the file is of {file.engine.title}, not {release.engine.title}", "engine")
    return release


def _model(file: DeploymentFile, name: str, root: Path) -> str:
    """The model beside the deployment file, else as it is named. Raises PlacedError for a file that is not there."""
    try:
        found = local_file(file.folder, name)
        if found is not None:
            named_file(file.folder, root, str(found.absolute()), f"model {name}")
            return str(found)
        if name.startswith((".", "~")) or name.endswith(".json"):
            raise InputError(f"model {name}: no such file or directory")
        refuse_other_model(name)
    except InputError as error:
        raise file.error(str(error), "model") from None
    return name


def _unread(command: Command | None, root: Path) -> Model | None:
    """The geometry that stands in for a model of the launch that lies here, but not in `root`: it is not opened."""
    name = None if command is None else command.model
    found = None if name is None else local_file(root, name)
    if name is None or found is None or found.resolve().is_relative_to(root.resolve()):
        return None
    return stand_in(name, f"is not read: it lies outside the folder of the file that names it ({HOW})")


def _check_named(file: DeploymentFile, command: Command | None, root: Path) -> None:
    """Raise PlacedError for a flag that names a file outside. What does not exist here is the server's own."""
    flags = {**({} if command is None else command.flags), **file.flags}
    for flag in file.engine.flags:
        value = flags.get(flag.name)
        if not flag.names_file or not isinstance(value, str):
            continue
        key = ("flags", flag.name) if flag.name in file.flags else ("launch",)
        try:
            found = local_file(Path(), value)
            if found is not None:
                named_file(file.folder, root, str(found.absolute()), f"{flag.option} {value}")
        except InputError as error:
            raise file.error(str(error), *key) from None


def _launch(file: DeploymentFile, release: Release, root: Path) -> tuple[Command | None, Container | None]:
    content = file.content
    if content.launch is not None:
        try:
            return read_launch(launches_of_text(content.launch, file.given), release, within=root).command, None
        except InputError as error:
            raise file.error(f"launch: {error}", "launch") from None
    name = content.launch_file
    if name is None:
        return None, None
    try:
        one = read_launch(launches_of_file(file.folder, root, name, file.given), release, content.container, root)
    except InputError as error:
        named = str(error).startswith("launch_file ")
        raise file.error(f"{'' if named else f'{name}: '}{error}", "launch_file") from None
    return one.command, one.container


def launch_text(file: DeploymentFile, root: Path | None) -> str:
    """The text of the launch's own file. Raises InputError."""
    name = str(file.content.launch_file)
    shown = f"launch_file {name}"
    path = named_file(file.folder, root or file.folder, name, shown)
    return read_text(path, shown, most=LARGEST_TEXT, advice=ADVICE)


def command_of(file: DeploymentFile, engine: str | None, root: Path | None) -> Command | None:
    """The launch command of a file, under another release where one is given. Raises PlacedError."""
    root = root or file.folder
    return _launch(file, _release(file, engine, root), root)[0]


def _culprit(file: DeploymentFile, message: str) -> KeyPath:
    """The key of the file that a message most likely speaks of."""
    for name in file.flags:
        if f"--{name.replace('_', '-')}" in message.split() or name in message.split():
            return "flags", name
    for word, key in (("--gpu", "gpu"), ("--model", "model"), ("--revision", "revision")):
        if word in message.split():
            return (key,)
    if file.content.model is not None and file.content.model in message:
        return ("model",)
    return ("flags",)
