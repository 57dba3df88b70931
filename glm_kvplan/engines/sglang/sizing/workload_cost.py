"""What a workload costs: the ledgers of every rank, and the tensors the engine allocates for them."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import rank_ledgers, tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.attribution import Attribution, attribution
from glm_kvplan.engines.sglang.sizing.solver import granted_requests
from glm_kvplan.tensor import TensorSpec
from glm_kvplan.workload import Demand
from glm_kvplan.workload import Workload as Workload


@dataclass(frozen=True)
class RankEstimate:
    """One rank of a pipeline stage: its layers, its costs by ledger, its tensors, and how the two relate.

    Tensors are listed when they are first asked for: most callers want the ledgers alone.
    """

    rank: Rank
    sizes: PoolSizes
    ledgers: tuple[Ledger, ...]

    @property
    def stage(self) -> range:
        return self.rank.stage

    @cached_property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return tensor_specs(self.rank, self.sizes)

    def request_bytes(self, tokens: int) -> dict[str, int]:
        """Bytes of one request of `tokens` tokens, by the unit they are paid in: token, state slot, request row."""
        units = {"token": tokens, "state slot": self.rank.deployment.slots_per_request, "request row": 1}
        return {unit: price * units[unit] for unit, price in self.unit_bytes.items()}

    @property
    def unit_bytes(self) -> dict[str, int]:
        """The whole price of one token, one state slot and one request row: over all ledgers that are paid in it."""
        found = {"token": 0, "state slot": 0, "request row": 0}
        for ledger in self.ledgers:
            if ledger.account.unit in found:
                found[ledger.account.unit] += ledger.bytes_per_unit
        return found

    @cached_property
    def attribution(self) -> Attribution:
        return attribution(self.rank, self.sizes)


class Estimate(NamedTuple):
    """The answer of `estimate`: one RankEstimate a pipeline stage; all ranks of a stage are alike."""

    workload: Workload | Demand
    need: PoolSizes  # what one rank must hold for the workload
    sizes: PoolSizes  # what its pools hold: the flags' sizes where flags fix them
    stages: tuple[RankEstimate, ...]
    ranks_per_stage: int

    @property
    def largest(self) -> RankEstimate:
        """The stage whose ranks need the most memory."""
        if len(self.stages) == 1:
            return self.stages[0]
        return max(self.stages, key=lambda rank: rank.attribution.allocated)

    @property
    def request_tokens(self) -> int:
        """Tokens of one request of the workload, of a mix the longest, in whole pages."""
        return whole_pages(self.workload.context, self.stages[0].rank.deployment.page_size)

    @property
    def ranks(self) -> int:
        return self.ranks_per_stage * len(self.stages)

    def everywhere(self, name: str) -> int:
        """Bytes of one ledger over all ranks of the deployment."""
        return self.ranks_per_stage * sum(
            ledger.total for rank in self.stages for ledger in rank.ledgers if ledger.account.name == name
        )

    @property
    def allocated_everywhere(self) -> int:
        """Device bytes of all tensors over all ranks."""
        return self.ranks_per_stage * sum(rank.attribution.allocated for rank in self.stages)


def estimate(plan: Plan, workload: Workload | Demand) -> Estimate:
    """What `workload` costs under `plan`, for every pipeline stage. All bytes are exact: they follow from shapes."""
    deployment = plan.deployment
    need = workload_sizes(deployment, workload)
    sizes = pool_sizes(plan, need)
    requests = granted_requests(sizes.running_requests, sizes.tokens, sizes.state_slots, deployment.slots_per_request)
    if requests > 0:  # else nothing is served, and what is asked for is shown with its shortfall
        sizes = sizes._replace(running_requests=requests)
    stages = tuple(RankEstimate(rank, sizes, rank_ledgers(rank, sizes)) for rank in ranks(plan))
    return Estimate(workload, need, sizes, stages, deployment.tp_size * deployment.replicas)


def workload_sizes(deployment: Deployment, workload: Workload | Demand) -> PoolSizes:
    """What one rank needs for its share of the workload; a request's tokens fill whole pages.

    The busiest worker takes the remainder of a concurrency that does not divide. Of a mix the tokens are those that
    hold with its confidence (`Contexts.total`).
    """
    requests = -(-workload.concurrency // (deployment.attn_dp_size * deployment.replicas))
    tokens = workload.total(requests, lambda context: whole_pages(context, deployment.page_size))
    return PoolSizes(tokens, requests * deployment.slots_per_request, requests)


def whole_pages(tokens: int, page_size: int) -> int:
    """Token places that a request of so many tokens fills."""
    return -(-tokens // page_size) * page_size


def pool_sizes(plan: Plan, need: PoolSizes) -> PoolSizes:
    """The pool sizes that the user's flags fix, and the workload's `need` where no flag does.

    `max_total_tokens` counts per rank and is cut to whole pages; the other two are divided over the DP workers.
    Requests that a flag asks for need their state slots. A default of the engine's (48 requests under speculation)
    fixes nothing here: what the engine grants is the solver's answer.
    """
    deployment = plan.deployment
    tokens, slots, requests = need
    if deployment.max_total_tokens is not None:
        tokens = deployment.max_total_tokens // deployment.page_size * deployment.page_size
    if "max_running_requests" in plan.flags and deployment.max_running_requests is not None:
        least = plan.profile.least_requests_per_worker
        requests = deployment.requests_per_worker(deployment.max_running_requests, least)
        slots = requests * deployment.slots_per_request
    if deployment.max_mamba_cache_size is not None:
        slots = deployment.max_mamba_cache_size // deployment.attn_dp_size
    return PoolSizes(tokens, slots, requests)
