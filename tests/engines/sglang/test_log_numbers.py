"""Every number that a log prints of pools has a row of its own: changed by a step, that row and no other is off."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache

import pytest
from boots import held, read_log
from test_reconcile_oracle import host_log_of, log_of, plain, records

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.engines.sglang.boot_log.lines import MessageName
from glm_kvplan.engines.sglang.boot_log.log_rows import Row
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation, reconcile, rows_of

# What a row is called, by the message and the number; two of them where a draft's message is the second.
ROWS: Mapping[tuple[MessageName, str], tuple[str, ...]] = {
    ("reserve", "gib"): ("multimodal reserve",),
    ("state_pool", "conv"): ("state pool conv",),
    ("state_pool", "ssm"): ("state pool ssm",),
    ("state_pool", "snapshot_conv"): ("state pool snapshot_conv",),
    ("state_pool", "snapshot_ssm"): ("state pool snapshot_ssm",),
    **{("replay_rings", name): (f"replay ring {name}",) for name in ("d", "k", "g", "rawv", "rawk", "beta")},
    ("token_pool", "dtype"): ("token pool dtype", "draft token pool dtype"),
    ("token_pool", "tokens"): ("", "draft token pool tokens"),  # the target's are taken as printed
    ("token_pool", "gib"): ("token pool size", "draft token pool size"),
    ("pools_end", "available"): ("free after pools", "free after draft pools"),
    ("ready", "chunk"): ("chunked_prefill_size",),
    ("ready", "prefill"): ("max_prefill_tokens",),
    ("ready", "context"): ("context_len",),
    ("capped", "ratio"): ("capped: slots per request",),
    ("capped", "requests"): ("capped: max_running_requests",),
    ("host_kv", "tokens"): ("host KV tokens",),
    ("host_kv", "gb"): ("host KV size",),
    ("host_kv", "target_layers"): ("host KV layers",),
    ("host_kv", "draft_layers"): ("host KV layers",),
    ("host_state", "gb"): ("host state size",),
    ("host_state", "slots"): ("host state slots",),
    ("host_index", "gb"): ("host index size",),
}
HOST_SIZES = {("host_kv", "tokens"), ("host_state", "slots")}  # which the bytes beside them rest on


@cache
def answers() -> tuple[Reconciliation, ...]:
    """Published boots, and the engine's own: snapshots, rings, drafts, host pools."""
    found = [held(name) for name in ("b200x4-mtp6-frac80", "b200x4-mtp6-conc128", "mi355x-nospec", "example-a-0.5.22")]
    rings = [one for one in records("sizing") if plain(one) and "replayssm_rawv" in one["outputs"]["alloc_bytes"]]
    for record in (rings[0], rings[-1]):
        gpu = "b300" if record["inputs"]["kv_layout"] == "fp8_raw" else "h200:275040"
        release = record["engine"].removeprefix("sglang-")
        found.append(reconcile(read_log(log_of(record))[0], BesideLog(engine=release, gpu=gpu)))
    hosts = [one for one in records("hicache") if one["kind"] == "kv" and one["engine"] == "sglang-0.5.23"]
    packed = next(one for one in hosts if one["inputs"]["draft_tokens"] and one["inputs"]["kv_layout"] != "fp8_raw")
    found.append(reconcile(read_log(host_log_of(packed))[0], BesideLog(engine="0.5.23", gpu="h200:275040")))
    return tuple(found)


def stepped(text: str) -> str:
    """The number a hundredth and a unit of its last digit more; a word of another kind."""
    if not text[0].isdigit():
        return "float16"
    digits = len(text.partition(".")[2])
    return f"{float(text) * 1.01 + 10.0**-digits:.{digits}f}"


def numbers(answer: Reconciliation) -> Iterator[tuple[LogRank, MessageName, int, str]]:
    """Every number that has a row, of the rank with most of them; the host's alone where the device is made up."""
    boot, host_alone = answer.boot, not answer.explained
    rank = max(sorted(boot.ranks), key=lambda one: sum(map(len, boot.ranks[one].values())))
    for message, readings in boot.ranks[rank].items():
        for nth, reading in enumerate(readings):
            for name in reading:
                if host_alone > message.startswith("host"):
                    continue
                if (message, name) in ROWS and nth < len(ROWS[message, name]) and ROWS[message, name][nth]:
                    yield rank, message, nth, name


def moved(boot: Boot, message: MessageName, nth: int, name: str) -> Boot:
    """The same boot where every rank that prints the number prints another."""
    boot = deepcopy(boot)
    for readings in boot.ranks.values():
        if len(readings.get(message, ())) > nth:
            reading = readings[message][nth]
            readings[message][nth] = {**reading, name: stepped(reading[name])}
    return boot


def rows(answer: Reconciliation, boot: Boot) -> dict[tuple[str, str], Row]:
    return {(row.name, row.rank): row for row in rows_of(answer.plan, boot)[1]}


@pytest.mark.parametrize("place", range(7))
def test_a_number_that_moves_is_off_in_its_own_row(place: int) -> None:
    answer = answers()[place]
    before, seen = rows(answer, answer.boot), set()
    for rank, message, nth, name in numbers(answer):
        boot = moved(answer.boot, message, nth, name)
        reading = boot.ranks[rank][message][nth]
        other, after = reading[name], rows(answer, boot)
        title = ROWS[message, name][nth]
        if title == "host KV layers":
            other = str(sum(int(reading[each]) for each in ("target_layers", "draft_layers")))
        found = [row for row in after.values() if row.name == title and row.printed == other]
        assert len(found) == 1, (message, name, other)
        (row,) = found
        assert row.explained is False, (message, name)
        if row.difference is not None:
            assert row.difference > 0, (message, name)
        if (message, name) not in HOST_SIZES:
            assert [key for key in after if after[key] != before.get(key)] == [(row.name, row.rank)], (message, name)
        seen.add((message, name))
    assert len(seen) >= 5


def test_every_kind_of_row_was_moved() -> None:
    held_numbers = {(message, name) for one in answers() for _, message, _, name in numbers(one)}
    assert held_numbers == ROWS.keys()


@pytest.mark.parametrize("place", range(7))
def test_a_difference_is_what_was_printed_less_what_was_predicted(place: int) -> None:
    answer = answers()[place]
    several = len(answer.boot.ranks) > 1
    for row in answer.rows:
        predicted = row.predicted.replace(",", "")
        if row.difference is not None and ".." not in predicted:
            half = 0.5 * 10.0 ** -len(row.printed.partition(".")[2]) if "." in row.printed else 0
            assert abs(row.difference - (float(row.printed) - float(predicted))) <= half + 1e-9, row
        assert bool(row.rank) == (several and row.name.startswith(("free after", "available_gpu_mem"))), row
        assert (row.explained is None) == (row.name == "available_gpu_mem")
        assert (row.basis == "") == (row.explained is None)
