"""Remedies, prices and advice: every answer solved again from the flags it gives."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.contexts import Contexts, contexts, parse_contexts, read_histogram
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.moves import draft_flags, typed
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.prices import Price, prices
from glm_kvplan.engines.sglang.sizing.remedies import remedies
from glm_kvplan.engines.sglang.sizing.served_requests import Served, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import default_split
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB, MIB
from glm_kvplan.workload import Demand

MTP: dict[str, Any] = {
    "tp_size": 4,
    "kv_row_layout": "fp8_raw",
    "speculative_algorithm": "EAGLE",  # 48 running requests, four draft tokens
    "mem_fraction_static": 0.81225,
    "chunked_prefill_size": 16384,
}
PLAIN = {name: value for name, value in MTP.items() if name != "speculative_algorithm"}
FOUR_WORKERS = {"dp_size": 4, "enable_dp_attention": True}


def server_of(flags: dict[str, Any], pre: float = 177.0, available: float = 126.0, release: str = "0.5.21") -> Server:
    return Server(plan(flags, engine=release), MemoryGiven(pre, available))


def again(server: Server, flags: dict[str, Any], *, estimated: bool = False) -> Server:
    """The server that one gets by typing `flags` beside its own; `estimated`: without what was read after the load."""
    given = server.given._replace(available_gib=None) if estimated else server.given
    typed = {name: value for name, value in {**server.plan.flags, **flags}.items() if value is not None}
    return Server(plan(typed, engine=server.plan.profile), given)


# --- remedies -------------------------------------------------------------------------------------------------------

REFUSED = {
    "too many slots": MTP | {"max_mamba_cache_size": 3000},
    "too few slots": MTP | {"max_mamba_cache_size": 3},
    "weights": MTP | {"mem_fraction_static": 0.25},
    "too many snapshots": MTP | {"max_mamba_cache_size": 1600, "max_running_requests": 320},
    "no request a worker": MTP | FOUR_WORKERS | {"max_running_requests": 3},
    "no token": MTP | {"max_total_tokens": 12},
    "ratio": MTP | {"mamba_full_memory_ratio": 0.005},
}


def starts(server: Server, **changes: Any) -> bool:
    return again(server, changes).starts


@pytest.mark.parametrize("release", ["0.5.21", "0.5.23"])
@pytest.mark.parametrize("name", REFUSED)
def test_every_remedy_starts_the_engine(name: str, release: str) -> None:
    server = server_of(REFUSED[name], release=release)
    if server.starts:
        assert (name, release) == ("no request a worker", "0.5.23")  # this release leaves a worker one request
        return
    found = remedies(server)
    assert found
    for remedy in found:
        if remedy.flag == "available_gib":
            assert Server(server.plan, MemoryGiven(177.0, float(remedy.value))).starts
            assert not Server(server.plan, MemoryGiven(177.0, float(remedy.value) - 1 / 1024)).starts
        else:
            assert again(server, remedy.flags, estimated=remedy.estimated).starts, remedy


def test_remedies_are_the_smallest_change() -> None:
    server = server_of(REFUSED["too many snapshots"])
    found = {remedy.flag: remedy.value for remedy in remedies(server)}
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
    assert fraction > 0.81225 and not starts(server, mem_fraction_static=round(fraction - 0.001, 3))
    assert slots < 1600 and not starts(server, max_mamba_cache_size=slots + 1)
    assert requests < 320 and not starts(server, max_running_requests=requests + 1)
    assert drafts < 4 and all(not starts(server, **draft_flags(more)) for more in range(drafts + 1, 4))


def test_one_thousandth_of_the_fraction_may_do() -> None:
    available = 177.0 * (1 - 0.812) + 100 / 1024 + 101 * 36_904_960 / GIB - 0.05
    server = server_of(PLAIN | {"max_mamba_cache_size": 100, "mem_fraction_static": 0.812}, available=available)
    assert {remedy.flag: remedy.value for remedy in remedies(server)}["mem_fraction_static"] == 0.813


def test_a_knob_that_does_not_help_alone_is_not_offered() -> None:
    """0.25 of memory does not even cover the weights: no cap of slots or requests makes up for it."""
    found = {remedy.flag: remedy for remedy in remedies(server_of(REFUSED["weights"]))}
    assert {name for name, remedy in found.items() if not remedy.estimated} == {"mem_fraction_static", "available_gib"}


def test_remedies_of_another_layout_are_resolved() -> None:
    """After 101 slots there is room for a page of FP8 rows with scales (64 * 7260 bytes), not of bf16 (64 * 12716)."""
    bf16 = {name: value for name, value in PLAIN.items() if name != "kv_row_layout"} | {"max_mamba_cache_size": 100}
    available = 177.0 * (1 - 0.81225) + 100 / 1024 + (101 * 36_904_960 + 600_000) / GIB
    server = server_of(bf16, available=available)
    assert server.solution.failure == "no_tokens"
    found = {remedy.flag: remedy.value for remedy in remedies(server)}
    assert found["kv_cache_dtype"] == "fp8_e4m3"
    assert found["max_mamba_cache_size"] == 99


def test_a_fraction_that_a_kernel_takes_from_is_found_as_typed() -> None:
    """aiter takes 15 % off the fraction: the one to type for a server on an MI300X is the one that then does."""
    flags = {"tp_size": 8, "attention_backend": "aiter"}

    def server(**more: Any) -> Server:
        made = plan({**flags, **more}, gpu="mi300x", environment={"SGLANG_USE_AITER": "1"})
        return Server(made, MemoryGiven(188.0, 55.0))

    assert not server().starts
    (fraction,) = (remedy.value for remedy in remedies(server()) if remedy.flag == "mem_fraction_static")
    assert isinstance(fraction, float) and fraction > 0.8 and server(mem_fraction_static=fraction).starts
    assert not server(mem_fraction_static=round(fraction - 0.001, 3)).starts
    assert not server(mem_fraction_static=0.71).starts


# --- prices ---------------------------------------------------------------------------------------------------------


def price_of(server: Server, knob: str) -> Price:
    return next(price for price in prices(server) if price.knob == knob)


def test_prices_are_differences_of_two_solutions() -> None:
    server = server_of(MTP)
    base = server.sizes
    for price, changes in (
        (price_of(server, "mem_fraction_static"), {"mem_fraction_static": 0.82225}),
        (price_of(server, "max_running_requests"), {"max_running_requests": 49}),
        (price_of(server, "max_mamba_cache_size"), {"max_mamba_cache_size": 707}),
        (price_of(server, "mamba_ssm_dtype"), {"mamba_ssm_dtype": "bfloat16"}),
        (price_of(server, "enable_linear_replayssm_spec"), {"enable_linear_replayssm_spec": True}),
    ):
        other = again(server, changes).sizes
        assert price.tokens == other.tokens - base.tokens
        assert price.slots == other.state_slots - base.state_slots
        assert price.requests == other.running_requests - base.running_requests


def test_a_fraction_that_a_kernel_takes_from_is_priced_as_typed() -> None:
    """On an MI300X with aiter: what +0.01 is said to buy is what the engine gives for it."""
    made = plan({"tp_size": 8, "attention_backend": "aiter"}, gpu="mi300x", environment={"SGLANG_USE_AITER": "1"})
    server = Server(made, MemoryGiven(188.0, weights_gib=45.0))
    price = price_of(server, "mem_fraction_static")
    typed = again(server, price.flags)
    assert typed.sizes.tokens - server.sizes.tokens == price.tokens > 0
    assert float(price.after) - float(price.before) == pytest.approx(0.01)
    # 0.0085 of 188 GiB: to states and tokens as the ratio of 0.9 has it
    assert price.tokens == pytest.approx(0.0085 * 188 * GIB / 1.9 / (11 * (1024 + 132)), rel=0.01)


def test_prices_in_the_engines_bytes() -> None:
    """With the slots fixed: one slot more costs its bytes in tokens, one request more costs four snapshots."""
    server = server_of(MTP | {"max_mamba_cache_size": 700})
    slot, page = 36_904_960, 64
    assert price_of(server, "max_mamba_cache_size").tokens == pytest.approx(-slot / 7728, abs=page)
    assert price_of(server, "max_running_requests").tokens == pytest.approx(-4 * slot / 7728, abs=page)
    assert price_of(server, "mem_fraction_static").tokens == pytest.approx(0.01 * 177 * GIB / 7728, abs=page)
    # 49 rows of the request table are 1024 tokens narrower, 4 bytes each
    assert price_of(server, "context_length").free_bytes == 49 * 1024 * 4


def test_a_request_beyond_the_slots_is_priced_with_its_slots() -> None:
    server = server_of(MTP | {"max_mamba_cache_size": 100})
    price = price_of(server, "max_running_requests with its state slots")
    assert (price.before, price.after) == ("20", "21")
    assert (price.slots, price.requests) == (5, 1)


def test_a_layout_is_priced_with_memory_of_its_own() -> None:
    server = Server(plan(PLAIN, gpu="b200"), MemoryGiven())
    price = price_of(server, "tp_size")
    assert again(server, price.flags).given == MemoryGiven() and not price.estimated  # nothing was read
    base = server.sizes
    wider = Server(plan(PLAIN | {"tp_size": 8}, gpu="b200"), MemoryGiven()).sizes
    assert (price.slots, price.tokens) == (wider.state_slots - base.state_slots, wider.tokens - base.tokens)
    assert price.slots > base.state_slots  # half the bytes a slot, and lighter weights


def test_a_step_that_would_not_start_says_so() -> None:
    available = 177.0 * (1 - 0.81225) + 100 / 1024 + (101 * 36_904_960 + 600_000) / GIB
    server = server_of(PLAIN | {"max_mamba_cache_size": 100}, available=available)
    assert price_of(server, "max_mamba_cache_size").failure is not None


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


MTP_DEPLOYMENT = plan(MTP).deployment
MIXES = st.lists(st.tuples(st.integers(1, 300_000), st.integers(1, 50)), min_size=1, max_size=6)


@given(MIXES, st.integers(1, 400))
def test_a_mix_is_never_shorter_than_its_shares(pairs: list[tuple[int, int]], requests: int) -> None:
    mix = contexts([(length, Fraction(share)) for length, share in pairs])
    counts, more = mix.shared(requests), mix.shared(requests + 1)
    assert sum(counts) == requests and min(counts) >= 0
    assert mix.shared(1)[0] == 1
    share = Fraction(0)
    for index, weight in enumerate(mix.weights):
        share += Fraction(weight, sum(mix.weights))
        assert sum(counts[: index + 1]) >= share * requests
        assert sum(more[: index + 1]) >= sum(counts[: index + 1])


@given(MIXES, st.integers(1, 400), st.integers(0, 3_000_000), st.integers(0, 900), st.integers(0, 300))
def test_served_is_the_most_that_fits(
    pairs: list[tuple[int, int]], concurrency: int, tokens: int, slots: int, requests: int
) -> None:
    demand = Demand(contexts([(length, Fraction(share)) for length, share in pairs]).as_mean, concurrency, 1)
    got = served(demand, MTP_DEPLOYMENT, PoolSizes(tokens, slots, requests)).per_worker

    def fits(count: int) -> bool:
        lengths = [
            n for n, c in zip(demand.contexts.lengths, demand.contexts.shared(count), strict=True) for _ in range(c)
        ]
        filled = sum(-(-(length + 8) // 64) * 64 for length in lengths)  # 8: twice the 4 draft tokens
        return count <= min(concurrency, requests) and count * (5 + 1) <= slots and filled <= tokens

    if got:
        assert fits(got) and tokens > demand.contexts.longest
    assert not fits(got + 1) or tokens <= demand.contexts.longest


def test_a_pool_as_long_as_the_context_serves_none() -> None:
    """The engine admits a request only if a token of the pool stays beside it."""
    demand = Demand(parse_contexts("64k"), 1)
    deployment = plan(PLAIN).deployment
    assert served(demand, deployment, PoolSizes(65536, 100, 10)).per_worker == 0
    assert served(demand, deployment, PoolSizes(65536 + 64, 100, 10)).per_worker == 1


# --- advice ---------------------------------------------------------------------------------------------------------

LAZY = MTP | {
    "mamba_radix_cache_strategy": "extra_buffer_lazy",
    "mamba_ssm_dtype": "bfloat16",
    "max_running_requests": 512,
}
RINGS = MTP | {"enable_linear_replayssm_spec": True, "max_running_requests": 96}
GRID = [
    (server_of(flags, pre, available, release), Demand(parse_contexts(mix), concurrency, checkpoints))
    for flags, (pre, available), release, mix, (concurrency, checkpoints) in product(
        (
            MTP,
            PLAIN,
            PLAIN | {"max_running_requests": 32},
            MTP | {"max_running_requests": 96},
            PLAIN
            | {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
            | {"kv_row_layout": "bf16", "chunked_prefill_size": 8192},
            MTP | FOUR_WORKERS | {"max_running_requests": 256},
            MTP
            | {
                "mamba_ssm_dtype": "bfloat16",
                "max_running_requests": 512,
                "mamba_radix_cache_strategy": "extra_buffer_lazy",
            },
            PLAIN | {"pp_size": 2},
            MTP | {"max_mamba_cache_size": 64, "max_total_tokens": 500_000},
        ),
        ((177.0, 126.0), (138.5, 60.0)),
        ("0.5.20", "0.5.21", "0.5.23"),
        ("8k", "0.8:8k,0.2:128k", "1m"),
        ((1, 0), (24, 2), (96, 0), (500, 0)),
    )
]
GRID += [(server_of(RINGS), Demand(parse_contexts(mix), most)) for mix, most in product(("8k", "1m"), (1, 96, 500))]
GRID += [
    (server_of(flags | {"disable_radix_cache": True}), Demand(parse_contexts("128k"), concurrency))
    for flags, concurrency in product((MTP, PLAIN), (1, 40, 400))
]


def test_advice_is_never_worse_than_the_default_split() -> None:
    """Over the grid: no fewer requests of the workload than the engine's own split serves, and it does what it says."""
    better = 0
    for number, (server, demand) in enumerate(GRID):
        advice = advise(server, demand, nearest=0, keep_fraction=number % 5 > 0)
        default = again(server, dict.fromkeys(("max_mamba_cache_size", "max_total_tokens")))
        by_default = served(demand, default.deployment, default.sizes).requests if default.starts else 0
        assert advice.default.requests == by_default
        assert advice.served.requests >= by_default, (server.plan.flags, demand)
        better += advice.served.requests > by_default
        if not advice.flags:
            assert advice.served.requests == 0
            continue
        typed = again(server, advice.flags)
        assert typed.sizes == (advice.solution.sizes if advice.solution else None)
        assert typed.sizes.tokens == advice.flags["max_total_tokens"]
        assert served(demand, typed.deployment, typed.sizes).requests == advice.served.requests
        assert advice.holds == (advice.served.requests >= demand.concurrency)
    assert better > len(GRID) // 10


def test_the_shortage_is_what_is_short() -> None:
    demand = Demand(parse_contexts("1m"), 16)
    advice = advise(server_of(MTP), demand, keep_fraction=True)
    assert advice.shortage is not None and advice.shortage.missing_bytes is not None
    assert advice.shortage.missing_requests == 16 - advice.served.requests > 0
    missing = advice.shortage.missing_bytes / GIB
    assert advise(server_of(MTP, available=126.0 + missing), demand, keep_fraction=True).holds
    less = server_of(MTP, available=126.0 + missing - 2 * MIB / GIB)
    assert not advise(less, demand, keep_fraction=True).holds


def test_layouts_offered_do_serve_the_demand() -> None:
    server = Server(plan({"tp_size": 4, "speculative_algorithm": "EAGLE"}, gpu="b200"), MemoryGiven(177.0, 126.0))
    demand = Demand(parse_contexts("1m"), 16)
    advice = advise(server, demand)
    assert advice.shortage is not None
    assert advice.layouts
    assert [layout.gpus for layout in advice.layouts] == sorted(layout.gpus for layout in advice.layouts)
    for layout in advice.layouts:
        other = server.with_flags(**layout.changes)
        assert other.deployment.world_size == layout.gpus and other.memory_moved == layout.estimated
        assert advise(other, demand, keep_fraction=True).holds


def test_the_chunk_leaves_room_for_the_indexers_logits() -> None:
    """0.5.20 scores a whole chunk against the whole context at once: chunk * 262,144 index rows * 4 bytes."""
    server = server_of(MTP | {"mem_fraction_static": 0.95}, release="0.5.20")
    small, large = (advise(server, Demand(parse_contexts(text), 2)) for text in ("8k", "1m"))
    assert small.flags["chunked_prefill_size"] == 16384
    chunk = large.flags["chunked_prefill_size"]
    assert chunk < 16384
    assert chunk * 262_144 * 4 < large.headroom.needed <= large.headroom.usable
    assert 2 * chunk * 262_144 * 4 + large.headroom.needed - chunk * 262_144 * 4 > large.headroom.usable
    assert large.flags["mem_fraction_static"] == 0.95


def test_spare_tokens_make_room_for_serving() -> None:
    server = server_of(MTP | {"mem_fraction_static": 0.995}, release="0.5.20")
    advice = advise(server, Demand(parse_contexts("256k"), 2))
    assert advice.holds and advice.solution is not None
    assert advice.flags["chunked_prefill_size"] == 2048
    assert advice.solution.tokens < advice.solution.token_capacity
    assert 0 <= advice.headroom.usable - advice.headroom.needed < 8 * MIB


def test_the_fraction_rises_only_into_what_serving_does_not_need() -> None:
    demand = Demand(parse_contexts("1m"), 16)
    server = server_of(MTP)
    as_it_is, raised = advise(server, demand, keep_fraction=True, nearest=0), advise(server, demand, nearest=0)
    assert as_it_is.flags["mem_fraction_static"] == 0.81225
    assert raised.flags["mem_fraction_static"] > 0.81225
    assert raised.served.requests > as_it_is.served.requests
    assert raised.headroom.usable >= raised.headroom.needed + raised.headroom.unsure
    enough = advise(server, Demand(parse_contexts("1m"), as_it_is.served.requests), nearest=0)
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
    server = Server(plan(flags, gpu="h200", engine=engine), MemoryGiven(138.5, 89.0))
    for text, concurrency in (("0.8:8k,0.2:128k", 96), ("1m", 16), ("128k", 400)):
        demand = Demand(parse_contexts(text), concurrency)
        advice = advise(server, demand, nearest=3)
        assert advice.served.requests >= default_split(server, demand).requests
        pasted = Server(plan({**flags, **advice.flags}, gpu="h200", engine=engine), server.given)
        assert advice.solution is not None and pasted.sizes == advice.solution.sizes
        assert served(demand, pasted.deployment, pasted.sizes).requests == advice.served.requests
        assert pasted.deployment.mem_fraction_static == advice.flags["mem_fraction_static"]
        for layout in advice.layouts:
            other = server.plan.with_flags(**layout.changes)
            assert other.deployment.world_size == layout.gpus
        assert {price.knob for price in prices(server)} >= {"tp_size", "context_length", "mem_fraction_static"}


def test_another_state_dtype_only_where_asked() -> None:
    demand = Demand(parse_contexts("8k"), 400)
    server = server_of(MTP | {"mem_fraction_static": 0.6})
    plain = advise(server, demand, keep_fraction=True)
    asked = advise(server, demand, keep_fraction=True, state_dtype="bfloat16")
    assert "mamba_ssm_dtype" not in plain.flags
    assert asked.flags["mamba_ssm_dtype"] == "bfloat16"
    assert asked.served.requests > plain.served.requests
    assert "--mamba-ssm-dtype bfloat16" in typed(asked.flags)


def test_checkpoints_take_their_slots() -> None:
    server = server_of(MTP | {"mem_fraction_static": 0.5})
    demand = Demand(parse_contexts("8k"), 400)
    without, with_three = advise(server, demand), advise(server, demand._replace(prefix_states=3))
    assert with_three.served.requests < without.served.requests
    assert with_three.flags["max_mamba_cache_size"] >= 8 * with_three.served.requests


@pytest.mark.parametrize(
    ("flags", "demand"),
    [
        (MTP, Demand(parse_contexts("8k"), 0)),
        (MTP, Demand(parse_contexts("8k"), 1, -1)),
        (MTP | {"disable_radix_cache": True}, Demand(parse_contexts("8k"), 1, 1)),
    ],
)
def test_demands_no_server_can_meet(flags: dict[str, Any], demand: Demand) -> None:
    with pytest.raises(InputError):
        advise(server_of(flags), demand)


def test_a_length_the_server_refuses_is_let_in_where_the_model_has_it() -> None:
    mix = parse_contexts("0.5:8k,0.5:128k")
    short = advise(server_of(MTP | {"context_length": 65_536}), Demand(mix, 40))
    assert short.default == Served(0, 0, "context length") and short.holds
    assert short.flags == {"context_length": 131_072, **advise(server_of(MTP), Demand(mix, 40)).flags}
    beyond = advise(server_of(MTP), Demand(parse_contexts("2m"), 3))
    assert (beyond.flags, beyond.served, beyond.layouts) == ({}, Served(0, 0, "context length"), ())
    assert beyond.shortage is not None
    assert (beyond.shortage.missing_requests, beyond.shortage.limit) == (3, "context length")


def test_the_default_split_ignores_the_users_own() -> None:
    demand = Demand(parse_contexts("128k"), 40)
    own = server_of(MTP | {"max_mamba_cache_size": 64, "max_total_tokens": 500_000})
    assert default_split(own, demand) == default_split(server_of(MTP), demand)


@pytest.mark.parametrize("text", ["8k", "0.8:8k,0.2:128k"])
def test_advice_tries_few_servers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes is what it tries: some 60 microseconds a server. The load is more than the server holds."""
    tried, with_flags = 0, Server.with_flags

    def counted(server: Server, **changes: object) -> Server:
        nonlocal tried
        tried += 1
        return with_flags(server, **changes)

    monkeypatch.setattr(Server, "with_flags", counted)
    flags = {"tp_size": 8, "dp_size": 4, "enable_dp_attention": True, "speculative_algorithm": "EAGLE"}
    advice = advise(Server(plan(flags, gpu="b200"), MemoryGiven()), Demand(parse_contexts(text), 2000))
    assert not advice.holds and advice.served.requests > 100
    assert tried <= 200
