"""Predictions against what operators measured: `python benchmarks/accuracy.py` writes docs/accuracy.md.

The cases in tests/data/cases are public measurements on real GPUs. A printed size agrees when the prediction rounds
to the same digits. Where memory was read off rounded log lines, slots may move by 1 and tokens by 0.25 %.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import public_boots

import glm_kvplan as kv
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.engines.sglang.sizing.transients import logits_bytes
from glm_kvplan.engines.sglang.weight_placement import after_load, placement
from glm_kvplan.memory.before_load import INTEGRATED, ONE_GPU, OTHER, SEVERAL_GPUS
from glm_kvplan.memory.budget import AFTER_ESTIMATED_WEIGHTS, AFTER_GIVEN_WEIGHTS
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.measurements import measurements
from glm_kvplan.memory.weights import estimate_weights
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


# Two public boots on one GB300 with a DFLASH draft of 5 layers, 8 KV heads and 128 wide; one memory was printed.
DFLASH_FLAGS = (
    "--quantization modelopt_fp4 --context-length 1048576 --mem-fraction-static 0.85 --max-running-requests 16 "
    "--cuda-graph-max-bs-decode 16 --chunked-prefill-size 8192 --max-prefill-tokens 8192 --kv-cache-dtype fp8_e4m3 "
    "--max-mamba-cache-size 48 --speculative-algorithm DFLASH --speculative-draft-model-path /draft "
    "--speculative-draft-attention-backend fa4 --speculative-dflash-block-size 7"
)
DFLASH_PRE, DFLASH_AVAILABLE = 248.90, 69.12
DFLASH_BOOTS = (
    ("7 draft tokens", "0.5.20", "", 577_024),
    ("the same, replayed states", "0.5.21", "--enable-linear-replayssm-spec", 856_576),
)


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
    profile = profile._replace(**PATCHED.get(name, {}))
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
    basis = f"printed memory less {-AFTER_GIVEN_WEIGHTS.gib:.2f} GiB"
    sizes = answer.solution.sizes
    yield Row(name, "max_mamba_cache_size", printed["max_mamba_cache_size"], sizes.state_slots, 1, basis)
    tokens = printed["kv_tokens"]
    yield Row(name, "max_total_num_tokens", tokens, sizes.tokens, TOKENS_SHARE * tokens, basis)
    if answer.map is not None:
        free = answer.map.unallocated / GIB
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
    lines += [*_correction(), *_draft_correction(), *_flags_alone(), *_before_the_load(), *_weights()]
    return "\n".join(lines) + "\n"


def _correction() -> Iterator[str]:
    """The amount taken off printed memory: what it was fitted on, and the rows without it."""
    case = load("b200x4-nvfp4-tp4-mtp6-frac80")
    plan, memory = planned(case), case["memory"]
    loaded = memory["pre_model_load_gib"] - memory["target_weights_gib"] - memory["draft_weights_gib"]
    found = public_boots.left_by_loading()
    values = iter(found.values())
    own, other = next(values), next(values)
    rows = []
    for text, gib in (("nothing", 0.0), (f"{-AFTER_GIVEN_WEIGHTS.gib:.2f} GiB, as planned", -AFTER_GIVEN_WEIGHTS.gib),
                      (f"{other:.2f} GiB, fitted without this server", other)):  # fmt: skip
        answer = attempt(plan, memory["pre_model_load_gib"], loaded - gib)
        rows.append(f"| {text} | {answer.state_slots} | {answer.tokens:,} |")
    yield _CORRECTION.format(
        planned=f"{-AFTER_GIVEN_WEIGHTS.gib:.2f}", error=f"{AFTER_GIVEN_WEIGHTS.error_gib:.1f}", own=f"{own:.2f}",
        other=f"{other:.2f}", rows="\n".join(rows), slots=case["printed"]["max_mamba_cache_size"],
        tokens=f"{case['printed']['kv_tokens']:,}", slack=f"{100 * TOKENS_SHARE:g}",
    )  # fmt: skip


def _draft_correction() -> Iterator[str]:
    """What a DFLASH draft takes after its load: both public boots with and without it."""
    rows = []
    for name, release, more, printed in DFLASH_BOOTS:
        plan = _dflash(release, more)
        part = after_load(plan.deployment)
        assert part is not None
        without, taken = (attempt(plan, DFLASH_PRE, DFLASH_AVAILABLE + gib).tokens for gib in (0.0, part.gib))
        rows.append(f"| {name} | {printed:,} | {without:,} | {taken:,} |")
    yield _DRAFT.format(taken=f"{-part.gib:.2f}", error=f"{part.error_gib:.2f}", rows="\n".join(rows))


def _dflash(release: str, more: str) -> kv.Plan:
    """The boot's launch, with a draft of the shape that its log printed."""
    lines = gzip.decompress((ROOT / "tests" / "data" / "draft.jsonl.gz").read_bytes()).splitlines()
    config = next(record["draft_config"] for line in lines if (record := json.loads(line))["geo"] == "d5x8x128")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        launch = f"sglang serve zai-org/GLM-5.3-Flash {DFLASH_FLAGS} {more}"
        return kv.plan({"draft_config": str(path)}, launch=launch, gpu="gb300-station", engine=release)


def _flags_alone() -> Iterator[str]:
    stated, without = public_boots.judged(), public_boots.left_out()
    yield _FLAGS_ALONE
    for one, other in zip(stated, without, strict=True):
        digits = 0 if one.what == "tokens" else 2
        middle, ends = f"{one.middle:,.{digits}f}", _interval(one, digits)
        outer = "nothing to fit" if other is None else _interval(other, digits)
        inside = "-" if other is None else _yes(other.inside)
        first = f"| {one.boot.id} | {one.what} | {one.printed:,} | {middle} | {ends} | {_yes(one.inside)}"
        yield f"{first} | {outer} | {inside} |"
    yield ""
    yield "| platform | boots | servers | inside | inside, fitted without their server |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name in dict.fromkeys(public_boots.group(one.boot) for one in stated):
        of_group = [pair for pair in zip(stated, without, strict=True) if public_boots.group(pair[0].boot) == name]
        inside = sum(one.inside for one, _ in of_group)
        judged = [other for _, other in of_group if other is not None]
        held = f"{sum(other.inside for other in judged)} of {len(judged)}" if judged else "-"
        servers = len({one.boot.server for one, _ in of_group})
        yield f"| {name} | {len(of_group)} | {servers} | {inside} of {len(of_group)} | {held} |"
    yield _FLAGS_ALONE_TAIL.format(
        left=f"{-AFTER_ESTIMATED_WEIGHTS.gib:.1f}", error=f"{AFTER_ESTIMATED_WEIGHTS.error_gib:.1f}"
    )


def _interval(judgement: public_boots.Judged, digits: int) -> str:
    return f"{judgement.least:,.{digits}f} to {judgement.most:,.{digits}f}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _before_the_load() -> Iterator[str]:
    yield _BEFORE
    for (name, one), each in public_boots.servers(measurements()).items():
        table = ONE_GPU if one else SEVERAL_GPUS
        stated = table.get(name, table[OTHER])
        figure = f"{stated.gib:.1f} ± {stated.error_gib:.1f}"
        for server, gib in each.items():
            yield f"| {name} | {'one' if one else 'several'} | {server} | {gib:.2f} | {figure} |"
    figure = f"{INTEGRATED.gib:.1f} ± {INTEGRATED.error_gib:.1f}"
    yield f"| memory shared with the host | one | a public DGX Spark report, no boot log | 5.6 | {figure} |"


def _weights() -> Iterator[str]:
    yield _WEIGHTS
    for held in measurements():
        if held.target_gib is None or held.checkpoint is None:
            continue
        plan = public_boots.planned(held.id)
        placed = placement(plan.geometry, plan.deployment, plan.gpu)._replace(draft=True, mtp_draft=True)
        estimate = estimate_weights(plan.geometry, placed, held.checkpoint)
        for name, printed, nbytes in (
            ("target", held.target_gib, estimate.target[0]), ("draft", held.draft_gib, estimate.draft[0]),
        ):  # fmt: skip
            if printed is not None:
                off = 100 * (nbytes / GIB / printed - 1)
                yield f"| {held.id} | {held.checkpoint} | {name} | {printed:.2f} | {nbytes / GIB:.2f} | {off:+.2f} % |"


_HEAD = """\
# Accuracy

Written by `python benchmarks/accuracy.py`; the tests hold this page to its output.

## Against the engine

`tests/data` holds what the engine's own classes allocate and decide on four releases: 4,368 resolved launches, 1,220
sizings, 1,572 sets of pools, 1,393 host plans, 644 answers about draft models, and 418 launches at its start-up checks.
The tests reproduce every record: every integer, every byte, every float, every refusal. Of 3,299 launches that went
from flags to tensors at once [14 differ](refusals.md#recorded-launches-that-differ), each for a reason that is known.

## Against operators

Public measurements of GLM-5.3-Flash on real GPUs. *printed sizes*: the pools' bytes at the slots and tokens the
operator's log printed; *printed memory*: the whole sizing, from the free memory and weights the log printed, less a
correction that the next section states. None of the logs is at hand: every figure is one that its operator published,
and the logs in `tests/data/logs` were rebuilt from such figures.

| case | value | printed | predicted | agrees | from |
| --- | --- | ---: | ---: | --- | --- |"""

_TAIL = """
The run `b200x4-nvfp4-tp4-conc128` did not print its own weights. With those of its sibling runs (another expert
layout) the prediction is {requests} requests and {tokens} tokens, against 122 and about 7.19 million printed:
less was free than the siblings' figures say. Its two printed values agree with one amount of memory.
"""

_CORRECTION = """\
### The correction

From printed memory, {planned} ± {error} GiB are taken off what the last "Load weight end" and the weights leave:
something the engine takes before it sizes. {own} GiB is what the 4x B200 server implies, whose two runs are the rows
above, and {other} GiB the one other server that printed enough, the DGX Station GB300. So those rows are no independent
proof. Of `b200x4-nvfp4-tp4-mtp6-frac80`, printed {slots} slots and {tokens} tokens:

| taken off | slots | tokens |
| --- | ---: | ---: |
{rows}

A row of printed memory agrees within 1 slot, {slack} % of the tokens and 0.1 GiB; every other row to its
last printed digit. `reconcile` takes nothing off: it says how much less was free than the log's last reading.
"""

_DRAFT = """\
### The correction of a DFLASH draft

{taken} ± {error} GiB more are taken off where a DFLASH draft loads: its table of positions is laid out anew, and the
old one's memory is not given back. It is fitted on these two boots of one GB300, the only ones that printed enough, so
that they prove nothing but each other; the draft's shape is the one their log printed. Tokens:

| boot | printed | nothing taken off | as planned |
| --- | ---: | ---: | ---: |
{rows}

The weights of EAGLE3 and STANDALONE drafts are not derived: sizes are an upper bound and say `at most`, until
`--draft-weights-gib` gives them. Of a quantized draft the interval reaches from all of its projections packed to none.
"""

_FLAGS_ALONE = """\
## From flags alone

Every public boot with its memory estimated from the card and the checkpoint: what `solve --gpu` answers. The interval
is the stated one; the last two columns are fitted without any boot of that server. The boots are in
`glm_kvplan/memory/measurements.toml`, with their sources.

| boot | value | printed | predicted | stated interval | inside | without its server | inside |
| --- | --- | ---: | ---: | --- | --- | --- | --- |"""

_FLAGS_ALONE_TAIL = """
What these intervals do not prove:

- The weights' errors are not left out with the server. `conc128` and `conc32` are two boots of one server, NVFP4 with
  cutlass and no expert parallelism, with 3.0 GiB less than is known to be needed, for no known cause: the error of
  such weights was widened to 3.2 GiB because of them. The MXFP4 boot on MI355X fits weights of FP8's size: the error
  of MXFP4 on ROCm reaches up to that.
- On ROCm one server's memory before the load is known, and its error is as large as the figure.
- {left} ± {error} GiB are taken off for what loading leaves beside estimated weights.
- A Grace Blackwell rack, GB10, H100 with several GPUs, MI300X and MI325X are in no row: no public boot printed enough.
"""

_BEFORE = """\
## Taken before the load

Printed where the server printed it, otherwise what its sizes imply with the estimated weights; a server's boots are
averaged. Stated is what `--gpu` takes off.

| platform | GPUs | server | GiB | stated |
| --- | --- | --- | ---: | ---: |"""

_WEIGHTS = """
## Weights

| boot | checkpoint | weights | printed, GiB | estimated | off |
| --- | --- | --- | ---: | ---: | ---: |"""


if __name__ == "__main__":
    (ROOT / "docs" / "accuracy.md").write_text(document(), encoding="utf-8")
