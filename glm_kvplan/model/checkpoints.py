"""Checkpoint formats as data: which modules are packed, how tightly, and what was ever measured with them."""

from typing import NamedTuple

from glm_kvplan.errors import InputError


class Checkpoint(NamedTuple):
    """One weight format. Modules that are neither packed nor kept in FP8 are BF16."""

    name: str
    packed: frozenset[str]  # manifest roles stored packed
    bits_per_weight: float  # of a packed module, block scales included
    fp8: bool  # the published block-FP8 tensors with their F32 scales, as they are
    draft_bf16: bool  # the MTP layer is BF16 whatever the rest is
    error_gib: float | None  # what target + draft may miss by, by the public measurements; None without any
    evidence: str
    swizzled_bits: float = 0.0  # of a packed module, a kernel's second copy of its scales


_NOTHING: frozenset[str] = frozenset()
_EXPERTS = frozenset({"experts"})
_MLP = frozenset({"experts", "shared", "mlp"})

CHECKPOINTS = {
    form.name: form
    for form in (
        Checkpoint(
            "fp8", _NOTHING, 8.0, True, False, 0.3,
            "target + draft 0.29 GiB under what a B200 TP4 EP4 server's pools imply",
        ),
        Checkpoint(
            "bf16", _NOTHING, 16.0, False, False, None,
            "no public boot log of a BF16 server: read from the engine's source only",
        ),
        Checkpoint(
            "nvfp4", _EXPERTS, 4.5, False, False, None,
            "routed experts NVFP4, the MTP layer's too; no exact public figure of this layout",
            0.5,
        ),
        Checkpoint(
            "nvfp4-mlp", _MLP, 4.5, False, True, 0.3,
            "every MLP NVFP4, MTP layer BF16 (the RadixArk checkpoint): target 0.36 GiB under, draft 0.32 GiB over, "
            "together 0.04 GiB under the boot log of a B200 TP4 EP4 server",
            0.5,
        ),
        Checkpoint(
            "w4a16", _EXPERTS, 4.25, False, False, 0.3,
            "routed experts E2M1 with one E4M3 scale for 32 weights: 0.02 GiB off on an RTX PRO 6000 TP2 server",
        ),
        Checkpoint(
            "mxfp4", _EXPERTS, 4.25, False, False, None,
            "routed experts E2M1 with one E8M0 scale for 32 weights; ROCm pads and shuffles them: never measured",
        ),
    )
}  # fmt: skip


def find_checkpoint(name: str) -> Checkpoint:
    """The format called `name`. Raises InputError for one without a size formula."""
    try:
        return CHECKPOINTS[name]
    except KeyError:
        known = ", ".join(CHECKPOINTS)
        raise InputError(
            f"--checkpoint {name!r}: no size formula for this format (known: {known}); "
            "give --weights-gib and --draft-weights-gib"
        ) from None
