"""The pages of `kvplan explain`: the topics, one of them, and the map."""

from itertools import groupby

from glm_kvplan.engines.explanation import ExplainAnswer, TopicsAnswer
from glm_kvplan.engines.explanation_pages import topic_page, topics_page
from glm_kvplan.engines.sglang.answers.explain_answer import PlacesAnswer, PlaceShown
from glm_kvplan.show.format import SHORT_UNIT, whole
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table, heading
from glm_kvplan.show.said import Said, say

_TREE = 15  # cells of the arrow from the tree to DRAM


def explain_page(answer: TopicsAnswer | ExplainAnswer | PlacesAnswer) -> Page:
    if isinstance(answer, TopicsAnswer):
        return topics_page(answer)
    return _places(answer) if isinstance(answer, PlacesAnswer) else topic_page(answer)


def _places(answer: PlacesAnswer) -> Page:
    """HBM by pool on the left, the radix tree's component, the DRAM pool on the right; then why."""
    columns = (
        Column(say("HBM of one rank")),
        Column("", "count"),
        Column(say("radix tree"), "fixed"),
        Column(say("DRAM") if answer.host_cache else say("DRAM (off)")),
    )
    found: list[Row] = []
    for pool, group in groupby(answer.places, key=lambda place: place.pool):
        found.append(heading(pool))
        found += [Row((say("  {name}", name=say(place.head.title)), _price(place), *_copy(place))) for place in group]
    reasons = tuple(Row((say(place.head.title), place.head.reason), "muted") for place in answer.places)
    why = Table((Column(say("object")), Column(say("why"))), reasons, head=False)
    head = answer.head
    sections = (
        Section((Table(columns, tuple(found)),)),
        Section((why,)),
        Section((Line(_tree(answer)),)),
    )
    return Page(say("{title}: {layout}", title=head.title, layout=head.layout), (), sections, notes=head.notes)


def _price(place: PlaceShown) -> Said:
    location = place.head
    return say("{size} B/{unit}", size=whole(location.bytes_per_unit), unit=say(SHORT_UNIT[location.unit]))


def _copy(place: PlaceShown) -> tuple[Cell, Cell]:
    """`FULL ────▶` and `KV`, or that there is no copy."""
    tree, host_pool = place.head.tree or "", place.head.host_pool
    if host_pool is None:
        return Cell(tree), Cell(say("no copy"), "muted")
    return Cell(f"{tree} {'─' * (_TREE - len(tree) - 3)}▶", "good"), Cell(host_pool, "good")


def _tree(answer: PlacesAnswer) -> Said:
    if answer.tree_pages is None:
        return say("There is no radix tree: the prefix cache is off.")
    return say(
        "The tree holds indices, no bytes. FULL: a prefix's token slots, in pages of {page}; "
        "MAMBA: one state slot a checkpoint. Each has a second index where DRAM has a copy.",
        page=answer.tree_pages,
    )
