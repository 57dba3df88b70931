"""What would make a deployment do what is wanted: each knob turned as little as does it, resolved and started anew."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.bisection import least
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.moves import HIGHEST_UTILIZATION, NO_DRAFT
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven

MOST_GPUS = 64  # of one engine, and of all
_STEPS = 100  # of --gpu-memory-utilization
_LARGEST_POOL = 1 << 40

Does = Callable[[Begun], bool]


class Turn(NamedTuple):
    """One knob turned. `accuracy`: it changes numbers of the model; `estimated`: so is its memory, though the log's own
    memory is known, because it changes what is taken before the blocks.
    """

    flags: Mapping[str, object]
    begun: Begun
    accuracy: bool = False
    estimated: bool = False

    @property
    def text(self) -> str:
        """As one would type it."""
        return typed(self.flags)


def typed(flags: Mapping[str, object]) -> str:
    """Flags to change as one would type them."""
    words = [_words(name, value) for name, value in flags.items()]
    return " ".join(word for word in words if word)


def _words(name: str, value: object) -> str:
    if value is None:
        return "without --speculative-config" if name == "speculative_config" else ""
    return FLAG[name].words(value)


def turns(begun: Begun, given: MemoryGiven, does: Does, requests: int = 0, context: int = 0) -> Iterator[Turn]:
    """Each knob with which `does` holds, turned as little as that takes: requests, memory, states, rows, then GPUs.

    `requests` are those that an engine should run at once, `context` their longest, where that is known.
    """

    def turned(accuracy: bool = False, **flags: object) -> Turn | None:
        then = _begun(begun, given, flags)
        return Turn(flags, then, accuracy) if then is not None and does(then) else None

    for found in (
        *_limits(begun, turned, requests, context),
        *_memory(begun, given, turned, does),
        *_states(begun, turned),
    ):
        if found is not None:
            yield found
    for dtype in ("fp8", "fp8_ds_mla", "bfloat16"):
        if dtype != begun.plan.deployment.cache_dtype and (found := turned(True, kv_cache_dtype=dtype)):
            yield found
    if begun.plan.deployment.state_dtype != "bfloat16" and (found := turned(True, mamba_ssm_cache_dtype="bfloat16")):
        yield found
    yield from wider(begun, given, does)


def _begun(begun: Begun, given: MemoryGiven, flags: Mapping[str, object]) -> Begun | None:
    try:
        return begin(begun.plan.with_flags(**flags), given, begun.plan)
    except KvplanError:
        return None


def _limits(begun: Begun, turned: Callable[..., Turn | None], requests: int, context: int) -> Iterator[Turn | None]:
    """The limits of requests and of their length, to what the blocks hold or to what is asked of them."""
    deployment, start = begun.plan.deployment, begun.start
    for seqs in (requests, start.count):
        if seqs != deployment.max_num_seqs and (found := turned(max_num_seqs=seqs)) is not None:
            yield found
            break
    longest = start.blocks.longest_context(start.count)
    most = begun.plan.geometry.max_position_embeddings
    now = deployment.max_model_len
    for length in dict.fromkeys((context if now < context <= most else 0, min(longest, most), most)):
        if length != now and (found := turned(max_model_len=length)) is not None:
            yield found
            break


def _memory(begun: Begun, given: MemoryGiven, turned: Callable[..., Turn | None], does: Does) -> Iterator[Turn | None]:
    deployment = begun.plan.deployment
    if deployment.kv_cache_memory_bytes is not None:
        size = begun.start.blocks.nbytes
        now = deployment.kv_cache_memory_bytes // size

        def enough(count: int) -> bool:
            return (then := _begun(begun, given, {"kv_cache_memory_bytes": count * size})) is not None and does(then)

        most = min(_LARGEST_POOL, begun.plan.gpu.memory_mib << 20) // size
        if most > now and enough(most):
            yield turned(kv_cache_memory_bytes=least(enough, now, most) * size)
        return
    first = round(deployment.gpu_memory_utilization * _STEPS)
    for step in range(first + 1, round(HIGHEST_UTILIZATION * _STEPS) + 1):
        found = turned(gpu_memory_utilization=step / _STEPS)
        if found is not None:
            yield found
            return


def _states(begun: Begun, turned: Callable[..., Turn | None]) -> Iterator[Turn | None]:
    """Fewer states a request."""
    deployment = begun.plan.deployment
    if deployment.enable_prefix_caching and deployment.prefill_checkpoint:
        yield turned(kda_prefill_backend="triton")
    if deployment.enable_prefix_caching:
        yield turned(enable_prefix_caching=False)
    drafted = deployment.num_speculative_tokens
    for tokens in range(drafted - 1, 0, -1):
        config = {"method": deployment.speculative_method, "num_speculative_tokens": tokens}
        found = turned(**{**NO_DRAFT, "speculative_config": config})
        if found is not None:
            yield found
            return
    if drafted and not deployment.draft_layers:
        yield turned(**NO_DRAFT)


def wider(begun: Begun, given: MemoryGiven, does: Does) -> list[Turn]:
    """More GPUs, the fewest first: their memory is estimated, since what they load is another share of the weights."""
    deployment = begun.plan.deployment
    known = begun.memory.how != "estimated"
    unknown = given._replace(available_gib=None, pre_gib=None, weights_gib=None, draft_weights_gib=None)
    found = []
    for name in ("tensor_parallel_size", "data_parallel_size"):
        width = 2 * getattr(deployment, name)
        while width * begun.plan.gpus // getattr(deployment, name) <= MOST_GPUS:
            then = _begun(begun, unknown, {name: width})
            if then is not None and does(then):
                found.append(Turn({name: width}, then, estimated=known))
                break
            width *= 2
    return sorted(found, key=lambda turn: turn.begun.plan.gpus)
