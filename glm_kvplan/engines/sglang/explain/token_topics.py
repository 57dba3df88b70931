"""Topics about what grows with tokens: the row, the token, the page, the index on the host, the draft layer."""

from glm_kvplan.engines.explanation import Explanation, SideBySide, SideRow, plural, right, wrong
from glm_kvplan.engines.sglang.components import host_pools as host
from glm_kvplan.engines.sglang.components import index_keys as indexer
from glm_kvplan.engines.sglang.components import latent_kv, pool_units
from glm_kvplan.engines.sglang.components.component import KV_SPLIT
from glm_kvplan.engines.sglang.deployment import KvLayout
from glm_kvplan.engines.sglang.explain.topic import Ground
from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.engines.sglang.sizing.workload_cost import estimate
from glm_kvplan.errors import KvplanError
from glm_kvplan.units import GB, MB

DEEPSEEK_ROPE = 64  # qk_rope_head_dim of DeepSeek V3, whose rows are 576 wide
_LAYOUTS: dict[KvLayout, str] = {
    "bf16": "bf16",
    "fp8_scaled": "FP8 with scales",
    "fp8_raw": "raw FP8",
    "fp8_padded": "FP8 with scales and 64 elements of RoPE",
}
_REPLAY = "enable_linear_replayssm_spec"


def row(ground: Ground) -> Explanation:
    """Which of 512, 528 and 576 is the row of a token."""
    geometry, deployment, profile = ground.plan.geometry, ground.plan.deployment, ground.plan.profile
    ledger, layers = ground.ledgers["latent_kv"], ground.full_layers
    here = latent_kv.row_bytes(geometry, deployment.kv_layout, profile)
    itemsize = latent_kv.row_bytes(geometry, "bf16", profile) // geometry.latent_width
    itemsize = itemsize if deployment.kv_layout == "bf16" else 1
    index = ground.ledgers["indexer"].bytes_per_unit
    widths = {layout: latent_kv.row_bytes(geometry, layout, profile) for layout in _LAYOUTS}
    deepseek = geometry.kv_lora_rank + DEEPSEEK_ROPE
    return Explanation(
        f"{geometry.latent_width}, {latent_kv.row_bytes(geometry, 'fp8_scaled', profile)} or {deepseek}: "
        "how wide a token's row is",
        (
            f"A row is kv_lora_rank {geometry.kv_lora_rank} + qk_rope_head_dim {geometry.qk_rope_head_dim} elements. "
            f"Here it is stored as {_LAYOUTS[deployment.kv_layout]}: {here:,} B in each of "
            f"{plural(layers, 'full-attention layer')}.",
            f"FP8 is raw where a sparse backend is trtllm (prefill "
            f"{deployment.dsa_prefill_backend}, decode {deployment.dsa_decode_backend} here) and carries scales "
            "elsewhere on CUDA.",
            f"{deepseek} is DeepSeek V3's row, which holds {DEEPSEEK_ROPE} RoPE dimensions; planning with it books "
            f"{deepseek / geometry.latent_width - 1:.1%} too many elements.",
        ),
        (
            right("this deployment's rows", ledger.bytes_per_unit, "B/token"),
            wrong(f"rows {deepseek} wide", deepseek * itemsize * layers, "B/token"),
        ),
        ledger.account.formula,
        ledger.formula_in_numbers,
        ledger.account.source,
        SideBySide(
            "layout",
            ("one row", f"latent KV, {plural(layers, 'layer')}", "indexer", "one token"),
            ("bytes",) * 4,
            tuple(
                SideRow(
                    _LAYOUTS[layout],
                    (wide, wide * layers, index, wide * layers + index),
                    layout == deployment.kv_layout,
                )
                for layout, wide in widths.items()
                if layout != "fp8_padded" or layout == deployment.kv_layout
            ),
        ),
    )


def token(ground: Ground) -> Explanation:
    """What the bytes of a token leave out."""
    ledgers, deployment = ground.ledgers, ground.plan.deployment
    parts = ", ".join(
        f"{ledger.bytes_per_unit:,} B {ledger.account.title}"
        for ledger in ledgers.values()
        if ledger.account.unit == "token"
    )
    tokens = ground.answer.request_tokens
    state = ledgers["kda_state"].bytes_per_unit * deployment.slots_per_request
    rows = ground.token_bytes * tokens
    return Explanation(
        f"{ground.token_bytes:,} B a token hold no KDA state",
        (
            f"A token costs {ground.token_bytes:,} B on a rank: {parts}.",
            f"The {ground.kda_layers} KDA layers keep nothing per token. A request has {deployment.slots_per_request} "
            f"state slots of {ledgers['kda_state'].bytes_per_unit / MB:,.1f} MB instead, as many for its first token "
            "as for its last.",
            f"A request of {tokens:,} tokens is {rows / GB:.2f} GB of tokens and {state / GB:.2f} GB of state.",
        ),
        (
            right(f"a request of {tokens:,} tokens, state included", rows + state, "B"),
            wrong("the same by its tokens alone", rows, "B"),
        ),
        "tokens * token_bytes + slots_per_request * slot_bytes; token_bytes = "
        + " + ".join(ledger.account.formula for ledger in ledgers.values() if ledger.account.unit == "token"),
        f"{tokens} * {ground.token_bytes} + {deployment.slots_per_request} * {ledgers['kda_state'].bytes_per_unit}",
        ledgers["indexer"].account.source,
    )


def page(ground: Ground) -> Explanation:
    """What a page is, and what index_kpool groups."""
    geometry, deployment, profile = ground.plan.geometry, ground.plan.deployment, ground.plan.profile
    ledger, size, pool = ground.ledgers["indexer"], deployment.page_size, geometry.index_kpool
    layers = geometry.index_in(ground.answer.largest.stage)
    page_bytes = indexer.page_bytes(geometry, profile, size)
    key, reserved = indexer.key_bytes(geometry), indexer.reserved_bytes(geometry, profile)
    written = indexer.written_bytes(geometry)
    if profile.index_rows_pooled:
        storage = (
            f"In this release a page is {profile.page_size} tokens times index_kpool, and one {key} B key serves a "
            f"group: {reserved} B a token and layer."
        )
        misread = wrong(f"a key for every token, {key} B a layer", key * layers, "B/token")
    else:
        storage = (
            f"This release reserves {reserved} B a token and layer, and writes one key a group, {written} B: the rest "
            "of a page stays empty."
        )
        misread = wrong(f"what is written, {written} B a layer", written * layers, "B/token")
    groups = (
        f"index_kpool {pool} makes {plural(size // pool, 'group')} of a page"
        if size >= pool
        else f"A page is smaller than a group of index_kpool {pool}"
    )
    return Explanation(
        f"a page is {plural(size, 'token')}; index_kpool {pool} groups them for scoring",
        (
            f"Pools are handed out, evicted and copied to the host by pages of {plural(size, 'token')}; a page of "
            f"index keys is {page_bytes:,} B in each of {plural(layers, 'layer')}.",
            f"{groups}, and {geometry.index_topk // pool} groups of "
            f"the {geometry.index_topk:,} tokens a query attends to. It makes no page smaller.",
            storage,
        ),
        (
            right("index keys as reserved", ledger.bytes_per_unit, "B/token"),
            misread,
            right("tokens of a page", size, "tokens"),
            wrong("a page cut by index_kpool", size // pool, "tokens"),
        ),
        ledger.account.formula,
        ledger.formula_in_numbers,
        f"{ledger.account.source}; mem_cache/index_key_cache.py:40-47 at 0.5.23",
    )


def host_index(ground: Ground) -> Explanation:
    """Whether HiCache copies the index keys."""
    rank = ground.answer.largest.rank
    geometry, deployment, profile, stage = rank
    drafts = pool_units.draft_layers(rank)
    rows = host.row_bytes(rank) * (ground.full_layers + drafts)
    keys = indexer.reserved_bytes(geometry, profile) * (geometry.index_in(stage) + drafts)
    split = deployment.hicache_mem_layout == KV_SPLIT
    lines: tuple[str, ...]
    if profile.host_index_pool:
        lines = (
            "This release gives HiCache three host pools: KV, MAMBA and INDEXER, whose pages follow KV's.",
            f"A token takes {rows:,} B of rows and {keys:,} B of index keys on the host; before "
            f"{_first_with_index()} releases kept no keys there.",
        )
        figures = (
            right("a token on the host", rows + keys, "B/token"),
            wrong("the same without INDEXER", rows, "B/token"),
        )
    else:
        kept = "page_first_kv_split keeps them beside the rows" if split else "they have no entry"
        lines = (
            f"HiCache has two host pools here, KV and MAMBA. Of {keys:,} B of index keys a token it keeps none: {kept}."
            if not split
            else f"HiCache has two host pools here, KV and MAMBA; {kept}.",
            "This release gives an INDEXER pool to models without KDA layers alone; this model gets one from "
            f"{_first_with_index()} on.",
            "A page that comes back from the host brings its rows without its keys.",
        )
        figures = (
            right("a token on the host", rows, "B/token"),
            wrong("the same with index keys", rows + keys, "B/token"),
        )
    if not deployment.enable_hierarchical_cache:
        lines = (*lines, "HiCache is off in this deployment: --enable-hierarchical-cache turns it on.")
    return Explanation(
        "the index has a host pool of its own" if profile.host_index_pool else "the index has no host pool of its own",
        lines,
        figures,
        "(kv_layers + draft_layers) * host_row_bytes"
        + (" + (index_layers + draft_layers) * index_bytes" if profile.host_index_pool else ""),
        f"({ground.full_layers} + {drafts}) * {host.row_bytes(rank)}"
        + (
            f" + ({geometry.index_in(stage)} + {drafts}) * {indexer.reserved_bytes(geometry, profile)}"
            if profile.host_index_pool
            else ""
        ),
        "mem_cache/hybrid_cache/hybrid_pool_assembler.py:2022-2097 at 0.5.23, mem_cache/pool_host/dsa.py at 0.5.23",
    )


def _first_with_index() -> str:
    """The oldest release known whose HiCache has an index pool for this model."""
    return next(release for release in releases() if load_profile(release).host_index_pool)


def mtp(ground: Ground) -> Explanation:
    """What speculation adds."""
    plan, workload = ground.plan, ground.answer.workload
    layers = plan.geometry.num_nextn_predict_layers
    on = plan.deployment.speculative
    source = "mem_cache/kv_cache_configurator.py:1603-1610, 3229-3409 at 0.5.23"
    title = f"num_nextn_predict_layers {layers} builds nothing before --speculative-algorithm"
    try:
        flags = [name for name in plan.flags if name.startswith("speculative_") or name == _REPLAY]
        without = plan.with_flags(**dict.fromkeys(flags)) if on else plan
        drafting = plan if on else plan.with_flags(speculative_algorithm="EAGLE")
    except KvplanError as error:
        return Explanation(title, (f"This deployment does not run the draft layer: {error}.",), (), "", "", source)
    plain, added = Ground(without, estimate(without, workload)), Ground(drafting, estimate(drafting, workload))
    deployment, ledgers = drafting.deployment, added.ledgers
    draft_row = ledgers.get("draft_kv")
    snapshots = ledgers.get("verify_snapshot") or ledgers.get("replay_ring")
    slots = added.answer.sizes.state_slots
    pool_layers = pool_units.state_layers(added.answer.largest.rank)
    slab = pool_layers - added.kda_layers
    state = ledgers["kda_state"]
    lines = [
        f"The checkpoint has {plural(layers, 'draft layer')}; pools for it exist only while speculation runs, "
        + ("as here." if on else "which is off here. With --speculative-algorithm EAGLE:")
    ]
    if draft_row is not None:
        lines.append(
            f"Every token pays {draft_row.bytes_per_unit:,} B more, for the draft layer's own row and index key."
        )
    if snapshots is not None:
        drafts = deployment.speculative_num_draft_tokens
        what = (
            f"{drafts} draft tokens keep a state each until they are verified"
            if snapshots.account.name == "verify_snapshot"
            else "replay rings stand in for the states of draft tokens"
        )
        lines.append(f"Every {snapshots.account.unit} pays {snapshots.bytes_per_unit:,} B more: {what}.")
    if slab:
        share = state.bytes_per_unit // added.kda_layers * slab
        lines.append(
            f"The state pool holds {pool_layers} layers instead of {added.kda_layers}: {share:,} B in each of "
            f"{slots:,} slots that no budget charges."
        )
    here, off = added.answer.largest.attribution.allocated, plain.answer.largest.attribution.allocated
    load = f"{workload.concurrency:,} x {plural(workload.context, 'token')}"
    return Explanation(
        title,
        tuple(lines),
        (
            right(f"a rank's pools for {load}, drafting", here, "B"),
            wrong("the same without the draft's share", off, "B"),
        ),
        "pools with speculation - pools without",
        f"{here} - {off} = {here - off}",
        source,
    )
