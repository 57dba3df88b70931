"""Launches in Kubernetes manifests: every container whose command and args start a server."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import mark_of, text_of
from glm_kvplan.launch.launch import Container, Found, Launch, Server, Settings, gathered
from glm_kvplan.launch.marked_words import Mark, Piece, Word, concealed, secret_values
from glm_kvplan.launch.server_commands import launches_of_words
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_QUANTITY = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_FACTOR = {
    **{"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15},
    **{"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50},
}
_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu")  # Dynamo's resources say `gpu` alone
_CHART = "extraArgs"  # in values of charts
_WORDS = ("command", "args", _CHART)
_NO_VALUES = ("image", "name", "repository", "tag")  # beside them, and no flags
_PRODUCT = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")


class _Above(NamedTuple):
    """What the objects around a container say of it."""

    names: tuple[str, ...] = ()
    gpu: str = ""
    limits: Mapping[str, Any] = {}
    environment: tuple[Any, ...] = ()  # lists of env entries
    image: str = ""
    model: str = ""


def is_manifest(text: str) -> bool:
    """The text looks like Kubernetes objects: it has apiVersion and kind at the left margin."""
    return all(re.search(f"(?m)^{key}:", text) for key in ("apiVersion", "kind"))


def read_manifest(documents: Sequence[Any], name: str, servers: Sequence[Server], around: Surroundings) -> Found:
    """The launches of the containers that start a server.

    References `$(NAME)` and, in shell scripts, `$NAME` to variables of the container's env are replaced. Raises
    InputError for no such container.
    """
    parts = []
    for document in documents:
        for node, above in _containers(document):
            within = f"{name}: container {Container(above.names).label}"
            parts.append((f"{within}: ", partial(_launches, node, above, within, servers, around)))
    found = gathered(parts, name)
    if not found.launches:
        programs = " or ".join(server.program for server in servers)
        raise InputError(f"{name}: no container's command or args start {programs}")
    return found


def data_of(text: str, name: str) -> list[Any]:
    """The data of every document. Raises InputError for no YAML."""
    try:
        return [document.data for document in read_yaml(text) if document.data is not None]
    except UnreadableError as error:
        place = f":{error.line}" if error.line else ""
        templated = "; render the template first (helm template)" if "{{" in text else ""
        raise InputError(f"{name}{place}: not YAML: {error.unquoted}{templated}") from None


def _containers(document: Any) -> Iterator[tuple[dict[str, Any], _Above]]:
    """Every mapping with a command or args, with what was met on the way to it."""
    waiting: list[tuple[Any, _Above]] = [(document, _Above())]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, list):
            waiting += [(item, above) for item in reversed(node)]
        if not isinstance(node, dict):
            continue
        above = _inside(node, above)
        if any(isinstance(node.get(key), list) for key in _WORDS):
            yield node, above
            continue
        for key, value in reversed(node.items()):
            named = isinstance(value, dict) and "extraPodSpec" in value  # Dynamo keys its services by name
            inner = above._replace(names=(*above.names, str(key))) if named else above
            waiting.append((value, inner))


def _inside(node: dict[str, Any], above: _Above) -> _Above:
    """What holds inside an object."""
    metadata = node.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else node.get("name")
    limits = _limits(node)
    environment = [value for key in ("envs", "env") if isinstance(value := node.get(key), list)]
    return _Above(
        (*above.names, name) if isinstance(name, str) else above.names,
        _product(node) or above.gpu,
        limits or above.limits,
        (*above.environment, *environment),
        _image(node) or above.image,
        str(node.get("modelURL") or above.model),
    )


def _limits(node: dict[str, Any]) -> Mapping[str, Any]:
    resources = node.get("resources")
    for key in ("limits", "requests"):
        limits = resources.get(key) if isinstance(resources, dict) else None
        if isinstance(limits, dict):
            return limits
    return {}


def _product(node: dict[str, Any]) -> str:
    """The one card that a pod's nodes must have, "" where it does not say one."""
    selector = node.get("nodeSelector")
    if isinstance(selector, dict) and (told := next((str(selector[key]) for key in _PRODUCT if key in selector), "")):
        return told
    found: Any = node.get("affinity")
    for key in ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"):
        found = found.get(key) if isinstance(found, dict) else None
    terms = found if isinstance(found, list) else []
    cards = {card for term in terms for card in _cards(term) or ("",)}  # one of the terms must hold
    return cards.pop() if len(cards) == 1 else ""


def _cards(term: Any) -> set[str]:
    rows = term.get("matchExpressions") if isinstance(term, dict) else None
    return {
        str(value)
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and row.get("key") in _PRODUCT and row.get("operator") == "In"
        for value in (row["values"] if isinstance(row.get("values"), list) else ())
    }


def _launches(
    node: dict[str, Any], above: _Above, within: str, servers: Sequence[Server], around: Surroundings
) -> Found:
    gpus = next((above.limits[key] for key in _GPU_RESOURCES if key in above.limits), None)
    container = Container(
        above.names,
        above.image,
        above.gpu,
        int(str(gpus)) if re.fullmatch(r"[0-9]{1,5}", str(gpus)) else None,
        _bytes(above.limits.get("memory")),
    )
    environment = _environment(above.environment, around)
    given = [value for key in _WORDS if isinstance(value := node.get(key), list)]
    words = [
        _word(str(word), at, environment, around)
        for at, word in enumerate((word for value in given for word in value), 1)
    ]
    values = _values(node) if _CHART in node and not {"command", "args"} & node.keys() else {}
    own = next((server for server in servers if server.starts_in(container.image)), None)
    if not values or own is None:
        return container_launches(words, environment, container, within, servers, around)
    if above.model:
        words = [Word(above.model, "modelURL"), *words]
    settings = Settings(values, container.label, own=False)
    return Found([Launch(tuple(words), True, environment, own.engine, None, container, settings, within, True)])


def _values(node: dict[str, Any]) -> dict[object, object]:
    """Flags beside a chart's extraArgs, as its templates spell them: tensorParallelSize is tensor-parallel-size."""
    return {
        re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "-" + match[1].lower(), key): value
        for key, value in node.items()
        if isinstance(key, str) and isinstance(value, str | int | float) and key not in _NO_VALUES
    }


def container_launches(
    words: Sequence[Word],
    environment: Mapping[str, Word],
    container: Container,
    within: str,
    servers: Sequence[Server],
    around: Surroundings,
) -> Found:
    """The launches of a container's words; none where they start something else. Raises InputError.

    Words of an image that starts a server by itself are that server's; flags alone that only one has, too.
    """
    if not words:
        return Found(())
    secrets = secret_values((name, word.text) for name, word in environment.items())
    words = [concealed(word, secrets) for word in words]
    own = next((server for server in servers if server.starts_in(container.image)), None)
    told = own or (flags_of(words, servers) if words[0].text.startswith("--") else None)
    found = Found(())
    if told is not None and not any(told.named_in(word.text) for word in words[:3]):
        found = Found([Launch(tuple(words), told is own, environment, told.engine, wrapped=told is not own)])
    elif any(server.named_in(word.text) for server in servers for word in words):
        found = launches_of_words(tuple(words), servers, environment, around)
    return found._replace(launches=[one._replace(container=container, within=within) for one in found.launches])


def flags_of(words: Sequence[Word], servers: Sequence[Server]) -> Server | None:
    """The server whose flags these words are; None where no flag of theirs tells."""
    given = {word.text.partition("=")[0].replace("_", "-") for word in words}
    known = [len(given.intersection(server.flags)) for server in servers]
    most = max(known)
    return servers[known.index(most)] if most and known.count(most) == 1 else None


def _environment(lists: Sequence[Any], around: Surroundings) -> dict[str, Word]:
    found: dict[str, Word] = {}
    for entry in (entry for entries in lists for entry in entries):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and "value" in entry:
            found[entry["name"]] = _word(str(entry["value"]), 0, found, around)
    return found


def _word(text: str, at: int, environment: Mapping[str, Word], around: Surroundings) -> Word:
    """Kubernetes' own references: $(NAME), with $$ for a plain $; a variable of no known value leaves a mark."""
    pieces: list[Piece] = []
    end = 0
    for match in _REFERENCE.finditer(text):
        pieces.append(Piece(text[end : match.start()]))
        end = match.end()
        known = environment.get(match[1]) if match[1] else None
        if match[1] is None:
            pieces.append(Piece("$"))
        elif known is not None:
            pieces.append(Piece(known.text, known.mark))
        elif match[1] in around.given:
            pieces.append(Piece(around.given[match[1]]))
        else:
            pieces.append(Piece(match[0], Mark(f"${match[1]}")))
    pieces.append(Piece(text[end:]))
    return Word(text_of(pieces), f"word {at}" if at else "env", mark_of(pieces))


def _image(node: dict[str, Any]) -> str:
    """The container's image; values of a chart name its repository."""
    found = node.get("image") or node.get("repository") or ""
    return str(found.get("repository") or "") if isinstance(found, dict) else str(found)


def _bytes(quantity: Any) -> int | None:
    match = _QUANTITY.fullmatch(str(quantity))
    return int(float(match[1]) * _FACTOR[match[2] or ""]) if match else None
