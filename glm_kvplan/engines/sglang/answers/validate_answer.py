"""One rank's pools allocated for real beside what was predicted: the answer of `kvplan validate`."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from glm_kvplan.allocate.device import Device
from glm_kvplan.allocate.measure import Measure
from glm_kvplan.allocate.validation import Allocating, Make, Validation, environment, validate
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.answers.pools_answer import fewer_requests
from glm_kvplan.engines.sglang.answers.pools_page import sizes_said
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools, pools_of
from glm_kvplan.engines.tensors_shown import TensorFound, show_tensor
from glm_kvplan.show.said import Text, say
from glm_kvplan.workload import Demand, Workload


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


def answer_validate(plan: Plan, workload: Workload | Demand, pp_rank: int | None, how: Allocating) -> ValidateAnswer:
    """Allocate the pools of one rank: the verdict, every tensor beside its prediction, and the three measures.

    Raises what `pools_of` and `allocate.validation.validate` raise.
    """
    pools = pools_of(plan, workload, pp_rank)
    return show_validation(pools, _validation(pools, how))


def _validation(pools: RankPools, how: Allocating) -> Validation[PoolSizes]:
    make: Make[PoolSizes] | None = None
    built_by = "torch"
    if how.own_classes("sglang"):
        from glm_kvplan.engines.sglang.own_pools import EnginePools, check_release

        built_by = f"sglang {check_release(pools.rank.profile)}"
        make = partial(EnginePools, pools.rank)
    return validate(
        pools.build,
        pools.sizes,
        how,
        shrink=lambda sizes, factor: sizes.scaled(factor, pools.plan.deployment.page_size),
        make=make,
        built_by=built_by,
    )


def show_validation(pools: RankPools, found: Validation[PoolSizes]) -> ValidateAnswer:
    """What one validation found."""
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
