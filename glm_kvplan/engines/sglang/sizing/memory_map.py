"""One rank's HBM from top to bottom: what sits there before the pools, each pool, and what stays free."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.tensors import tensor_specs
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.tensor import TensorSpec
from glm_kvplan.memory.budget import DRAFT, TARGET, MemoryBudget
from glm_kvplan.units import GIB

STATE_SLOTS, SNAPSHOTS, RINGS = "state slots", "verify snapshots", "replay rings"
LATENT, INDEX, DRAFT_KV = "latent KV", "index K", "draft KV"
REQUESTS, TAILS, PADDING = "request table", "compress tails", "padding page"
SLAB, LISTS, FREE = "draft-layer state slab", "free lists", "free"
STAGING = "HiCache staging"
RETURNED = "draft embedding and head"

CHARGED = (STATE_SLOTS, SNAPSHOTS, RINGS, LATENT, INDEX, DRAFT_KV)
UNCHARGED = (REQUESTS, TAILS, PADDING, SLAB, LISTS, STAGING)

_SEGMENT_OF_TENSOR = {
    "conv_state": STATE_SLOTS,
    "temporal_state": STATE_SLOTS,
    "intermediate_ssm": SNAPSHOTS,
    "intermediate_conv_window": SNAPSHOTS,
    "kv_buffer": LATENT,
    "index_k_buffer": INDEX,
    "compress_tail_k": TAILS,
    "compress_tail_score": TAILS,
    "req_to_token": REQUESTS,
    "req_index_to_mamba_index_mapping": REQUESTS,
    "req_index_to_mamba_ping_pong_track_buffer_mapping": REQUESTS,
}

NOTES = {
    STATE_SLOTS: "one recurrent state and convolution window a slot and KDA layer, and one padding slot",
    SNAPSHOTS: "the states after every draft token of every request",
    RINGS: "the inputs from which a state is replayed",
    LATENT: "one row a token and full-attention layer, whole on every rank",
    INDEX: "index keys with their scales, whole on every rank",
    DRAFT_KV: "the draft layer's own rows and index keys",
    REQUESTS: "four bytes a token of context for every request",
    TAILS: "index keys not yet pooled, a row for every request",
    PADDING: "one page more than the pool's tokens, in every layer",
    SLAB: "a state slab for the draft layer, which has no state",
    LISTS: "free lists and pointer tables",
    STAGING: "buffers through which pages travel to host memory",
}


class Segment(NamedTuple):
    """`charged`: the engine's budget pays for it. Certainty: exact (tensor shapes), derived, or estimated."""

    name: str
    nbytes: int
    charged: bool
    certainty: str
    note: str


class MemoryMap(NamedTuple):
    """Segments that add up to `total` exactly; the last one is what stays free (negative where nothing does).

    `free` is what the driver calls free and the engine prints after its pools.
    """

    total: int
    segments: tuple[Segment, ...]

    @property
    def free(self) -> int:
        """Bytes that stay free once the pools exist: for graphs, activations and everything else."""
        return self.segments[-1].nbytes

    @property
    def usable(self) -> int:
        """Bytes serving can take: the free ones, and the draft's dropped embedding and head in torch's cache."""
        return self.free + sum(segment.nbytes for segment in self.segments if segment.name == RETURNED)

    @property
    def pools(self) -> int:
        """Bytes of all pools, charged or not."""
        return sum(segment.nbytes for segment in self.segments if segment.name in (*CHARGED, *UNCHARGED))

    @property
    def uncharged(self) -> int:
        """Bytes the pools take without the budget knowing: out of the part that was to stay free."""
        return sum(segment.nbytes for segment in self.segments if segment.name in UNCHARGED)


def memory_map(rank: Rank, sizes: PoolSizes, budget: MemoryBudget, staging_bytes: int = 0) -> MemoryMap:
    """The map of one rank with pools of `sizes`.

    `staging_bytes` are HiCache's buffers on the GPU. The weights are those of the rank that decides the sizes. The
    total is the card's own, or the memory free before the load where no card is named. The pools' bytes are exact,
    the rest as sure as `budget`.
    """
    pre = int(budget.pre_gib * GIB)
    total = budget.total_bytes
    before: list[Segment] = []
    if total != pre:
        before.append(Segment("context and communication", total - pre, False, budget.certainty, "before the load"))
    before += _weights(budget, pre)
    pools = pool_bytes(rank, sizes)
    pools[STAGING] = staging_bytes
    segments = [
        *before,
        *(Segment(name, pools[name], True, "exact", NOTES[name]) for name in CHARGED if pools[name]),
        *(Segment(name, pools[name], False, "exact", NOTES[name]) for name in UNCHARGED if pools[name]),
    ]
    free = total - sum(segment.nbytes for segment in segments)
    note = "for CUDA graphs, activations, the indexer's logits and images"
    return MemoryMap(total, (*segments, Segment(FREE, free, False, budget.certainty, note)))


def pool_bytes(rank: Rank, sizes: PoolSizes) -> dict[str, int]:
    """Device bytes of one rank's pools by segment, padding and the draft layer's slab set apart."""
    layers = rank.geometry.linear_attention_in(rank.stage)
    found = dict.fromkeys((*CHARGED, *UNCHARGED), 0)
    for spec in tensor_specs(rank, sizes):
        if spec.place != "device":
            continue
        name, apart, surplus = _segment(spec, layers, sizes.tokens, rank.deployment.page_size)
        found[name] += spec.nbytes - surplus
        found[apart] += surplus
    return found


def _segment(spec: TensorSpec, layers: int, tokens: int, page_size: int) -> tuple[str, str, int]:
    """The segment of a tensor, and the part of its bytes that belongs to another: (name, other, other's bytes)."""
    draft = spec.name.startswith("draft.")
    base = spec.name.removeprefix("draft.")
    if base in ("kv_buffer", "index_k_buffer"):
        rows = tokens if base == "kv_buffer" else tokens // page_size
        padding = spec.nbytes // spec.shape[0] * (spec.shape[0] - rows)
        return (DRAFT_KV if draft else _SEGMENT_OF_TENSOR[base]), PADDING, padding
    name = RINGS if base.startswith("replayssm_") else _SEGMENT_OF_TENSOR.get(base, LISTS)
    if name in (STATE_SLOTS, SNAPSHOTS, RINGS):
        return name, SLAB, spec.nbytes // spec.shape[0] * (spec.shape[0] - layers)
    return name, LISTS, 0


def _weights(budget: MemoryBudget, pre: int) -> list[Segment]:
    """What loading took between the two readings: target, draft and the rest, in that order."""
    taken = pre - int(budget.available_gib * GIB)
    how = {part.name: part.how for part in budget.parts}
    if budget.weights_gib is None:
        note = "everything between the two readings: target, draft and what loading left"
        return [Segment("weights", taken, True, "derived", note)]
    target, draft = int(budget.weights_gib * GIB), int((budget.draft_weights_gib or 0.0) * GIB)
    returned = int(budget.returned_gib * GIB)
    rest = taken - target - draft
    if rest < 0:  # the readings say less than the estimate: they win
        target, rest = target + rest, 0
    segments = [Segment("weights", target, True, _certainty(how[TARGET]), "target model")]
    if draft:
        sure = _certainty(how[DRAFT])
        segments.append(Segment("draft weights", draft - returned, True, sure, "draft model"))
        if returned:
            note = "dropped for the target's once the pools exist: free to torch, not to the driver"
            segments.append(Segment(RETURNED, returned, True, "estimated", note))
    if rest:
        note = "allocator holes and what loading left behind"
        segments.append(Segment("left by loading", rest, True, budget.certainty, note))
    return segments


def _certainty(how: str) -> str:
    return "estimated" if how == "estimated" else "derived"
