"""Flags that serve a workload on vLLM, each proved by starting it anew: the answer of `kvplan advise`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.demand_shown import DemandShown, show_demand
from glm_kvplan.engines.flag import only_try
from glm_kvplan.engines.load_verdict import ServedNow, refuses
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.block_bounds import BlockBounds, block_bounds
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import refuse_prefix_states, served
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.engines.vllm.turns import Does, Turn, turns
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text, say
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven

# Tried beside a second knob where no knob alone serves: those that change no number of the model first.
_BESIDE: tuple[Mapping[str, object], ...] = (
    {"gpu_memory_utilization": 0.97},
    {"kda_prefill_backend": "triton"},
    {"enable_prefix_caching": False},
    {"kv_cache_dtype": "fp8"},
)


class Option(NamedTuple):
    """A change that serves: `text` as one would type it. `accuracy`: numbers of the model change with it.

    `estimated`: its memory is, though the log's is known, because it loads another share of the weights.
    """

    flags: Mapping[str, object]
    text: str
    requests: int
    longest_context: int
    num_blocks: int
    gpus: int
    accuracy: bool
    estimated: bool


class AdviseAnswer(NamedTuple):
    """`flags` are those to change, none where it serves as it is; then and where nothing does, `served` is of now.

    `holds`: it serves on these GPUs; the first of `options` may take more of them. `blocks` are those under `flags`.
    """

    head: Head
    demand: DemandShown
    holds: bool
    flags: Mapping[str, object]
    text: str
    memory: Available
    now: ServedNow
    served: ServedNow
    blocks: BlockBounds
    options: tuple[Option, ...]
    certainty: Certainty
    warnings: tuple[Text, ...]


def answer_advise(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    tries: Mapping[str, Sequence[object]] | None = None,
    host_given: HostGiven = UNKNOWN_HOST,
) -> AdviseAnswer:
    """What serves `demand`: the deployment as it is, or the first change that does. Every change is started anew.

    A bfloat16 state is advised where `tries`, values by flag, asks for it; no host is planned, so `host_given`
    says nothing. Raises InputError for unknown memory and for prefix states, RefusedError where less is free than vLLM
    takes.
    """
    refuse_prefix_states(demand)
    state_dtype = only_try(tries, "mamba_ssm_cache_dtype")
    if state_dtype not in (None, "bfloat16", "float32"):
        raise InputError(f"--try mamba-ssm-cache-dtype={state_dtype}: the KDA state is float32 or bfloat16")
    begun = begin(plan, given)
    contexts = demand.contexts

    def does(then: Begun) -> bool:
        return served(then.start, contexts).requests >= demand.concurrency

    found: list[Turn] = [] if does(begun) else list(_changes(begun, given, does, demand, state_dtype))
    options = tuple(_option(turn, demand) for turn in found)
    best = found[0] if found else None
    after = begun if best is None else best.begun
    return AdviseAnswer(
        head=head_of(plan),
        demand=show_demand(demand),
        holds=does(after) and after.plan.gpus == plan.gpus,
        flags={} if best is None else best.flags,
        text="" if best is None else best.text,
        memory=begun.memory,
        now=_served(begun, demand),
        served=_served(after, demand),
        blocks=block_bounds(after, given, contexts, -(-demand.concurrency // after.plan.deployment.data_parallel_size)),
        options=options,
        certainty=begun.memory.certainty,
        warnings=tuple(_warnings(after, given, demand, best)),
    )


def _changes(begun: Begun, given: MemoryGiven, does: Does, demand: Demand, state: str | None) -> Iterator[Turn]:
    """The changes that serve, those first that change no number of the model and need no more GPUs."""
    load = -(-demand.concurrency // begun.plan.deployment.data_parallel_size), demand.context

    def asked(turn: Turn) -> bool:
        return "mamba_ssm_cache_dtype" not in turn.flags or state == "bfloat16"

    single = [turn for turn in turns(begun, given, does, *load) if asked(turn)]
    near = [turn for turn in single if turn.begun.plan.gpus == begun.plan.gpus]
    if not near:
        near = list(_pairs(begun, given, does, load, asked))
    far = [turn for turn in single if turn.begun.plan.gpus != begun.plan.gpus]
    yield from sorted(near, key=lambda turn: turn.accuracy)
    yield from far


def _pairs(
    begun: Begun, given: MemoryGiven, does: Does, load: tuple[int, int], asked: Callable[[Turn], bool]
) -> Iterator[Turn]:
    """Two knobs that serve together."""
    for first in _BESIDE:
        try:
            base = begin(begun.plan.with_flags(**first), given, begun.plan)
        except KvplanError:
            continue
        for turn in turns(base, given, does, *load):
            if turn.begun.plan.gpus == begun.plan.gpus and asked(turn):
                accuracy = turn.accuracy or "kv_cache_dtype" in first
                yield turn._replace(flags={**first, **turn.flags}, accuracy=accuracy)
                break


def _surer(after: Begun, given: MemoryGiven, demand: Demand) -> Turn | None:
    """The first change on these GPUs that is sure to serve within the memory's estimate, and leaves the model be."""

    def sure(then: Begun) -> bool:
        same = then.plan.gpus == after.plan.gpus
        return same and all(
            served(each, demand.contexts).requests >= demand.concurrency for each in (then.start, then.low)
        )

    return next((turn for turn in turns(after, given, sure) if not turn.accuracy), None)


def _option(turn: Turn, demand: Demand) -> Option:
    start = turn.begun.start
    return Option(
        turn.flags,
        turn.text,
        served(start, demand.contexts).requests,
        start.longest_context,
        start.count,
        turn.begun.plan.gpus,
        turn.accuracy,
        turn.estimated,
    )


def _served(begun: Begun, demand: Demand) -> ServedNow:
    found = served(begun.start, demand.contexts)
    low, high = (served(each, demand.contexts).requests for each in (begun.low, begun.high))
    failure = None if begun.start.failure is None else refuses(begun.start.failure.reason)
    return ServedNow(found.requests, low, high, found.limit, failure)


def _warnings(after: Begun, given: MemoryGiven, demand: Demand, best: Turn | None) -> Iterator[Text]:
    low, found = (served(each, demand.contexts).requests for each in (after.low, after.start))
    if after.memory.certainty == "estimated" and low < demand.concurrency <= found:
        surer = _surer(after, given, demand)
        template = "at the low end of the memory's estimate it serves {requests}"
        if surer is not None:
            template += ", and with {flags} all"
        yield say(template, requests=low, flags="" if surer is None else surer.text)
    if best is not None and best.accuracy:
        yield say("this changes numbers of the model: accuracy is yours to judge")
    yield from after.notes
