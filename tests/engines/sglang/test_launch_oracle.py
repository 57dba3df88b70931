"""A launch from its words to the bytes of every tensor, against the engine's whole pipeline on 3,299 launches."""

import gzip
import json
from collections import Counter
from functools import cache
from typing import Any

import pytest
from paths import DATA

from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.profile import releases
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.failures import refusal
from glm_kvplan.engines.sglang.sizing.solver import attempt_stages
from glm_kvplan.errors import KvplanError
from glm_kvplan.tensor import TensorSpec

CARDS = {
    "H100": "h100",
    "H20": "h20",
    "H20-3e": "h20-3e",
    "H200": "h200",
    "B200": "b200",
    "B300": "b300",
    "RTX PRO 6000": "rtxpro6000",
    "GB10": "gb10",
}
# Started in the records, which end before the weights load; a later stage of the engine refuses them.
REFUSED_LATER = {
    "flashmla_sparse_q8": "layers/attention/dsa_backend.py:434-489 at 0.5.23",
    "--ep-size": "distributed/parallel_state.py:2855 at 0.5.21: a MoE group of no rank",
    "--mem-fraction-static": "1.5 of the free memory: the allocation itself fails",
}
# Refused in the records for what was on their machine; another server may have the package or the file.
OF_THEIR_MACHINE = ("--enable-http2", "--decrypted-config-file", "--speculative-draft-model-path")
# How many of each there are, by release: every other launch is equal.
DIFFERENCES = {
    "0.5.20": ({"--ep-size": 3, "flashmla_sparse_q8": 1}, {}),
    "0.5.21": ({"flashmla_sparse_q8": 3}, {"--enable-http2": 1}),
    "0.5.22": ({"flashmla_sparse_q8": 1}, {}),
    "0.5.23": (
        {"flashmla_sparse_q8": 2, "--mem-fraction-static": 1},
        {"--speculative-draft-model-path": 1, "--decrypted-config-file": 1},
    ),
}


@cache
def records() -> tuple[dict[str, Any], ...]:
    lines = gzip.decompress((DATA / "launch.jsonl.gz").read_bytes()).splitlines()
    return tuple(json.loads(line) for line in lines)


def planned(record: dict[str, Any]) -> Plan:
    """The launch as a server's own words, on its card. Raises as the engine refuses."""
    command = read_launch_command(record["argv"], record["version"])
    assert not command.unknown
    gpu = CARDS[record["gpu"]]
    return given(launch=command, engine=record["version"], gpu=gpu, environment=record.get("env")).plan()


def name_of(spec: TensorSpec) -> str:
    if spec.name == "intermediate_conv_window":
        return f"{spec.name}(physical)"
    return f"{spec.name}(host)" if spec.place == "host" else spec.name


def outcome(record: dict[str, Any]) -> dict[str, Any] | str:
    """What comes of it here, in the record's words; a refusal as its text."""
    try:
        plan = planned(record)
        solutions = attempt_stages(plan, record["pre"], record["avail"])
    except KvplanError as error:
        return str(error)
    except AssertionError:
        return "an option that the release does not have"
    failed = [solution for solution in solutions if solution.failure is not None]
    if failed:
        return str(refusal(failed[0]))
    stages = []
    for rank, solution in zip(ranks(plan), solutions, strict=True):
        alloc: Counter[str] = Counter()
        for spec in tensor_specs(rank, solution.sizes):
            alloc[name_of(spec)] += spec.nbytes
        tokens, slots, requests = solution.sizes
        stages.append({"K": slots, "T": tokens, "R": requests, "cell": solution.costs.cell_bytes, "alloc": dict(alloc)})
    arguments = plan.deployment
    return {
        "stages": [[rank.stage.start, rank.stage.stop] for rank in ranks(plan)],
        "ranks": stages,
        "resolved": {name: getattr(arguments, name) for name in record["resolved"]} if "resolved" in record else {},
    }


def engines(record: dict[str, Any]) -> dict[str, Any]:
    """The record, without tables of no bytes (a stage without token layers)."""
    stages = [
        {**rank, "alloc": {name: nbytes for name, nbytes in rank["alloc"].items() if nbytes}}
        for rank in record["ranks"]
    ]
    return {"stages": record["stages"], "ranks": stages, "resolved": record["resolved"]}


@pytest.mark.parametrize("release", releases())
def test_every_launch_end_to_end(release: str) -> None:
    later, theirs, checked = Counter[str](), Counter[str](), Counter[str]()
    for record in records():
        if record["version"] != release:
            continue
        ours = outcome(record)
        words = " ".join(record["argv"])
        if "refused" in record:
            if not isinstance(ours, str):
                assert any(name in words for name in OF_THEIR_MACHINE), (record["refused"], words)
                theirs[next(name for name in OF_THEIR_MACHINE if name in words)] += 1
            checked["refused"] += 1
        elif isinstance(ours, str):
            assert any(name in words and name in ours for name in REFUSED_LATER), (ours, words)
            later[next(name for name in REFUSED_LATER if name in words and name in ours)] += 1
        else:
            assert ours == engines(record), words
            checked["started"] += 1
    assert checked["refused"] > 80
    assert checked["started"] > 250
    assert (later, theirs) == DIFFERENCES[release]


def test_the_records_are_all_there() -> None:
    assert len(records()) == 3299
    assert sum("refused" in record for record in records()) == 910
