"""Predictions against what operators measured: `python benchmarks/accuracy.py` writes docs/accuracy.md.

The cases in tests/data/cases are public measurements on real GPUs. A printed size agrees when the prediction rounds
to the same digits. Where memory was read off rounded log lines, slots may move by 1 and tokens by 0.25 %.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import glm_kvplan as kv
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.engines.sglang.sizing.transients import logits_bytes
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "data" / "cases"
TOKENS_SHARE = 0.0025

# What a case's text says and its flags do not: the releases' own rules, or the patches of a build.
MORE_FLAGS = {
    "rtxpro6000x2-tp2-mtp6-bf16state": {"speculative_eagle_topk": 1},
    "rtxpro6000x4-tp4-mtp6-cutlass": {"speculative_eagle_topk": 1},
    "gb10x2-tp2-capped": {"speculative_draft_model_path": "draft"},
}
ENVIRONMENT = {"mi355x-mxfp4-tp4-nospec": {"SGLANG_USE_AITER": "1"}}
PATCHED = {"rtxpro6000x2-tp2-mtp6-bf16state": {"index_rows_pooled": False, "page_size_times_index_kpool": False}}
POOLS = {
    "conv_state_gib": ("conv_state",),
    "ssm_state_gib": ("temporal_state",),
    "intermediate_ssm_gib": ("intermediate_ssm",),
    "intermediate_conv_gib": ("intermediate_conv_window",),
    "kv_gib": ("kv_buffer", "index_k_buffer"),
    "draft_kv_gib": ("draft.kv_buffer", "draft.index_k_buffer"),
    "kda_gib": ("conv_state", "temporal_state"),
}


class Row(NamedTuple):
    """One printed value. `slack` is how far the prediction may be off, 0 where it must round to the same digits."""

    case: str
    value: str
    printed: float
    predicted: float
    slack: float
    basis: str

    @property
    def agrees(self) -> bool:
        digits = len(f"{self.printed}".partition(".")[2]) if isinstance(self.printed, float) else 0
        return abs(round(self.predicted, digits) - self.printed) <= self.slack + 1e-9


def load(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return case


def planned(case: dict[str, Any], release: str | None = None, **changes: object) -> kv.Plan:
    """The case's launch as kvplan resolves it."""
    name = case["id"]
    profile = load_profile(release or case["engine_profile"].removeprefix("sglang-"))
    profile = replace(profile, **PATCHED.get(name, {}))
    flags = {**case["flags"], **MORE_FLAGS.get(name, {}), **changes}
    return kv.plan(flags, gpu=case["gpu"], engine=profile, environment=ENVIRONMENT.get(name))


def pool_gib(plan: kv.Plan, sizes: kv.PoolSizes, names: tuple[str, ...]) -> float:
    """GiB of some tensors for given sizes, as the engine's log would print them."""
    specs = tensor_specs(rank_of(plan), sizes)
    return sum(spec.nbytes for spec in specs if spec.name in names) / GIB


def start(case: dict[str, Any]) -> Boot:
    """The start of a case with its printed memory."""
    memory = case["memory"]
    known = MemoryGiven(
        pre_gib=memory["pre_model_load_gib"],
        weights_gib=memory["target_weights_gib"],
        draft_weights_gib=memory["draft_weights_gib"],
    )
    return boot(planned(case), known)


def solved(name: str) -> Iterator[Row]:
    """What the engine sized, from the memory the operator printed."""
    case = load(name)
    answer, printed = start(case), case["printed"]
    basis = "printed memory"
    sizes = answer.solution.sizes
    yield Row(name, "max_mamba_cache_size", printed["max_mamba_cache_size"], sizes.state_slots, 1, basis)
    tokens = printed["kv_tokens"]
    yield Row(name, "max_total_num_tokens", tokens, sizes.tokens, TOKENS_SHARE * tokens, basis)
    if answer.map is not None:
        free = answer.map.free / GIB
        yield Row(name, "free after pools, GiB", printed["avail_after_pools_gib"], free, 0.1, basis)


def pools(name: str, requests: int) -> Iterator[Row]:
    """Every printed pool size, once the sizes are the printed ones."""
    case = load(name)
    printed = case["printed"]
    plan = planned(case)
    sizes = kv.PoolSizes(printed.get("kv_tokens", 0), printed.get("max_mamba_cache_size", 2), requests)
    for value, names in POOLS.items():
        if value in printed:
            yield Row(name, value, printed[value], pool_gib(plan, sizes, names), 0, "printed sizes")


def laws() -> Iterator[Row]:
    """Cases without memory: the laws that tie their printed values to each other."""
    name = "pr39433-rtxpro6000x4-tp4-bf16state"
    case = load(name)
    slots = case["printed"]["device_rows"] - 1
    for release, value in (("0.5.20", "ssm_state_gib_before"), ("0.5.23", "ssm_state_gib_after")):
        size = pool_gib(planned(case, release), kv.PoolSizes(0, slots, 48), ("temporal_state",))
        yield Row(name, f"{value} ({release})", case["printed"][value], size, 0, "printed slots")
    name = "rtxpro6000x4-tp4-mtp6-cutlass"
    case = load(name)
    for drafts in (6, 8):
        plan = planned(case, speculative_num_draft_tokens=drafts, speculative_num_steps=drafts - 1)
        value = f"intermediate_ssm_gib_at_{drafts}"
        size = pool_gib(plan, kv.PoolSizes(0, 170, 24), ("intermediate_ssm",))
        yield Row(name, value, case["printed"][value], size, 0, "printed slots")
    name = "gb10x2-tp2-capped"
    case = load(name)
    plan = planned(case)
    answer = attempt(plan, 115.0, 60.0)
    granted = case["printed"]["max_running_requests"]
    yield Row(name, "max_running_requests", granted, answer.running_requests, 0, "any memory")
    name = "indexer-transient"
    case = load(name)
    for rows, failed in zip(case["flags"]["context_rows"], case["printed"]["failed_alloc_gib"], strict=True):
        size = logits_bytes(case["flags"]["chunked_prefill_size"], rows) / GIB
        yield Row(name, f"logits of {rows:,} rows, GiB", failed, size, 0, "printed rows")


def sibling() -> Iterator[Row]:
    """A run whose own weights were not printed: the two values it printed must agree on one amount of memory."""
    name = "b200x4-nvfp4-tp4-conc128"
    case = load(name)
    plan, printed = planned(case), case["printed"]
    pre = case["memory"]["pre_model_load_gib"]
    tokens, granted = printed["kv_tokens_rounded"], printed["max_running_requests"]
    tried = (attempt(plan, pre, hundredths / 100) for hundredths in range(12000, 13000))
    fitted = min(
        (answer for answer in tried if answer.running_requests == granted),
        key=lambda answer: abs(answer.tokens - tokens),
    )
    basis = f"memory fitted to the granted requests ({fitted.available_gib:.2f} GiB after the load)"
    yield Row(name, "max_total_num_tokens, printed as 7.19 M", tokens, fitted.tokens, 5000, basis)


def rows() -> list[Row]:
    """Every comparison, case by case."""
    return [
        *solved("b200x4-nvfp4-tp4-mtp4-slots700"),
        *pools("b200x4-nvfp4-tp4-mtp4-slots700", 96),
        *solved("b200x4-nvfp4-tp4-mtp6-frac80"),
        *pools("b200x4-nvfp4-tp4-mtp6-frac80", 96),
        *sibling(),
        *pools("mi355x-mxfp4-tp4-nospec", 32),
        *pools("rtxpro6000x1-tp1-radixoff", 2),
        *pools("rtxpro6000x2-tp2-mtp6-bf16state", 4),
        *laws(),
    ]


def document() -> str:
    """docs/accuracy.md."""
    lines = [_HEAD]
    for row in rows():
        digits = 2 if isinstance(row.printed, float) else 0
        agrees = "yes" if row.agrees else "no"
        lines.append(
            f"| {row.case} | {row.value} | {row.printed:,} | {row.predicted:,.{digits}f} | {agrees} | {row.basis} |"
        )
    conc = start(load("b200x4-nvfp4-tp4-conc128")).solution
    lines.append(_TAIL.format(requests=conc.running_requests, tokens=f"{conc.tokens:,}"))
    return "\n".join(lines)


_HEAD = """\
# Accuracy

Written by `python benchmarks/accuracy.py`; the tests hold this page to its output.

## Against the engine

`tests/data` holds what the engine's own classes allocate and decide on four releases: 4,368 resolved launches, 1,220
sizings, 1,572 sets of pools and 1,393 host plans. The tests reproduce every record: every integer, every byte, every
float, every refusal.

## Against operators

Public measurements of GLM-5.3-Flash on real GPUs. *printed sizes*: the pools' bytes at the slots and tokens the
operator's log printed; *printed memory*: the whole sizing, from the free memory and weights the log printed.

| case | value | printed | predicted | agrees | from |
| --- | --- | ---: | ---: | --- | --- |"""

_TAIL = """
The run `b200x4-nvfp4-tp4-conc128` did not print its own weights. With those of its sibling runs (another expert
layout) the prediction is {requests} requests and {tokens} tokens, against 122 and about 7.19 million printed:
less was free than the siblings' figures say. Its two printed values agree with one amount of memory.
"""


if __name__ == "__main__":
    (ROOT / "docs" / "accuracy.md").write_text(document(), encoding="utf-8")
