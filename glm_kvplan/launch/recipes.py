"""Launches as YAML mappings of flags: an engine's own config file, and recipes that hold one for each role."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from glm_kvplan.launch.launch import Container, Found, Launch, Server, Settings
from glm_kvplan.launch.marked_words import Word, printable

_DEEPEST = 6
_KEY = re.compile(r"(?m)^\s*['\"]?[A-Za-z][\w-]*['\"]?\s*:(?:\s|$)")
_INSIDE = ("#", " ", "\t", "-", "}", "]", "...")  # what a line that is no key may begin with
# What a recipe says of its hosts, beside the flags.
_CARD, _GPUS = "gpu_type", ("gpus_per_node", "gpu")
_NO_FLAGS = ("ServiceArgs", "common-configs")


class _Found(NamedTuple):
    data: Mapping[Any, Any]
    path: tuple[str, ...]
    above: tuple[Mapping[Any, Any], ...]  # the mappings around it, outermost first


def is_mapping(text: str) -> bool:
    """The text may be a YAML mapping: every line at the left margin is a key, a comment or a marker."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_INSIDE)]
    return bool(lines) and all(map(_KEY.match, lines))


def read_recipe(documents: Sequence[Any], name: str, servers: Sequence[Server]) -> Found:
    """The launches of the mappings whose keys are a server's flags; none where there are none."""
    launches = []
    for document in documents:
        if not isinstance(document, dict):
            continue
        for found in _mappings(document, servers):
            launches.append(_launch(found, document, name, servers))
    return Found(launches, (), name)


def _mappings(document: dict[Any, Any], servers: Sequence[Server]) -> Iterator[_Found]:
    waiting = [_Found(document, (), ())]
    while waiting:
        node = waiting.pop()
        if max(_flags_in(node.data, servers)) >= (1 if _told(node.path, servers) else 2):
            yield node
            continue
        for key, value in reversed(list(node.data.items())):
            if isinstance(value, dict) and len(node.path) < _DEEPEST:
                waiting.append(_Found(value, (*node.path, str(key)), (*node.above, node.data)))


def _flags_in(data: Mapping[object, object], servers: Sequence[Server]) -> list[int]:
    options = {"--" + key.replace("_", "-") for key in data if isinstance(key, str)}
    return [len(options.intersection(server.flags)) for server in servers]


def _told(path: Sequence[str], servers: Sequence[Server]) -> Server | None:
    """The server that a key on the way names: `sglang_config`."""
    return next((server for server in servers for key in path if server.named_in(key.lower())), None)


def _launch(found: _Found, document: dict[Any, Any], name: str, servers: Sequence[Server]) -> Launch:
    known_flags = _flags_in(found.data, servers)
    most = max(known_flags)
    server = _told(found.path, servers)
    if server is None and known_flags.count(most) == 1:
        server = servers[known_flags.index(most)]
    title = document.get("name")
    whole = not found.path
    names = ((title,) if isinstance(title, str) and not whole else ()) + found.path
    data = {key: value for key, value in found.data.items() if key not in _NO_FLAGS}
    role = found.path[-1] if found.path else ""
    return Launch(
        (),
        False,
        _environment(found.above, role),
        "" if server is None else server.engine,
        container=None if whole else _container(names, found, document),
        settings=Settings(data, name if whole else printable("/".join(names), 200), own=whole),
        within="" if whole else name,
        wrapped=not whole,
    )


def _environment(above: Sequence[Mapping[Any, Any]], role: str) -> dict[str, Word]:
    """The variables of a role: `aggregated_environment` beside the mapping that holds `aggregated`."""
    found: dict[str, Word] = {}
    for mapping in above:
        for key in ("environment", f"{role}_environment"):
            given = mapping.get(key)
            for variable, value in given.items() if isinstance(given, dict) else ():
                text = str(value).lower() if isinstance(value, bool) else str(value)
                found[str(variable)] = Word(text, key)
    return found


def _container(names: tuple[str, ...], found: _Found, document: dict[Any, Any]) -> Container:
    card, gpus = "", None
    service = found.data.get("ServiceArgs")
    for mapping in (document, *found.above[1:], *((service,) if isinstance(service, dict) else ())):
        resources = mapping.get("resources")
        if not isinstance(resources, dict):
            continue
        card = str(resources.get(_CARD) or card)
        counted = next((resources[key] for key in _GPUS if key in resources), None)
        if re.fullmatch(r"[0-9]{1,5}", str(counted)):
            gpus = int(str(counted))
    return Container(names, "", card, gpus)
