"""Where a demand does not fit: the nearest other layouts on which it does."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.sizing.served_requests import Demand, Served, check
from glm_kvplan.engines.sglang.sizing.split import best_split
from glm_kvplan.engines.sglang.sizing.what_if import Setup
from glm_kvplan.errors import KvplanError

MOST_TP = 64


class Layout(NamedTuple):
    """Another layout that serves the whole demand."""

    changes: dict[str, Any]  # flags to change, under the engine's argument names
    gpus: int
    served: Served


def nearest_layouts(setup: Setup, demand: Demand, most: int) -> list[Layout]:
    """Layouts that serve the whole demand: fewest GPUs first, then fewest changes; none that only adds to another.

    A setup without a resolver can only offer changes that move no other default.
    """
    found: list[Layout] = []
    candidates = sorted(_candidates(setup), key=lambda changes: (changes.get("tp_size", 0), len(changes)))
    for changes in candidates:
        if len(found) >= most:
            break
        if any(_beside_tp(layout.changes) <= _beside_tp(changes) for layout in found):
            continue
        other = setup.changed(**changes)
        if other is None:
            continue
        try:
            check(demand, other.deployment)
            split = best_split(other, demand)
        except KvplanError:
            continue
        if split.served.requests >= demand.concurrency:
            gpus = other.deployment.world_size * other.deployment.replicas
            found.append(Layout(changes, gpus, split.served))
    return found


def _beside_tp(changes: dict[str, Any]) -> set[tuple[str, Any]]:
    return {item for item in changes.items() if item[0] != "tp_size"}


def _candidates(setup: Setup) -> Iterator[dict[str, Any]]:
    """Each layout with each single change of a dtype or of speculation's memory."""
    deployment = setup.deployment
    single: list[dict[str, Any]] = [{}]
    if deployment.kv_layout == "bf16":
        single.append({"kv_cache_dtype": "fp8_e4m3"})
    if setup.may_replay:
        single.append({"enable_linear_replayssm_spec": True})
    if deployment.mamba_ssm_dtype == "float32":
        single.append({"mamba_ssm_dtype": "bfloat16"})
    tp, dp = deployment.tp_size, deployment.attn_dp_size
    layouts: list[dict[str, Any]] = [{}]
    while tp <= MOST_TP:
        if tp > deployment.tp_size:
            layouts.append({"tp_size": tp})
        if tp % (dp * 2) == 0:
            layouts.append(
                {"dp_size": dp * 2, "enable_dp_attention": True} | ({"tp_size": tp} if tp > deployment.tp_size else {})
            )
        tp *= 2
    yield from (layout | change for layout in layouts for change in single if layout or change)
