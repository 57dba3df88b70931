"""Pointer tables: the address of every layer's buffer in the target's token pool and in the draft's."""

from collections.abc import Iterator

from glm_kvplan.engines.sglang.components import draft_model, pool_units
from glm_kvplan.engines.sglang.components.component import DRAFT, Component, Part
from glm_kvplan.engines.sglang.components.free_lists import LISTS
from glm_kvplan.engines.sglang.components.latent_kv import BUFFER_SOURCE
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

POINTER_BYTES = 8


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    layers = rank.full_layers + pool_units.draft_layers(rank)
    yield Part("pointer tables", layers * POINTER_BYTES, "one address a layer")
    own = _own_layers(rank) * draft_model.POINTERS * POINTER_BYTES
    yield Part("pointer tables", own, "addresses and strides of every K and V buffer")


def _own_layers(rank: Rank) -> int:
    """Layers of a draft model of its own on this rank."""
    draft = rank.deployment.draft_model
    return draft.pool_layers if draft is not None and pool_units.hosts_draft(rank) else 0


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    owners = (
        ("data_ptrs", "latent_kv", 1, rank.full_layers),
        ("draft.data_ptrs", DRAFT, 1, pool_units.draft_layers(rank)),
        ("draft.kv_data_ptrs", DRAFT, draft_model.POINTERS, _own_layers(rank)),
    )
    return tuple(
        [
            TensorSpec(name, pool, tables, "uint64", (layers,), "device", False, BUFFER_SOURCE, NAME)
            for name, pool, tables, layers in owners
            if layers
        ]
    )


NAME = "pointer_tables"

COMPONENT = Component(
    name=NAME,
    title="Pointer tables",
    unit="rank",
    segment=LISTS,
    tensors=tensors,
    difference=difference,
)
