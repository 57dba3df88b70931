"""The model of somebody else's launch command: its own config where it can be read, else the bundled geometry."""

import re

from glm_kvplan.errors import InputError
from glm_kvplan.model.hub import HubError, is_hub_id
from glm_kvplan.model.json_file import shown_path
from glm_kvplan.model.loader import BUNDLED_ID, BUNDLED_REVISION, Model, existing_path, load_model

_THIS = "glm53flash"
# Another model's name with its number; a folder that is called after a family alone may hold anything.
_OTHERS = re.compile(
    r"(?:llama|qwen|deepseek|mistral|mixtral|gemma|kimi|minimax|gptoss|nemotron)[a-z]?\d|glm(?:[0-46-9]|5[0-24-9])"
)


def load_served_model(model_path: str, *, revision: str | None = None) -> Model:
    """The model behind `--model-path`, which may lie on another machine, be private, or be a re-quantised copy.

    The published id itself is answered by the bundled copy, without the network. Where no config.json can be read
    the bundled geometry stands in and `warnings` says so in one line. Raises InputError where the config that was
    read is another model's or broken, and where none can be read and the name is not this model's.
    """
    if model_path.lower() == BUNDLED_ID.lower() and existing_path(model_path) is None:
        if revision is None or (len(revision) >= 7 and BUNDLED_REVISION.startswith(revision)):
            return load_model()
    elif existing_path(model_path) is not None:
        return load_model(model_path)  # the engine, too, does not look at --revision here
    if is_hub_id(model_path):
        try:
            return load_model(model_path, revision=revision)
        except HubError as error:
            why = str(error).removeprefix(f"{model_path}: ").partition(";")[0]
            _require_name(model_path, why)
            return stand_in(model_path, why)
    _require_name(model_path, "is not on this machine")
    return stand_in(model_path, "is not on this machine")


def _require_name(model_path: str, why: str) -> None:
    """Raise InputError for a name that speaks of another model; a neutral local name (/models/ckpt) passes."""
    name = re.sub("[^a-z0-9]", "", re.split(r"[/\\]", model_path.rstrip("/\\"))[-1].lower())
    if _THIS in name or (not is_hub_id(model_path) and not _OTHERS.search(name)):
        return
    raise InputError(
        f"{shown_path(model_path)}: {why}, and its name is not GLM-5.3-Flash; give its config.json with --model"
    )


def stand_in(model_path: str, why: str) -> Model:
    """The bundled geometry under the name of a model whose own config is not read; a warning says why."""
    bundled, name = load_model(), shown_path(model_path)
    warning = f"{name}: {why}; the geometry is that of the {bundled.origin}"
    return Model(bundled.geometry, bundled.config, name, bundled.origin, (warning,))
