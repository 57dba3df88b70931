"""Topics about what grows with state slots and requests: the slot, its sharding, the two sub-pools, the tail."""

from typing import Any

from glm_kvplan.engines.explanation import Explanation, SideBySide, SideRow, plural, right, wrong
from glm_kvplan.engines.sglang.components import kda_state, pool_units
from glm_kvplan.engines.sglang.explain.topic import Ground
from glm_kvplan.engines.sglang.sizing.host_sizes import DEFAULT_RATIO
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.units import MB, MIB


def slot(ground: Ground) -> Explanation:
    """How KDA state is paid for."""
    deployment, ledger = ground.plan.deployment, ground.ledgers["kda_state"]
    number = deployment.slots_per_request
    lines = [
        f"State is paid by the slot: {ledger.bytes_per_unit:,} B on a rank over {ground.kda_layers} KDA layers, "
        f"convolution {deployment.mamba_conv_dtype}, recurrent state {deployment.mamba_ssm_dtype}.",
        f"The engine reserves {number} for a running request ({_made_of(ground)}): "
        f"{ledger.bytes_per_unit * number / MB:,.1f} MB at any length. States kept for shared prefixes come on top.",
    ]
    if deployment.mamba_ssm_dtype != "bfloat16":
        narrow = deployment.with_values(mamba_ssm_dtype="bfloat16")
        half = ground.kda_layers * kda_state.layer_bytes(ground.answer.largest.rank._replace(deployment=narrow))
        lines.append(
            f"Only an explicit --mamba-ssm-dtype bfloat16 makes it {half:,} B a slot and "
            f"{half * number / MB:,.1f} MB a request."
        )
    if number > 1:
        misread = wrong("one request, taken to be one slot", ledger.bytes_per_unit, "B")
    else:
        cached = deployment.with_values(disable_radix_cache=False, mamba_radix_cache_strategy="extra_buffer")
        usual = cached.slots_per_request
        misread = wrong(f"one request with the {usual} slots of a prefix cache", ledger.bytes_per_unit * usual, "B")
    return Explanation(
        "KDA state is paid by the slot, not by the token",
        tuple(lines),
        (
            right("one request", ledger.bytes_per_unit * number, "B"),
            misread,
        ),
        f"slots_per_request * {ledger.account.formula}",
        f"{number} * {ledger.formula_in_numbers}",
        f"{ledger.account.source}; mem_cache/kv_cache_configurator.py:222-229, 3062-3088 at 0.5.23",
        _strategies(ground),
    )


def _strategies(ground: Ground) -> SideBySide:
    """Slots of a request under every strategy, and what they take on a rank with either type of state."""
    deployment, rank = ground.plan.deployment, ground.answer.largest.rank
    cached = {"disable_radix_cache": False}
    by_name: dict[str, dict[str, Any]] = {
        "extra_buffer, overlap on": {
            "mamba_radix_cache_strategy": "extra_buffer",
            "disable_overlap_schedule": False,
            **cached,
        },
        "extra_buffer, overlap off": {
            "mamba_radix_cache_strategy": "extra_buffer",
            "disable_overlap_schedule": True,
            **cached,
        },
        "extra_buffer_lazy": {"mamba_radix_cache_strategy": "extra_buffer_lazy", **cached},
        "no_buffer, non-triton KDA": {"mamba_radix_cache_strategy": "no_buffer", **cached},
        "radix cache off": {"disable_radix_cache": True},
    }
    found = []
    for name, wanted in by_name.items():
        slots = deployment.with_values(**wanted).slots_per_request
        taken = (
            slots * ground.kda_layers * kda_state.layer_bytes(rank._replace(deployment=narrow))
            for narrow in (deployment.with_values(mamba_ssm_dtype=dtype) for dtype in ("float32", "bfloat16"))
        )
        here = all(getattr(deployment, field) == value for field, value in wanted.items())
        refused = wanted.get("mamba_radix_cache_strategy") == "no_buffer" and deployment.page_size > 1
        found.append(SideRow(name, (slots, *taken), here, "refused here" if refused else ""))
    return SideBySide(
        "strategy",
        ("slots", "float32", "bfloat16"),
        ("count", "decimal", "decimal"),
        tuple(found),
    )


def _made_of(ground: Ground) -> str:
    deployment = ground.plan.deployment
    if deployment.disable_radix_cache:
        return "the prefix cache is off"
    tracking = deployment.tracking_slots
    base = deployment.slots_per_request - tracking
    overlap = "off" if deployment.disable_overlap_schedule else "on"
    return f"{base} and {tracking} of {deployment.mamba_radix_cache_strategy}, overlap {overlap}"


def tp(ground: Ground) -> Explanation:
    """What attention TP divides."""
    geometry, deployment, ledger = ground.plan.geometry, ground.plan.deployment, ground.ledgers["kda_state"]
    size, shards = deployment.tp_size, deployment.linear_attn_tp_size

    def cut(ways: int) -> int:
        other = deployment.with_values(linear_attn_tp_size=ways)
        return ground.kda_layers * kda_state.layer_bytes(ground.answer.largest.rank._replace(deployment=other))

    lines = [
        f"attention TP = TP {size} // attention DP {deployment.attn_dp_size} // CP {deployment.attn_cp_size} = "
        f"{deployment.attn_tp_size}; a KDA state is cut over {shards} rank{'s' * (shards > 1)} here.",
        "It is 1 only where attention DP times CP equals TP. Latent rows and index keys are never cut: every rank has "
        "them whole.",
    ]
    widths = [ways for ways in range(1, size + 1) if size % ways == 0 and geometry.linear_num_heads % ways == 0]
    if len(widths) > 1:
        choices = ", ".join(f"DP {size // ways}: {cut(ways) / MB:,.1f} MB" for ways in widths)
        lines.append(f"A slot at TP {size} by attention DP: {choices}.")
    other = cut(size) if shards == 1 and size in widths else cut(1)
    says = "the same, cut by TP" if shards == 1 else "the same, uncut"
    figures = [right("one state slot on a rank", ledger.bytes_per_unit, "B")]
    if other != ledger.bytes_per_unit:
        figures.append(wrong(says, other, "B"))
    return Explanation(
        "attention TP is not TP: what a KDA state is divided by",
        tuple(lines),
        tuple(figures),
        ledger.account.formula,
        ledger.formula_in_numbers,
        f"runtime_context.py:73-76 at 0.5.23; {ledger.account.source}",
    )


def pools(ground: Ground) -> Explanation:
    """One hybrid pool with two sub-pools."""
    plan, rank = ground.plan, ground.answer.largest.rank
    price, held = costs(rank), pool_units.state_layers(rank)
    tokens = price.slot_bytes // price.cell_bytes if price.cell_bytes else None
    lines = [
        "HBM has one HybridLinearKVPool with two parts: full_kv_pool, "
        f"{plural(ground.full_layers, 'layer')} of rows and index keys, and mamba_pool, "
        f"{plural(held, 'layer')} of state (built by the request pool). "
        "They are no two pools with a budget each.",
        f"One budget pays both, so {price.slot_bytes:,} B for one more state slot are {tokens:,} tokens fewer at "
        f"{price.cell_bytes:,} B each."
        if tokens is not None
        else "One budget pays both; the layers of this pipeline stage keep nothing per token.",
        "--enable-unified-memory would build another kind of pool; the engine refuses it for this model.",
    ]
    if plan.deployment.speculative:
        lines.append("Speculation adds the draft worker's own token pool beside it, of as many tokens.")
    return Explanation(
        "one HybridLinearKVPool, two sub-pools",
        tuple(lines),
        ()
        if tokens is None
        else (
            right("tokens that one more state slot displaces", tokens, "tokens"),
            wrong("the same with a budget for each pool", 0, "tokens"),
        ),
        "" if tokens is None else "slot_bytes // token_bytes",
        "" if tokens is None else f"{price.slot_bytes} // {price.cell_bytes}",
        "mem_cache/memory_pool.py:4228-4335, mem_cache/kv_cache_configurator.py:3229-3409 at 0.5.23",
    )


def tail(ground: Ground) -> Explanation:
    """What a compress tail is, and where it is not."""
    geometry, deployment, ledger = ground.plan.geometry, ground.plan.deployment, ground.ledgers["compress_tail"]
    ratio = deployment.hicache_ratio or DEFAULT_RATIO
    width = geometry.index_kpool + pool_units.draft_tokens(deployment)
    requests = ground.answer.sizes.running_requests
    title = "a compress tail never leaves the GPU"
    if not ledger.bytes_per_unit:
        why = "keys are not pooled in this checkpoint" if ground.index_layers else "no layer here has index keys"
        line = f"There is no compress tail: {why}, so no token waits for its group to fill."
        return Explanation(title, (line,), (), ledger.account.formula, ledger.formula_in_numbers, ledger.account.source)
    return Explanation(
        title,
        (
            f"The tail holds a running request's last tokens that fill no group of {geometry.index_kpool} yet: {width} "
            f"keys and as many scores in each of {plural(ground.index_layers, 'layer')}, "
            f"{ledger.bytes_per_unit:,} B a row.",
            f"It is allocated whole: {ledger.units:,} rows for {plural(requests, 'request')} are "
            f"{ledger.total:,} B ({ledger.total / MIB:.2f} MiB) on a rank, outside the engine's budget.",
            "The radix tree does not point to it and HiCache has no pool for it: a request that ends takes it along.",
        ),
        (
            right("its bytes in host memory", 0, "B"),
            wrong(f"counted into HiCache at ratio {ratio:g}", int(ledger.total * ratio), "B"),
        ),
        f"rows * {ledger.account.formula}",
        f"{ledger.units} * {ledger.formula_in_numbers}",
        ledger.account.source,
    )
