"""`kvplan report` of vLLM: the numbers of solve, advise and estimate on one page, in every form."""

import io
import re
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from running import run
from test_page_words import unknown

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.vllm.answers.advise_answer import answer_advise
from glm_kvplan.engines.vllm.answers.advise_page import advise_page
from glm_kvplan.engines.vllm.answers.estimate_answer import answer_estimate
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer, answer_report
from glm_kvplan.engines.vllm.answers.report_page import report_page
from glm_kvplan.engines.vllm.answers.solve_answer import answer_solve
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.html import html
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.page_file import page_bytes
from glm_kvplan.show.said import ENGLISH
from glm_kvplan.show.text import print_page
from glm_kvplan.workload import UNKNOWN_HOST, Demand, Workload

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
CASES: dict[str, tuple[dict[str, object], MemoryGiven, str, int]] = {
    "estimated": ({}, MemoryGiven(), "128k", 64),
    "a mix": ({}, MemoryGiven(available_gib=45.07), "0.8:8k,0.2:128k", 20),
    "drafts": ({"max_model_len": 131072, "speculative_config": MTP3}, MemoryGiven(available_gib=45.07), "128k", 25),
    "by flag": ({"kv_cache_memory_bytes": 60 << 30, "data_parallel_size": 2}, MemoryGiven(), "8k", 600),
    "few at once": ({"max_num_seqs": 8}, MemoryGiven(), "8k", 9),
    "refused": ({}, MemoryGiven(available_gib=4.0), "128k", 1),
    "refused at the low end": ({"max_num_seqs": 3700}, MemoryGiven(), "128k", 1),
}
SERVE = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")


def plan(name: str) -> Plan:
    found: Plan = kv.plan({"tensor_parallel_size": 4, **CASES[name][0]}, engine="vllm-0.33.0", gpu="h200")
    return found


def demand(name: str) -> Demand:
    return Demand(parse_contexts(CASES[name][2]), CASES[name][3])


@cache
def seen(name: str) -> ReportAnswer:
    return answer_report(plan(name), demand(name), CASES[name][1], command="kvplan report", day="2026-11-30")


@pytest.mark.parametrize("name", CASES)
def test_its_numbers_are_those_of_the_other_commands(name: str) -> None:
    answer, given, wanted = seen(name), CASES[name][1], demand(name)
    assert answer.start == answer_solve(plan(name), given, mix=wanted.contexts, with_prices=True)
    assert answer.advised == answer_advise(plan(name), wanted, given)
    workload = Workload(wanted.contexts.longest, wanted.concurrency)
    assert answer.cost == answer_estimate(plan(name), workload, UNKNOWN_HOST)
    assert answer.warnings == answer.start.warnings
    launched = answer.advised.now.serves(answer.advised.demand)
    assert launched == (answer.start.holds and answer.advised.now.requests >= wanted.concurrency)
    assert answer.holds == answer.advised.holds >= launched
    assert answer.served.requests == answer.advised.now.requests
    tone = report_page(answer).verdict
    assert tone is not None and (tone.tone == "bad") == (not answer.holds)
    said = advise_page(answer.advised).verdict
    assert said is not None and said[:2] == tone[:2]


@pytest.mark.parametrize("name", CASES)
def test_every_form_says_what_solve_says(name: str) -> None:
    answer = seen(name)
    page, out = report_page(answer), io.StringIO()
    print_page(page, out)
    body = unescape(re.sub("<[^>]*>", "", html(page).partition("<body>")[2]))
    for text in (out.getvalue(), body, unescape(markdown(page))):
        flat = re.sub(r"[\s\\\u200b]", "", text)
        said = [str(warning) for warning in answer.start.warnings]
        said += ["vllm serve zai-org/GLM-5.3-Flash --tensor-parallel-size 4"]
        said += [f"a block takes {answer.start.block.nbytes:,} bytes a GPU"]
        if answer.start.failure is not None:
            said.append(answer.start.failure.reason)
        elif answer.start.certainty != "estimated":
            said.append(answer.start.printed.line)
        assert [one for one in said if re.sub(r"\s", "", one) not in flat] == []


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("refused")] + [*CASES][-1:])
def test_the_map_is_the_whole_card(name: str) -> None:
    answer, begun = seen(name), begin(plan(name), CASES[name][1])
    card = answer.card
    assert card is not None
    assert sum(segment.nbytes for segment in card.segments) == card.total_bytes == plan(name).gpu.memory_mib << 20
    first = next(place for place, segment in enumerate(card.segments) if segment.look == "latent")
    blocks = sum(segment.nbytes for segment in card.segments[first:-1])
    assert blocks == answer.start.num_blocks * answer.start.block.nbytes
    before = sum(segment.nbytes for segment in card.segments[:first])
    assert abs(before + begun.memory.nbytes - card.total_bytes) < 64  # parts are GiB, each cut to a byte
    assert min(segment.nbytes for segment in card.segments) >= 0
    assert (
        card.requests
        == min(demand(name).concurrency, answer.served.requests) // answer.head.deployment["data_parallel_size"]
    )


@pytest.mark.parametrize("name", CASES)
def test_its_sentences_are_ours(name: str) -> None:
    assert unknown(report_page(seen(name))) == set()


def test_the_frontier_counts_as_solve_does() -> None:
    for name in ("estimated", "few at once", "by flag"):
        answer, start = seen(name), begin(plan(name), CASES[name][1]).start
        assert answer.frontier is not None
        for mark in answer.frontier.marks:
            now = served(start, parse_contexts(str(mark.context)))
            assert (mark.requests, mark.limit) == (now.requests, now.limit)
            assert mark.advised >= mark.requests
        assert answer.frontier.points[-1].context == answer.start.printed.max_model_len
    assert seen("few at once").frontier.points[0].limit == "--max-num-seqs"  # type: ignore[union-attr]


@pytest.mark.parametrize("chart", ["map", "frontier", "prices"])
def test_a_chart_alone(chart: str) -> None:
    assert b"<svg" in page_bytes(report_page(seen("estimated")), ENGLISH, "svg", chart)[0]


def test_the_command_is_one_to_type_again(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("report", "-o", "-", "--format", "md", "--gpu", "h200", "--available-gib", "45.07")
    code, first, _ = run(capsys, *words, *SERVE)
    assert code == 0
    typed = first.partition("How this page was made")[2].partition("```sh\nkvplan ")[2].partition("```")[0]
    again = typed.replace("\\\n", " ").split()
    assert "vllm-0.33.0" in again
    code, second, _ = run(capsys, *again)
    assert code == 0
    assert [line for line in first.splitlines() if "vLLM prints" in line] == [
        line for line in second.splitlines() if "vLLM prints" in line
    ]


def test_a_report_is_written_and_its_verdict_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    code, out, _ = run(capsys, "report", "-o", str(path), "--gpu", "h200", "--concurrency", "64", *SERVE)
    assert code == 1 and out.startswith("No: 29 of 64 requests") and "GPU KV cache size" in path.read_text("utf-8")
    code, _, err = run(capsys, "report", "-o", str(tmp_path / "x.svg"), "--chart", "split", "--gpu", "h200", *SERVE)
    assert code == 2 and "all its blocks are alike" in err
    code, _, err = run(capsys, "report", "-o", "-", "--format", "md", "--prefix-states", "1", "--gpu", "h200", *SERVE)
    assert code == 2 and err.count("\n") == 1


@pytest.mark.parametrize("engine", [("--engine", "vllm"), ("--gpu", "h200")])
def test_a_flag_of_the_other_engine_is_answered_with_its_twin(
    capsys: pytest.CaptureFixture[str], engine: tuple[str, ...]
) -> None:
    code, _, err = run(capsys, "solve", *engine, "--tp-size", "4", *(SERVE if "--gpu" in engine else ()))
    assert code == 2
    assert err == "kvplan: --tp-size is a flag of another engine; of vLLM it is --tensor-parallel-size\n"
    code, _, err = run(capsys, "solve", "--gpu", "h200", "--max-num-seqs", "4")
    assert code == 2 and "of SGLang it is --max-running-requests" in err
