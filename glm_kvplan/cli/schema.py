"""`kvplan schema`: the JSON Schema of the deployment file."""


def schema() -> None:
    """The JSON Schema (draft 2020-12) of the deployment file, for editors and validators.

    Example: kvplan schema > deployment.schema.json
    """
    from glm_kvplan.checks.schema import json_schema
    from glm_kvplan.report.json_text import print_json

    print_json(json_schema())
