"""Launch commands in Kubernetes manifests: the container whose command and args start the engine."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.launch_command import LaunchCommand, read_launch_command
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.errors import InputError
from glm_kvplan.launch.launch_file import with_config_file
from glm_kvplan.launch.server_commands import SHELL_OPTION
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml

_DEEPEST = 40
_MOST_NODES = 100_000
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_QUANTITY = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_FACTOR = {
    **{"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15},
    **{"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50},
}
_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


@dataclass(frozen=True, slots=True)
class Container:
    """A container that starts the engine. `names` are its own name and those of the objects around it."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    environment: Mapping[str, str]
    memory_bytes: int | None  # its memory limit
    gpus: int | None  # of its limits

    @property
    def label(self) -> str:
        return "/".join(self.names) or "unnamed"


def is_manifest(text: str) -> bool:
    """The text looks like Kubernetes objects: it has apiVersion and kind at the left margin."""
    return bool(re.search(r"(?m)^apiVersion:\s*\S", text) and re.search(r"(?m)^kind:\s*\S", text))


def read_manifest(
    text: str, name: str, container: str | None = None, release: str = BASELINE, within: Path | None = None
) -> tuple[LaunchCommand, Container]:
    """The launch of the one container that starts the engine, or of the one called `container` (any of its names).

    References `$(NAME)` and, in shell scripts, `$NAME` to variables of the container's env are replaced. Raises
    InputError for text that is no YAML, for no such container or several, and what read_launch_command raises it for.
    """
    found = [one for document in _documents(text, name) for one in _containers(document) if _starts_engine(one)]
    if container is not None:
        chosen = [one for one in found if container in one.names or container == one.label]
    else:
        chosen = found
    labels = ", ".join(one.label for one in found[:8])
    if not found:
        raise InputError(f"{name}: no container's command or args launch the engine (sglang)")
    if not chosen:
        raise InputError(f"{name}: no container {container!r} launches the engine; those that do: {labels}")
    if len(chosen) > 1:
        raise InputError(
            f"{name}: {len(chosen)} containers launch the engine ({labels}); a deployment file names one as container"
        )
    one = chosen[0]
    try:
        command = with_config_file(read_launch_command(_launch_words(one), release), release, within)
    except InputError as error:
        raise InputError(f"{name}: container {one.label}: {error}") from None
    switches = {key: one.environment[key] for key in ENVIRONMENT if key in one.environment}
    return replace(command, environment={**switches, **command.environment}), one


def _documents(text: str, name: str) -> list[Any]:
    try:
        return [document.data for document in read_yaml(text) if document.data is not None]
    except UnreadableError as error:
        place = f":{error.line}" if error.line else ""
        templated = "; render the template first (helm template)" if "{{" in text else ""
        raise InputError(f"{name}{place}: not YAML: {error.unquoted}{templated}") from None


def _containers(document: Any) -> Iterator[Container]:
    """Every mapping with a command or args, with the names met on the way to it."""
    waiting: list[tuple[Any, tuple[str, ...], int]] = [(document, (), 0)]
    seen = 0
    while waiting:
        node, names, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > _MOST_NODES:
            raise InputError("the manifest is nested too deeply or too large")
        if isinstance(node, list):
            waiting += [(item, names, depth + 1) for item in reversed(node)]
        if not isinstance(node, dict):
            continue
        metadata = node.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else node.get("name")
        inside = (*names, name) if isinstance(name, str) else names
        if isinstance(node.get("command"), list) or isinstance(node.get("args"), list):
            yield _container(node, inside)
            continue
        for key, value in reversed(node.items()):
            named = isinstance(value, dict) and "extraPodSpec" in value  # Dynamo keys its services by name
            waiting.append((value, (*inside, str(key)) if named else inside, depth + 1))


def _container(node: dict[str, Any], names: tuple[str, ...]) -> Container:
    environment: dict[str, str] = {}
    entries = node.get("env")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and "value" in entry:
            environment[entry["name"]] = _expand(str(entry["value"]), environment)
    given = [value for key in ("command", "args") if isinstance(value := node.get(key), list)]
    words = [_expand(str(word), environment) for value in given for word in value]
    resources = node.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    limits = limits if isinstance(limits, dict) else {}
    gpus = next((limits[key] for key in _GPU_RESOURCES if key in limits), None)
    counted = int(str(gpus)) if re.fullmatch(r"[0-9]{1,5}", str(gpus)) else None
    return Container(names, tuple(words), environment, _bytes(limits.get("memory")), counted)


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """Kubernetes' own references: $(NAME), with $$ for a plain $; an unknown one stays as it is."""
    return _REFERENCE.sub(lambda m: "$" if m[1] is None else environment.get(m[1], m[0]), text)


def _bytes(quantity: Any) -> int | None:
    match = _QUANTITY.fullmatch(str(quantity))
    return int(float(match[1]) * _FACTOR[match[2] or ""]) if match else None


def _starts_engine(container: Container) -> bool:
    return any("sglang" in word for word in container.words) or (
        bool(container.words) and container.words[0].startswith("--") and "--model-path" in " ".join(container.words)
    )


def _launch_words(container: Container) -> list[str]:
    """The words with the container's variables defined in front of a `sh -c` script, in its first line."""
    words = list(container.words)
    for at in range(1, len(words)):
        if SHELL_OPTION.fullmatch(words[at - 1]) and not words[at].startswith("#"):
            defined = " ".join(f"export {key}={_quoted(value)};" for key, value in container.environment.items())
            words[at] = f"{defined} {words[at].lstrip()}" if defined else words[at]
    return words


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"
