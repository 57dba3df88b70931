"""Topics about the block: its size, its padding, what a narrower dtype gains, and the memory it comes out of."""

from glm_kvplan.engines.explanation import Explanation, plural, right, wrong
from glm_kvplan.engines.vllm.backends import find_backend
from glm_kvplan.engines.vllm.components import index_keys, kda_state
from glm_kvplan.engines.vllm.explain.ground import Ground
from glm_kvplan.engines.vllm.request_cost import block_uses, request_cost, token_bytes
from glm_kvplan.engines.vllm.starting import memory_of
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB, MB


def block(ground: Ground) -> Explanation:
    """How many tokens a block holds, and why."""
    blocks, deployment = ground.blocks, ground.deployment
    asked = ground.plan.flags.get("block_size")
    usual = asked if isinstance(asked, int) else find_backend(deployment.mla_backend).block_multiple
    state = kda_state.layer_bytes(blocks.rank)
    lines = (
        f"A block holds {plural(blocks.size, 'token')}: {deployment.choice('block_size').reason}.",
        f"It takes {blocks.nbytes:,} B a GPU: {blocks.rank.token_layers} layers of rows and index keys of "
        f"{plural(blocks.size, 'token')}, or the states of as many KDA layers as fit, or one request's tail.",
        "A state shrinks with --tensor-parallel-size and a row does not, so more GPUs make smaller blocks; a narrower "
        "--kv-cache-dtype makes blocks of more tokens.",
    )
    return Explanation(
        "The state decides the block, not --block-size",
        lines,
        (
            right("tokens of a block", blocks.size, "tokens"),
            wrong("the same, as --block-size or the kernel has it", usual, "tokens"),
        ),
        "the least multiple of the step with tokens * row_bytes >= state_bytes",
        f"{blocks.size} * {deployment.sized_row_bytes} >= {state}",
        ground.source("block_size", "bytes_per_block"),
    )


def padding(ground: Ground) -> Explanation:
    """What of a block nothing is written to."""
    blocks = ground.blocks
    uses = block_uses(blocks)
    held = {use.holds: use for use in uses}
    states, tail = held["states"], held["tail"]
    page, state = kda_state.page_bytes(blocks.rank), kda_state.layer_bytes(blocks.rank)
    cost = ground.request
    lines = (
        f"A state is padded from {state:,} to {page:,} B in every layer ({(page - state) / state:.2%}; the log prints "
        "the percentage), so that it takes the page of a layer's rows.",
        f"A state block holds {plural(states.layers, 'layer')} at most; in the narrowest group "
        f"{states.unused_share:.0%} of it is empty. A tail's block is {tail.unused_share:.2%} empty: the tail is "
        f"{tail.used_bytes:,} B.",
        f"Of a request of {plural(cost.context, 'token')} {cost.unused_share:.1%} is never written.",
    )
    empty = cost.nbytes - cost.used_bytes
    return Explanation(
        "Padding is small in long requests and large in short ones",
        lines,
        (
            right(f"never written of a request of {cost.context:,} tokens, on a GPU", empty, "B"),
            wrong(
                "padding, as the log's percentage says",
                (page - state) * blocks.rank.state_layers * ground.deployment.states_per_request,
                "B",
            ),
        ),
        "blocks * block_bytes - written",
        f"{cost.blocks} * {blocks.nbytes} - {cost.used_bytes}",
        ground.source("padding", "groups", "tail"),
    )


def dtype(ground: Ground) -> Explanation:
    """What fp8 gains."""
    plan, context = ground.plan, ground.workload.context
    now = ground.request
    narrow = ground.deployment.cache_dtype.startswith("fp8")
    asked = "bfloat16" if narrow else "fp8"
    lines = [
        f"A token's row takes {ground.deployment.row_bytes:,} B in a layer and its index key "
        f"{index_keys.key_bytes(plan.geometry) // plan.geometry.index_kpool} B: {token_bytes(ground.blocks):,} B over "
        f"{plural(ground.blocks.rank.token_layers, 'layer')}. Rows are 1,024 B in bf16, 512 in fp8, 656 with scales.",
        "States, tails and index keys keep their dtype. A narrower row makes the block hold more tokens, not fewer "
        "bytes: what a request holds before its first token stays about as large.",
    ]
    figures = [right(f"one request of {context:,} tokens, on a GPU", now.nbytes, "B")]
    try:
        other = request_cost(plan.with_flags(kv_cache_dtype=asked).blocks, context)
    except KvplanError as error:
        lines.append(f"--kv-cache-dtype {asked} is refused here: {error}")
        misread = now.nbytes * 2 if narrow else now.nbytes // 2
        figures.append(wrong("the same with rows of the other width, taken to scale with them", misread, "B"))
    else:
        less = 1 - min(other.nbytes, now.nbytes) / max(other.nbytes, now.nbytes)
        lines.append(
            f"With --kv-cache-dtype {asked} the request takes {other.nbytes / MB:,.1f} MB instead of "
            f"{now.nbytes / MB:,.1f}: the narrower rows save {less:.0%}."
        )
        figures.append(right(f"the same with {asked}", other.nbytes, "B"))
        misread = now.nbytes * 2 if narrow else now.nbytes // 2
        figures.append(wrong(f"the same with {asked}, taken to scale with the row", misread, "B"))
    return Explanation(
        "fp8 halves the rows, not the request",
        tuple(lines),
        tuple(figures),
        "layers * (row_bytes + index_key_bytes / index_kpool)",
        f"{ground.blocks.rank.token_layers} * ({ground.deployment.row_bytes} + "
        f"{index_keys.key_bytes(plan.geometry)} / {plan.geometry.index_kpool})",
        ground.source("cache_dtype", "latent_row", "index_keys"),
    )


def memory(ground: Ground) -> Explanation:
    """What is left for the blocks."""
    deployment, gpu = ground.deployment, ground.plan.gpu
    share = int(gpu.memory_mib * 2**20 * deployment.gpu_memory_utilization)
    lines = [
        f"vLLM takes {deployment.gpu_memory_utilization:.0%} of the card, loads the weights, runs one full step of "
        f"{plural(deployment.max_num_batched_tokens, 'token')}, and gives the blocks what that left at its peak; the "
        "log prints it as Available KV cache memory. --kv-cache-memory-bytes skips all of it.",
    ]
    figures = []
    try:
        found, _ = memory_of(ground.plan, MemoryGiven())
    except KvplanError as error:
        lines.append(f"It is not estimated here: {error}")
        parts = ""
        figures.append(wrong("for blocks, taken to be the whole share", share, "B"))
    else:
        named = ", ".join(f"{part.name} {part.gib:+.2f}" for part in found.parts)
        how = "as given" if found.how == "given" else f"within {(found.high_bytes - found.low_bytes) / 2 / GIB:.1f} GiB"
        if found.nbytes > 0:
            lines.append(f"Here {found.nbytes / GIB:.1f} GiB are left ({how}): {named} GiB.")
        else:
            lines.append(f"Here nothing is left, {-found.nbytes / GIB:.1f} GiB are missing ({how}): {named} GiB.")
        figures += [right("for blocks, on a GPU", found.nbytes, "B"),
                    wrong("for blocks, taken to be the whole share", share, "B")]  # fmt: skip
        parts = " ".join(f"{part.gib:+.2f}" for part in found.parts)
    return Explanation(
        "The blocks get what a full step leaves",
        tuple(lines),
        tuple(figures),
        "total * gpu_memory_utilization - weights - context - activations - graphs" if parts else "",
        parts.removeprefix("+"),
        ground.source("requested", "available", "graphs"),
    )
