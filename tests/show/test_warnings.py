"""The same warnings in every form of an answer: whatever a deployment is, no form keeps one back."""

import io
import re

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.sglang.answers.estimate_answer import answer_estimate
from glm_kvplan.engines.sglang.answers.estimate_page import estimate_page
from glm_kvplan.engines.sglang.answers.solve_answer import answer_solve
from glm_kvplan.engines.sglang.answers.solve_page import solve_page
from glm_kvplan.engines.sglang.sizing.estimate import Workload
from glm_kvplan.engines.sglang.sizing.host_answer import UNKNOWN_HOST, HostGiven
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.json import document
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.page import Page
from glm_kvplan.show.text import print_page

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
    """The text of each form."""
    out = io.StringIO()
    print_page(page, out)
    return {"terminal": flat(out.getvalue()), "markdown": flat(markdown(page))}


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("command", ["estimate", "solve"])
def test_every_form_has_every_warning(command: str, name: str) -> None:
    plan = kv.plan(DEPLOYMENTS[name], gpu="h200")
    host = HostGiven(host_bytes=600 << 30) if plan.deployment.enable_hierarchical_cache else UNKNOWN_HOST
    if command == "estimate":
        answer = answer_estimate(plan, Workload(131072, 64), host)
        page = estimate_page(answer)
    else:
        answer = answer_solve(plan, MEMORY if plan.deployment.speculative else MemoryGiven(), None, host)
        page = solve_page(answer)
    said = document(command, answer)["warnings"]
    assert tuple(map(str, page.warnings)) == tuple(said)
    for form, text in forms(page).items():
        assert [warning for warning in said if flat(warning) not in text] == [], form
        marks = text.count("⚠️") if form == "markdown" else len(re.findall(r"!(?=[a-z-])", text))
        assert marks >= len(said), form
    assert bool(said) == (name in EXPECTED[command]), said


EXPECTED = {
    "estimate": ("decode", "host cache", "host cache by size", "too small"),
    "solve": ("attention DP", "decode", "host cache", "host cache by size", "pipeline"),
}
