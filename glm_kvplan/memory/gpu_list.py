"""The cards kvplan knows: the answer of `kvplan info gpus`, and its page."""

from typing import NamedTuple

from glm_kvplan.memory.gpu import Gpu, find_gpu, known_gpus
from glm_kvplan.show.page import Column, Page, Row, Section, Table
from glm_kvplan.show.said import say


class GpusAnswer(NamedTuple):
    gpus: tuple[Gpu, ...]


def answer_gpus() -> GpusAnswer:
    return GpusAnswer(tuple(find_gpu(name) for name in known_gpus()))


def gpus_page(answer: GpusAnswer) -> Page:
    """One row a card."""
    columns = (Column(say("GPU")), Column("MiB", "count"), Column(say("capability")), Column(say("source")))
    found = tuple(
        Row((card.name, card.memory_mib, ".".join(map(str, card.capability)), card.source)) for card in answer.gpus
    )
    return Page("", (), (Section((Table(columns, found),)),))
