"""What the page of `kvplan estimate` says of an answer: its verdict, whose numbers they are, what a row is of."""

from functools import cache
from typing import Any

import pytest

from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers import estimate_answer
from glm_kvplan.engines.sglang.answers.estimate_answer import EstimateAnswer, FitShown, _fit, answer_estimate
from glm_kvplan.engines.sglang.answers.estimate_page import estimate_page, layer_span
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.format import count, decimal, gib
from glm_kvplan.show.page import Cell, Line, Page, Table
from glm_kvplan.units import GIB
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven, Workload

DP8 = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
EAGLE = {"tp_size": 4, "speculative_algorithm": "EAGLE"}
ASKED: dict[str, tuple[dict[str, Any], str | None, Workload | Demand, HostGiven]] = {
    "pools": (EAGLE, None, Workload(131_072, 8), UNKNOWN_HOST),
    "mix": ({"tp_size": 4}, None, Demand(parse_contexts("0.8:8k,0.2:128k"), 64), UNKNOWN_HOST),
    "stages": ({"tp_size": 2, "pp_size": 2}, "h200", Workload(131_072, 9), UNKNOWN_HOST),
    "workers": (DP8, "h200", Workload(131_072, 9), UNKNOWN_HOST),
    "replicas": ({"tp_size": 4, "dp_size": 2}, "h200", Workload(131_072, 9), UNKNOWN_HOST),
    "even": (DP8, "h200", Workload(131_072, 16), UNKNOWN_HOST),
    "much": ({"tp_size": 4}, "h200", Workload(131_072, 900), UNKNOWN_HOST),
    "weights": ({"tp_size": 1}, "h100", Workload(131_072, 9), UNKNOWN_HOST),
    "host": ({**DP8, "enable_hierarchical_cache": True, "hicache_ratio": 2.0}, "h200", Workload(131_072, 64),
             HostGiven(host_bytes=64 * GIB)),
    "draft": ({"tp_size": 4, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/nowhere/draft"},
              "b200", Workload(32_768, 8), UNKNOWN_HOST),
    "small": ({"tp_size": 4, "max_total_tokens": 64_000}, None, Workload(131_072, 8), UNKNOWN_HOST),
}  # fmt: skip


@cache
def answer(kind: str) -> EstimateAnswer:
    flags, gpu, workload, host = ASKED[kind]
    return answer_estimate(plan(flags, gpu=gpu, engine="0.5.23"), workload, host)


def page(kind: str, *, explain: bool = False) -> Page:
    return estimate_page(answer(kind), explain=explain)


def verdict(found: EstimateAnswer) -> tuple[str, str]:
    told = estimate_page(found).verdict
    assert told is not None
    return str(told.text), told.tone


def tables(kind: str) -> list[Table]:
    return [block for section in page(kind).sections for block in section.blocks if isinstance(block, Table)]


def remarks(kind: str) -> list[str]:
    found = page(kind)
    return [str(line.text) for line in found.lead[2:]] if found.verdict is None else [*map(str, found.verdict.remarks)]


def test_without_a_card_it_says_what_the_pools_are() -> None:
    found = answer("pools")
    layout, total, *_ = page("pools").lead
    assert page("pools").verdict is None and (layout.text, layout.tone) == (found.head.layout, "muted")
    pools, everywhere = gib(found.fullest.allocated_bytes), gib(found.allocated_bytes_all_ranks)
    assert str(total.text).startswith(f"pools of {pools} a rank, {everywhere} on 4 GPUs") and total.tone == "strong"
    assert found.holds and len(page("stages").lead) == 1


@pytest.mark.parametrize(
    ("kind", "begins", "tone"),
    [
        ("stages", "Yes: pools of 9 requests fit beside the weights: ", "good"),
        ("much", "No: pools of 900 requests do not fit beside the weights: ", "bad"),
        ("weights", "No: the weights (299.2 GiB a rank) do not fit", "bad"),
        ("host", "No: the host's memory does not hold the HiCache pools.", "bad"),
    ],
)
def test_whether_it_fits(kind: str, begins: str, tone: str) -> None:
    text, found = verdict(answer(kind))
    assert text.startswith(begins) and found == tone
    assert answer(kind).holds == (tone == "good")


def test_the_estimate_of_a_card_decides_between_its_ends() -> None:
    """All that is surely left still fits, all that may be left is not surely too much, a byte more is."""
    found = answer("stages")
    fit = found.fit
    assert fit is not None
    text = f"of ~{gib(fit.left_bytes)} (+-{fit.error_bytes / GIB:.1f})"
    assert verdict(found)[0].endswith(f"{found.fullest.allocated_bytes / GIB:.1f} {text}")
    perhaps = found._replace(fit=fit._replace(fits=None))
    assert verdict(perhaps)[0].startswith("Perhaps: pools of 9 requests may fit") and perhaps.holds
    assert verdict(perhaps)[1] == "careful"
    host = answer("host")
    assert host.fit is not None and host.host is not None
    both = host._replace(fit=host.fit._replace(fits=False))
    assert verdict(both)[0].startswith("No: pools of 64 requests do not fit beside the weights")
    assert verdict(host._replace(fit=host.fit._replace(fits=None)))[1] == "bad"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("pools", ["8 x 131,072 tokens; a rank holds 8 requests, 1,048,576 tokens, 40 state slots"]),
        ("workers", ["9 x 131,072 tokens; a rank has room for 2 requests, 262,144 tokens, 10 state slots"]),
        ("replicas", ["9 x 131,072 tokens; a rank has room for 5 requests, 655,360 tokens, 25 state slots"]),
        ("even", ["16 x 131,072 tokens; a rank holds 2 requests, 262,144 tokens, 10 state slots"]),
        ("stages", ["9 x 131,072 tokens; a rank holds 9 requests", "the fullest of 2 pipeline stages: layers 22-44"]),
        ("draft", ["8 x 32,768 tokens; a rank holds", "the draft model's own cache is not known: every sum"]),
    ],
)
def test_what_the_numbers_are_of(kind: str, says: list[str]) -> None:
    """Requests, by hand: 9 of 8 workers are at most 2, each with its tokens, and 5 slots."""
    found = remarks(kind)
    assert len(found) == len(says) and all(line.startswith(begin) for line, begin in zip(found, says, strict=True))


def test_layers_of_a_stage() -> None:
    assert [str(layer_span(layers)) for layers in (range(7, 8), range(7, 9), range(22))] == [
        "layer 7", "layers 7-8", "layers 0-21",
    ]  # fmt: skip


def test_a_mix_says_what_is_promised_and_the_mean() -> None:
    mix = answer("mix").mix
    assert mix is not None
    holds, promise = remarks("mix")
    assert holds.startswith("64 x (80% 8,192, 20% 131,072); a rank holds 64 requests")
    mean = f"{mix.mean_needed_sizes.tokens:,} tokens, {gib(mix.mean_allocated_bytes)} by the mean"
    assert promise.startswith("99% of the time") and promise.endswith(mean)
    for kind, begins in (("mix", "the longest: "), ("pools", "one request on a rank: ")):
        (line,) = page(kind).sections[1].blocks
        one = answer(kind).request
        assert isinstance(line, Line)
        parts = (
            f"{decimal(one.nbytes)} = {decimal(one.token_bytes)} for {count(one.tokens, 'token')}",
            f"{decimal(one.state_slot_bytes)} for {one.state_slots} state slots",
            f"{decimal(one.row_bytes)} for its rows",
        )
        assert str(line.text) == begins + " + ".join(parts)


@pytest.mark.parametrize("kind", ["pools", "stages"])
def test_a_row_a_ledger(kind: str) -> None:
    found, shown = answer(kind), tables(kind)[0]
    assert [column.kind for column in shown.columns] == ["text", "count", "count", "decimal", "decimal", "share"]
    assert str(shown.columns[4].title) == "4 ranks"
    *rows, total = shown.rows
    short = {"token": "token", "state slot": "slot", "request row": "row"}
    for row, ledger in zip(rows, found.fullest.ledgers, strict=True):
        title, price, *numbers = row.cells
        assert str(title) == ledger.title and str(price) == f"{ledger.bytes_per_unit:,} B/{short[ledger.unit]}"
        share = ledger.nbytes / found.fullest.nbytes
        assert numbers == [ledger.units, ledger.nbytes, ledger.bytes_all_ranks, share]
    everywhere = sum(ledger.bytes_all_ranks for ledger in found.fullest.ledgers)
    assert total.cells[1:] == (None, None, found.fullest.nbytes, everywhere, None) and total.tone == "strong"
    assert sum(row.cells[3] for row in rows) == found.fullest.nbytes


def test_what_is_allocated_is_what_is_charged_and_its_difference() -> None:
    stage, shown = answer("pools").fullest, tables("pools")[1]
    charged, *parts, allocated = shown.rows
    assert charged.cells[1:] == (stage.charged_bytes,) * 2 and allocated.cells[1:] == (stage.allocated_bytes,) * 2
    assert [column.kind for column in shown.columns] == ["text", "bytes", "decimal"]
    for row, part in zip(parts, stage.difference, strict=True):
        name, nbytes, size = row.cells
        assert str(name) == f"  {part.name}" and isinstance(nbytes, Cell)
        assert (nbytes.value, nbytes.kind, size) == (part.nbytes, "byte_change", part.nbytes)
    assert stage.charged_bytes + sum(part.nbytes for part in stage.difference) == stage.allocated_bytes


def test_sections_and_which_go_first_where_one_screen_is_all() -> None:
    found = page("host").sections
    assert [str(section.title) for section in found] == [
        "What one rank's ledgers cost", "One request", "What one rank's pools take", "Memory map",
        "Host memory (HiCache)", "The host pools",
    ]  # fmt: skip
    spare = sorted((section.spare, str(section.title)) for section in found if section.spare)
    names = ["Memory map", "What one rank's pools take", "The host pools", "One request"]
    assert [title for _, title in spare] == names and len({number for number, _ in spare}) == 4
    assert [section.quiet for section in found] == [True] * 4 + [False] * 2
    assert len(estimate_page(answer("pools")).sections) == 4
    assert not any("DP worker" in str(text) for text in page("pools").footer)
    rank, worker = map(str, page("host").footer)
    assert rank.startswith("a rank is one GPU's process") and worker.startswith("a DP worker is")


def test_an_explanation_of_each_ledger() -> None:
    found = answer("pools").fullest.ledgers
    told = page("pools", explain=True).sections[4:]
    for ledger, section in zip(found, told, strict=True):
        facts, formula, numbers, product, *more, source = [str(line.text) for line in section.blocks]
        budget = "charged" if ledger.charged else "not charged"
        copy = "can have a copy in DRAM" if ledger.backed_up else "never copied to DRAM"
        assert facts == f"{ledger.title} (per {ledger.unit}; exact; {budget} to the engine's budget; {copy})"
        assert (formula, numbers) == (f"  {ledger.formula}", f"  = {ledger.formula_in_numbers}")
        assert product == f"  = {ledger.bytes_per_unit:,} B; x {ledger.units:,} = {ledger.nbytes:,} B"
        written = ledger.written_bytes_per_unit
        assert more == ([] if written == ledger.bytes_per_unit else [f"  reserved; written are {written:,} B of it"])
        assert source == f"  source: {ledger.source}"
    assert {ledger.charged for ledger in found} == {ledger.backed_up for ledger in found} == {True, False}


def test_a_ledger_that_is_written_in_part() -> None:
    raw = {"kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm"}
    reserved = 0
    for flags in ({}, {"kv_cache_dtype": "fp8_e4m3"}, raw):
        found = answer_estimate(plan(flags, engine="0.5.21"), Workload(1024, 1), UNKNOWN_HOST)
        told = [str(line.text) for section in estimate_page(found, explain=True).sections for line in section.blocks
                if isinstance(line, Line)]  # fmt: skip
        part = [each for each in found.fullest.ledgers if each.written_bytes_per_unit != each.bytes_per_unit]
        assert [line for line in told if "reserved; written" in line] == [
            f"  reserved; written are {each.written_bytes_per_unit:,} B of it" for each in part
        ]
        reserved += len(part)
    assert reserved


def test_flags_that_give_less_than_the_workload_needs_are_a_warning() -> None:
    """8 requests of 131,072 tokens need 1,048,576; the cap of 64,000 is 250 pages of 256."""
    (warning,) = map(str, page("small").warnings)
    assert warning == "the workload needs 1,048,576 tokens on a rank; the flags give 64,000"
    assert page("pools").warnings == ()


@pytest.mark.parametrize(("over", "fits"), [(0, True), (1, None)])
def test_the_edges_of_the_error(over: int, fits: bool | None) -> None:
    fit = answer("stages").fit
    assert fit is not None and fit.error_bytes > 0
    flags, gpu, *_ = ASKED["stages"]
    made = plan(flags, gpu=gpu, engine="0.5.23")
    assert _fit(made, fit.left_bytes - fit.error_bytes + over).fits is fits
    assert _fit(made, fit.left_bytes + fit.error_bytes + over).fits is (False if over else None)
    budget = Server(made, MemoryGiven()).budget
    assert fit.left_bytes == int(budget.available_gib * GIB) and fit.error_bytes == int(budget.error_gib * GIB)
    assert answer("weights").fit == FitShown(False, 0, 0, None, answer("weights").fit.reason)
    budget = Server(drafting := plan(EAGLE, gpu="b200", engine="0.5.23"), MemoryGiven()).budget
    drafted = _fit(drafting, 0)
    assert budget.weights_gib and budget.draft_weights_gib
    assert drafted.weights_bytes == int((budget.weights_gib + budget.draft_weights_gib) * GIB)


def test_staging_buffers_take_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(estimate_answer, "_fit", lambda _, nbytes: taken.append(nbytes))
    for kind in ("host", "stages"):
        flags, gpu, workload, host = ASKED[kind]
        answer_estimate(plan(flags, gpu=gpu, engine="0.5.23"), workload, host)
    host_pools = answer("host").host
    assert host_pools is not None and host_pools.fullest.staging_bytes
    assert taken == [
        answer("host").fullest.allocated_bytes + host_pools.fullest.staging_bytes,
        answer("stages").fullest.allocated_bytes,
    ]


def test_how_sure_the_bytes_are() -> None:
    assert [answer(kind).fullest.certainty for kind in ("pools", "draft")] == ["exact", "lower bound"]
