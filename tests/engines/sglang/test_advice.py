"""Remedies, prices and advice: every answer solved again from the flags it gives."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from setups import one_rank

from glm_kvplan.contexts import Contexts, contexts, parse_contexts, read_histogram
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.prices import Price, prices
from glm_kvplan.engines.sglang.sizing.remedies import remedies
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, served
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.engines.sglang.sizing.split import default_split
from glm_kvplan.engines.sglang.sizing.what_if import Memory, Setup
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB, MIB

GEOMETRY = bundled_geometry()
MTP = Deployment(
    tp_size=4,
    linear_attn_tp_size=4,
    kv_cache_dtype="fp8_e4m3",
    kv_layout="fp8_raw",
    max_running_requests=48,
    speculative_algorithm="EAGLE",
    speculative_num_steps=3,
    speculative_eagle_topk=1,
    speculative_num_draft_tokens=4,
    max_draft_tokens=4,
    mem_fraction_static=0.81225,
    chunked_prefill_size=16384,
)
PLAIN = replace(
    MTP,
    speculative_algorithm=None,
    speculative_num_steps=None,
    speculative_eagle_topk=None,
    speculative_num_draft_tokens=None,
    max_draft_tokens=None,
    max_running_requests=None,
)


def setup_of(deployment: Deployment, pre: float = 177.0, available: float = 126.0, release: str = "0.5.21") -> Setup:
    profile = load_profile(release)
    if profile.page_size_times_index_kpool:
        deployment = replace(deployment, page_size=256)
    return Setup(GEOMETRY, profile, deployment, lambda deployment: Memory(pre, available))


# --- remedies -------------------------------------------------------------------------------------------------------

REFUSED = {
    "too many slots": replace(MTP, max_mamba_cache_size=3000),
    "too few slots": replace(MTP, max_mamba_cache_size=3),
    "weights": replace(MTP, mem_fraction_static=0.25),
    "too many snapshots": replace(MTP, max_mamba_cache_size=1600, max_running_requests=320),
    "no request a worker": replace(MTP, attn_dp_size=4, linear_attn_tp_size=1, max_running_requests=3),
    "no token": replace(MTP, max_total_tokens=12),
    "ratio": replace(MTP, mamba_full_memory_ratio=0.005),
}
AS_FLAG: dict[str, Callable[[Any], dict[str, Any]]] = {
    "speculative_num_draft_tokens": lambda value: {
        "speculative_num_draft_tokens": value,
        "speculative_num_steps": value - 1,
        "max_draft_tokens": value,
    },
}


def starts(setup: Setup, **changes: Any) -> bool:
    deployment = replace(setup.deployment, **changes)
    return attempt(one_rank(deployment, setup.profile), *setup.memory(deployment)).failure is None


@pytest.mark.parametrize("release", ["0.5.21", "0.5.23"])
@pytest.mark.parametrize("name", REFUSED)
def test_every_remedy_starts_the_engine(name: str, release: str) -> None:
    setup = setup_of(REFUSED[name], release=release)
    if setup.solution().failure is None:
        assert (name, release) == ("no request a worker", "0.5.23")  # this release leaves a worker one request
        return
    found = {remedy.flag: remedy.value for remedy in remedies(setup)}
    assert found
    for flag, value in found.items():
        if flag == "available_gib":
            assert attempt(one_rank(setup.deployment, setup.profile), 177.0, float(value)).failure is None
            less = float(value) - 1 / 1024
            assert attempt(one_rank(setup.deployment, setup.profile), 177.0, less).failure is not None
        else:
            assert starts(setup, **AS_FLAG.get(flag, lambda value, flag=flag: {flag: value})(value)), flag


def test_remedies_are_the_smallest_change() -> None:
    setup = setup_of(REFUSED["too many snapshots"])
    found = {remedy.flag: remedy.value for remedy in remedies(setup)}
    assert set(found) >= {
        "mem_fraction_static",
        "max_mamba_cache_size",
        "max_running_requests",
        "speculative_num_draft_tokens",
        "mamba_ssm_dtype",
        "enable_linear_replayssm_spec",
        "available_gib",
    }
    fraction, slots = float(found["mem_fraction_static"]), int(found["max_mamba_cache_size"])
    requests, drafts = int(found["max_running_requests"]), int(found["speculative_num_draft_tokens"])
    assert fraction > 0.81225 and not starts(setup, mem_fraction_static=round(fraction - 0.001, 3))
    assert slots < 1600 and not starts(setup, max_mamba_cache_size=slots + 1)
    assert requests < 320 and not starts(setup, max_running_requests=requests + 1)
    assert drafts < 4 and all(
        not starts(setup, speculative_num_draft_tokens=more, speculative_num_steps=more - 1)
        for more in range(drafts + 1, 4)
    )


def test_one_thousandth_of_the_fraction_may_do() -> None:
    available = 177.0 * (1 - 0.812) + 100 / 1024 + 101 * 36_904_960 / GIB - 0.05
    setup = setup_of(replace(PLAIN, max_mamba_cache_size=100, mem_fraction_static=0.812), available=available)
    assert {remedy.flag: remedy.value for remedy in remedies(setup)}["mem_fraction_static"] == 0.813


def test_a_knob_that_does_not_help_alone_is_not_offered() -> None:
    """0.25 of memory does not even cover the weights: no cap of slots or requests makes up for it."""
    flags = {remedy.flag for remedy in remedies(setup_of(REFUSED["weights"]))}
    assert flags == {"mem_fraction_static", "available_gib"}


def test_remedies_of_another_layout_go_through_the_resolver() -> None:
    def resolve_with(**changes: Any) -> Deployment:
        if changes.get("tp_size", 0) > 4:
            raise RefusedError("no such layout")
        return replace(setup.deployment, kv_layout="fp8_raw")

    bf16 = replace(PLAIN, kv_layout="bf16", kv_cache_dtype="bfloat16", max_mamba_cache_size=100)
    # after 101 slots there is room for a page of raw rows (64 * 7084 bytes), not of bf16 rows (64 * 12716)
    available = 177.0 * (1 - 0.81225) + 100 / 1024 + (101 * 36_904_960 + 600_000) / GIB
    setup = replace(setup_of(bf16, available=available), resolve_with=resolve_with)
    assert setup.solution().failure == "no_tokens"
    found = {remedy.flag: remedy.value for remedy in remedies(setup)}
    assert found["kv_cache_dtype"] == "fp8_e4m3"
    assert found["max_mamba_cache_size"] == 99
    assert "tp_size" not in found


# --- prices ---------------------------------------------------------------------------------------------------------


def price_of(setup: Setup, knob: str) -> Price:
    return next(price for price in prices(setup) if price.knob == knob)


def test_prices_are_differences_of_two_solutions() -> None:
    setup = setup_of(MTP)
    base = attempt(one_rank(MTP, setup.profile), 177.0, 126.0)
    for price, changes in (
        (price_of(setup, "mem_fraction_static"), {"mem_fraction_static": 0.82225}),
        (price_of(setup, "max_running_requests"), {"max_running_requests": 49}),
        (price_of(setup, "max_mamba_cache_size"), {"max_mamba_cache_size": 707}),
        (price_of(setup, "mamba_ssm_dtype"), {"mamba_ssm_dtype": "bfloat16"}),
        (price_of(setup, "enable_linear_replayssm_spec"), {"enable_linear_replayssm_spec": True}),
    ):
        other = attempt(one_rank(replace(MTP, **changes), setup.profile), 177.0, 126.0)
        assert price.tokens == other.tokens - base.tokens
        assert price.slots == other.state_slots - base.state_slots
        assert price.requests == other.running_requests - base.running_requests


def test_prices_in_the_engines_bytes() -> None:
    """With the slots fixed: one slot more costs its bytes in tokens, one request more costs four snapshots."""
    setup = setup_of(replace(MTP, max_mamba_cache_size=700))
    slot, page = 36_904_960, 64
    assert price_of(setup, "max_mamba_cache_size").tokens == pytest.approx(-slot / 7728, abs=page)
    assert price_of(setup, "max_running_requests").tokens == pytest.approx(-4 * slot / 7728, abs=page)
    assert price_of(setup, "mem_fraction_static").tokens == pytest.approx(0.01 * 177 * GIB / 7728, abs=page)
    # 49 rows of the request table are 1024 tokens narrower, 4 bytes each
    assert price_of(setup, "context_length").free_bytes == 49 * 1024 * 4


def test_a_request_beyond_the_slots_is_priced_with_its_slots() -> None:
    setup = setup_of(replace(MTP, max_mamba_cache_size=100))
    price = price_of(setup, "max_running_requests with its state slots")
    assert (price.before, price.after) == ("20", "21")
    assert (price.slots, price.requests) == (5, 1)


def test_layout_prices_need_the_resolver() -> None:
    alone = {price.knob for price in prices(setup_of(PLAIN))}
    assert not alone & {"tp_size", "dp_size", "kv_cache_dtype"}
    doubled = replace(PLAIN, tp_size=8, linear_attn_tp_size=8)
    setup = replace(setup_of(PLAIN), resolve_with=lambda **changes: doubled if "tp_size" in changes else PLAIN)
    price = price_of(setup, "tp_size")
    base = attempt(one_rank(PLAIN, setup.profile), 177.0, 126.0)
    assert price.slots == pytest.approx(base.state_slots, abs=2)  # half the bytes a slot, so twice as many


def test_a_step_that_would_not_start_says_so() -> None:
    available = 177.0 * (1 - 0.81225) + 100 / 1024 + (101 * 36_904_960 + 600_000) / GIB
    setup = setup_of(replace(PLAIN, max_mamba_cache_size=100), available=available)
    assert price_of(setup, "max_mamba_cache_size").failure is not None


# --- workloads ------------------------------------------------------------------------------------------------------


def test_contexts_as_people_write_them(tmp_path: Path) -> None:
    assert parse_contexts("131072") == parse_contexts("128k") == Contexts((131072,), (1,))
    assert parse_contexts("0.8:8k,0.2:128k") == Contexts((131072, 8192), (1, 4))
    table = tmp_path / "lengths.csv"
    table.write_text("tokens,requests\n8192,40\n131072,10\n# a note\n8k 0\n", encoding="utf-8")
    assert parse_contexts(str(table)) == Contexts((131072, 8192), (10, 40))
    for name, text in (("a.json", '{"8192": 40, "131072": 10}'), ("b.json", "[[8192, 40], [131072, 10]]")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_histogram(tmp_path / name) == Contexts((131072, 8192), (10, 40))
    (tmp_path / "c.json").write_text("[8192, 8192, 131072]", encoding="utf-8")
    assert read_histogram(tmp_path / "c.json") == Contexts((131072, 8192), (1, 2))


@pytest.mark.parametrize(
    "text", ["", "abc", "0", "-8k", "0.5:8k", "0.8:8k,0.3:128k", "x:8k", "1:0", "nan:8k", "missing.csv", "1:8k,,"]
)
def test_contexts_that_are_none(text: str) -> None:
    with pytest.raises(InputError):
        parse_contexts(text)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "3", '{"8192": -1}', '{"8192": NaN}', '{"8192": true}', "[[8192, [1]]]", "[null]"]
)
def test_histograms_that_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        read_histogram(path)


MIXES = st.lists(st.tuples(st.integers(1, 300_000), st.integers(1, 50)), min_size=1, max_size=6)


@given(MIXES, st.integers(1, 400))
def test_a_mix_is_never_shorter_than_its_shares(pairs: list[tuple[int, int]], requests: int) -> None:
    mix = contexts([(length, Fraction(share)) for length, share in pairs])
    counts, more = mix.counts(requests), mix.counts(requests + 1)
    assert sum(counts) == requests and min(counts) >= 0
    assert mix.counts(1)[0] == 1
    share = Fraction(0)
    for index, weight in enumerate(mix.weights):
        share += Fraction(weight, sum(mix.weights))
        assert sum(counts[: index + 1]) >= share * requests
        assert sum(more[: index + 1]) >= sum(counts[: index + 1])


@given(MIXES, st.integers(1, 400), st.integers(0, 3_000_000), st.integers(0, 900), st.integers(0, 300))
def test_served_is_the_most_that_fits(
    pairs: list[tuple[int, int]], concurrency: int, tokens: int, slots: int, requests: int
) -> None:
    demand = Demand(contexts([(length, Fraction(share)) for length, share in pairs]), concurrency, 1)
    got = served(demand, MTP, PoolSizes(tokens, slots, requests)).per_worker

    def fits(count: int) -> bool:
        lengths = [
            n for n, c in zip(demand.contexts.lengths, demand.contexts.counts(count), strict=True) for _ in range(c)
        ]
        filled = sum(-(-(length + 8) // 64) * 64 for length in lengths)  # 8: twice the 4 draft tokens
        return count <= min(concurrency, requests) and count * (5 + 1) <= slots and filled <= tokens

    if got:
        assert fits(got) and tokens > demand.contexts.longest
    assert not fits(got + 1) or tokens <= demand.contexts.longest


def test_a_pool_as_long_as_the_context_serves_none() -> None:
    """The engine admits a request only if a token of the pool stays beside it."""
    demand = Demand(parse_contexts("64k"), 1)
    assert served(demand, PLAIN, PoolSizes(65536, 100, 10)).per_worker == 0
    assert served(demand, PLAIN, PoolSizes(65536 + 64, 100, 10)).per_worker == 1


# --- advice ---------------------------------------------------------------------------------------------------------

GRID = [
    (setup_of(deployment, pre, available, release), Demand(parse_contexts(mix), concurrency, checkpoints))
    for deployment, (pre, available), release, mix, (concurrency, checkpoints) in product(
        (
            MTP,
            PLAIN,
            replace(PLAIN, max_running_requests=32),
            replace(MTP, enable_linear_replayssm_spec=True, max_running_requests=96),
            replace(
                PLAIN, tp_size=8, attn_dp_size=8, linear_attn_tp_size=1, kv_layout="bf16", chunked_prefill_size=1024
            ),
            replace(MTP, attn_dp_size=4, linear_attn_tp_size=1, max_running_requests=256, chunked_prefill_size=4096),
            replace(MTP, mamba_ssm_dtype="bfloat16", max_running_requests=512, mamba_radix_cache_strategy="no_buffer"),
            replace(PLAIN, pp_size=2, tp_size=4, disable_overlap_schedule=True),
            replace(MTP, max_mamba_cache_size=64, max_total_tokens=500_000),
        ),
        ((177.0, 126.0), (138.5, 60.0)),
        ("0.5.20", "0.5.21", "0.5.23"),
        ("8k", "0.8:8k,0.2:128k", "1m"),
        ((1, 0), (24, 2), (96, 0), (500, 0)),
    )
]
GRID += [
    (setup_of(replace(deployment, disable_radix_cache=True)), Demand(parse_contexts("128k"), concurrency))
    for deployment, concurrency in product((MTP, PLAIN), (1, 40, 400))
]


def test_advice_is_never_worse_than_the_default_split() -> None:
    """Over the grid: no fewer requests of the workload than the engine's own split serves, and it does what it says."""
    better = 0
    for number, (setup, demand) in enumerate(GRID):
        advice = advise(setup, demand, nearest=0, keep_fraction=number % 5 > 0)
        default = setup.changed(max_mamba_cache_size=None, mamba_full_memory_ratio=0.9, max_total_tokens=None)
        assert default is not None
        solution = default.solution()
        by_default = 0 if solution.failure else served(demand, default.deployment, solution.sizes).requests
        assert advice.default.requests == by_default
        assert advice.served.requests >= by_default, (setup.deployment, demand)
        better += advice.served.requests > by_default
        if not advice.flags:
            assert advice.served.requests == 0
            continue
        flags = dict(advice.flags)
        flags["chunked_prefill_size"] //= setup.deployment.attn_dp_size
        deployment = replace(setup.deployment, **flags)
        again = attempt(one_rank(deployment, setup.profile), *setup.memory(deployment))
        assert again.sizes == (advice.solution.sizes if advice.solution else None)
        assert again.tokens == flags["max_total_tokens"]
        assert served(demand, deployment, again.sizes).requests == advice.served.requests
        assert advice.holds == (advice.served.requests >= demand.concurrency)
    assert better > len(GRID) // 10


def test_the_shortage_is_what_is_short() -> None:
    demand = Demand(parse_contexts("1m"), 16)
    advice = advise(setup_of(MTP), demand, keep_fraction=True)
    assert advice.shortage is not None and advice.shortage.missing_bytes is not None
    assert advice.shortage.missing_requests == 16 - advice.served.requests > 0
    missing = advice.shortage.missing_bytes / GIB
    assert advise(setup_of(MTP, available=126.0 + missing), demand, keep_fraction=True).holds
    less = setup_of(MTP, available=126.0 + missing - 2 * MIB / GIB)
    assert not advise(less, demand, keep_fraction=True).holds


def test_layouts_offered_do_serve_the_demand() -> None:
    def resolve_with(**changes: Any) -> Deployment:
        tp = changes.get("tp_size", 4)
        dp = changes.get("dp_size", 1)
        if tp > 8 or tp % dp:
            raise RefusedError("no such layout")
        flags = {name: value for name, value in changes.items() if name not in ("dp_size", "enable_dp_attention")}
        return replace(MTP, **{**flags, "tp_size": tp, "attn_dp_size": dp, "linear_attn_tp_size": tp // dp})

    def memory(deployment: Deployment) -> Memory:
        return Memory(177.0, 177.0 - 204.0 / deployment.tp_size)

    setup = Setup(GEOMETRY, load_profile("0.5.21"), MTP, memory, resolve_with)
    demand = Demand(parse_contexts("1m"), 16)
    advice = advise(setup, demand)
    assert advice.shortage is not None
    assert advice.layouts
    assert [layout.gpus for layout in advice.layouts] == sorted(layout.gpus for layout in advice.layouts)
    for layout in advice.layouts:
        other = setup.changed(**layout.changes)
        assert other is not None and other.deployment.world_size == layout.gpus
        assert advise(other, demand, keep_fraction=True).holds


def test_the_chunk_leaves_room_for_the_indexers_logits() -> None:
    """0.5.20 scores a whole chunk against the whole context at once: chunk * 262,144 index rows * 4 bytes."""
    setup = setup_of(replace(MTP, mem_fraction_static=0.95), release="0.5.20")
    small, large = (advise(setup, Demand(parse_contexts(text), 2)) for text in ("8k", "1m"))
    assert small.flags["chunked_prefill_size"] == 16384
    chunk = large.flags["chunked_prefill_size"]
    assert chunk < 16384
    assert chunk * 262_144 * 4 < large.room.needed <= large.room.free
    assert 2 * chunk * 262_144 * 4 + large.room.needed - chunk * 262_144 * 4 > large.room.free
    assert large.flags["mem_fraction_static"] == 0.95


def test_spare_tokens_make_room_for_serving() -> None:
    setup = setup_of(replace(MTP, mem_fraction_static=0.995), release="0.5.20")
    advice = advise(setup, Demand(parse_contexts("256k"), 2))
    assert advice.holds and advice.solution is not None
    assert advice.flags["chunked_prefill_size"] == 2048
    assert advice.solution.tokens < advice.solution.token_capacity
    assert 0 <= advice.room.free - advice.room.needed < 8 * MIB


def test_the_fraction_rises_only_into_what_serving_does_not_need() -> None:
    demand = Demand(parse_contexts("1m"), 16)
    setup = setup_of(MTP)
    as_it_is, raised = advise(setup, demand, keep_fraction=True, nearest=0), advise(setup, demand, nearest=0)
    assert as_it_is.flags["mem_fraction_static"] == 0.81225
    assert raised.flags["mem_fraction_static"] > 0.81225
    assert raised.served.requests > as_it_is.served.requests
    assert raised.room.free >= raised.room.needed + raised.room.unsure
    enough = advise(setup, Demand(parse_contexts("1m"), as_it_is.served.requests), nearest=0)
    assert enough.flags["mem_fraction_static"] == 0.81225


@pytest.mark.parametrize("engine", ["0.5.20", "0.5.21", "0.5.22", "0.5.23"])
@pytest.mark.parametrize(
    "flags",
    [
        {"tp_size": 4, "speculative_algorithm": "EAGLE"},
        {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True},
        {"tp_size": 4, "speculative_algorithm": "EAGLE", "max_running_requests": 200},
    ],
)
def test_advice_on_resolved_flags_can_be_pasted(engine: str, flags: dict[str, Any]) -> None:
    """The advised flags, added to the user's and resolved from nothing, give the promised pools."""
    resolved = plan(flags, gpu="h200", engine=engine)

    def memory(deployment: Deployment) -> Memory:
        return Memory(138.5, 136.5 - 190.0 / deployment.tp_size)

    setup = Setup(
        resolved.geometry,
        resolved.profile,
        resolved.deployment,
        memory,
        lambda **changes: resolved.with_flags(**changes).deployment,
    )
    for text, concurrency in (("0.8:8k,0.2:128k", 96), ("1m", 16), ("128k", 400)):
        demand = Demand(parse_contexts(text), concurrency)
        advice = advise(setup, demand, nearest=3)
        assert advice.served.requests >= default_split(setup, demand).requests
        pasted = plan({**flags, **advice.flags}, gpu="h200", engine=engine).deployment
        solution = attempt(one_rank(pasted, resolved.profile), *memory(pasted))
        assert advice.solution is not None and solution.sizes == advice.solution.sizes
        assert served(demand, pasted, solution.sizes).requests == advice.served.requests
        assert pasted.mem_fraction_static == advice.flags["mem_fraction_static"]
        for layout in advice.layouts:
            other = resolved.with_flags(**layout.changes)
            assert other.deployment.world_size == layout.gpus
        assert {price.knob for price in prices(setup)} >= {"tp_size", "context_length", "mem_fraction_static"}


def test_another_state_dtype_only_where_asked() -> None:
    demand = Demand(parse_contexts("8k"), 400)
    setup = setup_of(replace(MTP, mem_fraction_static=0.6))
    plain = advise(setup, demand, keep_fraction=True)
    asked = advise(setup, demand, keep_fraction=True, state_dtype="bfloat16")
    assert "mamba_ssm_dtype" not in plain.flags
    assert asked.flags["mamba_ssm_dtype"] == "bfloat16"
    assert asked.served.requests > plain.served.requests
    assert "--mamba-ssm-dtype bfloat16" in asked.command


def test_checkpoints_take_their_slots() -> None:
    setup = setup_of(replace(MTP, mem_fraction_static=0.5))
    demand = Demand(parse_contexts("8k"), 400)
    without, with_three = advise(setup, demand), advise(setup, demand._replace(checkpoints=3))
    assert with_three.served.requests < without.served.requests
    assert with_three.flags["max_mamba_cache_size"] >= 8 * with_three.served.requests


@pytest.mark.parametrize(
    ("deployment", "demand"),
    [
        (MTP, Demand(parse_contexts("8k"), 0)),
        (MTP, Demand(parse_contexts("2m"), 1)),
        (MTP, Demand(parse_contexts("8k"), 1, -1)),
        (replace(MTP, disable_radix_cache=True), Demand(parse_contexts("8k"), 1, 1)),
    ],
)
def test_demands_no_server_can_meet(deployment: Deployment, demand: Demand) -> None:
    with pytest.raises(InputError):
        advise(setup_of(deployment), demand)


def test_the_default_split_ignores_the_users_own() -> None:
    demand = Demand(parse_contexts("128k"), 40)
    own = setup_of(replace(MTP, max_mamba_cache_size=64, max_total_tokens=500_000))
    assert default_split(own, demand) == default_split(setup_of(MTP), demand)
