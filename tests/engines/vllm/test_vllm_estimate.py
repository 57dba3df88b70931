"""`kvplan estimate` of a vLLM launch: the blocks vLLM counts, every byte by name, what does not fit."""

import json
from typing import Any

import pytest
from vllm_oracle import flags_of, records

import glm_kvplan as kv
from glm_kvplan.cli import main
from glm_kvplan.engines.vllm.answers.estimate_answer import EstimateAnswer, answer_estimate
from glm_kvplan.engines.vllm.answers.estimate_page import estimate_page
from glm_kvplan.engines.vllm.workload_cost import workload_cost
from glm_kvplan.show.text import print_page
from glm_kvplan.workload import UNKNOWN_HOST, Workload

SERVE = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")
PLANNED = [record for record in records() if "plan" in record and "pipeline_parallel_size" not in record["input"]]


def answer(
    context: int = 131072, concurrency: int = 1, release: str = "0.33.0", gpu: str = "h200", **flags: object
) -> EstimateAnswer:
    plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu=gpu)
    return answer_estimate(plan, Workload(context, concurrency), UNKNOWN_HOST)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(["estimate", *words])
    found = capsys.readouterr()
    return int(left.value.code or 0), found.out, found.err


@pytest.mark.parametrize("release", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"])
def test_the_blocks_are_those_that_vllm_counts(release: str) -> None:
    """Of three requests as long as the server takes: three times its own blocks a request, and the unused one."""
    seen = 0
    for record in PLANNED:
        if record["release"] != release:
            continue
        seen += 1
        plan = kv.plan(flags_of(record), engine=f"vllm-{release}", gpu=record["gpu"])
        longest = record["plan"]["max_model_len"]
        cost = workload_cost(plan.blocks, Workload(longest, 3 * plan.deployment.data_parallel_size))
        assert cost.blocks == 3 * record["plan"]["blocks_per_request"] + 1
        assert cost.nbytes == cost.blocks * record["plan"]["bytes_per_block"]
        named = sum(ledger.total for ledger in cost.ledgers) + sum(rest.nbytes for rest in cost.rests)
        assert named == cost.nbytes
        assert all(rest.nbytes > 0 for rest in cost.rests)
    assert seen > 100


@pytest.mark.parametrize("context", [1, 3, 4, 1151, 1152, 1153, 99_999])
@pytest.mark.parametrize("gpu", ["h200", "b200", "rtxpro6000"])
def test_every_byte_has_a_name_at_any_context(gpu: str, context: int) -> None:
    for release in ("0.30.0", "0.33.0"):
        for flags in ({}, {"speculative_config": {"method": "mtp", "num_speculative_tokens": 3}}):
            found = answer(context, 7, release, gpu, **flags)
            assert sum(ledger.nbytes for ledger in found.ledgers) + found.rest_bytes == found.nbytes
            assert found.blocks.total == 7 * found.request.blocks + 1
            assert found.nbytes == found.blocks.total * found.block_bytes


def test_the_log_of_a_public_boot_prints_the_padding() -> None:
    """H200 TP4 with 3 draft tokens prints 5.11 % (doc id 58946482992)."""
    found = answer(release="0.30.0", speculative_config={"method": "mtp", "num_speculative_tokens": 3})
    ledgers = {ledger.name: ledger for ledger in found.ledgers}
    assert round(100 * ledgers["state_padding"].nbytes / ledgers["kda_state"].nbytes, 2) == 5.11


def test_engines_share_the_requests() -> None:
    one, two = answer(concurrency=9), answer(concurrency=9, data_parallel_size=2)
    assert (one.requests_per_engine, two.requests_per_engine) == (9, 5)
    assert two.bytes_all_gpus == 8 * two.nbytes


def test_what_does_not_fit_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    few = answer(concurrency=32, num_gpu_blocks_override=400)
    assert not few.fits and few.given_blocks == 400
    assert "does not fit: the workload needs" in str(few.warnings[0])
    exact = answer(concurrency=32, num_gpu_blocks_override=few.blocks.total)
    assert exact.fits and not exact.warnings
    assert not answer(concurrency=32, num_gpu_blocks_override=few.blocks.total - 1).fits
    given = answer(concurrency=32, kv_cache_memory_bytes=few.nbytes)
    assert given.fits and given.given_blocks == few.blocks.total
    assert not answer(concurrency=32, kv_cache_memory_bytes=few.nbytes - 1).fits
    assert "beside the weights (estimated)" in str(answer(concurrency=500).warnings[0])
    assert "--max-num-seqs lets 8 run at once" in str(answer(concurrency=9, max_num_seqs=8).warnings[0])
    code, out, _ = run(capsys, "--concurrency", "32", "--num-gpu-blocks-override", "400", *SERVE)
    assert code == 1 and "! does not fit: the workload needs" in " ".join(out.split())


def test_text_and_json_agree(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "h200", "--concurrency", "12", *SERVE)
    code, out, _ = run(capsys, "--json", *words)
    document: dict[str, Any] = json.loads(out)
    assert (code, document["schema"], document["engine"]) == (0, "glm-kvplan/estimate", "vllm-0.33.0")
    code, out, _ = run(capsys, "--explain", *words)
    for figure in (document["blocks"]["total"], document["request"]["blocks"], document["fixed"]["tokens"]):
        assert f"{figure:,}" in out
    for ledger in document["ledgers"]:
        assert eval(ledger["formula_in_numbers"]) == ledger["bytes_per_unit"]
        assert ledger["bytes"] == ledger["bytes_per_unit"] * ledger["units"]
        assert f"{ledger['bytes']:,} B" in out


def test_the_page_shows_every_warning(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(concurrency=32, num_gpu_blocks_override=400, max_num_seqs=8)
    print_page(estimate_page(found))
    out = "".join(capsys.readouterr().out.split())
    assert len(found.warnings) == 2
    assert all("".join(str(warning).split()) in out for warning in found.warnings)


def test_a_context_above_the_servers_names_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--context", "64k", *SERVE, "--max-model-len", "32768")
    assert (code, out) == (2, "")
    assert "more than the server accepts (32768, --max-model-len)" in err


@pytest.mark.parametrize(("text", "value"), [("40G", 40 << 30), ("40g", 40 * 10**9), ("1.5g", 1_500_000_000)])
def test_options_of_kvplan_read_counts_as_vllm_does(text: str, value: int, capsys: pytest.CaptureFixture[str]) -> None:
    """human_readable_int: a small letter is decimal, a capital binary."""
    code, out, _ = run(capsys, "--json", "--engine", "vllm", "--context", "1024", "--kv-cache-memory-bytes", text)
    assert code == 0
    assert json.loads(out)["deployment"]["kv_cache_memory_bytes"] == value
