"""The published checkpoint's tensors, as the engine holds them after load: kinds, shapes, shard widths.

The data file lists every tensor kind of revision 04c4e9e of zai-org/GLM-5.3-Flash with its source line in the
0.5.23 release; its bytes add up to the published total exactly. It is read on first use only.
"""

from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.model.geometry import Geometry

MANIFEST = Path(__file__).parent / "data" / "weights-manifest.json.gz"
LOAD_BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}

# The manifest's words for where a kind lives, as the short name that `Manifest.layers` counts by.
_LAYERS = {
    "every decoder layer": "every",
    "KDA": "kda",
    "DSA": "dsa",
    "dense (layers 0-2)": "dense",
    "MoE (layers 3-44)": "moe",
    "MTP (45)": "mtp",
    "embed": "first",
    "head": "last",
    "final": "last",
    "ViT block": "vision",
    "ViT": "vision",
}


class WeightKind(NamedTuple):
    """Tensors that shard and quantize alike, of one layer: `elements` of `load_bytes` each before sharding."""

    group: str  # embed, lm_head, norms, hc, kda, dsa, dense_mlp, experts, shared, router, mtp, vision
    layers: str  # every, kda, dsa, dense, moe, mtp, first, last, vision
    width: str  # attn_tp, tp, moe, shared, dense_tp, vis_attn, vis_mlp, replicated
    role: str | None  # what a quantizer may pack: experts, shared, mlp, attn, kda; the block scales end in _scale
    load_bytes: int
    elements: int


class Manifest(NamedTuple):
    kinds: tuple[WeightKind, ...]
    layers: dict[str, int]  # how many layers of each name the checkpoint has
    vocabulary: int
    hidden_size: int
    inputs: tuple[tuple[str, str, int], ...]  # of matrices that a GPU has some columns of: role, width, columns
    facts: dict[str, int]  # what Geometry must say for these tensors to be its own, by Geometry's field name


@lru_cache(maxsize=1)
def load_manifest() -> Manifest:
    """Read and sum up the data file (about a millisecond, once a process)."""
    import gzip
    import json

    entries: list[dict[str, Any]] = json.loads(gzip.decompress(MANIFEST.read_bytes()))["kinds"]
    layers = {_LAYERS[entry["layer_kind"]]: 1 for entry in entries}
    for entry in entries:
        name = _LAYERS[entry["layer_kind"]]
        if name in ("every", "kda", "dsa", "dense", "moe") and "{e}" not in entry["name"]:
            layers[name] = entry["count"]
    elements: dict[tuple[str, str, str, str | None, int], int] = {}
    for entry in entries:
        name = _LAYERS[entry["layer_kind"]]
        key = (_group(entry), name, entry["width"], entry["quantizable"], LOAD_BYTES[entry["load_dtype"]])
        # kv_b_proj stays beside its two re-laid copies w_kc and w_vc
        # (models/deepseek_common/deepseek_weight_loader.py:773-786 at 0.5.23).
        copies = 2 if ".kv_b_proj." in entry["name"] else 1
        tensors = entry["count"] // layers[name]
        elements[key] = elements.get(key, 0) + prod(entry["shape"]) * tensors * copies
    shapes = {entry["name"].rpartition(".self_attn.")[2]: entry["shape"] for entry in entries}
    vocabulary, hidden = shapes["model.language_model.embed_tokens.weight"]
    return Manifest(
        kinds=tuple(WeightKind(*key, count) for key, count in elements.items()),
        layers=layers,
        vocabulary=vocabulary,
        hidden_size=hidden,
        inputs=tuple(
            dict.fromkeys(
                (entry["quantizable"], entry["width"], entry["shape"][1])
                for entry in entries
                if entry["name"].endswith((".down_proj.weight", ".o_proj.weight")) and entry["quantizable"]
            )
        ),
        facts={
            "num_hidden_layers": layers["every"],
            "kv_lora_rank": shapes["kv_b_proj.weight"][1],
            "latent_width": shapes["kv_a_proj_with_mqa.weight"][0],
            "index_head_dim": shapes["indexer.wk.weight"][0],
            "index_kpool": shapes["indexer.index_kpool_compress_ape"][0],
            "linear_num_heads": shapes["A_log"][0],
            "linear_head_dim": shapes["q_proj.weight"][0] // shapes["A_log"][0],
            "short_conv_kernel_size": shapes["q_conv1d.weight"][2],
            "num_nextn_predict_layers": layers["mtp"],
        },
    )


def mismatch(geometry: Geometry) -> str | None:
    """What in `geometry` is not the published checkpoint's, as `field value, not value`; None where nothing is.

    Only what Geometry carries is compared: expert counts and hidden sizes are not in it.
    """
    manifest = load_manifest()
    counted = {
        "full_attention_layers": (len(geometry.full_attention_layers), manifest.layers["dsa"]),
        "linear_attention_layers": (len(geometry.linear_attention_layers), manifest.layers["kda"]),
    }
    for field, (found, published) in counted.items():
        if found != published:
            return f"{found} {field}, not {published}"
    for field, published in manifest.facts.items():
        found = getattr(geometry, field)
        if found != published:
            return f"{field} {found}, not {published}"
    return None


def _group(entry: dict[str, Any]) -> str:
    """The manifest's module group; the draft (MTP) layer's tensors go to the groups that the target's have."""
    if entry["group"] != "mtp":
        return str(entry["group"])
    name = entry["name"]
    for part, group in (
        (".shared_experts.", "shared"),
        (".experts.", "experts"),
        (".self_attn.", "dsa"),
        (".mlp.gate.", "router"),
        ("norm.", "norms"),
    ):
        if part in name:
            return group
    return "mtp"
