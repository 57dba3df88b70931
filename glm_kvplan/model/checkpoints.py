"""Checkpoint formats as data: which modules are packed, how tightly, and what was ever measured with them."""

from functools import lru_cache
from typing import NamedTuple

from glm_kvplan.errors import InputError

# What a quantizer may pack, by the names of the weight manifest. Everything else is BF16 or as published.
ROLES = ("experts", "shared", "mlp", "attn", "kda")


class Family(NamedTuple):
    """One way to store a weight. `bits` a weight, with its block scales but for FP8's, which are tensors of their own.

    Source: ModelOpt's NVFP4 has one E4M3 scale for 16 weights, MXFP4 one E8M0 for 32, the 4-bit A16 formats one 8-bit
    scale for 32 or one BF16 scale for 128.
    """

    name: str
    bits: float
    block_scales: bool = False  # F32, one for 128 x 128 weights
    swizzled_bits: float = 0.0  # a kernel's second copy of the scales, where a kernel makes one
    modelopt: bool = False  # written by ModelOpt: an engine may build the draft and its head by rules of its own


FAMILIES = {
    family.name: family
    for family in (
        Family("bf16", 16.0),
        Family("fp8", 8.0, block_scales=True),
        Family("nvfp4", 4.5, swizzled_bits=0.5, modelopt=True),
        Family("nvfp4-ct", 4.5),  # compressed-tensors
        Family("w4a16", 4.25),
        Family("mxfp4", 4.25),
    )
}
BF16, NVFP4 = FAMILIES["bf16"], FAMILIES["nvfp4"]


class Checkpoint(NamedTuple):
    """One weight format: the family of each role in the layers of the target and in the MTP layer. No family: BF16."""

    name: str
    target: tuple[tuple[str, Family], ...]
    draft: tuple[tuple[str, Family], ...]
    measured: bool  # a public boot printed what it weighs
    evidence: str

    def family(self, role: str, draft: bool) -> Family:
        """How a role's weights are stored, in the MTP layer where `draft`."""
        return next((family for name, family in (self.draft if draft else self.target) if name == role), BF16)

    @property
    def modelopt(self) -> bool:
        return any(family.modelopt for _, family in self.target)


_NAMED = {
    # name: (how it is spelled, measured, evidence)
    "fp8": (
        "fp8:experts+shared+mlp+attn", True,
        "the published checkpoint: 38.02 GiB printed by an 8x MI355X server, 0.2 % over these tensors",
    ),
    "bf16": (
        "bf16:experts", False,
        "the published BF16 checkpoint; no public boot of it: read from the engine's source only",
    ),
    "nvfp4": (
        "nvfp4:experts+mlp/bf16", True,
        "routed experts and dense MLP NVFP4, MTP layer BF16 (nvidia/GLM-5.3-Flash-NVFP4, 190.4 GiB on disk): 176.97 + "
        "15.38 GiB printed by a GB300 at TP1, within 0.1 % of these tensors",
    ),
    "nvfp4-experts": (
        "nvfp4:experts/bf16", False,
        "routed experts NVFP4 alone, MTP layer BF16; no public figure of this layout",
    ),
    "nvfp4-mtp": (
        "nvfp4:experts", True,
        "routed experts NVFP4, the MTP layer's too (LibertAIDAI/GLM-5.3-Flash-NVFP4, 181 GiB on disk): about 45.8 GiB "
        "(cutlass) and 49 GiB (marlin) of target printed at TP4",
    ),
    "nvfp4-mlp": (
        "nvfp4:experts+shared+mlp/bf16", True,
        "every MLP NVFP4, MTP layer BF16 (RadixArk/GLM-5.3-Flash-NVFP4): 44.76 + 3.81 GiB printed by B200 TP4 EP4",
    ),
    "nvfp4-attention": (
        "nvfp4:experts+attn+kda/bf16", False,
        "routed experts and attention NVFP4, MTP layer BF16; no public figure of this layout",
    ),
    "nvfp4-fp8": (
        "nvfp4-ct:experts/fp8:experts+shared+attn", False,
        "routed experts NVFP4, MTP layer block-FP8 (RedHatAI/GLM-5.3-Flash-NVFP4, compressed-tensors); never measured",
    ),
    "fp8-nvfp4": (
        "nvfp4:experts,fp8:shared+mlp+attn/bf16", False,
        "the published FP8 weights, their routed experts packed to NVFP4 as an engine loads them, MTP layer BF16; no "
        "public figure",
    ),
    "fp8-nvfp4-mtp": (
        "nvfp4:experts,fp8:shared+mlp+attn", False,
        "the published FP8 weights, their routed experts packed to NVFP4 as an engine loads them, the MTP layer's too; "
        "no public figure",
    ),
    "w4a16": (
        "w4a16:experts", True,
        "routed experts E2M1 with one E4M3 scale for 32 weights, MTP's too: 84.71 + 3.19 GiB printed at TP2",
    ),
    "w4a16-fp8": (
        "w4a16:experts,fp8:attn+kda+shared/w4a16:experts", True,
        "w4a16 with FP8 attention and shared experts, but for the MTP layer: 81.51 + 3.19 GiB printed at TP2",
    ),
    "mxfp4": (
        "mxfp4:experts", False,
        "routed experts E2M1 with one E8M0 scale for 32 weights; nobody printed what they weigh",
    ),
}  # fmt: skip
CHECKPOINTS = tuple(_NAMED)


@lru_cache(maxsize=256)
def find_checkpoint(name: str) -> Checkpoint:
    """The format called or spelled `name`. Raises InputError for one without a size formula.

    Spelled: FAMILY:ROLE+ROLE, several with commas, then the MTP layer's after a slash (the same where there is none):
    `nvfp4:experts+mlp/bf16`.
    """
    spelled, measured, evidence = _NAMED.get(name, (name, False, "a format nobody measured: its bits a weight alone"))
    target, slash, draft = spelled.partition("/")
    stored = _stored(target)
    in_draft = _stored(draft) if slash else stored
    if stored is None or in_draft is None:
        raise InputError(
            f"--checkpoint {name[:80]!r}: no size formula for this format (known: {', '.join(CHECKPOINTS)}; "
            "or spelled: nvfp4:experts+mlp/bf16); give --weights-gib and --draft-weights-gib"
        )
    return Checkpoint(name, stored, in_draft, measured, evidence)


def _stored(spelled: str) -> tuple[tuple[str, Family], ...] | None:
    """Family by role, of one side of the slash; None for words that mean none."""
    found: dict[str, Family] = {}
    for part in spelled.split(","):
        word, colon, roles = part.partition(":")
        family = FAMILIES.get(word)
        names = roles.split("+") if colon else ["experts"] if word == "bf16" else [""]
        if family is None or not set(names) <= set(ROLES):
            return None
        found.update(dict.fromkeys(names, family))
    return tuple(found.items())


def spell(target: dict[str, str], draft: dict[str, str]) -> str:
    """The name of a format whose roles are stored as said (family by role): a known one's where it is one."""
    sides = [_spell_side(side) for side in (target, draft)]
    spelled = sides[0] if sides[0] == sides[1] else "/".join(sides)
    meant = find_checkpoint(spelled)
    for name in CHECKPOINTS:
        known = find_checkpoint(name)
        if all(
            known.family(role, on_draft) == meant.family(role, on_draft)
            for role in ROLES
            for on_draft in (False, True)
            if not (on_draft and role in ("mlp", "kda"))  # the MTP layer has neither
        ):
            return name
    return spelled


def _spell_side(families: dict[str, str]) -> str:
    by_family: dict[str, list[str]] = {}
    for role in ROLES:
        by_family.setdefault(families.get(role, "bf16"), []).append(role)
    packed = [f"{family}:{'+'.join(roles)}" for family, roles in by_family.items() if family != "bf16"]
    return ",".join(packed) or "bf16"
