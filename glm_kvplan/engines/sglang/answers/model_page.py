"""The page of `kvplan info model`: the layers by kind in both ways of counting, widths and shapes."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from glm_kvplan.engines.sglang.answers.model_answer import ModelAnswer
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Text, say


def model_page(answer: ModelAnswer) -> Page:
    sections = (
        Section((_layer_table(answer),), say("Layers"), quiet=True),
        Section((_width_table(answer),), say("Widths and shapes"), quiet=True),
    )
    return Page(answer.model.name, (Line(answer.model.origin, "muted"),), sections, notes=answer.notes)


def spans(layers: Sequence[int], first: int) -> str:
    """Layer ids as text, runs joined (`0-2, 4-6, 8`), where the first layer of the model is called `first`."""
    parts = []
    for _, group in groupby(enumerate(layers), key=lambda pair: pair[1] - pair[0]):
        run = [layer + first for _, layer in group]
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]))
    return ", ".join(parts) or "none"


def _layer_table(answer: ModelAnswer) -> Table:
    layers = answer.layers
    columns = (
        Column(say("layers")),
        Column("", "count"),
        Column(say("ids in config.json (from 0)")),
        Column(say("as people count (from 1)")),
    )
    kinds = [(say("full attention"), layers.full_attention), (say("KDA"), layers.linear_attention)]
    if layers.index != layers.full_attention:
        kinds.insert(1, (say("  own indexer"), layers.index))
    found = [Row((name, len(ids), spans(ids, 0), spans(ids, 1))) for name, ids in kinds]
    every = range(layers.count)
    total = Row((say("all"), layers.count, spans(every, 0), spans(every, 1)), "strong")
    return Table(columns, (*found, total))


def _width_table(answer: ModelAnswer) -> Table:
    columns = (Column(say("what")), Column(say("width"), "count"), Column(say("note")))
    found = tuple(Row((Cell(name, "strong"), width, Cell(note, "muted"))) for name, width, note in _widths(answer))
    return Table(columns, found, head=False)


def _widths(answer: ModelAnswer) -> Iterator[tuple[Text, Text | int, Text]]:
    row, key, state = answer.latent_row, answer.index_key, answer.state
    yield (
        say("latent row"),
        say("{width} wide", width=whole(row.width)),
        say(
            "kv_lora_rank {latent} + qk_rope_head_dim {rope}; a token and layer: {bf16} B bf16, {scaled} B FP8 with "
            "scales, {raw} B raw FP8",
            latent=row.kv_lora_rank,
            rope=row.qk_rope_head_dim,
            bf16=whole(row.nbytes["bf16"]),
            scaled=whole(row.nbytes["fp8_scaled"]),
            raw=whole(row.nbytes["fp8_raw"]),
        ),
    )
    yield (
        say("index key"),
        say("{width} wide", width=whole(key.index_head_dim)),
        say(
            "{size} B with its scales; index_topk {topk}, index_kpool {kpool}, {compressed}",
            size=whole(key.nbytes),
            topk=whole(key.index_topk),
            kpool=key.index_kpool,
            compressed=say("compressed" if key.index_kpool_compress else "not compressed"),
        ),
    )
    unsharded = say("rows x channels, one KDA layer, unsharded")
    yield say("convolution state"), _shape(state.conv_shape), unsharded
    unsharded = say("heads x head_dim x head_dim, one KDA layer, unsharded")
    yield say("temporal state"), _shape(state.temporal_shape), unsharded
    yield say("attention heads"), answer.num_attention_heads, "num_attention_heads"
    yield say("draft (MTP) layers"), answer.layers.num_nextn_predict_layers, "num_nextn_predict_layers"
    yield say("context length"), answer.max_position_embeddings, "max_position_embeddings"
    vision = answer.vision
    if vision is None:
        yield say("vision tower"), say("none"), say("no vision_config")
        return
    depth = vision.num_hidden_layers
    yield (
        say("vision tower"),
        say("{width} wide", width=whole(vision.hidden_size)),
        say("no num_hidden_layers in vision_config") if depth is None else f"num_hidden_layers {depth}",
    )


def _shape(shape: Sequence[int]) -> str:
    return " x ".join(map(whole, shape))
