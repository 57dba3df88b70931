"""Launches in Docker Compose files: every service whose entrypoint and command start a server."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.interpolation import interpolated, split_words, word_of
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import Scalar, known_text, plain
from glm_kvplan.launch.environment_file import read_environment
from glm_kvplan.launch.launch import Container, Found, Server, gathered
from glm_kvplan.launch.manifest import container_launches
from glm_kvplan.launch.marked_words import Word, printable

# What Compose takes literally and a here-document would not: backslashes, command substitutions; `$$` is a dollar.
_LITERAL = re.compile(r"\$\$|\$(?=[^\w{]|$)|[\\`]")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([bkmgt]?)b?", re.IGNORECASE)


def is_compose(text: str) -> bool:
    """The text has services at the left margin, as a Compose file has."""
    return re.search(r"(?m)^services:\s*(?:#.*|\{.*)?$", text) is not None


def read_compose(documents: Sequence[Any], name: str, servers: Sequence[Server], around: Surroundings) -> Found:
    """The launches of the services that start a server.

    `${X:-default}` is worked out from the .env file beside the Compose file and from what the user gives; env_file is
    read where it lies beside it. Raises InputError for no such service.
    """
    data = next((one for one in documents if isinstance(one, dict)), {})
    services = data.get("services")
    host = replace(around, environment=_environment_of(".env", around))
    parts = []
    for key, service in services.items() if isinstance(services, dict) else ():
        if isinstance(service, dict):
            within = f"{name}: service {printable(str(key))}"
            parts.append((f"{within}: ", partial(_launches, str(key), service, within, servers, host)))
    found = gathered(parts, name)
    if not found.launches:
        programs = " or ".join(server.program for server in servers)
        raise InputError(f"{name}: no service's entrypoint or command starts {programs}")
    return found


def _launches(key: str, service: dict[str, Any], within: str, servers: Sequence[Server], around: Surroundings) -> Found:
    words = [word for part in ("entrypoint", "command") for word in _words(service.get(part), part, around)]
    container = Container((key,), str(service.get("image") or ""), "", _gpus(service), _memory(service, around))
    return container_launches(words, _environment(service, around), container, within, servers, around)


def _words(value: Any, place: str, around: Surroundings) -> list[Word]:
    if isinstance(value, str):
        return split_words(_interpolated(value, around), place)
    items = value if isinstance(value, list) else []
    return [word_of(_interpolated(str(item), around), place) for item in items]


def _interpolated(text: str, around: Surroundings) -> Scalar:
    return interpolated(_LITERAL.sub(lambda match: "\\" + match[0][0], text), around) if "$" in text else plain(text)


def _environment(service: dict[str, Any], around: Surroundings) -> dict[str, Word]:
    """The container's variables: those of env_file first, then environment."""
    found: dict[str, Scalar] = {}
    files = service.get("env_file")
    for entry in files if isinstance(files, list) else [files]:
        path = entry.get("path") if isinstance(entry, dict) else entry
        if isinstance(path, str):
            found.update(_environment_of(path, around))
    given = service.get("environment")
    if isinstance(given, dict):
        pairs = [(str(key), value) for key, value in given.items()]
    else:
        items = [str(item).partition("=") for item in given] if isinstance(given, list) else []
        pairs = [(key, value if equals else None) for key, equals, value in items]
    for key, value in pairs:
        if value is None:  # taken from where Compose runs
            found.pop(key, None)
            if key in around.environment or key in around.given:
                found[key] = interpolated(f"${key}", around)
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[key] = _interpolated(text, around)
    return {key: word_of(value, "environment") for key, value in found.items()}


def _environment_of(path: str, around: Surroundings) -> Mapping[str, Scalar]:
    text = around.beside(path)
    return {} if text is None else {key: plain(value) for key, value in read_environment(text).items()}


def _gpus(service: dict[str, Any]) -> int | None:
    devices: Any = service
    for key in ("deploy", "resources", "reservations", "devices"):
        devices = devices.get(key) if isinstance(devices, dict) else None
    for device in devices if isinstance(devices, list) else ():
        count = device.get("count") if isinstance(device, dict) else None
        ids = device.get("device_ids") if isinstance(device, dict) else None
        if isinstance(count, int):
            return count
        if isinstance(ids, list):
            return len(ids)
    return None


def _memory(service: dict[str, Any], around: Surroundings) -> int | None:
    limits: Any = service
    for key in ("deploy", "resources", "limits"):
        limits = limits.get(key) if isinstance(limits, dict) else None
    given = (limits.get("memory") if isinstance(limits, dict) else None) or service.get("mem_limit")
    match = _SIZE.fullmatch(known_text(_interpolated(str(given), around)) or "")
    if match is None:
        return None
    return int(float(match[1]) * 1024 ** "bkmgt".index(match[2].lower() or "b"))
