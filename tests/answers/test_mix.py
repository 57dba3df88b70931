"""A mix of context lengths in every command: bytes and counts against the binomial distribution and simulation."""

import json
import random
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest
from running import run

import glm_kvplan as kv
from glm_kvplan.answers.check.deployment_file import read_deployment_file
from glm_kvplan.contexts import Contexts, parse_contexts
from glm_kvplan.engines.sglang.sizing.workload_cost import estimate
from glm_kvplan.engines.vllm.workload_cost import workload_cost
from glm_kvplan.workload import Demand

TWO = "0.8:8k,0.2:128k"
THREE = "60%:8k,30%:32k,10%:128k"
VLLM = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")
DRAWN = 20_000
DEVIATIONS = 3.5 * (0.99 * 0.01 / DRAWN) ** 0.5  # of the share of draws that stay within a 0.99 quantile


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = run(capsys, words[0], "--json", *words[1:])
    assert code in (0, 1), err
    return json.loads(out)


def long_ones(requests: int, share: Fraction = Fraction(1, 5), confidence: Fraction = Fraction(99, 100)) -> int:
    """The least number that so many draws have no more long ones than, with this confidence."""
    reached, long = Fraction(0), -1
    while reached < confidence:
        long += 1
        reached += comb(requests, long) * share**long * (1 - share) ** (requests - long)
    return long


def within(mix: Contexts, requests: int, size: Callable[[int], int], limit: int) -> float:
    """The share of random moments in which so many requests take no more than `limit` together."""
    drawn, sizes = random.Random(3), [size(length) for length in mix.lengths]
    sums = (sum(drawn.choices(sizes, mix.weights, k=requests)) for _ in range(DRAWN))
    return sum(total <= limit for total in sums) / DRAWN


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flags", "busiest"), [({}, 100), ({"dp_size": 8, "enable_dp_attention": True}, 13)])
def test_estimate_holds_two_lengths_as_the_binomial_says(flags: dict[str, Any], busiest: int) -> None:
    plan = kv.plan({"tp_size": 8, **flags}, gpu="h200")
    found = estimate(plan, Demand(parse_contexts(TWO), 100))
    long = long_ones(busiest)
    tokens = long * 131_072 + (busiest - long) * 8_192
    assert found.need == (tokens, busiest * 5, busiest)
    rows = next(ledger for ledger in found.largest.ledgers if ledger.account.name == "latent_kv")
    assert rows.total == tokens * 11_264  # the article's bytes of a token
    mean = estimate(plan, Demand(parse_contexts(TWO).as_mean, 100))
    long = -(-busiest // 5)
    assert mean.need.tokens == long * 131_072 + (busiest - long) * 8_192


@pytest.mark.parametrize("flags", [{"tp_size": 8}, {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}])
def test_estimate_of_sglang_holds_by_simulation(flags: dict[str, Any]) -> None:
    mix, plan = parse_contexts("60%:8000,30%:33000,10%:131000"), kv.plan(flags, gpu="h200")
    requests = -(-64 // plan.deployment.attn_dp_size)
    need = estimate(plan, Demand(mix, 64)).need

    def pages(length: int) -> int:
        return -(-length // 64) * 64

    assert within(mix, requests, pages, need.tokens) >= 0.99 - DEVIATIONS
    assert within(mix, requests, pages, need.tokens - 8_000) <= 0.99 + DEVIATIONS


@pytest.mark.parametrize("flags", [{"tensor_parallel_size": 4}, {"tensor_parallel_size": 4, "data_parallel_size": 2}])
def test_estimate_of_vllm_holds_by_simulation(flags: dict[str, Any]) -> None:
    mix, plan = parse_contexts("60%:8000,30%:33000,10%:131000"), kv.plan(flags, gpu="h200", engine="vllm")
    requests = 64 // plan.deployment.data_parallel_size
    cost = workload_cost(plan.blocks, Demand(mix, 64))
    assert cost.requests == requests
    usable = cost.blocks - 1
    assert within(mix, requests, plan.blocks.needed, usable) >= 0.99 - DEVIATIONS
    assert within(mix, requests, plan.blocks.needed, usable - plan.blocks.token_blocks(8_000)) <= 0.99 + DEVIATIONS
    named = sum(ledger.total for ledger in cost.ledgers) + sum(rest.nbytes for rest in cost.rests)
    assert named == cost.nbytes and all(rest.nbytes > 0 for rest in cost.rests)


@pytest.mark.parametrize("confidence", ["0.9", "0.99", "mean"])
def test_what_estimate_needs_is_what_solve_serves(confidence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Pools of just so many tokens, or blocks, serve just so many requests; a page or a block less one fewer."""
    how = ("--confidence", confidence)
    asked = ("--context", THREE, "--concurrency", "40", *how)
    card = ("--gpu", "h200", "--tp-size", "8", "--max-running-requests", "64", "--max-mamba-cache-size", "320")
    found = document(capsys, "estimate", *card, *asked)
    for less, served in ((0, 40), (64, 39)):
        cap = str(found["needed_sizes"]["tokens"] - less)
        answer = document(capsys, "solve", *card, "--context", THREE, *how, "--max-total-tokens", cap)
        assert answer["served"]["requests"] == served
    blocks = document(capsys, "estimate", "--gpu", "h200", *asked, *VLLM)["blocks"]["total"]
    for less, served in ((0, 40), (1, 39)):
        cap = ("--num-gpu-blocks-override", str(blocks - less))
        answer = document(
            capsys, "solve", "--gpu", "h200", "--context", THREE, *how, *VLLM, *cap, "--max-model-len", "131072"
        )
        (mixed,) = (each for each in answer["served"] if each["mixed"])
        assert mixed["requests"] == served


def test_pools_of_a_mix_are_those_that_estimate_counts(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--context", THREE, "--concurrency", "40", "--confidence", "0.9")
    need = document(capsys, "estimate", "--tp-size", "8", *asked)["needed_sizes"]
    assert document(capsys, "pools", "--tp-size", "8", *asked)["sizes"] == need
    assert document(capsys, "validate", "--device", "meta", "--tp-size", "8", *asked)["sizes"] == need
    blocks = document(capsys, "estimate", *asked, *VLLM)["blocks"]["total"]
    assert document(capsys, "pools", *asked, *VLLM)["sizes"]["num_blocks"] == blocks


@pytest.mark.parametrize("engine", [("--tp-size", "4"), VLLM])
def test_the_mean_stands_beside(engine: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--gpu", "h200", "--context", TWO, "--concurrency", "50")
    _, out, _ = run(capsys, "estimate", *asked, *engine)
    said = " ".join(out.split())
    assert "50 x (80% 8,192, 20% 131,072);" in said
    assert "99% of the time, each request's length drawn by chance;" in said and "by the mean" in said
    mix = document(capsys, "estimate", *asked, *engine)["mix"]
    assert (mix["contexts"], mix["confidence"]) == ("80% 8,192, 20% 131,072", 0.99)
    assert mix["mean_context"] == (4 * 8_192 + 131_072) / 5
    mean = document(capsys, "estimate", *asked, "--confidence", "mean", *engine)
    _, out, _ = run(capsys, "estimate", *asked, "--confidence", "mean", *engine)
    assert "by the mean: lengths that come by chance need more half of the time" in " ".join(out.split())
    if engine is VLLM:
        assert (mean["blocks"]["total"], mean["bytes"]) == (mix["mean_blocks"], mix["mean_bytes"])
    else:
        assert mean["needed_sizes"]["tokens"] == 10 * 131_072 + 40 * 8_192 == mix["mean_needed_sizes"]["tokens"]
        assert mean["stages"][0]["allocated_bytes"] == mix["mean_allocated_bytes"]
    one = document(capsys, "estimate", "--gpu", "h200", "--context", "1:8k", "--concurrency", "50", *engine)
    assert one["mix"] is None and one["workload"] == {"context": 8192, "concurrency": 50}


# -- what a deployment file expects of it ------------------------------------------------------------------------------


def checked(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[int, Any]:
    code, out, err = run(capsys, "check", str(path), "--format", "json", *words)
    return code, json.loads(out)["files"][0] if code < 2 else err


def written(folder: Path, expect: str, flags: str, engine: str = "0.5.23") -> Path:
    path = folder / "one.kvplan.yaml"
    path.write_text(f"gpu: h200\nengine: {engine}\nflags: {{{flags}}}\nexpect: {{{expect}}}\n", encoding="utf-8")
    return path


def most_of_two(units: int, long: int, short: int) -> int:
    """The most requests of TWO that so many units hold with 0.99, counted one by one."""
    requests = 0
    while (found := long_ones(requests + 1)) * long + (requests + 1 - found) * short <= units:
        requests += 1
    return requests


def test_check_judges_a_mix_by_the_binomial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = most_of_two(4_000_000 // 64 * 64, 131_072, 8_192)
    flags = "tp_size: 8, max_total_tokens: 4000000, max_running_requests: 400, max_mamba_cache_size: 2000"
    for wanted, code in ((held, 0), (held + 1, 1)):
        for mix in ("contexts: '80%:8k,20%:128k'", "contexts: {8k: 4, 128k: 1}", "contexts: {131072: 0.2, 8192: 0.8}"):
            path = written(tmp_path, f"min_concurrency: {wanted}, {mix}", flags)
            exit_code, file = checked(capsys, path)
            (found,) = (each for each in file["findings"] if each["name"] == "min_concurrency")
            assert (exit_code, found["found"]) == (code, held)
            if code:
                assert found["limit"].startswith("tokens")
            assert "min_concurrency of 80% 8,192, 20% 131,072: 99% of the time" in " ".join(file["notes"])
    words = [f"--{flag.replace('_', '-').replace(': ', '=')}" for flag in flags.split(", ")]
    served = document(capsys, "solve", "--gpu", "h200", "--engine", "0.5.23", "--context", TWO, *words)["served"]
    assert served["requests"] == held
    path = written(tmp_path, f"min_concurrency: 1, contexts: '{TWO}', confidence: mean", flags)
    _, file = checked(capsys, path)
    assert next(f["found"] for f in file["findings"] if f["name"] == "min_concurrency") == served["mean_requests"]


def test_check_of_vllm_judges_a_mix_by_the_binomial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "tensor_parallel_size: 8, num_gpu_blocks_override: 9000, max_model_len: 131072"
    blocks = kv.plan({"tensor_parallel_size": 8, "max_model_len": 131_072}, gpu="h200", engine="vllm").blocks
    held = most_of_two(9000 - 1, blocks.needed(131_072), blocks.needed(8_192))
    for wanted, code in ((held, 0), (held + 1, 1)):
        path = written(tmp_path, f"min_concurrency: {wanted}, contexts: '{TWO}'", flags, "vllm")
        exit_code, file = checked(capsys, path)
        (found,) = (each for each in file["findings"] if each["name"] == "min_concurrency")
        assert (exit_code, found["found"]) == (code, held)


@pytest.mark.parametrize(
    ("engine", "flags", "limit"),
    [
        ("0.5.23", "tp_size: 8, context_length: 65536", "context_length"),
        ("vllm", "tensor_parallel_size: 8, max_model_len: 65536", "max_model_len"),
    ],
)
def test_check_of_a_length_the_server_refuses_says_what_lets_it_in(
    engine: str, flags: str, limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, file = checked(capsys, written(tmp_path, f"min_concurrency: 9, contexts: '{TWO}'", flags, engine))
    (found,) = (each for each in file["findings"] if each["name"] == "min_concurrency")
    assert (code, found["found"], found["limit"]) == (1, 0, limit)
    assert limit in found["changes"][0]["flags"]


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("min_concurrency: 9, contexts: '60%:8k'", "add up to 0.6"),
        ("min_concurrency: 9, contexts: 8k", "it takes shares such as 80%:8k,20%:128k"),
        ("min_concurrency: 9, contexts: ./lengths.csv", "it takes shares such as"),  # no file is opened
        ("min_concurrency: 9, contexts: {8k: -1}", "a share is a number from 0"),
        ("min_concurrency: 9, contexts: {}", "no context length has a share"),
        ("contexts: {8k: 1}", "contexts say how long the requests of min_concurrency are"),
        ("min_concurrency: 9, confidence: 0.9", "confidence is promised of contexts"),
        ("min_concurrency: 9, contexts: {8k: 1}, confidence: 0.3", "0.5 or more"),
    ],
)
def test_what_a_file_cannot_expect(expect: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lengths.csv").write_text("8192,1\n", encoding="utf-8")
    code, out, _ = run(capsys, "check", str(written(tmp_path, expect, "tp_size: 8")))
    assert code == 2 and said in " ".join(out.split())


@pytest.mark.parametrize("mix", [TWO, "0.333333333333333:8k,0.666666666666667:33333", "40000"])
def test_a_saved_plan_expects_the_mix_it_was_made_for(
    mix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.kvplan.yaml"
    words = ("advise", "--gpu", "h200", "--gpus", "8", "--context", mix, "--concurrency", "60", "--confidence", "0.95")
    assert run(capsys, *words, "--save", str(path))[0] == 0
    wanted = read_deployment_file(path).content.expect.wanted
    asked, share = parse_contexts(mix), wanted.lengths
    if len(asked.lengths) > 1:
        assert share.confidence == 0.95 and share.lengths == asked.lengths
        told = [weight / sum(share.weights) for weight in share.weights]
        assert told == pytest.approx([weight / sum(asked.weights) for weight in asked.weights], rel=1e-12)
    else:
        assert share.lengths == asked.lengths
    code, file = checked(capsys, path)
    assert code == 0 and {each["status"] for each in file["findings"] if each["wanted"]} == {"holds"}
    text = path.read_text(encoding="utf-8")
    assert wanted.min_concurrency and f"min_concurrency: {wanted.min_concurrency}" in text
    found = next(each["found"] for each in file["findings"] if each["name"] == "min_concurrency")
    for more, code in ((0, 0), (1, 1)):
        path.write_text(text.replace(f"min_concurrency: {wanted.min_concurrency}", f"min_concurrency: {found + more}"),
                        encoding="utf-8")  # fmt: skip
        assert checked(capsys, path)[0] == code


# -- lengths that the server refuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "limit"),
    [
        (("--tp-size", "8", "--context-length", "65536"), "context length"),
        (("--", "vllm", "serve", "x/GLM-5.3-Flash", "-tp", "8", "--max-model-len", "65536"), "--max-model-len"),
    ],
)
def test_what_counts_requests_says_none_and_what_lays_them_out_refuses(
    engine: tuple[str, ...], limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A launch may well refuse what comes: that is an answer of those who count, and no input of those who build."""
    card = ("--gpu", "h200")
    served = document(capsys, "solve", *card, "--context", TWO, *engine)["served"]
    mixed = served if isinstance(served, dict) else next(each for each in served if each["mixed"])
    assert (mixed["requests"], mixed["limit"]) == (0, limit)
    assert run(capsys, "solve", *card, "--context", TWO, *engine)[0] == 0
    (row,) = document(capsys, "sweep", *card, "--context", TWO, "--over", "gpu=h200", *engine)["rows"]
    assert (row["served"], row["served_bound_by"]) == (0, limit)
    advised = document(capsys, "advise", *card, "--context", TWO, *engine)
    assert advised["holds"] and max(value for value in advised["flags"].values() if value is not None) >= 131_072
    for command in ("estimate", "pools"):
        code, _, err = run(capsys, command, *card, "--context", "128k", *engine)
        assert code == 2 and "more than the server accepts (65536" in err
    assert run(capsys, "estimate", *card, "--context", TWO, *engine)[0] == 2
