"""What a boot's numbers are held against, row by row, what explains one that is off, and what is saved of it all."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from boots import FRAC80, edited, held, plain_lines, printed, read_log
from test_reconcile_oracle import log_of, plain, records

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.flag import check_value
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.engines.sglang.boot_log.calibrated import of_boot, taken_after_pools
from glm_kvplan.engines.sglang.boot_log.causes import _VARIATIONS, causes
from glm_kvplan.engines.sglang.boot_log.host_rows import _between, _bytes_between, host_rows
from glm_kvplan.engines.sglang.boot_log.log_rows import Row
from glm_kvplan.engines.sglang.boot_log.plan_file import plan_document
from glm_kvplan.engines.sglang.boot_log.pool_rows import _rank_rows, _warning_rows
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile, rows_of
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.units import GIB

B200 = "b200x4-mtp6-frac80"
BUILD = "a build whose pools differ from every release known here (a profile of your own: --engine FILE)"
FLAG_UNSEEN = "a flag that the log does not show, or a build that changes the engine's default"


# -- causes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "found"),
    [
        (1, ("a radix cache that is off would explain it",)),
        (4, ("an overlap schedule that is off would explain it",)),
        (3, ()),
    ],
)
def test_slots_of_a_request_tell_what_is_off(slots: int, found: tuple[str, ...]) -> None:
    """docs/byte-model.md, Slots a request reserves: five of this launch."""
    answer = edited("b200x4-mtp6-conc128", ("5 state slots per request", f"{slots} state slots per request"))
    assert answer.first_unexplained is not None and answer.first_unexplained.name == "capped: slots per request"
    assert causes(answer) == found


@pytest.mark.parametrize(
    ("name", "edits", "cause"),
    [
        (
            B200,
            (("'mamba_ssm_dtype': None", "'mamba_ssm_dtype': 'bfloat16'"),),
            "a float32 state (SGLANG_MAMBA_SSM_DTYPE)",
        ),
        (
            "example-b-0.5.21",
            (
                ("prefill_backend': 'trtllm'", "prefill_backend': 'flashmla_kv'"),
                ("decode_backend': 'trtllm'", "decode_backend': 'flashmla_kv'"),
            ),
            "raw FP8 rows of 512 bytes (kernels that need no scales)",
        ),
    ],
)
def test_arguments_that_say_other_bytes_than_were_allocated(
    name: str, edits: tuple[tuple[str, str], ...], cause: str
) -> None:
    assert causes(edited(name, *edits))[0] == f"{cause} would explain it"


def test_rings_that_the_arguments_do_not_tell() -> None:
    record = next(one for one in records("sizing") if plain(one) and "replayssm_rawv" in one["outputs"]["alloc_bytes"])
    lines = log_of(record)
    said = [
        lines[0].replace("'enable_linear_replayssm_spec': True", "'enable_linear_replayssm_spec': False"),
        *lines[1:],
    ]
    assert said != lines
    gpu = "b300" if record["inputs"]["kv_layout"] == "fp8_raw" else "h200:275040"
    answer = reconcile(read_log(said)[0], BesideLog(engine=record["engine"].removeprefix("sglang-"), gpu=gpu))
    assert "replay rings instead of snapshots would explain it" in causes(answer)


def test_a_page_that_no_release_has() -> None:
    assert causes(edited("example-b-0.5.23", ("'page_size': 256", "'page_size': 32"))) == (FLAG_UNSEEN,)


def test_what_is_tried_has_values_that_the_flags_take() -> None:
    tried = [(FLAG[name], value) for _, change in _VARIATIONS for name, value in change.items() if value is not None]
    for flag, value in tried:
        check_value(flag, value)
    assert {value for flag, value in tried if flag.name.startswith(("disable", "enable"))} == {True}
    assert [value for flag, value in tried if flag.name == "speculative_draft_attention_backend"] == ["fa4"]


@pytest.mark.parametrize(
    ("name", "rank", "found"),
    [
        ("token pool size", "PP1 TP0", (BUILD,)),
        ("state pool of TP1", "TP1", ("the ranks do not run the same build or the same flags",)),
        ("cost of nobody", "", ()),
        ("host state slots", "TP1", ()),
    ],
)
def test_what_a_row_s_name_hints_at(name: str, rank: str, found: tuple[str, ...]) -> None:
    row = Row(name, rank, "1", "2", 1, False, "printed sizes")
    assert causes(held("example-b-0.5.23")._replace(rows=(row,))) == found


def test_another_release_that_fits_better_is_told_with_what_it_leaves() -> None:
    """Its page tells 0.5.20 or 0.5.21; the moved number is left to either."""
    edit = ("Reserving 0.10 GB", "Reserving 1.10 GB")
    text = [line.replace(*edit) for line in plain_lines(FRAC80)]
    answer = reconcile(read_log(text)[0], BesideLog(engine="0.5.23"))
    assert answer.better is not None and answer.better.engine == "0.5.20"
    assert causes(answer)[0] == "0.5.20 fits better: it leaves 1 numbers unexplained, first multimodal reserve"
    assert reconcile(read_log(text)[0], BesideLog(engine="0.5.21")).better is None  # as good as 0.5.20


# -- pools -------------------------------------------------------------------------------------------------------------


def test_a_message_that_a_second_runner_repeats_is_one_row() -> None:
    answer = held(B200)
    boot = deepcopy(answer.boot)
    for readings in boot.ranks.values():
        readings["replay_rings"] = [{"d": "0.10"}]
        readings["ready"] = [{"tokens": "7289664", "available": "9.00"}]
    once = rows_of(answer.plan, boot)[1]
    for readings in boot.ranks.values():
        for name in ("state_pool", "replay_rings", "ready", "token_pool", "pools_end"):
            readings[name] = [*readings[name], readings[name][-1]]
    assert rows_of(answer.plan, boot)[1] == once
    assert {"replay ring d", "available_gpu_mem", "free after draft pools"} <= {row.name for row in once}


def test_snapshots_that_were_not_printed() -> None:
    snapshots = " intermediate_ssm_state_cache size: 19.89GB intermediate_conv_window_cache size: 0.70GB"
    rows = {row.name: row for row in edited(B200, (snapshots, "")).rows if row.name.startswith("state pool")}
    lacking = [row for row in rows.values() if row.printed == "absent"]
    assert [(row.name, row.predicted, row.explained, row.basis) for row in lacking] == [
        ("state pool snapshot_ssm", "printed", False, "flags"),
        ("state pool snapshot_conv", "printed", False, "flags"),
    ]
    nospec = {row.name for row in held("mi355x-nospec").rows}  # has none to print
    assert "state pool ssm" in nospec and not any("snapshot" in name for name in nospec)


def test_the_ends_of_what_is_left_after_the_pools() -> None:
    """The last reading less the tensors, each reading to half its last digit; the least less what torch may round up,
    and what was taken before the sizing.
    """
    answer = held(B200)
    assert answer.sizing.sizes is not None and answer.sizing.taken_gib is not None
    specs = [spec for spec in tensor_specs(rank_of(answer.plan), answer.sizing.sizes) if spec.place == "device"]
    target = sum(spec.nbytes for spec in specs if spec.pool != "draft") / GIB
    rows = printed(answer)
    for name, held_gib in (
        ("free after pools", target),
        ("free after draft pools", sum(s.nbytes for s in specs) / GIB),
    ):
        least, most = map(float, rows[name][0].split(".."))
        assert most == round(127.68 - held_gib + 0.01, 2)
        assert 0.02 + answer.sizing.taken_gib - 0.01 <= most - least < 0.02 + answer.sizing.taken_gib + 0.05
    edge = float(rows["free after pools"][0].partition("..")[0])
    for shown, good in ((edge - 0.02, False), (edge + 0.01, True)):
        again = printed_row(edited(B200, ("avail mem=38.37 GB", f"avail mem={shown:.2f} GB")).rows, "free after pools")
        assert again.explained is good and (
            again.difference == 0 if good else again.difference is not None and again.difference < 0
        )


def printed_row(rows: tuple[Row, ...], name: str) -> Row:
    return next(row for row in rows if row.name == name)


@pytest.mark.parametrize(("gone", "label"), [("TP3", "TP0"), ("TP[1-3]", "")])
def test_a_reading_names_its_rank_where_there_are_several(gone: str, label: str) -> None:
    kept = ("TP0",) if gone != "TP3" else ("TP0", "TP1")
    lines = [line for line in plain_lines(FRAC80) if "server_args" in line or any(f" {rank} " in line for rank in kept)]
    rows = reconcile(read_log(lines)[0], BesideLog(engine="0.5.20")).rows
    assert printed_row(rows, "free after pools").rank == label


@pytest.mark.parametrize(
    ("stored", "said", "good"),
    [
        ("uint8", "float8_e4m3fn", True),
        ("uint8", "float8_e4m3fnuz", True),
        ("uint8", "float8_e5m2", True),
        ("uint8", "bfloat16", False),
        ("bfloat16", "bfloat16", True),
        ("bfloat16", "float8_e4m3fn", False),
        ("float16", "float16", True),
        (None, "float8_e4m3fn", True),
        (None, "bfloat16", False),
    ],
)
def test_the_type_of_a_draft_s_cache(stored: str | None, said: str, good: bool) -> None:
    """A draft of its own kind stores as its kernels do; the checkpoint's own layer as the target."""
    answer = held(B200)
    made = answer.plan.deployment.with_values(draft_kv_dtype=stored)
    pool = {"dtype": "float8_e4m3fn", "tokens": "64"}
    readings: Any = {"token_pool": [pool, {**pool, "dtype": said}]}
    rows = {
        row.name: row
        for row in _rank_rows(replace(answer.plan, deployment=made), readings, (), PoolSizes(64, 1, 1), "x")
    }
    assert rows["token pool dtype"].explained
    assert rows["draft token pool dtype"].explained is good
    assert {row.rank for row in rows.values()} == {"x"}


@pytest.mark.parametrize(("overlap_off", "each"), [(False, 3), (True, 2)])
def test_what_a_decode_server_says_it_needs(overlap_off: bool, each: int) -> None:
    """Its running requests and those in flight, each with one slot and its tracking slots: two, or one without overlap
    (disaggregation/decode.py:294-310 at 0.5.21).
    """
    flags: dict[str, object] = {"tp_size": 8, "disaggregation_mode": "decode", "disaggregation_decode_extra_slots": 64}
    flags |= {"disaggregation_decode_enable_radix_cache": True}
    made = plan({**flags, "disable_overlap_schedule": overlap_off}, gpu="h200", engine="0.5.21")
    boot = Boot("log")
    needed = {"slots": "32", "needed": str(96 * each), "requests": "96", "ratio": str(each)}
    boot.add(LogRank(), "decode_slots", needed)
    assert [row[:6] for row in _warning_rows(made, boot, PoolSizes(64, 32, 32))] == [
        ("decode slots: requests", "", "96", "96", 0, True),
        ("decode slots: slots per request", "", str(each), str(each), 0, True),
    ]


def test_a_start_that_failed_where_none_would() -> None:
    lines = [line for line in plain_lines(FRAC80) if "server_args" in line or "Load weight" in line]
    answer = reconcile(
        read_log([*lines, "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem"])[0]
    )
    row = printed_row(answer.rows, "refusal")
    assert (row.predicted, row.printed, row.explained) == ("starts", "no_token_memory", False)


# -- host pools --------------------------------------------------------------------------------------------------------

RATIO = (
    "HiCache auto-sizing: ratio 2.000 -> {}; 90.0 GiB host memory per rank (fraction 0.80, 8 ranks on this host), host "
    "pools 55.0 GiB.\n[2026-05-14 08:12:00 DP0 TP0] Attached hybrid"
)
AUTOMATIC = ("'hicache_host_memory_fraction': None", "'hicache_host_memory_fraction': 0.8")


def host_pages(ratio: float) -> int:
    """Tokens of a host pool: whole pages of 64 and one more."""
    return (int(2076032 * ratio) // 64 + 1) * 64


@pytest.mark.parametrize(
    ("ratio", "ends"), [("1.234", (1.2335, 1.2345)), ("2.000", (1.9995, None)), ("1.5", (1.45, 1.55))]
)
def test_a_printed_ratio_is_taken_to_half_its_last_digit(ratio: str, ends: tuple[float, float | None]) -> None:
    """From 2076032 tokens and 159 slots; the engine never raises the default of 2."""
    rows = printed(edited("example-a-0.5.21", AUTOMATIC, ("Attached hybrid", RATIO.format(ratio))))
    least = host_pages(ends[0])
    most = 4152128 if ends[1] is None else host_pages(ends[1])
    assert rows["host KV tokens"][0] == f"{least}..{most}"


def test_a_ratio_by_the_pool_itself_or_the_default() -> None:
    name = "example-a-0.5.21"
    one = edited(
        name, AUTOMATIC, (f"{4152128} tokens, 46.77", f"{host_pages(1.3)} tokens, 30.40"), ("47.09 GB", "30.56 GB")
    )
    row = printed_row(one.rows, "host KV tokens")
    assert row.explained and row.printed == str(host_pages(1.3))
    assert printed_row(one.rows, "host state size").explained  # 207 slots of 147,619,840 bytes
    alone = edited(name, AUTOMATIC, ("hierarchical KV host pool", "hierarchical KV host pol"))
    assert [row.name for row in alone.rows if row.name.startswith("host")] == ["host state size"]
    assert printed(alone)["host state size"] == ("47.09", "47.09")  # at 2


def test_a_number_between_two_ends() -> None:
    for printed_text, off in (("9", -1), ("10", 0), ("15", 0), ("20", 0), ("21", 1)):
        row = _between("n", "x", 10, 20, printed_text)
        assert row == Row("n", "x", "10..20", printed_text, off, off == 0, "printed sizes", "by the printed ratio")
    for printed_text, off in (("0.99", -0.01), ("1.00", 0), ("2.00", 0), ("2.01", 0.01)):
        row = _bytes_between("n", "x", 1_004_000_000, 1_996_000_000, printed_text)
        assert (row.name, row.rank, row.predicted, row.explained) == ("n", "x", "1.00..2.00", off == 0)
        assert row.difference == pytest.approx(off) and row.basis == "printed sizes"
    assert _between("n", "x", 10, 10, "12")[2:6] == ("10", "12", 2, False)
    assert _bytes_between("n", "x", 10**9, 10**9, "1.00")[2:6] == ("1.00", "1.00", 0.0, True)


def test_a_layout_that_no_host_pool_takes() -> None:
    """mem_cache/pool_host/mamba.py:103-106 at 0.5.23."""
    row = printed_row(edited("example-a-0.5.21", ("page_first", "layer_first")).rows, "HiCache")
    assert row.predicted.startswith("--hicache-mem-layout layer_first")
    assert row[3:] == ("allocated", None, False, "flags", "")


def test_host_pools_of_each_pipeline_stage() -> None:
    """The engine's own record of the second stage, at ratio 3, and as many units of the first's layers."""
    stages = [one for one in records("hicache") if one["kind"] == "pp" and one["engine"] == "sglang-0.5.23"]
    inputs = stages[0]["inputs"]
    second = next(one for one in stages if one["inputs"]["stage_layers"] == [22, 45])["host"]
    made = plan(
        {"tp_size": 4, "pp_size": 2, "kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "trtllm",
         "dsa_decode_backend": "trtllm", "enable_hierarchical_cache": True, "hicache_ratio": 3.0,
         "hicache_mem_layout": "page_first", "hicache_io_backend": "kernel"},
        gpu="b300", engine="0.5.23",
    )  # fmt: skip
    boot = Boot("log")
    rank = LogRank(pp=1, tp=2)
    sizes = PoolSizes(inputs["tokens"], inputs["state_slots"], inputs["max_running_requests"])
    kv, mamba, index = second["kv"], second["mamba"], second["indexer"]
    boot.add(LogRank(), "load_begin", {"available": "1.00"})
    first = LogRank(tp=1)
    nbytes = mamba["size"] * stages[0]["host"]["mamba"]["size_per_token"]
    boot.add(first, "host_state", {"slots": str(mamba["size"]), "gb": f"{nbytes / 1e9:.2f}", "layout": "x"})
    boot.add(rank, "host_kv", {"label": "", "tokens": str(kv["size"]), "gb": f"{kv['bytes'] / 1e9:.2f}"})
    boot.add(rank, "host_state", {"slots": str(mamba["size"]), "gb": f"{mamba['bytes'] / 1e9:.2f}", "layout": "x"})
    boot.add(rank, "host_index", {"gb": f"{index['page_num'] * index['layer_num'] * 8448 / 1e9:.2f}", "layout": "x"})
    rows = list(host_rows(made, boot, sizes))
    assert [(row.name, row.rank, row.explained) for row in rows] == [
        *((f"host {name}", "TP1", True) for name in ("state slots", "state size")),
        *(
            (f"host {name}", "PP1 TP2", True)
            for name in ("KV tokens", "KV size", "state slots", "state size", "index size")
        ),
    ]
    assert list(host_rows(made, boot, None)) == []


def test_an_index_pool_that_the_release_has_not() -> None:
    """Before 0.5.22 index keys were part of the KV pool's rows."""
    line = (
        "Attached hybrid",
        "Allocating 1.60 GB host memory for DSA indexer (layout=page_first).\n[2026-05-14 08:12:00 DP0 TP0] "
        "Attached hybrid",
    )
    row = printed_row(edited("example-a-0.5.21", line).rows, "host index pool")
    assert row[1:] == ("", "none", "1.60 GB", None, False, "flags", "")


# -- what is saved -----------------------------------------------------------------------------------------------------


def test_a_saved_reading_is_the_exact_one_where_the_sizes_are_explained() -> None:
    answer = held(B200)
    band = answer.sizing.band
    assert band is not None
    memory = plan_document(answer, "it")["memory"]
    assert memory == {
        "pre_gib": 176.25,
        "available_gib": round((band.least_gib + band.most_gib) / 2, 6),
        "target_weights_gib": 44.76,
        "draft_weights_gib": 3.81,
        "source": "it: the reading that gives the printed sizes exactly",
    }
    inside = held("example-b-0.5.21")  # the printed reading gives the sizes already
    off = edited(B200, ("avail mem=127.68 GB", "avail mem=129.68 GB"))  # and here nothing explains it
    for other, gib in ((inside, 126.0), (off, 129.68)):
        memory = plan_document(other, "it")["memory"]
        assert isinstance(memory, dict)
        assert (memory["available_gib"], memory["source"]) == (gib, "it: printed readings")
    assert plan_document(answer, "it")["nodes"] == 1
    assert plan_document(held("mi355x-nospec"), "it")["environment"] == {"SGLANG_USE_AITER": "1"}


def test_a_boot_calibrates_by_what_the_engine_read() -> None:
    band = held(B200).sizing.band
    assert band is not None
    exact = of_boot(held(B200), "it")
    assert exact.left_gib == pytest.approx(176.25 - 44.76 - 3.81 - (band.least_gib + band.most_gib) / 2)
    assert (exact.checkpoint, exact.draft_weights_gib) == ("nvfp4", 3.81)
    inside = of_boot(held("example-a-0.5.21"), "it")
    assert (inside.left_gib, inside.checkpoint, inside.draft_weights_gib) == (138.5 - 54.5 - 84.0, "fp8", None)
    off = of_boot(edited(B200, ("avail mem=127.68 GB", "avail mem=129.68 GB")), "it")
    assert off.left_gib == pytest.approx(176.25 - 44.76 - 3.81 - 129.68)


def test_what_goes_between_the_pools_and_the_ready_server() -> None:
    boot = Boot("log")
    assert taken_after_pools(boot) is None
    boot.add(LogRank(), "pools_end", {"available": "9.00"})
    boot.add(LogRank(), "pools_end", {"available": "5.00"})
    assert taken_after_pools(boot) is None
    boot.add(LogRank(), "ready", {"tokens": "64"})
    assert taken_after_pools(boot) is None
    boot.ranks[LogRank()]["ready"] = [{"available": "3.50"}]
    assert taken_after_pools(boot) == 1.5
    boot.ranks[LogRank()]["ready"] = [{"available": "6.00"}]
    assert taken_after_pools(boot) == 0
