"""Reads a deployment file: YAML or TOML in, plain values and their lines out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glm_kvplan.answers.check.complaints import complaint
from glm_kvplan.answers.check.file_text import looks_like_toml, parse_toml, parse_yaml
from glm_kvplan.answers.check.positions import PlacedError, line_of
from glm_kvplan.engines.expectations import Expectations
from glm_kvplan.engines.flag import read_value
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.reading.guarded_file import read_stdin, read_text
from glm_kvplan.reading.yaml_text import KeyPath
from glm_kvplan.units import parse_count

SUFFIXES = (".yaml", ".yml", ".toml", ".json")
STDIN = "-"
_LARGEST, _ADVICE = 1 << 20, "a deployment file is a few KiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentFile:
    """One deployment file, read and checked but not planned. Paths in it are relative to `folder`."""

    path: str  # as shown in messages
    folder: Path
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    source: str | None = None
    model: str | None = None
    revision: str | None = None
    engine: str = BASELINE
    gpu: str | None = None
    flags: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    launch: str | None = None
    launch_file: str | None = None
    container: str | None = None
    memory: MemoryGiven = field(default_factory=MemoryGiven)
    host_gib: float | None = None
    pod_gib: float | None = None
    expect: Expectations = field(default_factory=Expectations)
    tolerate: Mapping[str, str] = field(default_factory=dict)

    def line(self, *path: str) -> int:
        """The line of a key, else of the nearest key around it, else 1."""
        return line_of(self.lines, *path)

    def error(self, message: str, *path: str) -> PlacedError:
        """An error that points at a key of this file."""
        return PlacedError(self.path, self.line(*path), message)


def read_deployment_file(path: str | Path) -> DeploymentFile:
    """The deployment of a .yaml, .yml, .toml or .json file; "-" is standard input, YAML or TOML by its looks.

    Raises InputError (PlacedError where a line can be named) for a file that cannot be read, is over 1 MiB, does not
    parse, holds an unknown key or one twice, or a value of the wrong type.
    """
    name = str(path)
    if name == STDIN:
        return parse_deployment(read_stdin("stdin", most=_LARGEST, advice=_ADVICE), "stdin", Path())
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{name}: a deployment file ends in {', '.join(SUFFIXES)}")
    text = read_text(path, name, most=_LARGEST, advice=_ADVICE)
    return parse_deployment(text, name, Path(path).parent, suffix == ".toml")


def parse_deployment(text: str, name: str, folder: Path, toml: bool | None = None) -> DeploymentFile:
    """The deployment in `text`; `name` stands in messages, `folder` is where its paths start. Raises PlacedError."""
    if toml is None:
        toml = looks_like_toml(text)
    data, lines = parse_toml(text, name) if toml else parse_yaml(text, name)
    if not data:
        raise PlacedError(name, 1, "is empty; write at least flags, launch or launch_file")
    if "apiVersion" in data and "kind" in data:
        raise PlacedError(name, 1, "is a Kubernetes manifest; name it as launch_file in a deployment file")
    from pydantic import ValidationError

    from glm_kvplan.answers.check.file_model import DeploymentModel

    try:
        checked = DeploymentModel.model_validate(data).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise complaint(error.errors(include_url=False), data, name, lines) from None
    return _deployment(checked, name, folder, lines)


def _deployment(data: dict[str, Any], name: str, folder: Path, lines: Mapping[KeyPath, int]) -> DeploymentFile:
    memory, expect = data.get("memory", {}), data.get("expect", {})
    file = DeploymentFile(
        path=name,
        folder=folder,
        lines=lines,
        environment={key: str(value) for key, value in data.get("environment", {}).items()},
        memory=MemoryGiven(
            memory.get("pre_gib"),
            memory.get("available_gib"),
            memory.get("target_weights_gib"),
            memory.get("draft_weights_gib"),
            memory.get("checkpoint"),
        ),
        host_gib=memory.get("host_gib"),
        pod_gib=memory.get("pod_gib"),
        tolerate=expect.pop("tolerate", {}),
        expect=Expectations(**{key: _count(expect[key], key, name, lines) for key in expect}),
        flags=_flags(data, name, lines),
        **{
            key: data[key]
            for key in ("source", "model", "revision", "engine", "gpu", "launch", "launch_file", "container")
            if key in data
        },
    )
    if file.launch is not None and file.launch_file is not None:
        raise file.error("give the launch command once: as launch or as launch_file", "launch_file")
    if file.container is not None and file.launch_file is None:
        raise file.error("container names a container of launch_file, and there is none", "container")
    if file.launch is None and file.launch_file is None and not file.flags:
        raise file.error("nothing is launched: write flags, launch or launch_file")
    return file


def _count(value: Any, key: str, name: str, lines: Mapping[KeyPath, int]) -> Any:
    if not isinstance(value, str) or key not in ("min_context", "min_total_tokens"):
        return value
    try:
        return parse_count(value, key)
    except InputError as error:
        raise PlacedError(name, line_of(lines, "expect", key), str(error)) from None


def _flags(data: dict[str, Any], name: str, lines: Mapping[KeyPath, int]) -> dict[str, object]:
    flags: dict[str, object] = dict(data.get("flags", {}))
    for key, value in flags.items():
        if FLAG[key].kind == "count" and isinstance(value, str):
            try:
                flags[key] = read_value(FLAG[key], value)
            except InputError as error:
                raise PlacedError(name, line_of(lines, "flags", key), str(error)) from None
    nodes = data.get("nodes")
    if nodes is not None and flags.setdefault("nnodes", nodes) != nodes:
        raise PlacedError(name, line_of(lines, "nodes"), f"nodes {nodes} against flags.nnodes {flags['nnodes']}")
    return flags
