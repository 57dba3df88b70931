"""What every topic asks about its deployment: its blocks, and one request of the workload."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.blocks import Blocks
from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import RequestCost, request_cost
from glm_kvplan.workload import Workload


class Ground(NamedTuple):
    """The deployment a topic speaks of, and the workload that its figures are of."""

    plan: Plan
    workload: Workload

    @property
    def blocks(self) -> Blocks:
        return self.plan.blocks

    @property
    def deployment(self) -> Deployment:
        return self.plan.deployment

    @property
    def request(self) -> RequestCost:
        """One request of the workload's context."""
        return request_cost(self.blocks, self.workload.context)

    def source(self, *subjects: str) -> str:
        """Where the release says so, one place a subject that it has."""
        found = (self.plan.profile.source(subject) for subject in subjects)
        return "; ".join(place for place in found if place)
