"""Widths of weights that a layout cannot divide: starts that fail as vLLM makes the layers."""

from collections.abc import Mapping
from typing import Any

from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.engines.vllm.weight_placement import placement
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.checkpoints import find_checkpoint

_SCALED = 128  # weights in a row and in a column that share one scale
# Layers whose second matrix is cut along its input: their role in a checkpoint, and config.json's widths of one.
_CUT = (("shared", "the shared experts", ("moe_intermediate_size", "n_shared_experts")),
        ("mlp", "the dense layers", ("intermediate_size",)))  # fmt: skip


def check_experts(rank: Rank, config: Mapping[str, Any]) -> None:
    """Raise RefusedError where the slices of each expert, one a GPU of all engines, are not of one width."""
    deployment = rank.deployment
    width, parts = _width(config, ("moe_intermediate_size",)), deployment.gpus
    if not deployment.enable_expert_parallel and width % parts:
        raise RefusedError(
            f"{parts} GPUs do not divide the experts' {width} channels; --enable-expert-parallel keeps experts whole",
            rank.profile.source("experts"),
        )


def check_scales(rank: Rank, config: Mapping[str, Any], checkpoint: str) -> None:
    """Raise RefusedError where a GPU's part of an FP8 matrix ends inside a square of weights with one scale."""
    placed, form = placement(rank), find_checkpoint(checkpoint)
    for role, layers, names in _CUT:
        width, parts = _width(config, names), placed.shared if role == "shared" else placed.dense_tp
        if parts > 1 and form.family(role, draft=False).block_scales and width % (parts * _SCALED):
            raise RefusedError(
                f"--tensor-parallel-size {parts} cuts {layers}' {width} channels into {width / parts:g}, and an FP8 "
                f"scale is of {_SCALED}",
                rank.profile.source("scales"),
            )


def _width(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """The product of some of the model's sizes; 0, which everything divides, where config.json lacks one."""
    found = 1
    for name in names:
        size = config.get("text_config", config).get(name)
        found *= size if isinstance(size, int) else 0
    return found
