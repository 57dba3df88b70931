"""What the blocks of a workload cost, whole: the answer of `kvplan estimate`."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.engines.vllm.needed_blocks import given_blocks
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import FixedCost, RequestCost, fixed_cost, request_cost, token_bytes
from glm_kvplan.engines.vllm.starting import lacking, memory_of
from glm_kvplan.engines.vllm.workload_cost import Rest, WorkloadCost, workload_cost
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.format import count, gib, whole
from glm_kvplan.show.said import Text, say
from glm_kvplan.workload import Demand, HostGiven, Workload


class LedgerShown(NamedTuple):
    """One kind of memory on one GPU, and on all of them. The units are the workload's on that GPU."""

    name: str
    title: str
    unit: str
    bytes_per_unit: int
    units: int
    nbytes: int
    bytes_all_gpus: int
    formula: str
    formula_in_numbers: str
    terms: Mapping[str, int]
    source: str


class NeededBlocks(NamedTuple):
    """Blocks of one GPU, by what they hold."""

    tokens: int
    states: int
    tails: int
    unused: int  # the one that is never given out
    total: int


class MixShown(NamedTuple):
    """Several context lengths. What is needed holds with `confidence`, when each request draws its length at random.

    Beside it the blocks of one GPU, and their bytes, if all lengths came by their shares.
    """

    contexts: str
    confidence: float
    mean_context: float
    mean_blocks: int
    mean_bytes: int
    mean_bytes_all_gpus: int


class RequestShown(NamedTuple):
    """One request of the workload, of a mix the longest, on one GPU. `used_bytes` is what it writes."""

    context: int
    blocks: int
    token_blocks: int
    state_blocks: int
    tail_blocks: int
    nbytes: int
    used_bytes: int
    unused_share: float


class EstimateAnswer(NamedTuple):
    """`given_blocks` is what flags fix; None where memory decides. `bytes` is of all blocks needed on one GPU.

    `memory` is what weights leave for blocks on a card that was named, None where flags fix the blocks.

    `mix` is None for requests of one length; of several `workload` names the longest.
    """

    head: Head
    workload: Workload
    mix: MixShown | None
    requests_per_engine: int
    block_tokens: int
    block_bytes: int
    token_bytes: int
    blocks: NeededBlocks
    given_blocks: int | None
    fits: bool
    memory: Available | None
    nbytes: int
    bytes_all_gpus: int
    ledgers: tuple[LedgerShown, ...]
    rests: tuple[Rest, ...]
    rest_bytes: int
    request: RequestShown
    fixed: FixedCost
    warnings: tuple[Text, ...]

    @property
    def holds(self) -> bool:
        """It fits."""
        return self.fits


def answer_estimate(plan: Plan, workload: Workload | Demand, given: HostGiven) -> EstimateAnswer:
    """What `workload` costs under `plan`. Nothing of a host is planned: `given` says nothing."""
    blocks = plan.blocks
    cost = workload_cost(blocks, workload)
    fixed = given_blocks(plan)
    left = None if fixed is not None or plan.gpu_assumed else _left(plan)
    memory = left if isinstance(left, Available) else None
    warnings = tuple(_shortfalls(plan, cost, fixed, left))
    return EstimateAnswer(
        head=head_of(plan),
        workload=Workload(workload.context, workload.concurrency),
        mix=_mix(plan, workload),
        requests_per_engine=cost.requests,
        block_tokens=blocks.size,
        block_bytes=blocks.nbytes,
        token_bytes=token_bytes(blocks),
        blocks=NeededBlocks(cost.token_blocks, cost.state_blocks, cost.tail_blocks, cost.unused_blocks, cost.blocks),
        given_blocks=fixed,
        fits=not warnings,
        memory=memory,
        nbytes=cost.nbytes,
        bytes_all_gpus=cost.nbytes * plan.gpus,
        ledgers=tuple(_ledger(ledger, plan.gpus) for ledger in cost.ledgers),
        rests=cost.rests,
        rest_bytes=sum(rest.nbytes for rest in cost.rests),
        request=_request(request_cost(blocks, workload.context)),
        fixed=fixed_cost(blocks),
        warnings=warnings,
    )


def _mix(plan: Plan, workload: Workload | Demand) -> MixShown | None:
    if isinstance(workload, Workload) or len(workload.contexts.lengths) == 1:
        return None
    contexts = workload.contexts
    mean = workload_cost(plan.blocks, workload.as_mean)
    return MixShown(
        contexts.text, contexts.confidence, contexts.mean, mean.blocks, mean.nbytes, mean.nbytes * plan.gpus
    )


def _ledger(ledger: Ledger, gpus: int) -> LedgerShown:
    account = ledger.account
    return LedgerShown(
        account.name,
        account.title,
        account.unit,
        ledger.bytes_per_unit,
        ledger.units,
        ledger.total,
        ledger.total * gpus,
        account.formula,
        ledger.formula_in_numbers,
        dict(ledger.terms),
        account.source,
    )


def _request(cost: RequestCost) -> RequestShown:
    return RequestShown(
        cost.context,
        cost.blocks,
        cost.token_blocks,
        cost.state_blocks,
        cost.tail_blocks,
        cost.nbytes,
        cost.used_bytes,
        cost.unused_share,
    )


def _left(plan: Plan) -> Available | str:
    """Memory for blocks beside the weights, or why there is none."""
    try:
        return memory_of(plan, MemoryGiven())[0]
    except KvplanError as error:
        return str(error)


def _shortfalls(plan: Plan, cost: WorkloadCost, fixed: int | None, left: Available | str | None) -> Iterator[Text]:
    """Where flags, or the card alone, are smaller than the workload."""
    deployment = plan.deployment
    if fixed is not None and cost.blocks > fixed:
        yield say(
            "does not fit: the workload needs {need} on a GPU; the flags give {size}",
            need=count(cost.blocks, "block"),
            size=whole(fixed),
        )
    if isinstance(left, str):
        yield say("does not fit: {reason}", reason=left)
    elif left is not None and left.high_bytes < 0:
        yield say("does not fit: {reason}", reason=lacking(plan, left, left.nbytes))
    elif left is not None and cost.nbytes > left.high_bytes:
        yield say(
            "does not fit: the blocks take {size}, and vLLM has {low} to {high} beside the weights (estimated)",
            size=gib(cost.nbytes),
            low=gib(max(left.low_bytes, 0)),
            high=gib(left.high_bytes),
        )
    if cost.requests > deployment.max_num_seqs:
        yield say(
            "does not fit: {requests} on an engine, and --max-num-seqs lets {most} run at once",
            requests=count(cost.requests, "request"),
            most=whole(deployment.max_num_seqs),
        )
