"""`kvplan schema`: the JSON Schema of the deployment file."""


def schema() -> None:
    """The JSON Schema (draft 2020-12) of the deployment file, for editors and validators.

    Example: kvplan schema > deployment.schema.json
    """
    from glm_kvplan.answers.check.file_schema import json_schema
    from glm_kvplan.show.json import print_json

    print_json(json_schema())
