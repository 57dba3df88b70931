"""What a launch becomes, whole: what vLLM prints of its blocks, and what they hold. The answer of `kvplan solve`."""

from typing import NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.contexts import Contexts, one_length
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.priced_moves import PricedMove, Remedy, priced_moves, remedies
from glm_kvplan.engines.vllm.request_cost import BlockUse, FixedCost, block_uses, fixed_cost, request_cost, token_bytes
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.start import Failure, Start
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text, say
from glm_kvplan.workload import DEFAULT_CONTEXT, UNKNOWN_HOST, HostGiven

_SHOWN_CONTEXTS = (8192, 32768, DEFAULT_CONTEXT)


class PrintedShown(NamedTuple):
    """The boot line and its numbers: `cache_tokens` is `concurrency` times `max_model_len`, no capacity."""

    line: str
    cache_tokens: int
    max_model_len: int
    concurrency: float
    low_cache_tokens: int
    high_cache_tokens: int


class BlockShown(NamedTuple):
    """One block: `tokens` of one request; the bytes it takes in one GPU's memory; what each kind puts into it."""

    tokens: int
    nbytes: int
    reason: str  # of the size
    token_bytes: int  # of one token's rows and keys
    uses: tuple[BlockUse, ...]


class RequestShown(NamedTuple):
    """What a request holds before its first token, on one GPU."""

    fixed: FixedCost
    states: int
    state_groups: int


class ServedShown(NamedTuple):
    """One context length or mix: what a request of it takes, and how many run at once.

    Of a mix `blocks`, `nbytes` and `unused_share` are of its longest. `limit` says what ends the requests: blocks,
    --max-num-seqs, --max-model-len, or a start that fails. Requests of a mix run at once with `confidence` when each
    draws its length at random, `mean_requests` if all came by their shares.
    """

    contexts: str
    mixed: bool
    confidence: float
    longest: int
    blocks: int
    nbytes: int
    unused_share: float
    requests: int
    mean_requests: int
    low: int
    high: int
    tokens: int  # of all these requests, as the shares say
    limit: str


class SolveAnswer(NamedTuple):
    """Where the start fails, `failure` says why, and `remedies` which single changes let it succeed.

    `num_blocks` is one GPU's, `span` what it may be within the estimate of memory. Requests are the whole deployment's.
    `longest_context` is what one request can have; `tokens_of_all_blocks` what the blocks alone would let it have.
    """

    head: Head
    memory: Available
    printed: PrintedShown
    num_blocks: int
    span: tuple[int, int]
    block: BlockShown
    request: RequestShown
    served: tuple[ServedShown, ...]
    longest_context: int
    longest_context_span: tuple[int, int]
    tokens_of_all_blocks: int
    failure: Failure | None
    remedies: tuple[Remedy, ...]
    priced_contexts: str
    prices: tuple[PricedMove, ...] | None
    certainty: Certainty
    warnings: tuple[Text, ...]

    @property
    def holds(self) -> bool:
        """Whether it starts."""
        return self.failure is None


def answer_solve(
    plan: Plan,
    given: MemoryGiven,
    prompt_tokens: int | None = None,
    host_given: HostGiven = UNKNOWN_HOST,
    *,
    mix: Contexts | None = None,
    with_prices: bool = False,
) -> SolveAnswer:
    """Start `plan` with this memory. `mix` are contexts to count requests of, and to price knobs by; the prompt moves
    nothing after the start, and no host memory is planned.

    Raises InputError for memory that is not known or cannot be, RefusedError where less is free than vLLM takes.
    """
    begun = begin(plan, given)
    start = begun.start
    priced = mix or _usual(start)
    return SolveAnswer(
        head=head_of(plan),
        memory=begun.memory,
        printed=PrintedShown(
            start.line,
            start.printed_tokens,
            start.max_model_len,
            start.concurrency,
            begun.low.printed_tokens,
            begun.high.printed_tokens,
        ),
        num_blocks=start.count,
        span=(begun.low.count, begun.high.count),
        block=_block(plan),
        request=RequestShown(fixed_cost(plan.blocks), plan.deployment.states_per_request, plan.blocks.state_groups),
        served=tuple(_served(begun, each) for each in _shown(start, mix)),
        longest_context=_longest(start),
        longest_context_span=(_longest(begun.low), _longest(begun.high)),
        tokens_of_all_blocks=start.blocks.longest_context(start.count),
        failure=start.failure,
        remedies=() if start.failure is None else remedies(begun, given),
        priced_contexts=priced.text,
        prices=priced_moves(begun, given, priced) if with_prices and start.failure is None else None,
        certainty=begun.memory.certainty,
        warnings=tuple(_warnings(begun)),
    )


def _block(plan: Plan) -> BlockShown:
    blocks = plan.blocks
    reason = plan.deployment.choice("block_size").reason
    return BlockShown(blocks.size, blocks.nbytes, reason, token_bytes(blocks), block_uses(blocks))


def _usual(start: Start) -> Contexts:
    return one_length(min(DEFAULT_CONTEXT, max(start.max_model_len, 1)))


def _shown(start: Start, mix: Contexts | None) -> list[Contexts]:
    """The usual contexts up to the longest request, that one, and what was asked for."""
    longest = max(start.max_model_len, 1)
    lengths = [length for length in _SHOWN_CONTEXTS if length < longest] + [longest]
    found = [one_length(length) for length in lengths]
    return found if mix is None or mix in found else [*found, mix]


def _served(begun: Begun, mix: Contexts) -> ServedShown:
    start = begun.start
    now = served(start, mix)
    cost = request_cost(start.blocks, mix.longest)
    each = mix.shared(now.per_engine)
    tokens = sum(length * number for length, number in zip(mix.lengths, each, strict=True))
    return ServedShown(
        mix.text,
        len(mix.lengths) > 1,
        mix.confidence,
        mix.longest,
        cost.blocks,
        cost.nbytes,
        cost.unused_share,
        now.requests,
        served(start, mix.as_mean).requests,
        served(begun.low, mix).requests,
        served(begun.high, mix).requests,
        tokens * begun.plan.deployment.data_parallel_size,
        now.limit,
    )


def _longest(start: Start) -> int:
    return 0 if start.failure is not None else start.longest_context


def _warnings(begun: Begun) -> list[Text]:
    """What the middle of an estimate hides."""
    found: list[Text] = []
    start, low, high = begun.start, begun.low, begun.high
    if start.failure is None and low.failure is not None:
        found.append(say("at the low end of the estimate the start fails: {reason}", reason=low.failure.reason))
    if start.failure is not None and high.failure is None:
        found.append(say("at the high end of the estimate it starts, with {count} blocks", count=high.count))
    return [*found, *begun.notes]
