"""What every topic asks about its deployment."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.workload_cost import Estimate, Workload
from glm_kvplan.tensor import TensorSpec


class Ground(NamedTuple):
    """The deployment a topic speaks of, and one rank of its fullest pipeline stage under a workload.

    `beside` is another workload to compare with, where one is named.
    """

    plan: Plan
    answer: Estimate
    beside: Workload | None = None

    @property
    def ledgers(self) -> Mapping[str, Ledger]:
        return {ledger.account.name: ledger for ledger in self.answer.largest.ledgers}

    @property
    def tensors(self) -> Mapping[str, TensorSpec]:
        return {spec.name: spec for spec in self.answer.largest.tensors}

    @property
    def token_bytes(self) -> int:
        """Bytes of one token in every token pool: latent row, index keys and the draft's own."""
        return sum(ledger.bytes_per_unit for ledger in self.answer.largest.ledgers if ledger.account.unit == "token")

    @property
    def full_layers(self) -> int:
        return self.plan.geometry.full_attention_in(self.answer.largest.stage)

    @property
    def index_layers(self) -> int:
        """Full-attention layers with index keys, and so a compress tail, of their own."""
        return self.plan.geometry.index_in(self.answer.largest.stage)

    @property
    def kda_layers(self) -> int:
        return self.plan.geometry.linear_attention_in(self.answer.largest.stage)
