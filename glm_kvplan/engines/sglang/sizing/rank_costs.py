"""What the solver needs of a deployment, as plain numbers: prices of a token and a slot, and flags per worker."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.components import index_keys, kda_state, verify_snapshot
from glm_kvplan.engines.sglang.components.pool_units import requests_asked
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.failures import SizingError
from glm_kvplan.errors import InputError
from glm_kvplan.units import LARGEST_COUNT


class Costs(NamedTuple):
    """One rank's prices and limits. Bytes are the budgeted ones; counts are those of one attention-DP worker."""

    # bytes of a token over the rank's layers
    cell_bytes: int  # latent row, index key and the draft's own of both
    target_bytes: int  # without the draft
    index_bytes: int  # the index keys of the target
    # bytes of a state slot, as charged: the largest pipeline stage's layers
    slot_bytes: int
    ring_bytes: int  # what a slot holds beside its state: replay rings, 0 without them
    # laws of the state pool
    slots_per_request: int
    snapshot_drafts: int  # verify snapshots charged for a request; 0 where the budget reserves none
    state_slots: int | None  # fixed by max_mamba_cache_size, or by max_running_requests without a radix cache
    state_ratio: float  # mamba_full_memory_ratio; read where `state_slots` is None
    # laws of the token pool and of the requests
    page_size: int
    max_total_tokens: int | None
    no_cell_tokens: int  # tokens of a stage without full-attention layers, whose cell costs nothing
    context_length: int
    requests: int | None  # max_running_requests of one worker
    # memory
    mem_fraction_static: float
    reserve_gib: float  # set aside for multimodal buffers that are allocated after the pools

    @property
    def draft_bytes(self) -> int:
        """Bytes a token costs in the draft worker's own pools."""
        return self.cell_bytes - self.target_bytes


def stage_costs(stages: Sequence[Rank]) -> list[Costs]:
    """The costs of every pipeline stage's rank. Stages with as many layers of each kind share theirs: most do."""
    if len(stages) == 1:
        return [costs(stages[0])]
    known: dict[tuple[int, int, int], Costs] = {}
    found = []
    for rank in stages:
        layers = rank.geometry.layers_in(rank.stage)
        if layers not in known:
            known[layers] = costs(rank)
        found.append(known[layers])
    return found


def costs(rank: Rank) -> Costs:
    """The prices and limits of one rank.

    Raises InputError for values no engine can mean, SizingError where the engine refuses the strategy itself.
    Source: mem_cache/kv_cache_configurator.py:3229-3409, model_executor/pool_configurator.py:219-633 at 0.5.23.
    """
    deployment = rank.deployment
    check(deployment)
    prices: dict[str, int] = {}
    token_bytes = draft_bytes = slot_bytes = 0
    for component in components.COMPONENTS:
        if component.charge is None or component.unit == "request row":
            continue  # a request's snapshots are priced by the slot: see `snapshot_drafts`
        prices[component.name] = price = component.charge(rank)
        if component.unit == "token":
            token_bytes += price
            draft_bytes += price if component.of_draft else 0
        else:
            slot_bytes += price
    requests = requests_asked(rank)
    if deployment.max_mamba_cache_size is not None:
        slots: int | None = deployment.max_mamba_cache_size // deployment.attn_dp_size
    else:
        slots = requests if deployment.disable_radix_cache else None
    return Costs(
        token_bytes,
        token_bytes - draft_bytes,
        prices[index_keys.NAME],
        prices[kda_state.NAME],
        slot_bytes - prices[kda_state.NAME],
        deployment.slots_per_request,
        verify_snapshot.charged_drafts(rank),
        slots,
        deployment.mamba_full_memory_ratio,
        deployment.page_size,
        deployment.max_total_tokens,
        (1 << 63) - 1 if deployment.pp_size > 1 else deployment.max_total_tokens or deployment.context_length,
        deployment.context_length,
        requests,
        deployment.mem_fraction_static,
        deployment.mm_reserve_mib / 1024 if deployment.multimodal else 0.0,
    )


def check(deployment: Deployment) -> None:
    """Refuse what cannot be computed with; a resolved deployment passes. Raises InputError, SizingError."""
    if not 0 < deployment.mem_fraction_static <= 1:
        raise InputError(f"mem_fraction_static {deployment.mem_fraction_static} must lie in (0, 1]")
    if not (isfinite(deployment.mamba_full_memory_ratio) and 0 <= deployment.mamba_full_memory_ratio <= 1e9):
        raise InputError(f"mamba_full_memory_ratio {deployment.mamba_full_memory_ratio} must be a number, 0 or more")
    if not (0 < deployment.page_size <= LARGEST_COUNT and 0 < deployment.context_length <= LARGEST_COUNT):
        raise InputError("page_size and context_length must be positive and at most 2**48")
    for name, value in (
        ("max_running_requests", deployment.max_running_requests),
        ("max_mamba_cache_size", deployment.max_mamba_cache_size),
        ("max_total_tokens", deployment.max_total_tokens),
        ("speculative_num_draft_tokens", deployment.speculative_num_draft_tokens),
        ("mm_reserve_mib", deployment.mm_reserve_mib),
    ):
        if value is not None and not 0 <= value <= LARGEST_COUNT:
            raise InputError(f"{name} {value} must lie between 0 and 2**48")
    if deployment.attn_dp_size < 1 or deployment.linear_attn_tp_size < 1 or deployment.pp_size < 1:
        raise InputError("attn_dp_size, linear_attn_tp_size and pp_size must be 1 or more")
    if deployment.speculative and deployment.max_running_requests is None:
        raise InputError("speculation needs max_running_requests; the engine fills in 48 where none is given")
    if (
        deployment.disable_overlap_schedule
        and deployment.mamba_radix_cache_strategy == "extra_buffer_lazy"
        and not deployment.disable_radix_cache
    ):
        raise SizingError(
            "lazy_needs_overlap",
            "mamba_radix_cache_strategy extra_buffer_lazy needs the overlap schedule, which is off "
            "(--disable-overlap-schedule or pipeline stages); use extra_buffer",
            "mem_cache/kv_cache_configurator.py:3073-3076 at 0.5.23",
        )
