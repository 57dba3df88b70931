"""Where a config.json comes from, and the geometry it means."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.model.checks import brief, check, check_architecture
from glm_kvplan.model.geometry import Geometry, VisionGeometry
from glm_kvplan.model.hub import fetch_config, is_hub_id
from glm_kvplan.model.indexers import shares_indexer
from glm_kvplan.model.json_file import read_json_object, shown_path

BUNDLED = Path(__file__).parent / "data" / "glm-5.3-flash.config.json"
BUNDLED_ID = "zai-org/GLM-5.3-Flash"
BUNDLED_REVISION = "04c4e9e95c5da8862dced7e5056455116f83a7e0"
BUNDLED_ORIGIN = f"bundled copy of {BUNDLED_ID}, revision {BUNDLED_REVISION}"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """One checkpoint: its geometry, the whole config.json it was read from, and where that came from."""

    geometry: Geometry
    config: dict[str, Any]
    name: str  # for headlines: GLM-5.3-Flash, the Hub id, or the directory's or file's name
    origin: str  # for people, one line
    warnings: tuple[str, ...] = ()
    path: str | None = None  # where it lies, as an engine takes it: its folder, or a file of another name

    def config_of(self, served: str | None) -> dict[str, Any] | None:
        """The config.json of what a launch names as its model; None where the bundled copy stands in for it."""
        stands_in = self.origin == BUNDLED_ORIGIN and served is not None and served.lower() != BUNDLED_ID.lower()
        return None if stands_in else self.config


def load_model(source: str | None = None, *, revision: str | None = None) -> Model:
    """The model of a config.json: a file, a directory that holds one, or a Hub id; None is the bundled copy.

    What exists as a path is a path; of the rest `org/name` is a Hub id, read at `revision` (default: main).
    Raises InputError, one line, for everything that cannot be read or is not a config of this family.
    """
    if source is None:
        if revision is not None:
            raise InputError("--revision goes with a Hub id; the bundled copy has one revision")
        return Model(bundled_geometry(), _bundled_config(), BUNDLED_ID.partition("/")[2], BUNDLED_ORIGIN)
    path = existing_path(source)
    if path is not None:
        if revision is not None:
            raise InputError(f"--revision goes with a Hub id; {shown_path(path)} is a path")
        return _from_path(path)
    if is_hub_id(source):
        return _from_hub(source, revision)
    raise InputError(f"{shown_path(source)}: no such file or directory, and not a Hub id (org/name)")


@lru_cache
def bundled_geometry() -> Geometry:
    """The geometry of the bundled copy of the published config."""
    # Without the schema: importing pydantic would cost more than everything else on the way to an answer.
    # A test holds the bundled copy to the schema.
    config = _bundled_config()
    return _build(config, text_part(config, BUNDLED_ORIGIN), BUNDLED_ORIGIN)


def geometry_from_config(config: Mapping[str, Any], origin: str = "config.json") -> Geometry:
    """The geometry of a parsed config.json, nested (`text_config`) or flat; `origin` names it in messages.

    Raises InputError for another architecture, a missing or wrong key (by its full dotted name), and parts that
    contradict each other.
    """
    from glm_kvplan.model.config_schema import validate

    check_architecture(config, origin)
    text = text_part(config, origin)
    validate(config, text, origin)
    return _build(config, text, origin)


def text_part(config: Mapping[str, Any], origin: str) -> Mapping[str, Any]:
    """The text config as the engine sees it: `text_config` over the top-level keys, or the top level alone.

    Source: configs/glm5_next.py:301-313 at 0.5.23.
    """
    nested = config.get("text_config")
    if nested is None:
        return config
    if not isinstance(nested, dict):
        raise InputError(f"{origin}: text_config is {brief(nested)}; it must be a JSON object")
    return {**config, **nested}


def existing_path(source: str) -> Path | None:
    """`source` as a path, or None where nothing of that name exists. InputError where that cannot be told."""
    if not source.strip():
        raise InputError("the model is empty; give a file, a directory or a Hub id (org/name)")
    try:
        path = Path(source).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{shown_path(source)[:200]}: cannot be read ({reason})") from None
    return path


def _build(config: Mapping[str, Any], text: Mapping[str, Any], origin: str) -> Geometry:
    linear, vision = text["linear_attn_config"], config.get("vision_config")
    full = tuple(sorted(linear["full_attn_layers"]))
    shares = shares_indexer(config, text)
    geometry = Geometry(
        num_hidden_layers=text["num_hidden_layers"],
        full_attention_layers=full,
        linear_attention_layers=tuple(sorted(linear["kda_layers"])),
        index_layers=tuple(layer for layer in full if not shares(layer)),
        kv_lora_rank=text["kv_lora_rank"],
        qk_rope_head_dim=text["qk_rope_head_dim"],
        index_head_dim=text["index_head_dim"],
        index_topk=text["index_topk"],
        index_kpool=text["index_kpool"],
        index_kpool_compress=text["index_kpool_compress"],
        linear_num_heads=linear["num_heads"],
        linear_head_dim=linear["head_dim"],
        short_conv_kernel_size=linear["short_conv_kernel_size"],
        num_attention_heads=text["num_attention_heads"],
        num_nextn_predict_layers=text["num_nextn_predict_layers"],
        max_position_embeddings=text["max_position_embeddings"],
        vision=None if vision is None else VisionGeometry(vision["hidden_size"], vision.get("num_hidden_layers")),
    )
    check(geometry, text["layer_types"], origin)
    return geometry


@lru_cache
def _bundled_config() -> dict[str, Any]:
    config: dict[str, Any] = json.loads(BUNDLED.read_text(encoding="utf-8"))
    return config


def _from_path(path: Path) -> Model:
    if path.is_dir():
        directory, path = path, path / "config.json"
        try:
            path.stat()
        except FileNotFoundError:
            raise InputError(f"{shown_path(directory)}: is a directory without config.json") from None
        except OSError as error:
            raise InputError(f"{shown_path(path)}: cannot be read ({error.strerror})") from None
    whole = path.name == "config.json"  # of a folder, which is what an engine takes
    named, lies = (path.resolve().parent, path.absolute().parent) if whole else (path, path.absolute())
    return replace(_from_file(path, shown_path(named.name), shown_path(path), ()), path=str(lies))


def _from_hub(repo: str, revision: str | None) -> Model:
    if revision is not None and not revision.strip():
        raise InputError("--revision is empty; give a branch, a tag or a commit")
    path, warnings = fetch_config(repo, revision)
    # The cache files every revision under its commit.
    commit = path.parent.name if re.fullmatch("[0-9a-f]{40}", path.parent.name) else revision or "main"
    return _from_file(path, repo, f"{repo}@{commit}", warnings)


def _from_file(path: Path, name: str, origin: str, warnings: tuple[str, ...]) -> Model:
    config, about_file = read_json_object(path, origin)
    geometry = geometry_from_config(config, origin)
    return Model(geometry, config, name, origin, (*warnings, *about_file, *_about_rope(config, origin)))


def _about_rope(config: Mapping[str, Any], origin: str) -> tuple[str, ...]:
    text = text_part(config, origin)
    for name in ("rope_scaling", "rope_parameters"):
        rope = text.get(name)
        if isinstance(rope, dict) and rope.get("factor", 1) != 1:
            return (
                f"{origin}: {name} may change the context length the engine derives; it is taken as "
                f"{text['max_position_embeddings']} here, pass --context-length to be sure",
            )
    return ()
