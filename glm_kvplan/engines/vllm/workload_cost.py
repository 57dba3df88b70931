"""What a workload costs in blocks: how many one GPU needs, and every byte of them by name."""

from typing import NamedTuple

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.vllm.blocks import Blocks
from glm_kvplan.engines.vllm.components import ledgers
from glm_kvplan.workload import Demand, Workload


class Rest(NamedTuple):
    """Bytes of one GPU's blocks that nothing is written to."""

    name: str
    nbytes: int
    reason: str


class WorkloadCost(NamedTuple):
    """One GPU's share of a workload. `ledgers` and `rests` add up to `nbytes`, the bytes of all its blocks."""

    requests: int  # of one engine, whose GPUs are alike
    token_blocks: int
    state_blocks: int
    tail_blocks: int
    unused_blocks: int  # the one that is never given out
    nbytes: int
    ledgers: tuple[Ledger, ...]
    rests: tuple[Rest, ...]

    @property
    def blocks(self) -> int:
        return self.token_blocks + self.state_blocks + self.tail_blocks + self.unused_blocks


def workload_cost(blocks: Blocks, workload: Workload | Demand) -> WorkloadCost:
    """The blocks that `workload` needs on a GPU of the fullest engine: requests are dealt out over the engines.

    Of a mix blocks and the tokens in them are those that hold with its confidence (`Contexts.total`).
    """
    rank = blocks.rank
    deployment = rank.deployment
    requests = -(-workload.concurrency // deployment.data_parallel_size)
    ranks = deployment.decode_context_parallel_size
    states = requests * deployment.states_per_request
    token_blocks = workload.total(requests, blocks.token_blocks)
    tokens = workload.total(requests, lambda context: -(-context // ranks))
    bills = ledgers(rank, tokens=min(tokens, token_blocks * blocks.size), states=states, requests=requests)
    written = {ledger.account.name: ledger.total for ledger in bills}
    held = {group.holds: group for group in blocks.groups}
    of_tokens = sum(ledger.total for ledger in bills if ledger.account.unit == "token")
    of_states = written["kda_state"] + written.get("state_padding", 0)
    state_blocks = states * blocks.state_groups
    rests = (
        Rest("ends of last blocks", token_blocks * held["tokens"].nbytes - of_tokens,
             "a request's tokens take whole blocks"),
        Rest("rounding of blocks", token_blocks * (blocks.nbytes - held["tokens"].nbytes),
             "a block is a multiple of its pages' strides"),
        Rest("rest of state blocks", state_blocks * blocks.nbytes - of_states,
             "a block holds whole states of one group's layers"),
        Rest("rest of tail blocks", requests * blocks.nbytes - written["compress_tail"],
             "a request's tail has a block of its own"),
        Rest("the unused block", blocks.nbytes, "vLLM never gives one of them out"),
    )  # fmt: skip
    total = token_blocks + state_blocks + requests + 1
    kept = tuple(rest for rest in rests if rest.nbytes)
    return WorkloadCost(requests, token_blocks, state_blocks, requests, 1, total * blocks.nbytes, bills, kept)
