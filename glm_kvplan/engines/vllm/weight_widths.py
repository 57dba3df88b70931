"""Experts that a layout cannot divide: starts that fail as vLLM makes the layers."""

from collections.abc import Mapping
from typing import Any

from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.checkpoints import Family, find_checkpoint

LEAST_SCALED = 32  # channels of the narrowest square with a scale of its own


def check_experts(rank: Rank, config: Mapping[str, Any]) -> None:
    """Raise RefusedError where the slices of each expert, one a GPU of all engines, are not of one width."""
    width, parts = _cut(rank, config)
    if width % parts:
        raise RefusedError(
            f"{parts} GPUs do not divide the experts' {width} channels; --enable-expert-parallel keeps experts whole",
            rank.profile.source("experts"),
        )


def check_expert_scales(rank: Rank, config: Mapping[str, Any], checkpoint: str) -> None:
    """Raise RefusedError where a GPU's slice of an FP8 expert is narrower than vLLM can divide a scale's square into.

    Where it ends inside a square, the scales are repeated for smaller ones, of 32 channels at least.
    """
    width, parts = _cut(rank, config)
    if parts > 1 and width // parts % LEAST_SCALED and _experts(checkpoint).block_scales:
        raise RefusedError(
            f"{parts} GPUs cut the experts' {width} channels into {width // parts}, and vLLM divides an FP8 scale's "
            f"down to {LEAST_SCALED}; --enable-expert-parallel keeps experts whole",
            rank.profile.source("expert_scales"),
        )


def _experts(checkpoint: str) -> Family:
    return find_checkpoint(checkpoint).family("experts", draft=False)


def _cut(rank: Rank, config: Mapping[str, Any]) -> tuple[int, int]:
    """The channels of an expert, and the GPUs of all engines that have a slice of them; 1 where experts stay whole."""
    width = config.get("text_config", config).get("moe_intermediate_size")
    whole = rank.deployment.enable_expert_parallel or not isinstance(width, int)
    return (0, 1) if whole else (width, rank.deployment.gpus)
