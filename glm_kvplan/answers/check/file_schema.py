"""The JSON Schema of the deployment file, draft 2020-12, from the models that read it."""

from typing import Any

from glm_kvplan.engines.by_name import NAMES, assumed_engine, engine_named
from glm_kvplan.engines.protocol import Engine

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OF_ENGINE = ("flags", "environment")


def json_schema() -> dict[str, Any]:
    """The schema for editors and validators: the file, and by its `engine` the flags and switches of that engine.

    A file that names none may have either's: its launch says which. A test holds docs/deployment.schema.json to it.
    """
    from glm_kvplan.answers.check.file_model import deployment_of

    engines = tuple(map(engine_named, NAMES))
    found = [_without_noise(deployment_of(engine).model_json_schema()) for engine in engines]
    rules = [_rule(engine, each["properties"]) for engine, each in zip(engines, found, strict=True)]
    schema = found[0]
    parts = {name: part for each in found for name, part in each["$defs"].items()}
    for key in _OF_ENGINE:
        references = [{"$ref": each["properties"][key]["$ref"]} for each in found]
        schema["properties"][key] = {"anyOf": references, "description": schema["properties"][key]["description"]}
    return {"$schema": DIALECT, **schema, "$defs": parts, "title": "kvplan deployment file", "allOf": rules}


def _rule(engine: Engine, properties: dict[str, Any]) -> dict[str, Any]:
    """A file that names this engine has its flags."""
    bare = r"|\d|installed$" if engine is assumed_engine() else ""
    named = {"required": ["engine"], "properties": {"engine": {"pattern": f"^({engine.name}(-|$){bare})"}}}
    return {"if": named, "then": {"properties": {key: {"$ref": properties[key]["$ref"]} for key in _OF_ENGINE}}}


def _without_noise(node: Any, names: bool = False) -> Any:
    """The schema without generated titles, and without what stands for a key left out.

    `names` says that the mapping's keys are names of properties or definitions, not words of JSON Schema.
    """
    if isinstance(node, list):
        return [_without_noise(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_noise(value, not names and key in ("properties", "$defs"))
        for key, value in node.items()
        if names or key not in ("title", "default")
    }
