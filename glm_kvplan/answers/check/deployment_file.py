"""Reads a deployment file: YAML or TOML in, a checked deployment and its lines out."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glm_kvplan.answers.check.complaints import complaint
from glm_kvplan.answers.check.file_text import looks_like_toml, parse_toml, parse_yaml
from glm_kvplan.answers.check.named_files import launches_of_file, launches_of_text
from glm_kvplan.answers.check.positions import PlacedError, line_of
from glm_kvplan.engines.by_name import assumed_engine, engine_named, told_engine
from glm_kvplan.engines.launches import launched_engine
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError
from glm_kvplan.launch.given_values import GivenValues
from glm_kvplan.reading.guarded_file import read_stdin, read_text
from glm_kvplan.reading.yaml_text import KeyPath

if TYPE_CHECKING:
    from glm_kvplan.answers.check.file_model import Deployment

SUFFIXES = (".yaml", ".yml", ".toml", ".json")
STDIN = "-"
_HOSTS = "nnodes"  # the flag that `nodes` is
_LARGEST, _ADVICE = 1 << 20, "a deployment file is a few KiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentFile:
    """One deployment file, read and checked but not planned: its content, and where it stands.

    `engine` is the one whose flags it has; paths in it start at `folder`.
    """

    path: str  # as shown in messages
    folder: Path
    lines: Mapping[KeyPath, int]
    engine: Engine
    content: "Deployment"

    @property
    def flags(self) -> dict[str, object]:
        """The flags that are given, hosts among them."""
        found: dict[str, object] = self.content.flags.model_dump(exclude_unset=True)
        return found if self.content.nodes is None else {**found, _HOSTS: self.content.nodes}

    @property
    def environment(self) -> dict[str, str]:
        """The switches that are given."""
        return {name: str(value) for name, value in self.content.environment.model_dump(exclude_unset=True).items()}

    @property
    def given(self) -> GivenValues:
        """What is said of the launch's variables."""
        return _given(self.content.set)

    @property
    def tolerate(self) -> dict[str, str]:
        """Kinds of findings that are accepted, each with why."""
        found: dict[str, str] = self.content.expect.tolerate.model_dump(exclude_unset=True)
        return found

    def line(self, *path: str) -> int:
        """The line of a key, else of the nearest key around it, else 1."""
        return line_of(self.lines, *path)

    def error(self, message: str, *path: str) -> PlacedError:
        """An error that points at a key of this file."""
        return PlacedError(self.path, self.line(*path), message)


def read_deployment_file(path: str | Path, root: Path | None = None, shown: str | None = None) -> DeploymentFile:
    """The deployment of a .yaml, .yml, .toml or .json file; "-" is standard input, YAML or TOML by its looks.

    What it names may lie in `root`, too; `shown` is its name in messages. Raises InputError (PlacedError where a line
    can be named) for a file that cannot be read, is over 1 MiB, does not parse, holds an unknown key or one twice, or
    a value of the wrong type.
    """
    name = shown or str(path)
    if str(path) == STDIN:
        return parse_deployment(read_stdin("stdin", most=_LARGEST, advice=_ADVICE), "stdin", Path(), root=root)
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        ends = ", ".join(SUFFIXES)
        raise InputError(
            f"{name}: a deployment file ends in {ends}; kvplan init --launch writes one of a launch script"
        )
    text = read_text(path, name, most=_LARGEST, advice=_ADVICE)
    return parse_deployment(text, name, Path(path).parent, suffix == ".toml", root)


def parse_deployment(
    text: str, name: str, folder: Path, toml: bool | None = None, root: Path | None = None
) -> DeploymentFile:
    """The deployment in `text`; `name` stands in messages, `folder` is where its paths start. Raises PlacedError."""
    if toml is None:
        toml = looks_like_toml(text)
    data, lines = parse_toml(text, name) if toml else parse_yaml(text, name)
    if not data:
        raise PlacedError(name, 1, "is empty; write at least flags, launch or launch_file")
    if "apiVersion" in data and "kind" in data:
        raise PlacedError(name, 1, "is a Kubernetes manifest; name it as launch_file in a deployment file")
    from pydantic import ValidationError

    from glm_kvplan.answers.check.file_model import deployment_of

    engine = _engine_of(data, folder, root or folder)
    model = deployment_of(engine)
    try:
        content = model.model_validate(data)
    except ValidationError as error:
        raise complaint(error.errors(include_url=False), data, name, lines, model, engine) from None
    file = DeploymentFile(path=name, folder=folder, lines=lines, engine=engine, content=content)
    _check(file)
    return file


def _engine_of(data: Mapping[str, Any], folder: Path, root: Path) -> Engine:
    """The engine that a file's `engine` names, else the one that its launch starts, else the assumed one.

    What is wrong with either is said where it is read.
    """
    named, launch, launch_file = (data.get(key) for key in ("engine", "launch", "launch_file"))
    if isinstance(named, str):
        return told_engine(named) or assumed_engine()
    told = None
    with suppress(InputError):
        if isinstance(launch_file, str):
            container = data.get("container")
            found = launches_of_file(folder, root, launch_file, _given(data.get("set")))
            told = launched_engine(found, container if isinstance(container, str) else None)
        elif isinstance(launch, str):
            told = launched_engine(launches_of_text(launch, _given(data.get("set"))))
    return assumed_engine() if told is None else engine_named(told)


def _given(values: object) -> GivenValues:
    """What `set` says of the launch's variables."""
    return GivenValues({str(key): str(value) for key, value in values.items()} if isinstance(values, dict) else {})


def _check(file: DeploymentFile) -> None:
    """What keys say together. Raises PlacedError."""
    content = file.content
    if content.launch is not None and content.launch_file is not None:
        raise file.error("give the launch command once: as launch or as launch_file", "launch_file")
    if content.container is not None and content.launch_file is None:
        raise file.error("container names a container of launch_file, and there is none", "container")
    if content.launch is None and content.launch_file is None and "flags" not in content.model_fields_set:
        raise file.error("nothing is launched: write flags, launch or launch_file")
    expect = content.expect
    if expect.contexts is not None and expect.min_concurrency is None:
        raise file.error("contexts say how long the requests of min_concurrency are; add it", "expect", "contexts")
    if expect.confidence is not None and expect.contexts is None:
        raise file.error("confidence is promised of contexts, and there are none", "expect", "confidence")
    if content.nodes is None:
        return
    given = content.flags.model_dump(exclude_unset=True)
    if given.get(_HOSTS, content.nodes) != content.nodes:
        raise file.error(f"nodes {content.nodes} against flags.{_HOSTS} {given[_HOSTS]}", "nodes")
