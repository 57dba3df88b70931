"""A deployment started and held against its expectations: vLLM's answer to `kvplan check`."""

from collections.abc import Iterator

from glm_kvplan.contexts import one_length
from glm_kvplan.engines.expectations import Change, Expectations, Held, Judgement, Remark
from glm_kvplan.engines.mix_words import held_of
from glm_kvplan.engines.vllm.memory_before import total_gib
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.start import Start
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.engines.vllm.turns import turns
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text

MOST_CHANGES = 4
_SIZES = ("min_context", "min_concurrency", "min_total_tokens", "max_running_requests")


def hold(
    plan: Plan, given: MemoryGiven, expect: Expectations, *, host_gib: float | None = None, pod_gib: float | None = None
) -> Held:
    """Start the plan and judge everything that is expected of it.

    Raises InputError for memory that is unknown or cannot be and for what is not planned, RefusedError where less is
    free than vLLM takes.
    """
    if expect.host_memory is not None or host_gib is not None or pod_gib is not None:
        raise InputError("vLLM's host memory is not planned here; leave host_memory, host_gib and pod_gib out")
    begun = begin(plan, given)
    found = [_boots(begun, given, expect)]
    for name in (*_SIZES, "headroom"):
        wanted = getattr(expect, name)
        if wanted is None:
            continue
        if begun.start.failure is not None:
            found.append(Judgement(name, False, wanted, "nothing", "", "the engine does not start"))
        elif name == "headroom":
            found.append(_headroom(plan, wanted))
        else:
            found.append(_size(begun, given, expect, name))
    notes: tuple[Text, ...] = begun.notes
    if expect.contexts is not None and begun.start.failure is None:
        notes = (*notes, held_of(expect.contexts, served(begun.start, expect.contexts.as_mean).requests))
    return Held(begun, tuple(found), tuple(_remarks(begun, expect)), notes)


def figure(start: Start, expect: Expectations, name: str) -> int:
    """What a start gives for one expectation of sizes, over the whole deployment."""
    deployment, blocks = start.blocks.rank.deployment, start.blocks
    if start.failure is not None:
        return 0
    if name == "min_context":
        return start.longest_context
    if name == "min_concurrency":
        return served(start, expect.lengths).requests
    if name == "min_total_tokens":
        return start.usable * blocks.tokens_a_block * deployment.data_parallel_size
    return min(deployment.max_num_seqs, start.usable // blocks.needed(1)) * deployment.data_parallel_size


def _short(start: Start, expect: Expectations) -> list[str]:
    """The expectations of sizes that a start does not meet; `boots` where it fails."""
    if start.failure is not None:
        return ["boots"]
    wanted = {name: getattr(expect, name) for name in _SIZES}
    return [name for name, least in wanted.items() if least is not None and figure(start, expect, name) < least]


def _boots(begun: Begun, given: MemoryGiven, expect: Expectations) -> Judgement:
    failure = begun.start.failure
    if failure is None:
        return Judgement("boots", True, "starts", "starts", "", "")
    changes = _changes(begun, given, expect, None)
    return Judgement("boots", False, "starts", "refused", failure.kind, failure.reason, changes)


def _size(begun: Begun, given: MemoryGiven, expect: Expectations, name: str) -> Judgement:
    wanted, found = getattr(expect, name), figure(begun.start, expect, name)
    limit, why = _limit(begun.start, expect, name)
    changes = () if found >= wanted else _changes(begun, given, expect, name)
    unsure = any(figure(end, expect, name) != found for end in (begun.low, begun.high))
    return Judgement(name, found >= wanted, wanted, found, limit, why, changes, estimated=unsure)


def _limit(start: Start, expect: Expectations, name: str) -> tuple[str, str]:
    """What binds an expectation, and its arithmetic."""
    deployment, blocks = start.blocks.rank.deployment, start.blocks
    held = f"{start.count:,} blocks a GPU, one of them never given out"
    if name == "min_total_tokens":
        return "blocks", f"{held}; {blocks.tokens_a_block:,} tokens each, if nothing but tokens lay in them"
    if name == "min_context" and start.max_model_len < deployment.max_model_len:  # fitted to the blocks
        return "blocks", f"{held}; {blocks.fixed:,} before the first token, {blocks.tokens_a_block:,} tokens each after"
    lengths = expect.lengths if name == "min_concurrency" else one_length(1)
    limit, longest = served(start, lengths).limit, lengths.longest
    if name == "min_context" or limit == "--max-model-len":  # what starts holds a request as long as it admits
        return "max_model_len", f"the server admits {start.max_model_len:,} tokens a request"
    if limit == "--max-num-seqs":
        return "max_num_seqs", f"an engine runs {deployment.max_num_seqs:,} requests at once"
    return "blocks", f"{held}; {blocks.needed(longest):,} a request of {longest:,} tokens"


def _headroom(plan: Plan, wanted: float | str) -> Judgement:
    """What vLLM leaves of a card. What a full step takes is profiled before the blocks, so serving always fits."""
    deployment = plan.deployment
    if isinstance(wanted, str):
        return Judgement("headroom", True, wanted, "fits", "memory", "a full step is measured before the blocks")
    if deployment.kv_cache_memory_bytes is not None:
        raise InputError("headroom: with --kv-cache-memory-bytes nothing says what stays free; leave one of them out")
    left = total_gib(plan.gpu) * (1 - deployment.gpu_memory_utilization)
    why = f"gpu_memory_utilization {deployment.gpu_memory_utilization:g} leaves {left:.2f} GiB of a {plan.gpu.name}"
    return Judgement("headroom", left >= wanted, wanted, round(left, 2), "gpu_memory_utilization", why)


def _changes(begun: Begun, given: MemoryGiven, expect: Expectations, name: str | None) -> tuple[Change, ...]:
    """Single knobs with which one expectation holds, or the start succeeds: those that break nothing else first."""
    kept = set() if name is None else set(_SIZES) - set(_short(begun.start, expect))

    def does(then: Begun) -> bool:
        short = _short(then.start, expect)
        return "boots" not in short and (name is None or name not in short)

    found = []
    requests = -(-expect.requests // begun.plan.deployment.data_parallel_size)
    for turn in turns(begun, given, does, requests, expect.longest or 0):
        broken = tuple(each for each in _short(turn.begun.start, expect) if name is None or each in kept)
        gpus = turn.begun.plan.gpus
        text = turn.text + ("" if gpus == begun.plan.gpus else f" on {gpus} GPUs, not {begun.plan.gpus}")
        text += " (its memory estimated)" if turn.estimated else ""
        found.append(Change(turn.flags, text, 0.0, broken, turn.estimated))
    return tuple(sorted(found, key=lambda change: len(change.then_short))[:MOST_CHANGES])


def _remarks(begun: Begun, expect: Expectations) -> Iterator[Remark]:
    start, plan = begun.start, begun.plan
    if start.failure is not None:
        return
    asked, granted = plan.asked_requests, figure(start, expect, "max_running_requests")
    if asked is not None and granted < asked:
        text = f"{asked:,} requests are asked for and the blocks hold {granted:,}, however short they are"
        yield Remark("requests_capped", text, ("flags", "max_num_seqs"))
    if begun.memory.certainty != "estimated":
        return
    already = _short(start, expect)
    lost = [name for name in _short(begun.low, expect) if name not in already]
    if lost:
        less = (begun.memory.nbytes - begun.memory.low_bytes) / 2**30
        text = (
            f"{', '.join(lost)} would fall short with {less:.1f} GiB less: the memory is estimated; give "
            "memory.available_gib from a boot log"
        )
        yield Remark("estimated_memory", text, ("memory",))
