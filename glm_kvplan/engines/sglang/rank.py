"""One GPU of a deployment: the checkpoint, the resolved flags, the release and the layers it holds."""

from typing import NamedTuple, Protocol

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.pipeline import stages_of
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.kept import kept
from glm_kvplan.model.geometry import Geometry


class Resolved(Protocol):
    """What ranks are made from: a plan, or another rank of the same deployment."""

    @property
    def geometry(self) -> Geometry: ...

    @property
    def deployment(self) -> Deployment: ...

    @property
    def profile(self) -> EngineProfile: ...


class _Rank(NamedTuple):
    geometry: Geometry
    deployment: Deployment
    profile: EngineProfile
    stage: range


class Rank(_Rank):
    """One rank: all that its prices, its pools' tensors and its sizing follow from, free memory aside.

    `stage` are the layers of its pipeline stage, all of them without stages. The ranks of a stage are alike.
    """

    @kept
    def full_layers(self) -> int:
        """Its sparse full-attention layers."""
        return self.geometry.full_attention_in(self.stage)

    @kept
    def index_layers(self) -> int:
        """Those of them with index keys of their own."""
        return self.geometry.index_in(self.stage)

    @kept
    def linear_layers(self) -> int:
        """Its KDA layers."""
        return self.geometry.linear_attention_in(self.stage)


def ranks(of: Resolved) -> tuple[Rank, ...]:
    """One rank of every pipeline stage of a deployment. Raises InputError for a partition that cannot be."""
    geometry, deployment, profile = of.geometry, of.deployment, of.profile
    return tuple([Rank(geometry, deployment, profile, stage) for stage in stages_of(geometry, deployment)])


def rank_of(of: Resolved, stage: int = 0) -> Rank:
    """A rank of pipeline stage `stage`, the first where none is named. Raises as `ranks`."""
    return ranks(of)[stage]
