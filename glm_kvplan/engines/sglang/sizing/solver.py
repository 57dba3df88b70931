"""The engine's own sizing: from free memory to tokens, state slots and running requests, one rank at a time.

Every float operation is the engine's, in its order: the aim is its integers, not close ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Resolved, ranks
from glm_kvplan.engines.sglang.sizing.failures import FailureKind
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs, stage_costs
from glm_kvplan.errors import InputError
from glm_kvplan.units import GIB, LARGEST_GIB

# The engine's estimate of running requests where the user gives none, and its bounds.
REQUESTS_PER_CONTEXT = 512
LEAST_REQUESTS, MOST_REQUESTS = 2048, 4096


class Solution(NamedTuple):
    """What the engine computes on one rank, in its order. Numbers after the step that failed are 0."""

    costs: Costs
    pre_gib: float  # free before the weights, the least over the ranks
    available_gib: float  # free after target and draft weights, likewise
    slack_gib: float  # left outside the pools: pre * (1 - mem_fraction_static)
    budget_gib: float  # for the pools: available - slack - multimodal reserve
    state_budget_bytes: float  # the state pool's share by ratio; 0 where flags fix the slots
    state_slots: int  # max_mamba_cache_size
    charged_requests: int  # requests whose snapshots are charged
    snapshot_bytes: int  # charged for verify snapshots
    token_gib: float  # left for tokens
    token_budget_bytes: int
    token_capacity: int  # whole pages of what is left, before any cap
    tokens: int  # max_total_num_tokens
    running_requests: int  # max_running_requests
    failure: FailureKind | None

    @property
    def sizes(self) -> PoolSizes:
        """The three integers everything else is built from."""
        return PoolSizes(self.tokens, self.state_slots, self.running_requests)


def size(rank: Costs, pre_gib: float, available_gib: float, token_limit: int | None = None) -> Solution:
    """The engine's sizing of one rank with `rank`'s costs; a refusal is told by `failure`, not raised.

    `token_limit`: the least token pool over the other pipeline ranks. Raises InputError for memory that is no number.
    Source: mem_cache/kv_cache_configurator.py:2990-3172, 3229-3409 at 0.5.23.
    """
    if not (0 <= pre_gib <= LARGEST_GIB and 0 <= available_gib <= LARGEST_GIB):
        raise InputError(
            f"memory of {pre_gib} GiB before and {available_gib} GiB after loading cannot be; give GiB free"
        )
    slack_gib = pre_gib * (1 - rank.mem_fraction_static)
    budget_gib = available_gib - slack_gib - rank.reserve_gib
    state_budget, slots = _state_slots(rank, budget_gib)
    slot_bytes, drafts, ratio = rank.slot_bytes, rank.snapshot_drafts, rank.slots_per_request
    rest_gib = budget_gib
    charged = snapshot_bytes = 0
    if drafts:
        charged = min(rank.requests or 0, slots // ratio)
        snapshot_bytes = slot_bytes * (charged + 1) * drafts
        rest_gib = rest_gib - snapshot_bytes / GIB
    failure: FailureKind | None = None
    budget_bytes = capacity = tokens = requests = 0
    if slots <= 0:
        failure = "no_state_slots"
    else:
        rest_gib = rest_gib - (slots + 1) * (slot_bytes + rank.ring_bytes) / GIB
        if rest_gib <= 0:
            failure = "no_token_memory"
        else:
            budget_bytes = int(rest_gib * GIB)
            capacity, tokens = _tokens(rank, budget_bytes, token_limit)
            if tokens <= 0:
                failure = "no_tokens"
            else:
                wanted = rank.requests
                if wanted is None:
                    wanted = default_requests(tokens, rank.context_length)
                requests = granted_requests(wanted, tokens, slots, ratio)
                if requests <= 0:
                    failure = "no_requests"
    return Solution(
        rank,
        pre_gib,
        available_gib,
        slack_gib,
        budget_gib,
        state_budget,
        slots,
        charged,
        snapshot_bytes,
        rest_gib,
        budget_bytes,
        capacity,
        tokens,
        requests,
        failure,
    )


def _state_slots(rank: Costs, budget_gib: float) -> tuple[float, int]:
    """The state pool's share of the budget in bytes (0 where flags fix the slots), and its slots."""
    if rank.state_slots is not None:
        return 0.0, rank.state_slots
    share = budget_gib * rank.state_ratio / (1 + rank.state_ratio) * GIB
    slot_bytes, drafts = rank.slot_bytes, rank.snapshot_drafts
    if drafts:
        return share, int((share - slot_bytes * (1 + drafts)) // (slot_bytes * (1 + drafts / rank.slots_per_request)))
    slot = slot_bytes + rank.ring_bytes
    return share, int((share - slot) // slot)


def _tokens(rank: Costs, budget_bytes: int, token_limit: int | None) -> tuple[int, int]:
    """Tokens the bytes hold, and those that the user's cap and the other stages leave of them: whole pages both."""
    page = rank.page_size
    capacity = budget_bytes // rank.cell_bytes if rank.cell_bytes else rank.no_cell_tokens
    tokens = capacity = capacity // page * page
    if rank.max_total_tokens is not None and rank.max_total_tokens < tokens:
        tokens = rank.max_total_tokens // page * page
    if token_limit is not None and token_limit < tokens:
        tokens = token_limit // page * page
    return capacity, tokens


def fitting_requests(tokens: int, context_length: int) -> int:
    """The engine's estimate of running requests: so many for every longest context that the tokens hold."""
    return int(tokens / context_length * REQUESTS_PER_CONTEXT)


def default_requests(tokens: int, context_length: int) -> int:
    """Running requests to ask for where the user gives no number: the estimate within its two bounds."""
    return max(min(fitting_requests(tokens, context_length), MOST_REQUESTS), LEAST_REQUESTS)


def granted_requests(wanted: int, tokens: int, state_slots: int, slots_per_request: int) -> int:
    """The engine's cap on running requests: half the tokens, and what the state slots admit.

    Source: mem_cache/kv_cache_configurator.py:3119-3172 at 0.5.23.
    """
    return min(wanted, tokens // 2, state_slots // slots_per_request)


def attempt(of: Resolved, pre_gib: float, available_gib: float) -> Solution:
    """What the engine sizes on a rank with `pre_gib` GiB free before loading and `available_gib` after it.

    With pipeline stages: of the rank whose token pool is the least, which is then every rank's, or of one that fails.
    A refusal by memory is told by the solution's `failure` (`failures.refusal` makes it an error). Raises SizingError
    for a strategy the engine refuses, InputError for values that cannot be.
    """
    return tightest(attempt_stages(of, pre_gib, available_gib))


def tightest(solutions: Sequence[Solution]) -> Solution:
    """The solution of the stage that decides: of one that fails, else of the one with the fewest tokens."""
    return min(solutions, key=lambda solution: (solution.failure is None, solution.token_capacity))


def attempt_stages(of: Resolved, pre_gib: float, available_gib: float) -> tuple[Solution, ...]:
    """Each pipeline stage's solution, all with the least token pool; refusals are told by `failure`."""
    return size_stages(stage_costs(ranks(of)), pre_gib, available_gib)


def size_stages(priced: Sequence[Costs], pre_gib: float, available_gib: float) -> tuple[Solution, ...]:
    """Each pipeline stage's solution from its costs. See `attempt_stages`."""
    if len(priced) == 1:
        return (size(priced[0], pre_gib, available_gib),)
    sized = size_together(tuple(dict.fromkeys(priced)), pre_gib, available_gib)
    return tuple(sized[rank] for rank in priced)


def size_together(ranks: tuple[Costs, ...], pre_gib: float, available_gib: float) -> dict[Costs, Solution]:
    """The sizing of ranks that then all take the least token pool among them. Ranks of equal costs are sized once."""
    least = min(size(rank, pre_gib, available_gib).tokens for rank in ranks)
    return {rank: size(rank, pre_gib, available_gib, least) for rank in ranks}
