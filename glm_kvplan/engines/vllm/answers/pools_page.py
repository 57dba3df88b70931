"""The page of `kvplan pools` of a vLLM launch: one tensor, and the layers' views of it."""

from glm_kvplan.engines.tensor_tables import listed_tensors, shape_said
from glm_kvplan.engines.vllm.answers.pools_answer import PoolsAnswer
from glm_kvplan.engines.vllm.block_views import LayerViews
from glm_kvplan.engines.vllm.needed_blocks import NumBlocks
from glm_kvplan.show.format import count, whole
from glm_kvplan.show.page import Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, say


def pools_page(answer: PoolsAnswer) -> Page:
    head = answer.head
    lead = (Line(head.layout, "muted"), Line(blocks_said(answer.sizes, answer.block_bytes, answer.block_tokens)))
    sections = (
        Section((listed_tensors(answer.tensors),), say("Tensors"), quiet=True),
        Section((views_table(answer.views), OVERLAP), say("Views of it"), quiet=True),
    )
    return Page(head.title, lead, sections, answer.warnings, head.notes)


OVERLAP = Line(say("views overlap: a block holds rows and keys, or states of one group, or a tail"), "muted")


def blocks_said(sizes: NumBlocks, block_bytes: int, block_tokens: int) -> Said:
    return say(
        "one GPU: {blocks} of {size} bytes, {tokens} each",
        blocks=count(sizes.num_blocks, "block"),
        size=whole(block_bytes),
        tokens=count(block_tokens, "token"),
    )


def views_table(views: tuple[LayerViews, ...]) -> Table:
    columns = (
        Column(say("view")),
        Column(say("layers"), "count"),
        Column(say("shape of a layer")),
        Column(say("dtype")),
        Column(say("begins at"), "count", 1),
        Column(say("layer stride"), "count", 2),
        Column(say("block stride"), "count"),
        Column(say("page"), "count"),
    )
    rows = (
        Row(
            (
                say(view.name),
                view.layers,
                shape_said(view.shape),
                view.dtype,
                view.offset,
                view.layer_stride,
                view.block_stride,
                view.page_bytes,
            )
        )
        for view in views
    )
    return Table(columns, tuple(rows))
