"""Readings of one rank's memory in a sweep that changes what the rank holds."""

from collections.abc import Iterable

from glm_kvplan.engines.sglang.sizing.start import MemoryGiven

# Axes along which a rank's weights change, so that a reading of memory holds at one of their values only.
_MOVES_WEIGHTS = frozenset(
    (
        *("tp_size", "pp_size", "dp_size", "attn_dp_size", "enable_dp_attention", "enable_dp_lm_head"),
        *("ep_size", "moe_dp_size", "moe_a2a_backend", "moe_dense_tp_size"),
        *("speculative_algorithm", "language_only", "gpu"),
    )
)
_OF_WEIGHTS = ("available_gib", "weights_gib")


def reading_notes(axes: Iterable[str], memory: MemoryGiven) -> list[str]:
    """What was read on one layout and is taken for others. `axes` are the names that vary."""
    names = list(axes)
    moved = [name for name in names if name in _MOVES_WEIGHTS]
    read = [name for name in _OF_WEIGHTS if getattr(memory, name) is not None and name not in names]
    if not moved or not read:
        return []
    return [f"{', '.join(read)} is taken as it is at every point, though {', '.join(moved)} moves the weights"]
