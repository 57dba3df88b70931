"""Topics about one request: what it holds before its first token, what prefix caching and drafts add, the boot line."""

from glm_kvplan.engines.explanation import Explanation, plural, right, wrong
from glm_kvplan.engines.vllm.explain.ground import Ground
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import fixed_cost, token_bytes
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.errors import KvplanError
from glm_kvplan.units import MB

_SHORT = 8192  # tokens of a short request


def request(ground: Ground) -> Explanation:
    """Why a request costs so much before its first token."""
    blocks, deployment, cost = ground.blocks, ground.deployment, ground.request
    fixed = fixed_cost(blocks)
    states = deployment.states_per_request
    lines = (
        f"Before its first token a request holds {plural(fixed.blocks, 'block')}: {fixed.nbytes / MB:,.1f} MB a GPU, "
        f"what {plural(fixed.tokens, 'token')} would take. They are its states ({states} in each of "
        f"{plural(blocks.state_groups, 'state group')}, {_made_of(ground)}), and one block of its tail.",
        "A state takes a whole block in every state group, whatever else would fit into it: a block id means one "
        "stretch of memory of one size for all groups.",
        f"At {plural(cost.context, 'token')} it takes {plural(cost.blocks, 'block')}, {cost.nbytes / MB:,.1f} MB a "
        "GPU.",
    )
    return Explanation(
        "A request is paid in blocks, and holds some before its first token",
        lines,
        (
            right(f"one request of {cost.context:,} tokens, on a GPU", cost.nbytes, "B"),
            wrong("the same, taken to cost its tokens only", cost.context * token_bytes(blocks), "B"),
        ),
        "(ceil(ceil(context / dcp) / block_size) + 1 + state_groups * states) * block_bytes",
        f"(ceil(ceil({cost.context} / {deployment.decode_context_parallel_size}) / {blocks.size}) + 1 + "
        f"{blocks.state_groups} * {states}) * {blocks.nbytes}",
        ground.source("concurrency", "states"),
    )


def _made_of(ground: Ground) -> str:
    """`2 with prefix caching, 3 for draft tokens and 1 for FlashKDA's checkpoint`."""
    deployment = ground.deployment
    parts = ["2 with prefix caching" if deployment.enable_prefix_caching else "1 that runs"]
    if deployment.num_speculative_tokens:
        parts.append(f"{deployment.num_speculative_tokens} for draft tokens")
    if deployment.enable_prefix_caching and deployment.prefill_checkpoint:
        parts.append("1 for FlashKDA's checkpoint in a prefill")
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def prefix_caching(ground: Ground) -> Explanation:
    """What prefix caching costs a request that shares nothing."""
    deployment, blocks = ground.deployment, ground.blocks
    on = _with(ground, enable_prefix_caching=True)
    off = _with(ground, enable_prefix_caching=False)
    lines = [
        "With prefix caching a request holds the state it reads beside the one it writes"
        + (", and FlashKDA's checkpoint of a prefill (0.32.0 on)" if on and on.deployment.prefill_checkpoint else "")
        + ": whole blocks in every state group, whether a prefix is ever shared or not.",
        "What it keeps of finished requests costs nothing here: kept blocks are given up when a request needs them.",
    ]
    if on and off:
        more = on.blocks.fixed - off.blocks.fixed
        lines.append(
            f"Off, a request holds {plural(off.blocks.fixed, 'block')} before its first token instead of "
            f"{on.blocks.fixed}: {more * blocks.nbytes / MB:,.1f} MB less a GPU."
        )
    now = deployment.states_per_request
    other = (off if deployment.enable_prefix_caching else on) or ground.plan
    says = "off" if deployment.enable_prefix_caching else "on"
    return Explanation(
        "Prefix caching is paid by every request",
        tuple(lines),
        (
            right("states of one request in each state group", now, "states"),
            wrong(f"the same with prefix caching {says}", other.deployment.states_per_request, "states"),
        ),
        "running + kept + checkpoint + draft_tokens",
        f"1 + {int(deployment.enable_prefix_caching)} + "
        f"{int(deployment.enable_prefix_caching and deployment.prefill_checkpoint)} + "
        f"{deployment.num_speculative_tokens}",
        ground.source("states", "checkpoint", "prefix_caching"),
    )


def _with(ground: Ground, **flags: object) -> Plan | None:
    """The plan with flags changed; None where vLLM refuses it."""
    try:
        return ground.plan.with_flags(**flags)
    except KvplanError:
        return None


def draft(ground: Ground) -> Explanation:
    """What a draft token costs."""
    deployment, blocks = ground.deployment, ground.blocks
    tokens = deployment.num_speculative_tokens
    if tokens:
        plain = _with(ground, speculative_config=None, spec_method=None, spec_model=None, spec_tokens=None)
        here, there, says = ground.plan, plain or ground.plan, "the same without drafts"
    else:
        config = {"method": "mtp", "num_speculative_tokens": 3}
        here, there, says = ground.plan, _with(ground, speculative_config=config) or ground.plan, "with 3 of mtp"
    drafting = here if tokens else there
    layers = drafting.deployment.draft_layers
    lines = (
        f"Every draft token is one state more in each of {plural(drafting.blocks.state_groups, 'state group')}: "
        f"{drafting.blocks.state_groups * drafting.blocks.nbytes / MB:,.1f} MB a request on a GPU, at any context.",
        (
            "The MTP layer's rows and index keys are paid once, however many tokens it drafts: "
            f"{token_bytes(drafting.blocks) // drafting.rank.token_layers:,} B a token."
            if layers
            else "A draft without layers of its own (ngram, suffix) adds nothing to a token."
        ),
        "Drafts lengthen the convolution window of a state by a row each, which can make the block larger.",
    )
    return Explanation(
        "A draft token is a state, not a layer",
        lines,
        (
            right("blocks a request holds before its first token", here.blocks.fixed, "blocks"),
            wrong(says, there.blocks.fixed, "blocks"),
        ),
        "1 + state_groups * states",
        f"1 + {blocks.state_groups} * {deployment.states_per_request}",
        ground.source("states", "speculation", "tail"),
    )


def boot_line(ground: Ground) -> Explanation:
    """What the boot line's tokens mean."""
    blocks, deployment = ground.blocks, ground.deployment
    context, wanted = ground.workload.context, ground.workload.concurrency
    count = -(-wanted // deployment.data_parallel_size) * blocks.needed(context) + 1
    begun = start(blocks, count * blocks.nbytes)
    per_request = blocks.needed(begun.max_model_len)
    short = begun.usable // blocks.needed(_SHORT)
    lines = (
        f"{plural(count, 'block')} hold this workload on a GPU. With them vLLM prints: {begun.line}",
        f"That is {count:,} blocks over the {per_request:,} of one request of {plural(begun.max_model_len, 'token')}, "
        "in tokens: a concurrency, not a capacity. It moves with --max-model-len, though no byte does.",
        f"Short requests never reach it: {plural(short, 'request')} of {_SHORT:,} tokens fit, {short * _SHORT:,} "
        "tokens.",
    )
    return Explanation(
        "The boot line's tokens are a concurrency in disguise",
        lines,
        (
            right(f"tokens of requests of {_SHORT:,} that the same blocks hold", short * _SHORT, "tokens"),
            wrong("tokens, as the boot line says", begun.printed_tokens, "tokens"),
        ),
        "num_blocks / blocks_per_request * max_model_len",
        f"{count} / {per_request} * {begun.max_model_len}",
        ground.source("printed", "concurrency"),
    )
