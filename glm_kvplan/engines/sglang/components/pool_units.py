"""How many rows, slots and layers the engine's pools really hold, and how many its budget pays for."""

from typing import Literal

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank

Unit = Literal["token", "state slot", "request row", "rank"]  # what a component grows with


def decode_pool(deployment: Deployment) -> bool:
    """The request pool is PD decode's own, with room for requests whose cache is still arriving.

    Source: mem_cache/kv_cache_configurator.py:1575 at 0.5.23 (the decode role, or a server that may switch to it).
    """
    return deployment.disaggregation_mode == "decode" or deployment.enable_pd_role_switch


def prealloc_requests(deployment: Deployment) -> int:
    """Requests beyond the running ones that a PD decode pool has rows for; 0 in every other role."""
    return deployment.disaggregation_decode_extra_slots if decode_pool(deployment) else 0


def request_rows(deployment: Deployment, sizes: PoolSizes) -> int:
    """Rows of the request table: running requests, PD decode's pre-allocated ones and one padding row.

    Source: mem_cache/memory_pool.py:388-411, disaggregation/decode.py:275-359 at 0.5.23.
    """
    return sizes.running_requests + prealloc_requests(deployment) + 1


def ping_pong_slots(deployment: Deployment) -> int:
    """Entries of a request's tracking buffer: 2 with the overlap schedule, 1 without; 0 without extra buffers.

    The lazy strategy keeps two entries as well, though it reserves one slot
    (mem_cache/memory_pool.py:1518-1530 at 0.5.23).
    """
    if not deployment.extra_buffer:
        return 0
    return 1 if deployment.disable_overlap_schedule else 2


def effective_state_slots(deployment: Deployment, sizes: PoolSizes) -> int:
    """State slots of the pool: PD decode raises them to what its requests can need at once, without a new budget.

    Source: disaggregation/decode.py:318-337 at 0.5.23.
    """
    if not decode_pool(deployment):
        return sizes.state_slots
    requests = sizes.running_requests + prealloc_requests(deployment)
    return max(sizes.state_slots, requests * (1 + ping_pong_slots(deployment)))


def draft_tokens(deployment: Deployment) -> int:
    """Draft tokens that buffers are sized for: the adaptive maximum, also where a flag is left without an algorithm.

    Source: speculative/spec_info.py:268-289 at 0.5.23.
    """
    return deployment.max_draft_tokens or 0


def state_layers(rank: Rank) -> int:
    """Layers of the state pool on one pipeline stage: its KDA layers, and the draft's where the release adds them.

    Source: mem_cache/kv_cache_configurator.py:1019-1029 at 0.5.21 (every stage gets the draft layer),
    :1603-1610 at 0.5.23.
    """
    layers = rank.linear_layers
    if rank.profile.draft_layer_in_state_pool and draft_tokens(rank.deployment):
        layers += rank.geometry.num_nextn_predict_layers
    return layers


def draft_layers(rank: Rank) -> int:
    """MTP layers whose own cache a rank holds: the last stage alone hosts the draft worker.

    Source: speculative/eagle_worker_v2.py:1332-1343 at 0.5.23.
    """
    last = rank.stage.stop == rank.geometry.num_hidden_layers
    return rank.geometry.num_nextn_predict_layers if rank.deployment.eagle and last else 0


def hosts_draft(rank: Rank) -> bool:
    """The rank runs a draft model of its own: the last stage alone (speculative/dspark_worker_v2.py, _hosts_draft)."""
    return rank.deployment.draft_model is not None and rank.stage.stop == rank.geometry.num_hidden_layers


def snapshots_allocated(deployment: Deployment) -> bool:
    """Per-draft-token state snapshots exist: with speculation, except on a server that only ever prefills.

    Source: mem_cache/kv_cache_configurator.py:1729-1734 at 0.5.23.
    """
    return draft_tokens(deployment) > 0 and (deployment.disaggregation_mode != "prefill" or decode_pool(deployment))


def replay_ring(rank: Rank) -> bool:
    """Verification replays recorded inputs instead of keeping state snapshots."""
    return rank.deployment.enable_linear_replayssm_spec and rank.profile.replay_rings


def decode_ring(deployment: Deployment) -> bool:
    """Decoding keeps rings of recorded inputs of its own; the request pool of PD decode builds none.

    Source: mem_cache/kv_cache_configurator.py:1738-1749 at 0.5.23.
    """
    return deployment.enable_linear_replayssm and not decode_pool(deployment)


def requests_asked(rank: Rank) -> int | None:
    """`max_running_requests` of one worker; None where nobody gives a number."""
    requests = rank.deployment.max_running_requests
    if requests is None:
        return None
    return rank.deployment.requests_per_worker(requests, rank.profile.least_requests_per_worker)


def charged_units(unit: Unit, rank: Rank, sizes: PoolSizes) -> int:
    """Units the budget pays for: tokens; slots and one for padding; rows of the requests that the slots admit.

    Rows are capped by the requests asked for, and one more is for padding.
    Source: mem_cache/kv_cache_configurator.py:3229-3409 at 0.5.23.
    """
    if unit == "token":
        return sizes.tokens
    if unit == "state slot":
        return sizes.state_slots + 1
    if unit == "request row":
        return min(requests_asked(rank) or 0, sizes.state_slots // rank.deployment.slots_per_request) + 1
    return 1
