"""Where one engine's weights lie on its GPUs: what every engine derives from its own deployment."""

from typing import NamedTuple


class Placement(NamedTuple):
    """Shard widths, pipeline stages and what is loaded; the defaults are one GPU with everything on it.

    A width is the number of ranks that share a tensor; 1 means that every rank holds all of it. Equal placements share
    one estimate of their weights.
    """

    gpus: int = 1  # of one engine: all ranks of all its pipeline stages
    stages: tuple[range, ...] = (range(0),)  # layer ids of each pipeline stage

    attn_tp: int = 1  # attention, KDA and the embedding
    tp: int = 1
    moe: int = 1  # routed experts: their number and their width together
    shared: int = 1
    dense_tp: int = 1
    lm_head: int = 1
    vis_attn: int = 1
    vis_mlp: int = 1

    draft: bool = False  # a draft model loads beside the target, whichever it is
    own_draft: tuple[tuple[str, int], ...] = ()  # bytes of a draft model of its own, by name, on the last stage
    own_draft_error: int = 0  # bytes that they may be off
    mtp_draft: bool = False  # it is the checkpoint's own MTP layer, with an embedding and a head of its own
    vision: bool = True  # the vision tower is built

    relaid_linear: bool = False  # a kernel lays FP8 block scales out anew, one for each row of 128 columns
    relaid_experts: bool = False  # the same for the routed experts
    swizzled_copies: bool = False  # a kernel keeps ModelOpt NVFP4's scales twice, as stored and swizzled
    freed_copies: bool = False  # a kernel builds the second scales and frees them after the load
    modelopt_draft: bool = False  # of a ModelOpt FP4 checkpoint the MTP layer is built in BF16, its own head packed
    split_cutlass: bool = (
        False  # cutlass on SM100 with the width of each expert split: NVFP4 boots held more than known
    )
    widened_mxfp4: bool = False  # ROCm, where the one public MXFP4 boot held weights of FP8's size
    notes: tuple[str, ...] = ()  # what the engine does with weights that the bytes leave out

    @property
    def widths(self) -> tuple[object, ...]:
        """What each rank holds a share of, and how large a share; kernels and drafts apart."""
        return (*self[self._fields.index("stages") : self._fields.index("draft")], self.vision)

    @property
    def tensor_parallel(self) -> bool:
        """Plain tensor parallelism, with or without expert parallelism."""
        return self.attn_tp == self.tp and len(self.stages) == 1
