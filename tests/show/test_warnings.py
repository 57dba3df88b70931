"""The same warnings in every form of an answer: whatever a deployment is, no form keeps one back."""

import io
import re
from html import unescape

import pytest

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.sglang.answers.advise_answer import answer_advise
from glm_kvplan.engines.sglang.answers.advise_page import advise_page
from glm_kvplan.engines.sglang.answers.estimate_answer import answer_estimate
from glm_kvplan.engines.sglang.answers.estimate_page import estimate_page
from glm_kvplan.engines.sglang.answers.report_answer import answer_report
from glm_kvplan.engines.sglang.answers.report_page import report_page
from glm_kvplan.engines.sglang.answers.solve_answer import answer_solve
from glm_kvplan.engines.sglang.answers.solve_page import solve_page
from glm_kvplan.engines.sglang.sizing.host_answer import UNKNOWN_HOST, HostGiven
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.html import html
from glm_kvplan.show.json import document
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.page import Page
from glm_kvplan.show.text import print_page
from glm_kvplan.workload import Demand

DEPLOYMENTS = {
    "plain": {"tp_size": 8},
    "attention DP": {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True},
    "decode": {"tp_size": 8, "disaggregation_mode": "decode", "max_running_requests": 32},
    "host cache": {"tp_size": 8, "enable_hierarchical_cache": True, "kv_cache_dtype": "fp8_e4m3"},
    "host cache by size": {"tp_size": 4, "enable_hierarchical_cache": True, "hicache_size": 90},
    "DFLASH": {"tp_size": 8, "speculative_algorithm": "DFLASH", "speculative_draft_model_path": "d"},
    "too small": {"tp_size": 8, "max_total_tokens": 64000, "max_mamba_cache_size": 10},
    "pipeline": {"tp_size": 4, "pp_size": 2, "disaggregation_mode": "decode"},
}
MEMORY = MemoryGiven(weights_gib=40.0, draft_weights_gib=3.0)


def flat(text: str) -> str:
    """Without what a form adds: folds, escapes, invisible marks."""
    return re.sub(r"[\s\\\u200b]", "", text)


def forms(page: Page) -> dict[str, str]:
    """The text of each form; HTML without its elements."""
    out = io.StringIO()
    print_page(page, out)
    body = html(page).partition("<body>")[2]
    shown = unescape(re.sub("<[^>]*>", "", body))
    return {"terminal": flat(out.getvalue()), "markdown": flat(unescape(markdown(page))), "html": flat(shown)}


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("command", ["estimate", "solve", "report"])
def test_every_form_has_every_warning(command: str, name: str) -> None:
    plan = kv.plan(DEPLOYMENTS[name], gpu="h200")
    host = HostGiven(host_bytes=600 << 30) if plan.deployment.enable_hierarchical_cache else UNKNOWN_HOST
    if command == "estimate":
        answer = answer_estimate(plan, Workload(131072, 64), host)
        page = estimate_page(answer)
    elif command == "report":
        memory = MEMORY if plan.deployment.speculative else MemoryGiven()
        answer = answer_report(plan, Demand(parse_contexts("128k"), 64), memory, host)
        page = report_page(answer)
    else:
        answer = answer_solve(plan, MEMORY if plan.deployment.speculative else MemoryGiven(), None, host)
        page = solve_page(answer)
    said = [str(warning) for warning in answer.warnings]
    if command != "report":  # which has no JSON
        assert document(command, answer)["warnings"] == said
    assert [str(warning) for warning in page.warnings] == said
    for form, text in forms(page).items():
        assert [warning for warning in said if flat(warning) not in text] == [], form
        marks = text.count("⚠️") if form == "markdown" else len(re.findall(r"!(?=[0-9a-z-])", text))
        assert marks >= len(said), form
    assert bool(said) == (name in EXPECTED[command]), said


EXPECTED = {
    "estimate": ("decode", "host cache", "host cache by size", "too small"),
    "solve": ("attention DP", "decode", "host cache", "host cache by size", "pipeline"),
    "report": ("attention DP", "decode", "host cache", "host cache by size", "pipeline", "too small"),
}


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_report_keeps_no_warning_of_solve_or_advise_back(name: str) -> None:
    plan = kv.plan(DEPLOYMENTS[name], gpu="h200")
    host = HostGiven(host_bytes=600 << 30) if plan.deployment.enable_hierarchical_cache else UNKNOWN_HOST
    memory = MEMORY if plan.deployment.speculative else MemoryGiven()
    demand = Demand(parse_contexts("128k"), 64)
    shown = set(report_page(answer_report(plan, demand, memory, host)).warnings)
    asked = host._replace(prefix_tokens=131072)
    assert shown >= set(solve_page(answer_solve(plan, memory, 131072, asked)).warnings)
    assert shown >= set(advise_page(answer_advise(plan, demand, memory)).warnings)
