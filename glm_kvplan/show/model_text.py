"""`kvplan model` in the terminal."""

from collections.abc import Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from glm_kvplan.engines.sglang.components.index_keys import key_bytes
from glm_kvplan.engines.sglang.components.latent_kv import row_bytes
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import Model
from glm_kvplan.show.console import console
from glm_kvplan.show.format import whole


def render(model: Model) -> None:
    """Print where the config came from, the layers by kind in both ways of counting, and the widths and shapes."""
    out = console()
    out.print(Text(model.name, style="bold"))
    out.print(Text(model.origin, style="dim"))
    out.print()
    out.print(_layer_table(model.geometry))
    out.print()
    out.print(_width_table(model.geometry))


def spans(layers: Sequence[int], first: int) -> str:
    """Layer ids as text, runs joined (`0-2, 4-6, 8`), where the first layer of the model is called `first`."""
    parts = []
    for _, group in groupby(enumerate(layers), key=lambda pair: pair[1] - pair[0]):
        run = [layer + first for _, layer in group]
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]))
    return ", ".join(parts) or "none"


def _layer_table(geometry: Geometry) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_footer=True, footer_style="bold")
    table.add_column("layers", "all", no_wrap=True)
    table.add_column("", str(geometry.num_hidden_layers), justify="right", no_wrap=True)
    table.add_column("ids in config.json (from 0)", spans(range(geometry.num_hidden_layers), 0), ratio=1)
    table.add_column("as people count (from 1)", spans(range(geometry.num_hidden_layers), 1), ratio=1)
    kinds = [("full attention", geometry.full_attention_layers), ("KDA", geometry.linear_attention_layers)]
    if geometry.index_layers != geometry.full_attention_layers:
        kinds.insert(1, ("  own indexer", geometry.index_layers))
    for name, layers in kinds:
        table.add_row(name, str(len(layers)), spans(layers, 0), spans(layers, 1))
    return table


def _width_table(geometry: Geometry) -> Table:
    profile, vision = load_profile(), geometry.vision
    bf16, scaled, raw = (row_bytes(geometry, layout, profile) for layout in ("bf16", "fp8_scaled", "fp8_raw"))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, justify="right")
    table.add_column(style="dim")
    table.add_row(
        "latent row",
        f"{whole(geometry.latent_width)} wide",
        f"kv_lora_rank {geometry.kv_lora_rank} + qk_rope_head_dim {geometry.qk_rope_head_dim}; a token and layer: "
        f"{whole(bf16)} B bf16, {whole(scaled)} B FP8 with scales, {whole(raw)} B raw FP8",
    )
    table.add_row(
        "index key",
        f"{whole(geometry.index_head_dim)} wide",
        f"{whole(key_bytes(geometry))} B with its scales; index_topk {whole(geometry.index_topk)}, "
        f"index_kpool {geometry.index_kpool}, {'compressed' if geometry.index_kpool_compress else 'not compressed'}",
    )
    table.add_row("convolution state", _shape(geometry.conv_state_shape), "rows x channels, one KDA layer, unsharded")
    table.add_row(
        "temporal state", _shape(geometry.temporal_state_shape), "heads x head_dim x head_dim, one KDA layer, unsharded"
    )
    table.add_row("attention heads", whole(geometry.num_attention_heads), "num_attention_heads")
    table.add_row("draft (MTP) layers", whole(geometry.num_nextn_predict_layers), "num_nextn_predict_layers")
    table.add_row("context length", whole(geometry.max_position_embeddings), "max_position_embeddings")
    if vision is None:
        table.add_row("vision tower", "none", "no vision_config")
    else:
        depth = vision.num_hidden_layers
        table.add_row(
            "vision tower",
            f"{whole(vision.hidden_size)} wide",
            "no num_hidden_layers in vision_config" if depth is None else f"num_hidden_layers {depth}",
        )
    return table


def _shape(shape: Sequence[int]) -> str:
    return " x ".join(map(whole, shape))
