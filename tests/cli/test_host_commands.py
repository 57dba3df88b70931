"""Host memory and PD roles as the commands show them: worked numbers, a public case, fit, coverage, refusals."""

import json
from typing import Any

import pytest
from paths import DATA
from running import run

import glm_kvplan as kv
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.host_sizes import host_pools
from glm_kvplan.units import GIB

CASES = DATA / "cases"
SIZES = kv.PoolSizes(64_000 // 256 * 256, 100, 16)
# Worked example A: H200, TP8, DP attention 8, 138.5 GiB free before and 84.0 GiB after the load.
EXAMPLE_A = (
    *("solve", "--gpu", "h200", "--tp-size", "8", "--dp-size", "8", "--enable-dp-attention"),
    *("--pre-gib", "138.5", "--available-gib", "84.0", "--enable-hierarchical-cache"),
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(run(capsys, *words, "--json")[1])


@pytest.mark.parametrize(
    ("release", "pools"),
    [
        ("0.5.21", {"kv": 46_769_569_792, "mamba": 47_090_728_960}),
        ("0.5.22", {"kv": 49_571_692_544, "mamba": 45_614_530_560, "indexer": 1_597_618_176}),
    ],
)
def test_worked_example(capsys: pytest.CaptureFixture[str], release: str, pools: dict[str, int]) -> None:
    """93.86 GB a rank and 750.9 GB a node on 0.5.21, 96.78 GB a rank on 0.5.22."""
    host = answer(capsys, *EXAMPLE_A, "--engine", release, "--hicache-ratio", "2")["host"]
    assert {pool["name"]: pool["bytes"] for pool in host["stages"][0]["pools"]} == pools
    assert host["bytes_per_rank"] == sum(pools.values())
    assert host["bytes_by_host"] == [8 * sum(pools.values())]
    if release == "0.5.21":
        assert [(pool["units"], pool["pages"]) for pool in host["stages"][0]["pools"]] == [
            (4_152_128, 64_877),
            (319, 319),
        ]
        # 64 pages on their way, beside 1,024-byte rows of 11 layers; the map counts them outside the budget.
        assert host["stages"][0]["staging_bytes"] == 64 * 64 * 11 * 1024


def test_worked_example_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *EXAMPLE_A, "--all")
    words = " ".join(out.split())
    assert code == 0
    for shown in ("93.86 GB 750.88 GB", "at most 2 times", "never copied to the host: DSA index keys, Compress tails"):
        assert shown in words
    assert "HiCache staging*" in words and "! the DSA index has no host copy" in words
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize(
    ("release", "flags", "sizing", "ratio"),
    [
        ("0.5.21", {}, "automatic", 2.0),
        ("0.5.21", {"hicache_ratio": 1.5}, "ratio", 1.5),
        ("0.5.21", {"hicache_ratio": 2.0}, "ratio", 2.0),
        ("0.5.21", {"hicache_size": 30}, "size", None),
        ("0.5.21", {"hicache_host_memory_fraction": 0.5}, "automatic", 2.0),
        ("0.5.20", {}, "ratio", 2.0),
        ("0.5.23", {"hicache_size": 30, "hicache_ratio": 3.0}, "size", None),
        ("0.5.23", {"disaggregation_mode": "decode", "disaggregation_decode_enable_radix_cache": True}, "automatic", 2),
    ],
)
def test_flags_choose_the_rule(release: str, flags: dict[str, object], sizing: str, ratio: float | None) -> None:
    """An explicit ratio or size is taken as it is; the release's own default is lowered where the release does that."""
    plan = kv.plan({"enable_hierarchical_cache": True, **flags}, engine=release)
    found = host_pools(rank_of(plan), SIZES)
    assert (found.sizing, found.ratio) == (sizing, ratio)


def test_automatic_ratio_with_known_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """(900 - 10) GiB for 8 ranks, 0.8 of it, 0.95 of that over the device pools' bytes."""
    host = answer(capsys, *EXAMPLE_A, "--host-gib", "900")["host"]
    stage = host["stages"][0]
    # latent KV and index of 2,076,032 tokens, states of 160 slots (example A's own allocation table)
    device = 23_385_145_344 + 3_014_491_392 + 802_160_640 + 22_817_013_760
    budget = int(890 * GIB // 8 * 0.8)
    assert (stage["sizing"], stage["budget_bytes"]) == ("automatic", budget)
    assert stage["ratio"] == min(2.0, budget * (1 - 0.05) / device)
    assert host["fit"]["fits"] and host["fit"]["spare_bytes"] == 890 * GIB - host["bytes_by_host"][0]


def dynamo() -> list[str]:
    words = []
    for name, value in json.loads((CASES / "dynamo-b200-agg-flags.json").read_text())["flags"].items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


def test_a_size_per_rank_against_a_pod(capsys: pytest.CaptureFixture[str]) -> None:
    """cases/dynamo-b200-agg-flags: 100 GB a rank for four ranks, in a pod of 256 GiB."""
    given = json.loads((CASES / "dynamo-b200-agg-flags.json").read_text())["printed"]["pod_memory_request"]
    words = ["solve", "--gpu", "b200", *dynamo(), "--pod-gib", given.removesuffix("Gi")]
    code, out, _ = run(capsys, *words)
    assert code == 1
    assert "does not fit: 256 GiB for its container" in " ".join(out.split())
    host = answer(capsys, *words)["host"]
    assert 400 * 10**9 < host["bytes_by_host"][0] < 401 * 10**9
    assert host["fit"]["spare_bytes"] == 246 * GIB - host["bytes_by_host"][0]
    assert host["fit"]["largest_size"] == 66
    assert host["certainty"] == "estimated"
    assert "size_is_per_rank" in [hazard["kind"] for hazard in host["hazards"]]


def test_the_ratio_named_is_the_last_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    memory = ("--host-gib", "600")
    ratio = answer(capsys, *EXAMPLE_A, "--hicache-ratio", "2", *memory)["host"]["fit"]["largest_ratio"]
    assert run(capsys, *EXAMPLE_A, *memory, "--hicache-ratio", "2")[0] == 1
    assert run(capsys, *EXAMPLE_A, *memory, "--hicache-ratio", f"{ratio}")[0] == 0
    assert run(capsys, *EXAMPLE_A, *memory, "--hicache-ratio", f"{ratio + 0.001:.3f}")[0] == 1


@pytest.mark.parametrize("context", ["8k", "128k"])
@pytest.mark.parametrize("release", ["0.5.21", "0.5.23"])
@pytest.mark.parametrize("sized", [("--hicache-ratio", "2"), ("--hicache-size", "90")])
def test_the_slots_named_level_the_tiers(
    capsys: pytest.CaptureFixture[str], context: str, release: str, sized: tuple[str, str]
) -> None:
    """Solving with the flag gives what was promised, and tiers that differ by one step of a slot at most."""
    words = (*EXAMPLE_A, *sized, "--engine", release, "--context", context)
    before = answer(capsys, *words)["host"]
    level = before["level"]
    again = answer(capsys, *words, "--max-mamba-cache-size", str(level["max_mamba_cache_size"]))
    assert again["max_total_num_tokens"] == level["sizes"]["tokens"]
    assert again["max_running_requests"] == level["sizes"]["running_requests"]
    after = again["host"]["coverage"]
    assert after == level["coverage"]
    assert after["usable_prefixes"] > before["coverage"]["usable_prefixes"]
    assert abs(after["kv_prefixes"] - after["state_prefixes"]) <= 4
    assert again["host"]["level"] is None or (
        again["host"]["level"]["coverage"]["usable_prefixes"] - after["usable_prefixes"] <= 1
    )


def test_estimate_takes_its_own_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    """64 requests of 128K over 8 workers: 8 x 131,072 tokens, 40 slots a rank; twice that and one more on the host."""
    layout = ("--tp-size", "8", "--dp-size", "8", "--enable-dp-attention", "--enable-hierarchical-cache")
    found = answer(capsys, "estimate", *layout, "--context", "128k", "--concurrency", "64")
    kv_pool, mamba = found["host"]["stages"][0]["pools"]
    assert (kv_pool["units"], mamba["units"]) == (2 * 8 * 131_072 + 64, 81)
    assert (kv_pool["bytes"], mamba["bytes"]) == (kv_pool["units"] * 11_264, 81 * 147_619_840)
    assert found["host"]["coverage"]["prefix_tokens"] == 131_072
    assert answer(capsys, "estimate", *layout[:-1])["host"] is None


def test_packed_draft_layer(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("estimate", "--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "EAGLE")
    host = answer(capsys, *words, "--enable-hierarchical-cache")["host"]
    assert host["packed_draft_layers"] == 1
    assert [pool["layers"] for pool in host["stages"][0]["pools"]] == [12, 35]


def test_decode_server_beyond_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    """32 requests: 32 slots paid for, (32 + 64) held, three times as many."""
    words = ("solve", "--gpu", "b200", "--tp-size", "4", "--pre-gib", "177", "--available-gib", "126")
    decode = (*words, "--disaggregation-mode", "decode", "--max-running-requests", "32")
    over = answer(capsys, *decode)["decode_overrun"]
    assert (over["budgeted_slots"], over["slots"], over["slot_factor"]) == (32, 96, 3.0)
    parts = {part["name"]: part["bytes"] for part in over["parts"]}
    assert parts["temporal_state"] == 34 * 64 * 1_048_576 and parts["conv_state"] == 34 * 64 * 36_864
    assert over["bytes"] == sum(parts.values())
    none = ("--tp-size", "8", "--dp-size", "2", "--enable-dp-attention", "--max-running-requests", "1")  # a worker
    assert answer(capsys, "estimate", *none, "--disaggregation-mode", "decode")["decode_overrun"]["budgeted_slots"] == 0
    _, out, _ = run(capsys, *decode)
    assert "! decode role: the pool holds 96 state slots where the budget pays for 32 (3 times)" in " ".join(
        out.split()
    )
    _, out, _ = run(capsys, *decode, "--disaggregation-decode-extra-slots", "0")
    assert "decode role: the pool" not in out
    assert answer(capsys, *words, "--disaggregation-mode", "prefill")["decode_overrun"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("estimate", "--host-gib", "512"), "add --enable-hierarchical-cache"),
        (("estimate", "--enable-hierarchical-cache", "--host-gib", "nan"), "more than 0"),
        (("estimate", "--enable-hierarchical-cache", "--pod-gib", "-1"), "more than 0"),
        (("estimate", "--enable-hierarchical-cache", "--hicache-mem-layout", "layer_first"), "page_first"),
        (("estimate", "--enable-hierarchical-cache", "--disable-radix-cache"), "prefix cache"),
    ],
)
def test_refused_in_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, *words)
    refused_by_engine = says in ("page_first", "prefix cache")  # an answer, and it is no
    assert (code, out) == (1 if refused_by_engine else 2, "")
    assert err.count("\n") == 1 and says in err


def test_contexts_are_counted_and_their_mean_is_the_cached_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    for lengths, prefix in (("8k", 8192), ("0.75:8k,0.25:128k", 38_912)):
        found = answer(capsys, *EXAMPLE_A, "--context", lengths)
        assert found["host"]["coverage"]["prefix_tokens"] == prefix and found["served"]["requests"] > 0
    plain = answer(capsys, "solve", "--gpu", "h200", "--tp-size", "8", "--context", "8k")
    assert plain["host"] is None and plain["served"]["requests"] > 0
