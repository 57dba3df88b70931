"""A vLLM log beside the plan, row by row: what is planned, how far off it may be, and the edges of each verdict."""

import re
from functools import cache

import pytest
from paths import DATA
from vllm_boots import read_boot
from vllm_pages import cells, laid_out, lines, rows, section, spare, tables, titles

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.vllm.answers.reconcile_answer import ReconcileAnswer, answer_reconcile
from glm_kvplan.engines.vllm.answers.reconcile_page import reconcile_page
from glm_kvplan.engines.vllm.boot_fits import BootFit, Fit, fit_boot
from glm_kvplan.engines.vllm.boot_lines import Boot, Printed
from glm_kvplan.engines.vllm.components import kda_state
from glm_kvplan.engines.vllm.memory_before import ACTIVATION, GRAPHS
from glm_kvplan.engines.vllm.reconciliation import BLOCKS, LogRow, reconcile, release_of
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.engines.vllm.starting import memory_of
from glm_kvplan.engines.vllm.weight_placement import placement
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.weights import estimate_weights
from glm_kvplan.units import GIB

LOADED = "(Worker_TP0 pid=20) INFO 09-03 10:12:30 [gpu_model_runner.py:4000] Model loading took {} GiB memory and 9 s\n"
ESTIMATED = "(Worker_TP0 pid=20) INFO 09-03 10:12:50 [gpu.py:9] Estimated CUDA graph memory: {} GiB total\n"


@cache
def text_of(name: str) -> str:
    folder = "logs_corpus" if name.startswith("vllm") else "vllm_logs"
    return (DATA / folder / f"{name}.log").read_text(encoding="utf-8")


@cache
def fitted(text: str, gpu: str | None = None, engine: str | None = None) -> BootFit:
    return fit_boot(read_boot(text), BesideLog(gpu=gpu, engine=engine))


def row(text: str, title: str, **beside: str) -> LogRow:
    (found,) = (one for one in fitted(text, **beside).held.rows if one.title == title)
    return found


def boot(release: str | None) -> Boot:
    return Boot(release, None, {}, {}, {}, None, ())


@pytest.mark.parametrize(
    ("said", "planned"),
    [
        (None, ("0.33.0", "the log names no release: 0.33.0 is assumed")),
        ("0.31.0", ("0.31.0", None)),
        ("0.30.2", ("0.30.0", "the log is of vLLM 0.30.2: planned as 0.30.0")),
        ("0.32.0rc1", ("0.32.0", "the log is of vLLM 0.32.0rc1: planned as 0.32.0")),
        ("0.32.1.dev12+g1234", ("0.32.0", "the log is of vLLM 0.32.1.dev12+g1234: planned as 0.32.0")),
        ("0.31.0+cu129", ("0.31.0", "the log is of vLLM 0.31.0+cu129: planned as 0.31.0")),
        ("0.100.0", ("0.33.0", "the log is of vLLM 0.100.0: planned as 0.33.0")),
        ("1.0.0", ("0.33.0", "the log is of vLLM 1.0.0: planned as 0.33.0")),
    ],
)
def test_a_release_is_planned_as_the_last_one_before_it(said: str | None, planned: tuple[str, str | None]) -> None:
    assert release_of(boot(said)) == planned


def test_a_printed_number_lies_within_half_its_last_digit() -> None:
    number = Printed("x", 6.0, 0.01, 3)
    assert number.ends == (5.995, 6.005)
    assert [number.agrees(value) for value in (5.9949, 5.995, 6.0, 6.005, 6.0051)] == [False, True, True, True, False]


def test_a_release_before_the_first_is_refused() -> None:
    with pytest.raises(InputError, match=r"vLLM 0\.29\.9 does not know this model; the first that does is 0\.30\.0"):
        release_of(boot("0.29.9"))


@pytest.mark.parametrize(("name", "gpus"), [("h200x4-tp4", 4), ("h200x4-tp4-mtp3", 4), ("h200x8-tp8", 8)])
def test_every_row_of_a_public_log(name: str, gpus: int) -> None:
    """Printed values by the log's own text; planned ones by the plan, exact ones to the last digit."""
    text = text_of(name)
    found = fitted(text)
    made, deployment = found.plan, found.plan.deployment
    memory, _ = memory_of(made, MemoryGiven())
    taken = {part.name: -part.gib for part in memory.parts}
    errors = {part.name: part.error_gib for part in memory.parts}
    several = "context, communication, workspaces"
    loaded = [one for one in ("target weights", "draft weights", several) if one in taken]
    profiled = [one for one in ("indexer workspace", "activations", "CUDA graphs") if one in taken]
    state = kda_state.layer_bytes(made.rank)
    begun = found.held.start
    assert begun is not None and deployment.gpus == gpus
    wanted = {
        "block size": (deployment.block_size, 0.0, "tokens"),
        "state padding %": (100 * (deployment.block_size * 1024 - state) / state, 0.0, "%"),
        "graphs": (-GRAPHS[9].gib, GRAPHS[9].error_gib, "GiB"),
        "weights and context": (sum(taken[one] for one in loaded), rooted(errors[one] for one in loaded), "GiB"),
        "activations": (sum(taken[one] for one in profiled), rooted(errors[one] for one in profiled), "GiB"),
        "available": (memory.nbytes / GIB, (memory.high_bytes - memory.low_bytes) / 2 / GIB, "GiB"),
        "cache tokens": (begun.printed_tokens, 0.0, "tokens"),
        BLOCKS: (begun.count, 0.0, "blocks"),
        "concurrency": (begun.count / made.blocks.needed(131072), 0.0, "x"),
    }
    seen = {one.title: one for one in found.held.rows if one.title != "context"}
    assert list(seen) == [*wanted] and row(text, "context").planned == 131072
    for title, (planned, error, unit) in wanted.items():
        one = seen[title]
        assert (one.planned, one.error, one.unit) == (pytest.approx(planned), pytest.approx(error), unit), title
        assert one.verdict == ("within" if unit == "GiB" else "same"), title
        if title in found.boot.printed:
            assert (one.printed, one.line) == found.boot.printed[title][1:4:2], title
    assert seen["weights and context"].explanation == ", ".join(loaded)
    assert seen["activations"].explanation == ", ".join(["indexer workspace", ACTIVATION.name, "CUDA graphs"])
    assert seen[BLOCKS].line == seen["cache tokens"].line
    assert seen["block size"].explanation == deployment.choice("block_size").reason
    needed = made.blocks.needed(131072)
    assert (
        seen["cache tokens"].explanation == f"{begun.count} blocks of {made.blocks.nbytes:,} bytes, {needed} a request"
    )
    assert row(text, "context").explanation == "--max-model-len"
    assert seen["state padding %"].explanation == "a layer's rows over its state"


def rooted(errors: object) -> float:
    return float(sum(error**2 for error in errors) ** 0.5)  # type: ignore[attr-defined]


def test_one_gpu_has_a_context_and_no_communication() -> None:
    text = text_of("h200x4-tp4").replace("'tensor_parallel_size': 4", "'tensor_parallel_size': 1")
    found = row(text, "weights and context", engine="vllm-0.30.0")
    assert found.explanation == "target weights, context and workspaces"


def test_weights_are_held_to_the_checkpoints_interval() -> None:
    text = text_of("h200x4-tp4-mtp3")
    made = fitted(text).plan
    weights = estimate_weights(made.geometry, placement(made.rank), "fp8")
    planned = (weights.target[0] + weights.draft[0] - weights.returned[0]) / GIB
    error = weights.error_gib
    assert error is not None and weights.draft[0] > weights.returned[0]
    for off, verdict in ((error, "within"), (-error, "within"), (error + 0.02, "differs"), (-error - 0.02, "differs")):
        found = row(text + LOADED.format(f"{planned + off:.2f}"), "weights")
        assert (found.verdict, found.unit, found.error) == (verdict, "GiB", error)
        assert found.planned == pytest.approx(planned)
    bare = reconcile(read_boot(text + LOADED.format("150.00")), made, MemoryGiven(checkpoint="bf16")).rows
    (unmeasured,) = (one for one in bare if one.title == "weights")
    assert unmeasured.planned is not None and unmeasured.error == 0.02 * unmeasured.planned
    checkpoint = text.replace("'max_model_len'", "'quantization': 'fp8', 'max_model_len'")
    assert row(checkpoint + LOADED.format("75.0"), "weights").planned == pytest.approx(planned)


def test_what_was_estimated_of_the_graphs_is_held_and_not_what_they_took() -> None:
    text = text_of("h200x4-tp4")
    assert row(text, "graphs").printed == 1.73
    both = fitted(text + ESTIMATED.format("2.5")).held.rows
    assert [(one.title, one.printed) for one in both if one.title.startswith("graphs")] == [("graphs estimated", 2.5)]
    found = row(text + ESTIMATED.format("3.31"), "graphs estimated")
    assert found.verdict == "differs"  # 1.1 GiB about 2.2
    assert row(text + ESTIMATED.format("3.30"), "graphs estimated").verdict == "within"


def test_given_bytes_leave_nothing_to_estimate() -> None:
    found = fitted(text_of("h200x4-tp4-mtp3-6gib")).held
    named = {one.title: one for one in found.rows}
    assert not {"available", "activations", "weights and context"} & named.keys()
    assert (named[BLOCKS].verdict, named[BLOCKS].explanation) == ("same", "as the flags fix them")


@pytest.mark.parametrize(("title", "old", "new"), [
    ("block size", "block size to 1152", "block size to 1280"),
    ("state padding %", "by 5.11%", "by 5.12%"),
    ("concurrency", "25.47x", "25.48x"),
])  # fmt: skip
def test_an_exact_number_that_is_off_by_its_last_digit_differs(title: str, old: str, new: str) -> None:
    found = fitted(text_of("h200x4-tp4-mtp3").replace(old, new), engine="vllm-0.30.0")
    (one,) = (each for each in found.held.rows if each.title == title)
    assert one.verdict == "differs" and not found.explained
    answer = answer_reconcile(found, 1, 1)
    assert str(answer.verdict) == f"not explained: {title}: planned {one.planned:,g}, printed {one.printed:,g}"


def test_a_size_that_no_blocks_print() -> None:
    text = text_of("h200x4-tp4-mtp3").replace("3,338,303", "3,338,304")
    found = fitted(text, engine="vllm-0.30.0")
    assert found.held.start is None and not found.explained
    tokens, speed = (row(text, name, engine="vllm-0.30.0") for name in ("cache tokens", "concurrency"))
    assert (tokens.planned, tokens.verdict) == (None, "not planned") == (speed.planned, speed.verdict)
    assert tokens.explanation == "no number of blocks of this plan prints it"
    assert BLOCKS not in {one.title for one in found.held.rows}
    answer = answer_reconcile(found, 1, 1)
    assert answer.num_blocks is None
    assert str(answer.verdict) == "not explained: no number of blocks of this plan prints the cache size"
    page = reconcile_page(answer)
    assert lines(page.lead)[2][0] == f"no number of blocks of {found.plan.blocks.nbytes:,} bytes prints this size"


@pytest.mark.parametrize("context", [1000, 8192, 131072, 1048576])
def test_the_blocks_of_every_size_are_found(context: int) -> None:
    """The size is cut to whole tokens: the blocks before the cut are found again."""
    flags = f"'max_num_seqs': 8, 'max_model_len': {context}, 'tensor_parallel_size': 4"
    text = text_of("h200x4-tp4").replace("'max_model_len': 131072, 'tensor_parallel_size': 4", flags)
    blocks = fitted(text, engine="vllm-0.30.0").plan.blocks
    for count in (blocks.needed(context) + 1, 1237, 1238, 3791, 9999):
        begun = start(blocks, count * blocks.nbytes)
        (line,) = (each for each in text.splitlines() if "KV cache size" in each)
        found = fitted(text.replace(line, line.partition("GPU KV")[0] + begun.line), engine="vllm-0.30.0").held
        assert begun.failure is None and found.start is not None and found.start.count == count


def test_a_size_of_requests_without_tokens_is_of_no_blocks() -> None:
    found = fitted(text_of("h200x4-tp4").replace("131,072 tokens per", "0 tokens per"), engine="vllm-0.30.0")
    assert found.held.start is None and not found.explained


def test_the_blocks_of_the_size_beside_those_of_the_memory() -> None:
    """45.07 GiB, to two decimals, are 3,311 blocks, 45.08 are not; of several engines the least is printed."""
    text = text_of("h200x4-tp4-mtp3")
    made = fitted(text).plan
    for printed, verdict in (("45.07", "same"), ("45.06", "same"), ("45.08", "differs"), ("45.09", "differs")):
        found = fitted(text.replace("45.07", printed), engine="vllm-0.30.0")
        (one,) = (each for each in found.held.rows if each.title == BLOCKS)
        low, high = (int((float(printed) + end) * GIB) // made.blocks.nbytes for end in (-0.005, 0.005))
        assert (one.verdict, one.printed, found.explained) == (verdict, 3311, verdict == "same")
        why = "the printed memory over a block's bytes"
        between = f": {low} to {high}" if low != high else f": {low}"
        assert one.explanation == why + ("" if verdict == "same" else between)
        assert one.planned == (3311 if verdict == "same" else high)
    engines = text.replace("45.07", "45.09").replace("'max_model_len'", "'data_parallel_size': 2, 'max_model_len'")
    found = fitted(engines, engine="vllm-0.30.0")
    (one,) = (each for each in found.held.rows if each.title == BLOCKS)
    assert one.verdict == "not planned" and found.explained


def test_blocks_that_a_flag_fixes_are_held_without_memory() -> None:
    bare = "".join(line for line in text_of("h200x4-tp4-mtp3").splitlines(True) if "Available" not in line)
    assert BLOCKS not in {one.title for one in fitted(bare, engine="vllm-0.30.0").held.rows}
    fixed = bare.replace("'max_model_len'", "'num_gpu_blocks_override': 3311, 'max_model_len'")
    one = row(fixed, BLOCKS, engine="vllm-0.30.0")
    assert (one.verdict, one.printed, one.planned, one.explanation) == ("same", 3311, 3311, "as the flags fix them")
    other = fitted(fixed.replace("3311", "3312"), engine="vllm-0.30.0")
    assert other.held.start is None and not other.explained


def test_a_fitted_context_is_not_planned_but_printed() -> None:
    text = text_of("h200x4-tp4").replace("'max_model_len': 131072", "'max_model_len': -1")
    found = row(text, "context", engine="vllm-0.30.0")
    assert (found.planned, found.verdict, found.printed) == (None, "not planned", 131072)


def test_a_refusal_that_the_plan_shares_explains_a_start() -> None:
    found = fitted(text_of("vllm-refused-length"), gpu="b200")
    assert found.explained and found.held.start is None and found.held.refusal is not None
    assert found.held.refusal.startswith("one request of 1,048,576 tokens needs ")
    answer = answer_reconcile(found, 1, 1)
    assert str(answer.verdict) == "explained: the plan refuses this start, too"
    assert answer.planned_refusal == found.held.refusal
    assert lines(reconcile_page(answer).lead)[2][0] == f"planned: {found.held.refusal}"
    assert any(str(one).startswith("vLLM refused to start: To serve at least one") for one in answer.warnings)
    alone = fitted(text_of("vllm-refused-length").replace("GiB KV cache is needed", "are needed"), gpu="b200")
    assert "longest that fits" not in {one.title for one in alone.held.rows}
    shorter = text_of("vllm-refused-length").replace("1048576", "900000")
    other = fitted(shorter, gpu="b200", engine="vllm-0.33.0")
    assert other.held.refusal is None and not other.explained
    assert "the log ends in a refusal that the plan does not share" in other.held.warnings
    assert str(answer_reconcile(other, 1, 1).verdict).startswith("not explained: ")


def test_a_refusal_is_planned_beside_the_block_that_is_never_given_out() -> None:
    """What an error prints as left lacks that block, what the log prints as available has it."""
    states = fitted(text_of("vllm-refused-states"), gpu="h200")
    assert states.held.refusal is not None and "--max-num-seqs 1024 is above the 800 blocks" in states.held.refusal


def test_a_log_that_prints_neither_size_nor_refusal_is_not_explained() -> None:
    text = "".join(line for line in text_of("h200x4-tp4").splitlines(True) if "KV cache size" not in line)
    found = fitted(text)
    assert not found.explained and not found.held.warnings
    assert {one.verdict for one in found.held.rows} <= {"same", "within"}
    said = "not explained: the log prints no cache size, and no refusal that the plan shares"
    assert str(answer_reconcile(found, 1, 1).verdict) == said


@cache
def answered(number: int = 1, count: int = 1) -> ReconcileAnswer:
    return answer_reconcile(fitted(text_of("h200x4-tp4-mtp3")), number, count)


def test_the_page_has_every_number_twice() -> None:
    answer = answered()
    page = reconcile_page(answer)
    assert laid_out(page.sections) == [("Numbers", True, 0), ("Verdict", True, 0)]
    (numbers,) = tables(section(page, "Numbers").blocks)
    assert titles(numbers) == ["", "number", "planned", "printed", "unit", "line"] and spare(numbers) == ["line"]
    for one, words in zip(answer.rows, rows(numbers), strict=True):
        digits = 2 if one.unit in ("GiB", "%", "x") else 0
        planned = "-" if one.planned is None else f"{one.planned:,.{digits}f}"
        planned += f" +-{one.error:.1f}" if one.error else ""
        mark = {"same": "=", "within": "~"}[one.verdict]
        assert words == [mark, one.title, planned, f"{one.printed:,.{digits}f}", one.unit, str(one.line)]
    assert {cell.tone for cell in cells(numbers, "")} == {"good"}
    said = lines(section(page, "Numbers").blocks)
    assert said == [(f"{one.title}: {one.explanation}", "muted") for one in answer.rows]
    assert lines(page.lead) == [
        (str(answer.head.layout), "muted"),
        ("line 1", "muted"),
        (f"the printed size is that of 3,311 blocks of {answer.block_bytes:,} bytes a GPU", ""),
    ]
    exact = sum(one.verdict == "same" for one in answer.rows)
    assert lines(section(page, "Verdict").blocks) == [
        (f"explained to the last digit: all {exact} exact numbers", "good")
    ]


def test_one_boot_of_several_is_numbered() -> None:
    assert lines(reconcile_page(answered(1, 2)).lead)[1][0] == "boot 1 of 2, line 1"
    assert lines(reconcile_page(answered(1, 1)).lead)[1][0] == "line 1"


def test_a_number_that_differs_or_is_not_planned_is_marked() -> None:
    first = answered().rows[0]
    made = (
        first._replace(verdict="differs"),
        first._replace(verdict="not planned", planned=None, error=0.5),
        first._replace(verdict="within"),
    )
    (numbers,) = tables(section(reconcile_page(answered()._replace(rows=made)), "Numbers").blocks)
    assert [(str(cell.value), cell.tone) for cell in cells(numbers, "")] == [("x", "bad"), ("", ""), ("~", "good")]
    assert [words[2] for words in rows(numbers)] == ["1,152", "-", "1,152"]


def test_causes_and_releases_that_were_tried_are_named() -> None:
    fits = (Fit("0.30.0", 2, 3), Fit("0.31.0", 0, 5), Fit("0.32.0", 0, 0, "no"), Fit("0.33.0", 1, 4))
    wrong = answered()._replace(explained=False, verdict="not so", likely_causes=("a", "b"), engines_tried=fits)
    assert lines(section(reconcile_page(wrong), "Verdict").blocks) == [
        ("not so", "bad"),
        ("  likely: a", ""),
        ("  likely: b", ""),
        ("  tried: 0.30.0 leaves 2; 0.32.0 refuses these flags; 0.33.0 leaves 1", "muted"),
    ]
    good = wrong._replace(explained=True)
    assert [tone for _, tone in lines(section(reconcile_page(good), "Verdict").blocks)] == ["good", "", ""]
    alone = wrong._replace(engines_tried=fits[1:2])
    assert len(lines(section(reconcile_page(alone), "Verdict").blocks)) == 3


def test_a_boot_without_arguments_says_whose_flags_are_planned() -> None:
    bare = "".join(line for line in text_of("h200x8-tp8").splitlines(True) if "non-default args" not in line)
    assert len(answer_reconcile(fitted(bare), 1, 1).warnings) == 1 and answered().warnings == ()
    assert re.match("the boot prints no arguments", str(answer_reconcile(fitted(bare), 1, 1).warnings[0]))
