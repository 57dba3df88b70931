"""Weight bytes of one rank after load, from the published checkpoint's tensors and the parallel layout."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.pipeline import stages_of
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.checkpoints import find_checkpoint
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.weight_manifest import WeightKind, load_manifest, mismatch

VOCABULARY_PADDING = 64
WEIGHT_FLAGS = ("language_only", "mm_enable_dp_encoder", "enable_dp_lm_head", "moe_runner_backend")
# DeepGEMM on SM100 stores one UE8M0 scale for a row's 128 columns, four to an int32, where the checkpoint has one
# F32 for 128 rows and 128 columns (layers/quantization/fp8_utils.py:2147-2310 at 0.5.23).
RELAID_SCALE_GROWTH = 32


class Layout(NamedTuple):
    """What the bytes depend on; equal layouts share one estimate."""

    checkpoint: str
    draft_bf16: bool
    draft: bool
    attn_tp: int
    tp: int
    moe: int
    shared: int
    dense_tp: int
    lm_head: int
    vis_attn: int
    vis_mlp: int
    vision: bool
    relaid_linear: bool
    relaid_experts: bool
    stages: tuple[tuple[int, int, int, int, int], ...]  # of `_stage_layers`


class WeightEstimate(NamedTuple):
    """Bytes of one rank, one number a pipeline stage. Sums of tensors: no allocator holes (see `sizing.memory`)."""

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


def weight_options(flags: Mapping[str, object]) -> dict[str, Any]:
    """What the launch flags say of the weights, as keywords of `estimate_weights`. WEIGHT_FLAGS are the ones read."""
    return {
        "vision": False if flags.get("language_only") else None,  # models/glm5_next.py:1295 at 0.5.21: not built
        "dp_encoder": bool(flags.get("mm_enable_dp_encoder")),
        "dp_lm_head": bool(flags.get("enable_dp_lm_head")),
        "moe_runner_backend": str(flags.get("moe_runner_backend", "auto")),
    }


def estimate_weights(
    geometry: Geometry,
    deployment: Deployment,
    checkpoint: str,
    *,
    gpu: Gpu | None = None,
    draft_bf16: bool | None = None,
    vision: bool | None = None,
    dp_encoder: bool = False,
    dp_lm_head: bool = False,
    moe_runner_backend: str = "auto",
) -> WeightEstimate:
    """Bytes of target and draft weights a rank, for each pipeline stage.

    `checkpoint` is a name of CHECKPOINTS. `draft_bf16` says that the MTP layer is BF16 (None: as the format usually
    ships). `vision` None follows `deployment.multimodal`; False leaves the tower out. `dp_encoder` and
    `dp_lm_head` are --mm-enable-dp-encoder and --enable-dp-lm-head (see `weight_options`).

    Raises InputError for an unknown format and for a model whose shapes are not the published ones.
    Source: models/glm5_next.py, models/deepseek_v2.py, models/deepseek_nextn.py at 0.5.23.
    """
    form = find_checkpoint(checkpoint)
    difference = mismatch(geometry)
    if difference is not None:
        raise InputError(
            f"weights cannot be estimated: the model has {difference} as the published checkpoint has; "
            "give --weights-gib and --draft-weights-gib"
        )
    tp, attn_tp = deployment.tp_size, deployment.attn_tp_size
    relaid = form.fp8 and gpu is not None and gpu.sm100
    runner, a2a = moe_runner_backend, deployment.moe_a2a_backend
    relaid_experts = relaid and (runner == "deep_gemm" or (runner == "auto" and a2a in ("deepep", "mooncake", "nixl")))
    layout = Layout(
        checkpoint=checkpoint,
        draft_bf16=form.draft_bf16 if draft_bf16 is None else draft_bf16,
        draft=deployment.eagle,
        attn_tp=attn_tp,
        tp=tp,
        moe=tp // deployment.moe_dp_size,
        shared=tp if a2a == "none" else 1,
        dense_tp=deployment.moe_dense_tp_size or tp,
        lm_head=attn_tp if dp_lm_head else tp,
        vis_attn=1 if dp_encoder else attn_tp,
        vis_mlp=1 if dp_encoder else attn_tp,  # the engine says tp without DP attention: the same number
        vision=deployment.multimodal if vision is None else vision,
        relaid_linear=relaid,
        relaid_experts=relaid_experts,
        stages=_stage_layers(geometry, deployment),
    )
    estimate = _estimate(layout)
    notes = []
    if deployment.speculative and not deployment.eagle:
        name = deployment.speculative_algorithm
        notes.append(f"the {name} draft's weights are not counted: give --draft-weights-gib")
    if runner == "marlin" and "nvfp4" in checkpoint:
        notes.append("marlin keeps the swizzled scales too, up to 4.4 GiB more a rank at TP4: give --weights-gib")
    return estimate._replace(notes=(*estimate.notes, *notes)) if notes else estimate


def _stage_layers(geometry: Geometry, deployment: Deployment) -> tuple[tuple[int, int, int, int, int], ...]:
    """Layers of each pipeline stage: all, KDA, DSA, dense, MoE. The dense ones are the checkpoint's first."""
    dense = load_manifest().layers["dense"]
    return tuple(
        (
            len(stage),
            geometry.linear_attention_in(stage),
            geometry.full_attention_in(stage),
            sum(layer < dense for layer in stage),
            sum(layer >= dense for layer in stage),
        )
        for stage in stages_of(geometry, deployment)
    )


@lru_cache(maxsize=4096)
def _estimate(layout: Layout) -> WeightEstimate:
    form = find_checkpoint(layout.checkpoint)
    manifest = load_manifest()
    last = len(layout.stages) - 1
    targets, drafts, returned = [], [], []
    for number, (every, kda, dsa, dense, moe) in enumerate(layout.stages):
        counts = {"every": every, "kda": kda, "dsa": dsa, "dense": dense, "moe": moe, "vision": int(layout.vision)}
        counts |= {"first": int(number == 0), "last": int(number == last)}
        target: dict[str, int] = {}
        draft: dict[str, int] = {}
        own = 0
        for kind in manifest.kinds:
            nbytes = _rank_bytes(kind, layout)
            if counts.get(kind.layers):
                target[kind.group] = target.get(kind.group, 0) + nbytes * counts[kind.layers]
            if layout.draft and number == last:  # the draft runs on the last stage alone
                if kind.layers == "mtp":
                    draft[kind.group] = draft.get(kind.group, 0) + nbytes
                elif kind.group in ("embed", "lm_head"):
                    draft[kind.group] = nbytes
                    own += nbytes
        targets.append(tuple(target.items()))
        drafts.append(tuple(draft.items()))
        returned.append(own)
    return WeightEstimate(
        checkpoint=layout.checkpoint,
        target=tuple(sum(nbytes for _, nbytes in groups) for groups in targets),
        draft=tuple(sum(nbytes for _, nbytes in groups) for groups in drafts),
        target_groups=tuple(targets),
        draft_groups=tuple(drafts),
        returned=tuple(returned),
        error_gib=form.error_gib if _measured_layout(layout) else None,
        evidence=form.evidence,
        notes=_notes(layout),
    )


def _measured_layout(layout: Layout) -> bool:
    """Public boot logs exist for plain tensor parallelism only (with or without expert parallelism)."""
    return layout.attn_tp == layout.tp and len(layout.stages) == 1


def _notes(layout: Layout) -> tuple[str, ...]:
    notes = []
    if not _measured_layout(layout):
        notes.append("no public measurement of pipeline stages, attention DP or CP: read from source only")
    if layout.relaid_experts:
        notes.append("DeepGEMM keeps the experts' block scales 32 times larger on SM100 (+0.54 GiB a rank at TP4)")
    return tuple(notes)


def _rank_bytes(kind: WeightKind, layout: Layout) -> int:
    """Bytes of one layer's tensors of this kind on one rank."""
    if kind.group in ("embed", "lm_head"):
        shards = layout.attn_tp if kind.group == "embed" else layout.lm_head
        return _padded_vocabulary(shards) // shards * load_manifest().hidden_size * kind.load_bytes
    shards = 1 if kind.width == "replicated" else int(getattr(layout, kind.width))
    return _stored_bytes(kind, layout) // shards


def _stored_bytes(kind: WeightKind, layout: Layout) -> int:
    """Bytes of one layer's tensors of this kind before sharding, in the checkpoint's format."""
    form = find_checkpoint(layout.checkpoint)
    role = kind.role
    plain_draft = layout.draft_bf16 and kind.layers == "mtp"
    if role is None or (form.fp8 and not plain_draft):
        nbytes = kind.elements * kind.load_bytes
        relaid = layout.relaid_experts if role == "experts_scale" else layout.relaid_linear
        return nbytes * RELAID_SCALE_GROWTH if relaid and role is not None and role.endswith("_scale") else nbytes
    if role.endswith("_scale"):
        return 0  # the FP8 block scales; a packed format's own are in its bits per weight
    bits = form.bits_per_weight if role in form.packed and not plain_draft else 16.0
    return int(kind.elements * bits) // 8


def _padded_vocabulary(shards: int) -> int:
    """Rows of the embedding: padded to 64, to 64 on every rank where the ranks do not divide the vocabulary.

    Source: layers/vocab_parallel_embedding.py:273-290 at 0.5.23.
    """
    rows = load_manifest().vocabulary
    unit = VOCABULARY_PADDING if rows % shards == 0 else VOCABULARY_PADDING * shards
    return -(-rows // unit) * unit
