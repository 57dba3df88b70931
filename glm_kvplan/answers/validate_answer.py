"""One rank's pools allocated for real beside what was predicted: the answer of `kvplan validate`."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.allocate.allocation import Taken
from glm_kvplan.allocate.device import Device
from glm_kvplan.allocate.measure import Measure
from glm_kvplan.allocate.validation import Validation, environment
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.answers.pools_answer import TensorShown, fewer_requests, show_tensor
from glm_kvplan.engines.sglang.answers.pools_page import sizes_said
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools
from glm_kvplan.show.said import Text, say


class TensorFound(NamedTuple):
    """A predicted tensor (`head`), what was found in its place (None: no such tensor), and whether they are equal."""

    head: TensorShown
    taken: Taken | None
    equal: bool


class ValidateAnswer(NamedTuple):
    head: Head
    flags: Mapping[str, object]
    pp_rank: int
    pp_size: int
    layers: range
    asked_sizes: PoolSizes
    sizes: PoolSizes
    environment: Mapping[str, str]
    device: Device
    built_by: str
    allocated_sizes: PoolSizes
    scale: float
    free_bytes: int | None
    keep_free_bytes: int
    touched: bool
    seconds: float
    tensors: tuple[TensorFound, ...]
    unexpected: tuple[str, ...]
    predicted_bytes: int
    taken_bytes: int
    measures: tuple[Measure, ...]
    ok: bool
    warnings: tuple[Text, ...]


def answer_validate(pools: RankPools, found: Validation[PoolSizes]) -> ValidateAnswer:
    """The verdict, every tensor beside its prediction, and the three measures."""
    warnings: list[Text] = [fewer_requests(pools)] if pools.sizes != pools.asked else []
    if found.scale != 1:
        warnings.append(
            say("scaled to {share} to fit: {sizes}", share=f"{float(found.scale):.2%}", sizes=sizes_said(found.sizes))
        )
    return ValidateAnswer(
        head=head_of(pools.plan),
        flags=pools.plan.flags,
        pp_rank=pools.pp_rank,
        pp_size=pools.plan.deployment.pp_size,
        layers=pools.stage,
        asked_sizes=pools.asked,
        sizes=pools.sizes,
        environment=environment(),
        device=found.device,
        built_by=found.built_by,
        allocated_sizes=found.sizes,
        scale=float(found.scale),
        free_bytes=found.free_bytes,
        keep_free_bytes=found.keep_free,
        touched=found.touched,
        seconds=found.seconds,
        tensors=tuple(TensorFound(show_tensor(row.spec), row.taken, row.equal) for row in found.rows),
        unexpected=found.unexpected,
        predicted_bytes=found.predicted,
        taken_bytes=found.taken,
        measures=found.measures,
        ok=found.ok,
        warnings=tuple(warnings),
    )
