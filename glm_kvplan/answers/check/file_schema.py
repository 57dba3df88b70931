"""The JSON Schema of the deployment file, draft 2020-12, from the model that reads it."""

from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema for editors and validators. A test holds docs/deployment.schema.json to it."""
    from glm_kvplan.answers.check.file_model import DeploymentModel

    schema = _without_noise(DeploymentModel.model_json_schema())
    assert isinstance(schema, dict)
    return {"$schema": DIALECT, **schema, "title": "kvplan deployment file"}


def _without_noise(node: Any, names: bool = False) -> Any:
    """The schema without generated titles, and without the null that stands for a key left out.

    `names` says that the mapping's keys are names of properties or definitions, not words of JSON Schema.
    """
    if isinstance(node, list):
        return [_without_noise(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_noise(value, not names and key in ("properties", "$defs"))
        for key, value in node.items()
        if names or not (key == "title" or (key == "default" and value is None))
    }
