"""`kvplan explain`: every trap of the article answered with the article's own numbers, and the map."""

import json
import re
import tomllib
from typing import Any

import pytest
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.cli import main
from glm_kvplan.engines.explanation import Explanation
from glm_kvplan.engines.sglang.explain import topics
from glm_kvplan.engines.sglang.explain.location_topic import places
from glm_kvplan.engines.sglang.explain.topic import Ground
from glm_kvplan.engines.sglang.profile import releases
from glm_kvplan.errors import InputError

NUMBERS = tomllib.loads((DATA / "article.toml").read_text(encoding="utf-8"))["number"]
ONE_128K = kv.Workload(131_072, 1)
SCALED: dict[str, object] = {"kv_cache_dtype": "fp8_e4m3"}
RAW = {**SCALED, "dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm"}
DP8 = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
DEPLOYMENTS: list[dict[str, object]] = [
    {},
    {**DP8, **SCALED, "enable_hierarchical_cache": True},
    {"tp_size": 4, "speculative_algorithm": "EAGLE"},
    {"pp_size": 2},
    {"disable_radix_cache": True},
    {"tp_size": 4, "disaggregation_mode": "decode", "max_running_requests": 32},
    {"enable_hierarchical_cache": True, "disable_overlap_schedule": True, "mamba_ssm_dtype": "bfloat16"},
]


def article(place: str, says: str) -> Any:
    (found,) = (number["value"] for number in NUMBERS if (number["place"], number["says"]) == (place, says))
    return found


def ground(workload: kv.Workload = ONE_128K, engine: str = "0.5.21", **flags: object) -> Ground:
    return topics.ground(kv.plan(flags, engine=engine), workload)


def told(topic: str, engine: str = "0.5.21", **flags: object) -> Explanation:
    return topics.explain(ground(engine=engine, **flags), topic)


def figures(found: Explanation, reading: str) -> list[int]:
    return [figure.value for figure in found.figures if figure.reading == reading]


def test_row() -> None:
    for flags, says, width in ((SCALED, "scaled FP8 kv_cache_dim", 1), (RAW, "raw FP8 kv_cache_dim", 1)):
        found = told("row", **flags)
        deepseek = article("trap 1", "a DeepSeek V3 row with its 64-wide RoPE")
        assert figures(found, "right") == [11 * width * article("trap 1", says)]
        assert figures(found, "wrong") == [11 * width * deepseek]
    assert figures(told("row"), "right") == [11 * 2 * article("trap 1", "bf16 kv_cache_dim")]


def test_the_three_row_layouts_side_by_side() -> None:
    """The article's 1.1 to 1.3: a row, its eleven layers, the indexer, and both."""
    index, both = article("1.2", "indexer a token"), article("6", "scaled FP8 a token")
    found = told("row", **SCALED).table
    assert found is not None
    rows = {row.name: row.values for row in found.rows}
    assert rows == {
        "bf16": (2 * article("trap 1", "bf16 kv_cache_dim"), article("1.1", "bf16 KV a token"), index, 11_264 + 1_452),
        "FP8 with scales": (
            article("conventions", "a scaled FP8 row is 528 B"),
            article("1.1", "scaled FP8 KV a token"),
            index,
            both,
        ),
        "raw FP8": (
            article("conventions", "a TRT-LLM raw row is 512 B"),
            article("1.1", "raw FP8 KV a token"),
            index,
            article("6", "raw FP8 a token"),
        ),
    }
    for flags, name in (({}, "bf16"), (SCALED, "FP8 with scales"), (RAW, "raw FP8")):
        table = told("row", **flags).table
        assert table is not None and [row.name for row in table.rows if row.here] == [name]


def test_slots_of_every_strategy() -> None:
    """The article's 2.2: slots a request, and a request's MB with either type of state."""
    found = told("slot").table
    assert found is not None
    slots = [row.values[0] for row in found.rows]
    assert slots[:2] == [
        article("conventions", "default extra_buffer with overlap reserves 5 state slots a request"),
        article("conventions", "overlap off: 4"),
    ]
    assert slots[2:] == [4, article("conventions", "no_buffer: 3"), 1]
    assert [round(value / 10**6) for value in found.rows[0].values[1:]] == [
        article("2.2", "KDA budget of a request, fp32"),
        article("2.2", "KDA budget of a request, bf16"),
    ]
    places = (
        {},
        {"disable_overlap_schedule": True},
        {"mamba_radix_cache_strategy": "extra_buffer_lazy"},
        {"disable_radix_cache": True},
    )
    for flags, name in zip(places, (0, 1, 2, 4), strict=True):
        table = told("slot", **flags).table
        assert table is not None and [row.here for row in table.rows].index(True) == name
        assert table.rows[name].values[0] == kv.plan(flags).deployment.slots_per_request
        assert table.rows[3].note.startswith("refused")  # for this model's pages
    with pytest.raises(kv.RefusedError, match="no_buffer"):
        kv.plan({"mamba_radix_cache_strategy": "no_buffer"})


def test_two_loads_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """The article's chapter 6: 64 requests of 128K on one rank; a load beside it has sums of its own."""
    found = topics.explain(topics.ground(kv.plan(SCALED), kv.Workload(131_072, 64), kv.Workload(4096, 64)), "loads")
    assert found.table is not None and found.table.columns == ("64 x 131,072 tokens", "64 x 4,096 tokens")
    rows = {row.name: row.values for row in found.table.rows}
    long, short = (rows["MLA latent KV"][side] + rows["DSA indexer"][side] for side in (0, 1))
    assert round(long / 10**9, 1) == article("6", "64 requests of 128K: tokens, GB") and long == 32 * short
    state = article("6", "one rank, 64 requests: KDA, fp32, GB")
    assert [round(value / 10**9, 1) for value in rows["KDA state"]] == [state, state]
    found = topics.explain(topics.ground(kv.plan({**SCALED, **DP8}), kv.Workload(131_072, 64)), "loads")
    assert found.table is not None and found.table.columns[1] == "4,096 x 2,048 tokens"  # the same tokens
    rows = {row.name: row.values for row in found.table.rows}
    one = rows["MLA latent KV"][0] + rows["DSA indexer"][0]
    assert round(one / 10**9, 1) == article("6", "DP8: tokens a rank, GB")
    assert round(rows["KDA state"][0] / 10**9, 1) == article("6", "DP8: KDA a rank, fp32, GB")
    code, out, _ = run(capsys, "loads", "--context", "4k", "--concurrency", "64", "--beside", "8x128k")
    assert code == 0 and re.search(r"one rank +64 x 4,096 tokens +8 x 131,072 tokens\n", out)
    for words in (("loads", "--beside", "8"), ("loads", "--beside", "x8k"), ("row", "--beside", "8x8k")):
        code, _, err = run(capsys, *words)
        assert code == 2 and err.startswith("kvplan: --beside")


def test_token() -> None:
    found = told("token", **SCALED)
    per_token = article("trap 2", "5,808 + 1,452")
    assert found.title.startswith(f"{per_token:,} B a token")
    assert figures(found, "wrong") == [131_072 * per_token]
    assert figures(found, "right") == [131_072 * per_token + 5 * 147_619_840]
    assert told("token", **RAW).title.startswith(f"{article('trap 2', 'raw'):,} B a token")


def test_page() -> None:
    found = told("page")
    assert f"{article('trap 3', 'the page row stays 8,448 B'):,} B in each" in found.lines[0]
    assert figures(found, "right") == [1452, 64]
    assert figures(found, "wrong") == [363, 16]
    later = told("page", "0.5.22")
    assert figures(later, "right") == [363, 256]
    assert "8,448 B" in later.lines[0]


def test_tail() -> None:
    found = topics.explain(ground(kv.Workload(131_072, 64)), "tail")
    assert figures(found, "right") == [0]
    assert figures(found, "wrong") == [2 * 66 * 4 * 128 * 2 * 2 * 11]
    assert "66 rows for 64 requests" in found.lines[1] and "1.42 MiB" in found.lines[1]


def test_pools() -> None:
    found = told("pools", **SCALED)
    assert "11 layers of rows" in found.lines[0] and "34 layers of state" in found.lines[0]
    assert article("trap 5", "layers of both sub-pools together") == 11 + 34
    assert figures(found, "right") == [147_619_840 // 7260]
    assert "35 layers of state" in told("pools", speculative_algorithm="EAGLE").lines[0]


def test_indexer() -> None:
    found = told("indexer", enable_hierarchical_cache=True, **SCALED)
    assert figures(found, "right") == [11 * 512]  # the host row before 0.5.22 has no room for scales
    assert figures(found, "wrong") == [11 * 512 + 1452]
    later = told("indexer", "0.5.22", enable_hierarchical_cache=True, **SCALED)
    assert figures(later, "right") == [11 * 528 + 363]
    assert "from 0.5.22 on" in " ".join(found.lines)


def test_slot() -> None:
    found = told("slot")
    (request,), (one,) = figures(found, "right"), figures(found, "wrong")
    assert round(one / 10**6, 1) == article("trap 7", "slot, fp32, MB")
    assert round(request / 10**6) == article("trap 7", "five slots, MB")
    bf16 = told("slot", mamba_ssm_dtype="bfloat16")
    assert round(figures(bf16, "wrong")[0] / 10**6, 1) == article("trap 7", "slot, bf16, MB")
    assert round(figures(bf16, "right")[0] / 10**6) == article("trap 7", "five slots, bf16, MB")
    assert f"{figures(bf16, 'wrong')[0]:,} B a slot" in found.lines[2]
    assert "5 for a running request" in found.lines[1]
    off = told("slot", disable_radix_cache=True)
    assert (figures(off, "right"), figures(off, "wrong")) == ([147_619_840], [5 * 147_619_840])
    assert "4 for a running request" in told("slot", disable_overlap_schedule=True).lines[1]


def test_tp() -> None:
    dp4 = told("tp", tp_size=8, dp_size=4, enable_dp_attention=True)
    assert f"= {article('trap 8', 'TP8 DP4: attn_tp')};" in dp4.lines[0]
    assert (figures(dp4, "right"), figures(dp4, "wrong")) == ([147_619_840 // 2], [147_619_840])
    plain = told("tp", tp_size=8)
    assert f"= {article('trap 8', 'TP8: attn_tp')};" in plain.lines[0]
    assert figures(plain, "right") == [147_619_840 // 8]
    whole = told("tp", **DP8)
    assert (figures(whole, "right"), figures(whole, "wrong")) == ([147_619_840], [147_619_840 // 8])


def test_mtp() -> None:
    off, on = told("mtp", **SCALED), told("mtp", speculative_algorithm="EAGLE", **SCALED)
    assert article("trap 9", "num_nextn_predict_layers") == 1 and "has 1 draft layer" in off.lines[0]
    assert off.figures == on.figures
    added = figures(on, "right")[0] - figures(on, "wrong")[0]
    layer, page = 4_341_760, 64
    assert added == (
        (131_072 + page) * 528  # the draft layer's rows, with the padding page
        + (131_072 // page + 1) * page * 132  # and its index keys
        + 35 * 2 * 4 * layer  # four snapshots for the request and the padding row, draft slab included
        + 6 * layer  # the slab beside five slots and the padding slot
        + 4 * (11 * 2 * 3 * 4 * 128) + 2 * 3 * 8 * 128 * 2 - 2 * (11 * 2 * 3 * 4 * 128)  # wider tails, and the draft's
        + 2 * (71 - 4) * 4  # wider request rows
        + 8  # the draft pool's table of one layer address
    )  # fmt: skip


@pytest.mark.parametrize("flags", DEPLOYMENTS, ids=str)
@pytest.mark.parametrize("release", releases())
def test_every_topic_answers_every_deployment(release: str, flags: dict[str, object]) -> None:
    found = ground(engine=release, **flags)
    for topic in topics.TOPICS:
        told = topics.explain(found, topic)
        assert 1 <= len(told.lines) <= 6 and told.source
        assert {figure.unit for figure in told.figures} <= {"B", "B/token", "tokens"}
        assert not figures(told, "wrong") or figures(told, "wrong") != figures(told, "right")


@pytest.mark.parametrize("topic", ["row", "page", "slot", "tp", "token", "tail"])
@pytest.mark.parametrize("flags", DEPLOYMENTS[:4], ids=str)
def test_formulas_hold(topic: str, flags: dict[str, object]) -> None:
    """The formula in numbers, worked out, is the right figure (of a tail: its bytes in HBM)."""
    found = told(topic, **flags)
    assert re.fullmatch(r"[\d\s+*/()-]+", found.numbers)
    expected = figures(found, "right")[0] if topic != "tail" else figures(found, "wrong")[0] // 2
    assert eval(found.numbers) == expected


def test_map() -> None:
    found = places(ground(enable_hierarchical_cache=True, **SCALED))
    assert {place.location.name: (place.location.bytes_per_unit, place.location.unit) for place in found} == {
        "latent_kv": (5808, "token"),
        "indexer": (1452, "token"),
        "compress_tail": (22_528, "request row"),
        "kda_state": (147_619_840, "state slot"),
        "request_table": (4 * (1_048_576 + 4), "request row"),
    }
    host = {place.location.name: place.location.host_pool for place in found}
    assert host["latent_kv"] == "KV" and host["kda_state"] == "MAMBA" and host["indexer"] is None


def test_map_prices_the_draft() -> None:
    found = ground(tp_size=4, speculative_algorithm="EAGLE", **RAW)
    prices = {place.location.name: place.location.bytes_per_unit for place in places(found)}
    assert (prices["draft_kv"], prices["draft_indexer"]) == (512, 132)
    assert prices["compress_tail"] == (11 + 1) * 2 * (4 + 4) * 128 * 2
    assert sum(place.nbytes for place in places(found)) > 0.99 * found.answer.largest.attribution.allocated


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["explain", *words])
    out, err = capsys.readouterr()
    return left.value.code, out, err


def test_map_fits_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("where", "--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "EAGLE")
    _, out, _ = run(capsys, *words, "--enable-hierarchical-cache", "--engine", "0.5.22")
    assert all(len(line) <= 80 for line in out.splitlines())
    assert re.search(r"MLA latent KV +5,632 B/token +FULL \S+ +KV\n", out)
    assert re.search(r"DSA index keys +363 B/token +FULL \S+ +INDEXER\n", out)
    assert re.search(r"KDA state +36,904,960 B/slot +MAMBA \S+ +MAMBA\n", out)
    assert re.search(r"Compress tails +49,152 B/row +no copy\n", out)
    _, out, _ = run(capsys, *words)
    assert "DRAM (off)" in out and "▶" not in out and out.count("no copy") == 8


def test_list_json_and_unknown_topics(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    listed, _, how = out.partition("\n\n")
    assert code == 0 and [line.split()[0] for line in listed.splitlines()] == list(topics.TITLES)
    assert how.startswith("kvplan explain TOPIC explains one")
    assert json.loads(run(capsys, "--json")[1])["topics"] == topics.TITLES
    shown = json.loads(run(capsys, "where", "--json")[1])["places"]
    assert [place["bytes_per_unit"] for place in shown if place["name"] == "latent_kv"] == [11_264]
    shown = json.loads(run(capsys, "slot", "--json", "--tp-size", "8")[1])
    assert [figure["value"] for figure in shown["figures"]] == [5 * 18_452_480, 18_452_480]
    code, _, err = run(capsys, "slots")
    assert (code, err) == (2, "kvplan: explain 'slots': no such topic; did you mean slot?\n")
    with pytest.raises(InputError, match="topics are: where, row"):
        topics.check_topic("xyz")
