"""Random flags, planned by vLLM's own code (its wheels on a CPU, tests/data/vllm_random.jsonl.gz), and by ours."""

import gzip
import json
from typing import Any

import pytest
from paths import DATA
from vllm_oracle import blocks

from glm_kvplan.engines.vllm.start import start
from glm_kvplan.errors import RefusedError


def _records() -> list[dict[str, Any]]:
    with gzip.open(DATA / "vllm_random.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


RECORDS = _records()
GROUPS = sorted({(record["release"], record["gpu"]) for record in RECORDS})
GRAPHS = "requests above blocks"  # checked while graphs are captured, after what the records hold


@pytest.mark.parametrize(("release", "gpu"), GROUPS)
def test_what_vllm_plans_is_planned_and_what_it_refuses_refused(release: str, gpu: str) -> None:
    for record in RECORDS:
        if (record["release"], record["gpu"]) != (release, gpu):
            continue
        planned = _planned(record)
        if "refused" in record["out"]:
            assert planned is None, record
        else:
            assert planned == record["out"], record


def _planned(record: dict[str, Any]) -> dict[str, Any] | None:
    """The same figures; None where it is refused."""
    try:
        found = blocks(record["flags"], record["release"], record["gpu"], **record["env"])
    except RefusedError:
        return None
    begun = start(found, record["available"])
    if begun.failure is not None and begun.failure.kind != GRAPHS:
        return None
    deployment = found.rank.deployment
    return {
        "cache_dtype": deployment.cache_dtype,
        "block_size": deployment.block_size,
        "seqs": deployment.max_num_seqs,
        "batch": deployment.max_num_batched_tokens,
        "blocks": begun.count,
        "groups": len(found.groups),
        "L": begun.max_model_len,
        "tokens": begun.printed_tokens,
        "conc": begun.concurrency,
        "size": begun.count * found.nbytes,
    }


def test_the_records_are_many() -> None:
    assert len(RECORDS) >= 280
    assert sum("refused" not in record["out"] for record in RECORDS) >= 120
