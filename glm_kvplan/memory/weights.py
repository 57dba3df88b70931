"""Weight bytes of one rank after load, from the published checkpoint's tensors and where they lie."""

from functools import lru_cache
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.memory.placement import Placement
from glm_kvplan.model.checkpoints import Checkpoint, find_checkpoint
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.weight_manifest import WeightKind, load_manifest, mismatch

VOCABULARY_PADDING = 64
# DeepGEMM on SM100 stores one UE8M0 scale for a row's 128 columns, four to an int32, where the checkpoint has one
# F32 for 128 rows and 128 columns.
RELAID_SCALE_GROWTH = 32


class StageLayers(NamedTuple):
    """Layers of one pipeline stage, by the names of the weight manifest."""

    every: int
    kda: int
    dsa: int
    dense: int
    moe: int


class WeightEstimate(NamedTuple):
    """Bytes of one rank, one number a pipeline stage. Sums of tensors: no allocator holes (see `memory.budget`)."""

    checkpoint: str
    target: tuple[int, ...]
    draft: tuple[int, ...]
    target_groups: tuple[tuple[tuple[str, int], ...], ...]  # (module group, bytes) of each stage
    draft_groups: tuple[tuple[tuple[str, int], ...], ...]
    # The draft's own embedding and head: loaded, counted against the pools, dropped once the pools exist.
    returned: tuple[int, ...]
    error_gib: float | None  # what target + draft may miss by; None where nobody measured
    evidence: str
    notes: tuple[str, ...]

    @property
    def heaviest_stage(self) -> int:
        """The stage whose free memory the engine sizes by: it takes the minimum over all ranks."""
        totals = [target + draft for target, draft in zip(self.target, self.draft, strict=True)]
        return totals.index(max(totals))


def estimate_weights(
    geometry: Geometry, placement: Placement, checkpoint: str, *, draft_bf16: bool | None = None
) -> WeightEstimate:
    """Bytes of target and draft weights a rank, for each pipeline stage.

    `checkpoint` is a name of CHECKPOINTS. `draft_bf16` says that the MTP layer is BF16 (None: as the format usually
    ships). Raises InputError for an unknown format and for a model whose shapes are not the published ones.
    """
    find_checkpoint(checkpoint)
    difference = mismatch(geometry)
    if difference is not None:
        raise InputError(
            f"weights cannot be estimated: the model has {difference} as the published checkpoint has; "
            "give --weights-gib and --draft-weights-gib"
        )
    return _estimate(placement, checkpoint, draft_bf16, _stage_layers(geometry, placement))


def _stage_layers(geometry: Geometry, placement: Placement) -> tuple[StageLayers, ...]:
    """Layers of each pipeline stage. The dense ones are the checkpoint's first."""
    dense = load_manifest().layers["dense"]
    return tuple(
        StageLayers(
            len(stage),
            geometry.linear_attention_in(stage),
            geometry.full_attention_in(stage),
            sum(layer < dense for layer in stage),
            sum(layer >= dense for layer in stage),
        )
        for stage in placement.stages
    )


@lru_cache(maxsize=4096)
def _estimate(
    placement: Placement, checkpoint: str, draft_bf16: bool | None, stages: tuple[StageLayers, ...]
) -> WeightEstimate:
    form = find_checkpoint(checkpoint)
    if draft_bf16 is not None:
        form = form._replace(draft_bf16=draft_bf16)
    manifest = load_manifest()
    last = len(stages) - 1
    targets, drafts, returned = [], [], []
    for number, layers in enumerate(stages):
        held = {
            **layers._asdict(),
            "vision": int(placement.vision),
            "first": int(number == 0),
            "last": int(number == last),
        }
        target: dict[str, int] = {}
        draft: dict[str, int] = {}
        own = 0
        for kind in manifest.kinds:
            nbytes = _rank_bytes(kind, placement, form)
            if held.get(kind.layers):
                target[kind.group] = target.get(kind.group, 0) + nbytes * held[kind.layers]
            if placement.mtp_draft and number == last:  # the draft runs on the last stage alone
                if kind.layers == "mtp":
                    draft[kind.group] = draft.get(kind.group, 0) + nbytes
                elif kind.group in ("embed", "lm_head"):
                    draft[kind.group] = nbytes
                    own += nbytes
        targets.append(tuple(target.items()))
        drafts.append(tuple(draft.items()))
        returned.append(own)
    return WeightEstimate(
        checkpoint=checkpoint,
        target=tuple(sum(nbytes for _, nbytes in groups) for groups in targets),
        draft=tuple(sum(nbytes for _, nbytes in groups) for groups in drafts),
        target_groups=tuple(targets),
        draft_groups=tuple(drafts),
        returned=tuple(returned),
        error_gib=form.error_gib if placement.tensor_parallel else None,
        evidence=form.evidence,
        notes=_notes(placement, form),
    )


def _notes(placement: Placement, form: Checkpoint) -> tuple[str, ...]:
    notes = []
    if not placement.tensor_parallel:
        notes.append("no public measurement of pipeline stages, attention DP or CP: read from source only")
    if placement.relaid_experts and form.fp8:
        notes.append("DeepGEMM keeps the experts' block scales 32 times larger on SM100 (+0.54 GiB a rank at TP4)")
    return (*notes, *placement.notes)


def _rank_bytes(kind: WeightKind, placement: Placement, form: Checkpoint) -> int:
    """Bytes of one layer's tensors of this kind on one rank."""
    if kind.group in ("embed", "lm_head"):
        shards = placement.attn_tp if kind.group == "embed" else placement.lm_head
        return _padded_vocabulary(shards) // shards * load_manifest().hidden_size * kind.load_bytes
    shards = 1 if kind.width == "replicated" else int(getattr(placement, kind.width))
    return _stored_bytes(kind, placement, form) // shards


def _stored_bytes(kind: WeightKind, placement: Placement, form: Checkpoint) -> int:
    """Bytes of one layer's tensors of this kind before sharding, in the checkpoint's format."""
    role = kind.role
    plain_draft = form.draft_bf16 and kind.layers == "mtp"
    if role is None or (form.fp8 and not plain_draft):
        nbytes = kind.elements * kind.load_bytes
        relaid = placement.relaid_experts if role == "experts_scale" else placement.relaid_linear
        return nbytes * RELAID_SCALE_GROWTH if relaid and role is not None and role.endswith("_scale") else nbytes
    if role.endswith("_scale"):
        return 0  # the FP8 block scales; a packed format's own are in its bits per weight
    packed = role in form.packed and not plain_draft
    bits = form.bits_per_weight if packed else 16.0
    if packed and form.swizzled_bits and placement.swizzled_copies:
        bits += form.swizzled_bits
    return int(kind.elements * bits) // 8


def _padded_vocabulary(shards: int) -> int:
    """Rows of the embedding: padded to 64, to 64 on every rank where the ranks do not divide the vocabulary.

    Source: layers/vocab_parallel_embedding.py:273-290 at 0.5.23.
    """
    rows = load_manifest().vocabulary
    unit = VOCABULARY_PADDING if rows % shards == 0 else VOCABULARY_PADDING * shards
    return -(-rows // unit) * unit
