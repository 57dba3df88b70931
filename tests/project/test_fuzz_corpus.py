"""Inputs that once broke a promise (fuzz/corpus), and the same promises said in flags, which no table can shift."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from paths import ROOT

FUZZ = ROOT / "fuzz"
if not FUZZ.is_dir():
    pytest.skip("the fuzz targets are not in this copy", allow_module_level=True)
sys.path.insert(0, str(FUZZ))

import targets  # noqa: E402

from glm_kvplan.engines.planner import Given, plan  # noqa: E402
from glm_kvplan.engines.sglang.profile import load_profile  # noqa: E402
from glm_kvplan.engines.sglang.sizing.start import boot  # noqa: E402
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, estimate  # noqa: E402
from glm_kvplan.memory.given import MemoryGiven  # noqa: E402
from glm_kvplan.memory.gpu import find_gpu  # noqa: E402
from glm_kvplan.model.loader import Model, bundled_geometry  # noqa: E402

KEPT = sorted(path for path in (FUZZ / "corpus").glob("*/*") if path.is_file())
SLOWEST = 1.0  # seconds of CPU, as in fuzz/watch.py


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_kept_input_is_answered(path: Path) -> None:
    start = time.process_time()
    targets.TARGETS[path.parent.name](path.read_bytes())
    assert time.process_time() - start < SLOWEST


@pytest.mark.parametrize("name", targets.TARGETS)
def test_every_target_takes_nothing_and_anything(name: str) -> None:
    for data in (b"", b"\0" * 64, b"\xff" * 64, bytes(range(256))):
        targets.TARGETS[name](data)


def test_remedies_for_many_stages_are_found_at_once() -> None:
    """The search over fractions and ratios sized every stage anew, and each stage looked at all the others."""
    layers = 256
    geometry = replace(
        bundled_geometry(),
        num_hidden_layers=layers,
        full_attention_layers=tuple(range(3, layers, 4)),
        index_layers=tuple(range(3, layers, 4)),
        linear_attention_layers=tuple(layer for layer in range(layers) if layer % 4 != 3),
    )
    model = Model(geometry, {}, "many layers", "a test")
    flags = {"pp_size": layers, "mem_fraction_static": 0.3}
    refused = Given(model, load_profile("0.5.21"), find_gpu("h200"), False, flags, {}, None).plan()
    start = time.process_time()
    answer = boot(refused, MemoryGiven(pre_gib=138.0, available_gib=10.0))
    assert time.process_time() - start < SLOWEST
    assert answer.failure is not None and answer.failure.kind == "no_state_slots"
    assert {"mem_fraction_static", "available_gib"} <= {remedy.flag for remedy in answer.remedies}


@pytest.mark.parametrize("steps", [1000, 10**12])
def test_remedies_for_any_number_of_drafts_are_found_at_once(steps: int) -> None:
    """The search for fewer draft tokens tried each number below the one given, however large that was."""
    drafts = {"speculative_num_steps": steps, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": steps + 1}
    flags = {"tp_size": 8, "disable_radix_cache": True, "speculative_algorithm": "EAGLE", **drafts}
    start = time.process_time()
    answer = boot(plan(flags, gpu="h200"), MemoryGiven(pre_gib=138.0, available_gib=80.0))
    assert time.process_time() - start < SLOWEST
    fewer = [remedy for remedy in answer.remedies if remedy.flag == "speculative_num_draft_tokens"]
    assert fewer and isinstance(fewer[0].value, int) and 2 <= fewer[0].value <= 256


def test_the_drafts_cache_is_counted_on_the_stage_that_holds_it() -> None:
    """Every stage's ledgers counted it: twice the bytes with two stages."""
    flags = {"tp_size": 4, "pp_size": 2, "speculative_algorithm": "EAGLE", "disaggregation_mode": "prefill"}
    answer = estimate(plan(flags, gpu="b200"), Workload(8192, 4))
    prices = [
        {ledger.account.name: ledger.bytes_per_unit for ledger in rank.ledgers}["draft_kv"] for rank in answer.stages
    ]
    assert prices == [0, 512 + 132]
    assert answer.everywhere("draft_kv") == 4 * (512 + 132) * answer.sizes.tokens
