"""`estimate` and `solve` say in text what they say in JSON: each figure of the terminal is one of the document."""

import json
from typing import Any

import pytest
from shown_numbers import SHOWN, unmatched

from glm_kvplan.cli import main
from glm_kvplan.show.format import decimal


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(list(words))
    assert left.value.code in (0, 1)
    return capsys.readouterr().out


COMMANDS = (
    ("--tp-size", "8", "--kv-cache-dtype", "fp8_e4m3"),
    ("--tp-size", "8", "--dp-size", "8", "--enable-dp-attention", "--max-running-requests", "512"),
    ("--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "EAGLE", "--speculative-adaptive"),
    ("--engine", "0.5.23", "--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "NEXTN"),
    ("--tp-size", "4", "--pp-size", "2", "--engine", "0.5.22"),
    ("--tp-size", "8", "--disaggregation-mode", "decode", "--max-running-requests", "64"),
    ("--tp-size", "4", "--speculative-algorithm", "EAGLE", "--enable-linear-replayssm-spec"),
)


@pytest.mark.parametrize("flags", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("workload", [(), ("--context", "300000", "--concurrency", "77")])
def test_estimate_says_in_text_what_it_says_in_json(
    flags: tuple[str, ...], workload: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("estimate", *flags, *workload, "--all")
    document = json.loads(output(capsys, *words, "--json"))
    text = output(capsys, *words)
    per_rank = [[ledger["bytes"] for ledger in stage["ledgers"]] for stage in document["stages"]]
    everywhere = [document["ranks_per_stage"] * sum(column) for column in zip(*per_rank, strict=True)]
    sums = (*(sum(stage) for stage in per_rank), *everywhere, sum(everywhere))
    found = unmatched("\n".join(text.partition("one request on a rank")[::2]), document, sums)
    found = [shown for shown in found if shown not in request_bill(document, text)]
    assert not found, text
    assert len(SHOWN.findall(text)) >= 20


def request_bill(document: dict[str, Any], text: str) -> set[str]:
    """The figures of the line about one request, from the prices of the JSON."""
    stage = max(document["stages"], key=lambda stage: stage["allocated_bytes"])
    need, slots = document["needed_sizes"], document["deployment"]["slots_per_request"]
    tokens = need["tokens"] // need["running_requests"]
    units = {"token": tokens, "state slot": slots, "request row": 1}
    cost = dict.fromkeys(units, 0)
    for ledger in stage["ledgers"]:
        cost[ledger["unit"]] += ledger["bytes_per_unit"] * units[ledger["unit"]]
    return {f"{tokens:,}", decimal(sum(cost.values())), *map(decimal, cost.values())}


@pytest.mark.parametrize("flags", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("memory", [("--pre-gib", "138.5", "--available-gib", "84"), ("--checkpoint", "fp8")])
def test_solve_says_in_text_what_it_says_in_json(
    flags: tuple[str, ...], memory: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("solve", *flags, *memory)
    document = json.loads(output(capsys, *words, "--json"))
    assert not unmatched(output(capsys, *words), document)
    text = output(capsys, *words, "--all")
    assert not unmatched(text, document), text
    assert len(SHOWN.findall(text)) >= 10
