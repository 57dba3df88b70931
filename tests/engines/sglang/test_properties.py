"""What must hold for any deployment of any checkpoint of the family: order, sums, scale."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hand_counted import one_rank
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.planner import Given, Plan
from glm_kvplan.engines.sglang.components import pool_units as counts
from glm_kvplan.engines.sglang.components import rank_ledgers, tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile, page_size
from glm_kvplan.engines.sglang.rank import Rank, rank_of, ranks
from glm_kvplan.engines.sglang.sizing.attribution import attribution
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.engines.sglang.sizing.solver import Solution, attempt_stages
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, estimate
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import known_gpus
from glm_kvplan.model.loader import BUNDLED, Model, geometry_from_config, load_model
from glm_kvplan.tensor import DTYPE_BYTES, device_bytes

RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
BUNDLED_MODEL = load_model()
fast = settings(deadline=None, database=None, max_examples=60)


# -- deployments as flags ----------------------------------------------------------------------------------------------

LAYOUTS: tuple[dict[str, Any], ...] = (
    {"tp_size": 1},
    {"tp_size": 8},
    {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True},
    {"tp_size": 8, "dp_size": 2, "enable_dp_attention": True},
    {"tp_size": 4, "pp_size": 2},
    {"tp_size": 2, "pp_size": 3},
    {"tp_size": 4, "pp_size": 8},
    {"tp_size": 8, "enable_prefill_cp": True, "attn_cp_size": 8, "cp_strategy": "interleave"},
    {"tp_size": 8, "enable_prefill_cp": True, "cp_strategy": "zigzag"},
)
SPECULATION: tuple[dict[str, Any], ...] = (
    {},
    {"speculative_algorithm": "EAGLE"},
    {"speculative_algorithm": "NEXTN", "speculative_adaptive": True},
    {"speculative_algorithm": "EAGLE", "enable_linear_replayssm_spec": True},
    {
        "speculative_algorithm": "EAGLE",
        "speculative_num_steps": 5,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 6,
    },
)
ROLES: tuple[dict[str, Any], ...] = (
    {},
    {"disaggregation_mode": "prefill"},
    {"disaggregation_mode": "decode"},
    {"disaggregation_mode": "decode", "disaggregation_decode_extra_slots": 7},
    {"disaggregation_mode": "decode", "disaggregation_decode_enable_radix_cache": True},
    {"disaggregation_mode": "prefill", "enable_pd_role_switch": True},
)
STATES: tuple[dict[str, Any], ...] = (
    {},
    {"mamba_ssm_dtype": "bfloat16"},
    {"disable_radix_cache": True},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy"},
    {"disable_overlap_schedule": True},
    {"max_mamba_cache_size": 640},
    {"mamba_full_memory_ratio": 0.3},
)
CAPS: tuple[dict[str, Any], ...] = (
    {},
    {"max_running_requests": 40},
    {"max_running_requests": 512},
    {"max_total_tokens": 200_000},
    {"context_length": 131_072},
    {"kv_cache_dtype": "fp8_e4m3"},
    {"kv_cache_dtype": "bfloat16"},
)
SWITCHES = ({}, {"SGLANG_ENABLE_PP_SPEC": "1"}, {"SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK": "1"})

flags = st.builds(
    lambda *parts: {name: value for part in parts for name, value in part.items()},
    *map(st.sampled_from, (LAYOUTS, SPECULATION, ROLES, STATES, CAPS, CAPS)),
)
cards = st.sampled_from(("h100", "h200", "b200", "b300", "rtxpro6000"))
memories = st.floats(20, 140)


def planned(given_flags: Mapping[str, Any], release: str, card: str, model: Model = BUNDLED_MODEL, **env: str) -> Plan:
    """The plan, or a rejected example where the engine refuses these flags."""
    gpu = known_gpus()[card]
    try:
        plan = Given(model, load_profile(release), gpu, False, given_flags, env, None).plan()
        costs(rank_of(plan))  # refuses some state strategies
        return plan
    except KvplanError:
        assume(False)
        raise


# -- consistent: every byte has a name ---------------------------------------------------------------------------------


@settings(fast, max_examples=400)
@given(flags, st.sampled_from(RELEASES), cards, st.sampled_from(SWITCHES), memories)
def test_every_byte_of_any_start_is_explained(
    chosen: dict[str, Any], release: str, card: str, switches: dict[str, str], memory: float
) -> None:
    """From flags to pools: what is allocated is what the budget was charged, and differences that have a name."""
    plan = planned(chosen, release, card, **switches)
    solutions = sized(plan, memory)
    assume(solutions[0].failure is None)
    for solution, rank in zip(solutions, ranks(plan), strict=True):
        found = attribution(rank, solution.sizes)
        assert found.rest == 0
        charged = {each.component: each.charged for each in found.components}
        priced, sizes = solution.costs, solution.sizes
        states = (priced.slot_bytes + priced.ring_bytes) * (sizes.state_slots + 1)
        assert not any(each.rest for each in found.components)
        assert charged["verify_snapshot"] == solution.snapshot_bytes
        assert charged["kda_state"] + charged["replay_ring"] == states
        assert found.charged == states + solution.snapshot_bytes + priced.cell_bytes * sizes.tokens
        check_ledgers(rank, solution.sizes)


def check_ledgers(rank: Rank, sizes: PoolSizes) -> None:
    """The ledgers' sum and the pools' differ by the padding page, the spare slot, the draft's slab and small lists."""
    geometry, deployment, profile, stage = rank
    ledgers = {each.account.name: each for each in rank_ledgers(rank, sizes)}
    pools = {spec.name: spec.nbytes for spec in tensor_specs(rank, sizes) if spec.place == "device"}
    page, slots = deployment.page_size, counts.effective_state_slots(deployment, sizes)
    full, index, linear = (
        sum(layer in stage for layer in layers)
        for layers in (
            geometry.full_attention_layers,
            geometry.index_layers,
            geometry.linear_attention_layers,
        )
    )
    hosts_draft = deployment.eagle and stage.stop == geometry.num_hidden_layers
    drafts = geometry.num_nextn_predict_layers if hosts_draft else 0
    speculates = deployment.speculative and deployment.max_draft_tokens
    slab = geometry.num_nextn_predict_layers if speculates and profile.draft_layer_in_state_pool else 0
    shards = deployment.linear_attn_tp_size
    head, heads = geometry.linear_head_dim, geometry.linear_num_heads // shards
    convolution = (geometry.short_conv_kernel_size - 1) * (3 * geometry.linear_num_heads * head // shards)
    state = (
        convolution * DTYPE_BYTES[deployment.mamba_conv_dtype]
        + heads * head * head * DTYPE_BYTES[deployment.mamba_ssm_dtype]
    )
    row = {
        "bf16": 2 * (geometry.kv_lora_rank + geometry.qk_rope_head_dim),
        "fp8_raw": geometry.kv_lora_rank + geometry.qk_rope_head_dim,
        "fp8_scaled": geometry.kv_lora_rank // 128 * 132 + 2 * geometry.qk_rope_head_dim,
    }[deployment.kv_layout]
    key = geometry.index_head_dim // 128 * 132
    per_page = page // geometry.index_kpool * key if profile.index_rows_pooled else page * key
    price = -(-key // geometry.index_kpool) if profile.index_rows_pooled else key
    pages = sizes.tokens // page + 1

    def total(name: str) -> int:
        return ledgers[name].total if name in ledgers else 0

    def bytes_of(*names: str) -> int:
        return sum(pools.pop(name, 0) for name in names)

    assert bytes_of("kv_buffer") - total("latent_kv") == full * page * row
    assert bytes_of("index_k_buffer") - total("indexer") == index * (pages * per_page - sizes.tokens * price)
    draft_rest = page * row + pages * per_page - sizes.tokens * price
    assert bytes_of("draft.kv_buffer", "draft.index_k_buffer") - total("draft_kv") == drafts * draft_rest
    states = (linear + slab) * (slots + 1) - linear * slots
    assert bytes_of("conv_state", "temporal_state") - total("kda_state") == states * state
    rings = bytes_of(*(name for name in tuple(pools) if name.startswith("replayssm_")))
    if total("replay_ring"):
        assert rings * linear * slots == total("replay_ring") * (linear + slab) * (slots + 1)
        bytes_of("intermediate_conv_window")  # kept beside the rings, charged to nobody: a part of `attribution`
    else:
        assert rings == 0
    rows = counts.request_rows(deployment, sizes)
    snapshots = bytes_of("intermediate_ssm", "intermediate_conv_window") - total("verify_snapshot")
    allocated = speculates and total("verify_snapshot")
    assert snapshots == (slab * rows * (deployment.max_draft_tokens or 0) * state if allocated else 0)
    assert bytes_of("compress_tail_k", "compress_tail_score") == total("compress_tail")
    assert bytes_of("req_to_token") == total("request_table")
    assert {name.rpartition(".")[2] for name in pools} <= {
        "req_index_to_mamba_index_mapping",
        "req_index_to_mamba_ping_pong_track_buffer_mapping",
        "compress_tail_k",  # the draft's
        "compress_tail_score",
        "data_ptrs",
        "free_slots",
        "free_pages",
    }
    names = {
        *("latent_kv", "indexer", "draft_kv", "kda_state", "replay_ring", "verify_snapshot"),
        *("compress_tail", "request_table"),
    }
    assert ledgers.keys() <= names


# -- scale-free: other depths and widths of the family -----------------------------------------------------------------


@st.composite
def configs(draw: st.DrawFn, index_widths: tuple[int, ...] = (128, 256, 384)) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(BUNDLED.read_text(encoding="utf-8"))
    text = config["text_config"]
    linear = text["linear_attn_config"]
    drawn = st.binary(min_size=8, max_size=80).map(lambda each: [byte % 2 == 1 for byte in each])
    kinds = draw(drawn.filter(lambda kinds: 0 < sum(kinds) < len(kinds)))
    text["num_hidden_layers"] = len(kinds)
    text["layer_types"] = ["deepseek_sparse_attention" if full else "linear_attention" for full in kinds]
    linear["full_attn_layers"] = [layer for layer, full in enumerate(kinds) if full]
    linear["kda_layers"] = [layer for layer, full in enumerate(kinds) if not full]
    text["kv_lora_rank"] = 128 * draw(st.integers(1, 12))
    text["qk_rope_head_dim"] = draw(st.sampled_from((0, 32, 64, 128)))
    text["index_head_dim"] = draw(st.sampled_from(index_widths))
    text["index_kpool"] = draw(st.sampled_from((1, 2, 4, 8, 16)))
    text["index_kpool_compress"] = draw(st.booleans())
    text["num_nextn_predict_layers"] = draw(st.integers(1, 3))
    text["index_topk_freq"] = draw(st.sampled_from((1, 1, 2, 3)))
    linear["num_heads"] = 8 * draw(st.integers(1, 16))
    linear["head_dim"] = 16 * draw(st.integers(1, 16))
    linear["short_conv_kernel_size"] = draw(st.integers(2, 8))
    return config


def formula_value(ledger: Ledger) -> int:
    """The formula as printed, with the values as printed: a Python expression of integers."""
    assert re.fullmatch(r"[0-9 ()*+/-]+", ledger.formula_in_numbers)
    value = eval(ledger.formula_in_numbers, {"__builtins__": {}})
    assert value == eval(ledger.account.formula, {"__builtins__": {}}, dict(ledger.terms))
    assert isinstance(value, int)
    return value


@settings(fast, max_examples=150)
@given(configs((128,)), flags, st.sampled_from(RELEASES), cards, st.integers(1, 1 << 21), st.integers(1, 700))
def test_ledgers_follow_the_checkpoint(
    config: dict[str, Any], chosen: dict[str, Any], release: str, card: str, context: int, concurrency: int
) -> None:
    """The published formulas, on depths and widths nobody published; and they are the tensors' bytes."""
    model = Model(geometry_from_config(config), config, "fuzzed", "config.json")
    plan = planned(chosen, release, card, model)
    deployment, text = plan.deployment, config["text_config"]
    linear = text["linear_attn_config"]
    answer = estimate(plan, Workload(context, concurrency))
    for rank in answer.stages:
        for ledger in rank.ledgers:
            assert formula_value(ledger) == ledger.bytes_per_unit, ledger
        assert rank.attribution.rest == 0
        check_ledgers(rank.rank, answer.sizes)
    if deployment.pp_size == 1 and deployment.linear_attn_tp_size == 1:
        price = {ledger.account.name: ledger.bytes_per_unit for ledger in answer.stages[0].ledgers}
        heads, head = linear["num_heads"], linear["head_dim"]
        state = (linear["short_conv_kernel_size"] - 1) * 3 * heads * head * 2
        state += heads * head * head * (2 if chosen.get("mamba_ssm_dtype") == "bfloat16" else 4)
        assert price["kda_state"] == len(linear["kda_layers"]) * state
        if deployment.kv_layout == "bf16":
            width = text["kv_lora_rank"] + text["qk_rope_head_dim"]
            assert price["latent_kv"] == len(linear["full_attn_layers"]) * 2 * width
    allocated = sum(device_bytes(rank.tensors) for rank in answer.stages)
    assert answer.allocated_everywhere == allocated * deployment.tp_size * deployment.replicas


@settings(fast)
@given(configs(), st.sampled_from(RELEASES), st.sampled_from((1, 2, 4)))
def test_a_checkpoint_twice_as_wide_costs_twice(config: dict[str, Any], release: str, shards: int) -> None:
    """Heads double the state and their shards halve it; nothing else moves."""
    geometry, profile = geometry_from_config(config), load_profile(release)
    deployment = Deployment(page_size=page_size(geometry, profile), linear_attn_tp_size=shards)
    wide = replace(geometry, linear_num_heads=2 * geometry.linear_num_heads)
    narrow, doubled, halved = (
        costs(one_rank(deployment, profile, geometry)),
        costs(one_rank(deployment, profile, wide)),
        costs(one_rank(replace(deployment, linear_attn_tp_size=2 * shards), profile, geometry)),
    )
    assert doubled.slot_bytes == 2 * narrow.slot_bytes == 4 * halved.slot_bytes
    assert doubled.cell_bytes == narrow.cell_bytes == halved.cell_bytes


# -- monotonic ---------------------------------------------------------------------------------------------------------


def sized(plan: Plan, available: float, pre: float = 140.0, **changes: Any) -> tuple[Solution, ...]:
    deployment = replace(plan.deployment, **changes)
    return attempt_stages(one_rank(deployment, plan.profile, plan.geometry), pre, available)


@settings(fast, max_examples=200)
@given(flags, st.sampled_from(RELEASES), cards, memories, st.floats(0, 60), st.integers(1, 400))
def test_more_memory_never_gives_less(
    chosen: dict[str, Any], release: str, card: str, memory: float, more: float, slots: int
) -> None:
    plan = planned(chosen, release, card)
    fixed = {"max_mamba_cache_size": slots * plan.deployment.attn_dp_size * plan.deployment.slots_per_request}
    for before, after in zip(sized(plan, memory, **fixed), sized(plan, memory + more, **fixed), strict=True):
        assert after.state_slots == before.state_slots
        assert after.tokens >= before.tokens
        assert after.running_requests >= before.running_requests
        assert before.failure is not None or after.failure is None
    for before, after in zip(sized(plan, memory), sized(plan, memory + more), strict=True):
        assert after.state_slots >= before.state_slots


@settings(fast, max_examples=150)
@given(flags, st.sampled_from(RELEASES), cards, memories, st.integers(1, 400), st.integers(1, 400))
def test_more_slots_never_give_more_tokens(
    chosen: dict[str, Any], release: str, card: str, memory: float, slots: int, more: int
) -> None:
    plan = planned(chosen, release, card)
    workers = plan.deployment.attn_dp_size
    few = sized(plan, memory, max_mamba_cache_size=slots * workers)
    many = sized(plan, memory, max_mamba_cache_size=(slots + more) * workers)
    for fewer, greater in zip(few, many, strict=True):
        assert greater.tokens <= fewer.tokens
        assert greater.token_gib <= fewer.token_gib


@settings(fast, max_examples=150)
@given(flags, st.sampled_from(RELEASES), cards, memories, st.floats(0.3, 0.95), st.floats(0, 0.05))
def test_a_larger_fraction_never_gives_fewer_tokens(
    chosen: dict[str, Any], release: str, card: str, memory: float, fraction: float, more: float
) -> None:
    plan = planned(chosen, release, card)
    fixed = {"max_mamba_cache_size": 100 * plan.deployment.attn_dp_size}
    low = sized(plan, memory, mem_fraction_static=fraction, **fixed)
    high = sized(plan, memory, mem_fraction_static=fraction + more, **fixed)
    assert all(after.tokens >= before.tokens for before, after in zip(low, high, strict=True))


@settings(fast, max_examples=150)
@given(flags, st.sampled_from(RELEASES), cards, memories, st.integers(1, 1 << 22), st.integers(0, 1 << 22))
def test_a_cap_caps(chosen: dict[str, Any], release: str, card: str, memory: float, cap: int, more: int) -> None:
    plan = planned(chosen, release, card)
    free, capped, looser = (sized(plan, memory, max_total_tokens=tokens) for tokens in (None, cap, cap + more))
    for solution, tight, loose in zip(free, capped, looser, strict=True):
        assert tight.tokens <= min(cap, solution.tokens)
        assert tight.tokens <= loose.tokens <= max(solution.tokens, loose.tokens)
        assert tight.state_slots == solution.state_slots


@settings(fast)
@given(flags, st.sampled_from(RELEASES), cards)
def test_more_tensor_parallelism_never_makes_a_slot_larger(chosen: dict[str, Any], release: str, card: str) -> None:
    """And never a token dearer; attention groups, which undo it, are left as they are."""
    before: tuple[int, int] | None = None
    for width in (1, 2, 4, 8, 16, 32, 64):
        try:
            plan = Given(BUNDLED_MODEL, load_profile(release), known_gpus()[card], False, chosen, {}, None).plan(
                tp_size=width
            )
            price = costs(rank_of(plan))  # refuses some state strategies
        except KvplanError:
            continue
        if before is not None:
            assert (price.slot_bytes, price.cell_bytes) <= before
            assert price.cell_bytes == before[1]
        before = price.slot_bytes, price.cell_bytes


def ledger_bytes(plan: Plan, workload: Workload, name: str) -> int:
    return max(
        (ledger.total for rank in estimate(plan, workload).stages for ledger in rank.ledgers)
        if name == "all"
        else (
            ledger.total
            for rank in estimate(plan, workload).stages
            for ledger in rank.ledgers
            if ledger.account.name == name
        ),
        default=0,
    )


@settings(fast, max_examples=100)
@given(
    flags.map(lambda chosen: {name: value for name, value in chosen.items() if name != "context_length"}),
    st.sampled_from(RELEASES),
    cards,
    st.integers(1, 1 << 20),
    st.integers(0, 1 << 20),
)
def test_a_longer_context_never_has_a_cheaper_request_table(
    chosen: dict[str, Any], release: str, card: str, context: int, more: int
) -> None:
    assume(context + more <= 1 << 20)
    short = planned({**chosen, "context_length": context}, release, card)
    long = planned({**chosen, "context_length": context + more}, release, card)
    workload = Workload(min(context, 4096), 8)
    rows = ledger_bytes(short, workload, "request_table") // (4 * (context + short.deployment.request_table_extra))
    grown = ledger_bytes(long, workload, "request_table") - ledger_bytes(short, workload, "request_table")
    assert grown == rows * 4 * more


@settings(fast, max_examples=100)
@given(flags, st.sampled_from(RELEASES), cards, st.integers(1, 1 << 20), st.integers(1, 500), st.data())
def test_a_larger_workload_never_costs_less(
    chosen: dict[str, Any], release: str, card: str, context: int, concurrency: int, data: st.DataObject
) -> None:
    plan = planned(chosen, release, card)
    larger = Workload(context + data.draw(st.integers(0, 1 << 18)), concurrency + data.draw(st.integers(0, 200)))
    small, large = estimate(plan, Workload(context, concurrency)), estimate(plan, larger)
    assert small.allocated_everywhere <= large.allocated_everywhere
    for few, many in zip(small.stages, large.stages, strict=True):
        for before, after in zip(few.ledgers, many.ledgers, strict=True):
            assert before.account == after.account
            assert before.bytes_per_unit == after.bytes_per_unit
            assert before.units <= after.units


@settings(fast, max_examples=100)
@given(flags, st.sampled_from(RELEASES), cards, st.integers(2, 20), st.integers(0, 8))
def test_more_drafts_never_cost_less(chosen: dict[str, Any], release: str, card: str, drafts: int, more: int) -> None:
    plan = planned(chosen, release, card)
    assume(plan.deployment.speculative)
    sizes = PoolSizes(64 * plan.deployment.page_size, 100, 20)

    def allocated(count: int) -> int:
        deployment = replace(plan.deployment, speculative_num_draft_tokens=count, max_draft_tokens=count)
        return device_bytes(tensor_specs(one_rank(deployment, plan.profile, plan.geometry), sizes))

    assert allocated(drafts) <= allocated(drafts + more)


# -- one start --------------------------------------------------------------------------------------------------------


@settings(fast)
@given(flags, st.sampled_from(RELEASES), cards, memories)
def test_the_stages_of_a_start_agree(chosen: dict[str, Any], release: str, card: str, memory: float) -> None:
    plan = planned(chosen, release, card)
    pre = min(140.0, plan.gpu.memory_mib / 1024)
    answer = boot(plan, MemoryGiven(pre_gib=pre, available_gib=min(memory, pre)))
    assume(answer.failure is None)
    assert answer.map is not None and answer.limits is not None
    assert len({solution.tokens for solution in answer.solutions}) == 1
    assert len({solution.state_slots for solution in answer.solutions}) == 1
    assert answer.limits.tokens[0].value == answer.solution.tokens
    assert answer.limits.requests[0].value == answer.solution.running_requests
    assert sum(segment.nbytes for segment in answer.map.segments) == answer.map.total
