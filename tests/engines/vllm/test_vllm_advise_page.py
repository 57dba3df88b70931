"""The pages of `kvplan advise` and `report` of a vLLM launch in words: verdicts, flags to type, what else serves."""

from functools import cache
from typing import Any

import pytest
from vllm_pages import cells, laid_out, lines, rows, section, spare, table, tables, titles

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.load_verdict import search_line
from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.vllm.answers.advise_answer import AdviseAnswer, answer_advise
from glm_kvplan.engines.vllm.answers.advise_page import advise_page
from glm_kvplan.engines.vllm.answers.memory_lines import bounds_line, memory_line
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer, answer_report
from glm_kvplan.engines.vllm.answers.report_page import report_page
from glm_kvplan.engines.vllm.answers.report_tables import formulas_section, paste_section
from glm_kvplan.engines.vllm.answers.report_verdict import verdict, wanted
from glm_kvplan.engines.vllm.block_bounds import BlockBounds
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.format import three_digits, whole
from glm_kvplan.show.page import Code, Column, Page
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
# flags, --available-gib, contexts, requests
CASES: dict[str, tuple[dict[str, object], float | None, str, int]] = {
    "as it is": ({}, None, "128k", 20),
    "measured": ({}, 45.07, "128k", 20),
    "one": ({}, 45.07, "128k", 1),
    "other flags": ({}, 45.07, "128k", 40),
    "more GPUs": ({}, None, "128k", 64),
    "measured, more GPUs": ({}, 45.07, "128k", 80),
    "none": ({}, 45.07, "128k", 90000),
    "refused": ({}, 4.0, "128k", 1),
    "a mix": ({}, 45.07, "0.8:8k,0.2:128k", 20),
    "lacking": ({"tensor_parallel_size": 1}, None, "8k", 1),
    "low end": ({"max_num_seqs": 3700}, None, "128k", 1),
    "few at once": ({"max_num_seqs": 4}, None, "128k", 4),
}


def plan(**flags: object) -> Plan:
    made: Plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine="vllm-0.33.0", gpu="h200")
    return made


@cache
def advised(name: str) -> AdviseAnswer:
    flags, memory, lengths, requests = CASES[name]
    return answer_advise(plan(**flags), Demand(parse_contexts(lengths), requests), MemoryGiven(available_gib=memory))


@cache
def reported(name: str) -> ReportAnswer:
    flags, memory, lengths, requests = CASES[name]
    demand, given = Demand(parse_contexts(lengths), requests), MemoryGiven(available_gib=memory)
    return answer_report(plan(**flags), demand, given, command="kvplan report", day="2026-11-30")


def remarks(page: Page) -> list[str]:
    assert page.verdict is not None
    return [str(remark) for remark in page.verdict.remarks]


def about(found: AdviseAnswer, value: Any) -> str:
    estimated = found.certainty == "estimated" and value.low != value.high
    return f"~{three_digits(value.requests)}" if estimated else whole(value.requests)


@pytest.mark.parametrize("name", ["as it is", "measured", "few at once"])
def test_what_serves_as_it_is_says_how_many_fit(name: str) -> None:
    found = advised(name)
    page = advise_page(found)
    assert found.holds and not found.flags
    assert remarks(page) == [f"up to {about(found, found.now)} of them fit, bound by {found.now.limit}",
                             str(memory_line(found.memory))]  # fmt: skip
    assert laid_out(page.sections) == [("Blocks", True, 2)]
    bounds = bounds_line(found.blocks, estimated=name != "measured")
    assert lines(section(page, "Blocks").blocks) == [(str(bounds), "")]
    assert lines(page.lead) == [(str(found.head.layout), "muted")]


@pytest.mark.parametrize("name", ["other flags", "more GPUs", "measured, more GPUs", "refused"])
def test_advice_is_flags_to_type_and_what_they_serve(name: str) -> None:
    found, page = advised(name), advise_page(advised(name))
    assert found.flags and found.options[0].text == found.text
    (code,) = section(page, "Advice").blocks
    assert isinstance(code, Code) and code.text == found.text
    served = f"up to {about(found, found.served)} of them fit then, bound by {found.served.limit}:"
    gpus = "" if found.holds else f"with {found.options[0].gpus} GPUs; "
    assert str(code.introduction) == f"flags to change{'; ' if found.holds else ', '}{gpus}{served}"
    more = [("More GPUs", True, 0)] if not found.holds else []
    assert laid_out(page.sections) == [("Advice", True, 0), ("Blocks", True, 2), ("What serves it", True, 1), *more]
    assert more == [] or section(page, "More GPUs").blocks == (search_line(found.head),)
    assert remarks(page) == [str(memory_line(found.memory))]


@pytest.mark.parametrize("name", ["other flags", "more GPUs", "measured, more GPUs"])
def test_every_option_is_a_row(name: str) -> None:
    found = advised(name)
    options = table(advise_page(found), "What serves it")
    assert titles(options) == ["change", "at once", "longest context", "GPUs", "to know"] and spare(options) == []
    for option, row in zip(found.options, rows(options), strict=True):
        estimated = option.estimated or found.certainty == "estimated"
        known = ["accuracy is yours to judge"] * option.accuracy + ["its memory estimated"] * option.estimated
        longest = whole(option.longest_context)
        assert option.longest_context == 1048576
        mark, number = ("~", three_digits) if estimated else ("", whole)
        assert row == [option.text, mark + number(option.requests), longest, whole(option.gpus), ", ".join(known)]
    assert {cell.tone for cell in cells(options, "to know")} == {"muted"}


def test_a_longest_context_that_memory_ends_is_estimated() -> None:
    found = advised("more GPUs")
    shorter = found._replace(options=tuple(option._replace(longest_context=900_000) for option in found.options))
    written = [row[2] for row in rows(table(advise_page(shorter), "What serves it"))]
    assert written == ["~900,000"] * len(found.options)


def test_where_nothing_serves_it_is_said_and_where_to_look() -> None:
    found, page = advised("none"), advise_page(advised("none"))
    assert not found.options
    assert lines(section(page, "Advice").blocks) == [
        ("no flag nor two of those tried serve it, nor twice the GPUs up to 64", "bad")
    ]
    assert laid_out(page.sections) == [("Advice", True, 0), ("Blocks", True, 2), ("More GPUs", True, 0)]


def memory(how: Any, middle: float, error: float = 0.0) -> Available:
    low, high = int((middle - error) * GIB), int((middle + error) * GIB)
    return Available(how, int(middle * GIB), low, high, ())


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (memory("given", 60), "60.00 GiB a GPU for blocks, as --kv-cache-memory-bytes says"),
        (memory("measured", 45.07, 0.005), "45.07 GiB a GPU for blocks, as the boot log prints"),
        (memory("estimated", 47.25, 1.5), "47.2 GiB a GPU for blocks (estimated, 45.8 to 48.8)"),
        (memory("estimated", 0, 1), "0.0 GiB a GPU for blocks (estimated, -1.0 to 1.0)"),
        (memory("estimated", -170, 6), "170.0 GiB a GPU are lacking before the first block (estimated, +-6.0 GiB)"),
        (memory("measured", -3.25), "3.2 GiB a GPU are lacking before the first block"),
    ],
)
def test_memory_is_said_as_sure_as_it_is(found: Available, said: str) -> None:
    assert str(memory_line(found)) == said


def test_blocks_that_memory_gives_are_as_sure_as_it() -> None:
    own = BlockBounds(3705, 1152, 1200, 3705)
    text = "a GPU has {} blocks of 1,152 tokens: the load needs 1,200, memory gives {}"
    assert str(bounds_line(own, estimated=False)) == text.format("3,705", "3,705")
    assert str(bounds_line(own, estimated=True)) == text.format("~3,700", "~3,700")
    fixed = own._replace(num_blocks=4001)
    assert str(bounds_line(fixed, estimated=True)) == text.format("4,001", "~3,700")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({}, "TP 4, bf16 rows, float32 state, 3 states a request, prefix caching on"),
        ({"kv_cache_dtype": "bfloat16", "enable_prefix_caching": False},
         "TP 4, bf16 rows, float32 state, 1 state a request, prefix caching off"),
        ({"kv_cache_dtype": "fp8", "mamba_ssm_cache_dtype": "bfloat16", "data_parallel_size": 2},
         "TP 4, DP 2, FP8 rows, bfloat16 state, 3 states a request, prefix caching on"),
        ({"kv_cache_dtype": "fp8_e4m3", "decode_context_parallel_size": 1},
         "TP 4, FP8 rows, float32 state, 3 states a request, prefix caching on"),
        ({"kv_cache_dtype": "fp8_ds_mla", "decode_context_parallel_size": 2, "speculative_config": MTP3},
         "TP 4, decode CP 2, FP8 rows with scales, float32 state, 6 states a request, prefix caching on, mtp "
         "with 3 draft tokens"),
    ],
)  # fmt: skip
def test_a_head_says_how_it_is_laid_out(flags: dict[str, object], said: str) -> None:
    made = plan(**flags)
    head = head_of(made)
    assert (str(head.layout), head.engine) == (said, "vllm-0.33.0")
    assert head.deployment["states_per_request"] == made.deployment.states_per_request
    assert not {"choices", "warnings"} & head.deployment.keys()
    assert head.deployment["max_num_seqs"] == made.deployment.max_num_seqs


def test_rows_of_half_precision_are_float16() -> None:
    made: Plan = kv.plan({"tensor_parallel_size": 4, "kv_cache_dtype": "float16"}, engine="vllm-0.32.0", gpu="b200")
    assert "float16 rows" in str(head_of(made).layout)


def test_a_report_wants_what_was_asked() -> None:
    assert str(wanted(reported("one"))) == "Wanted: one request at a time, contexts of 131,072 tokens."
    assert str(wanted(reported("measured"))) == "Wanted: 20 requests at once, contexts of 131,072 tokens."


def said_of(name: str) -> list[str]:
    return [str(remark) for remark in verdict(reported(name)).remarks]


def test_a_reports_remarks_are_those_that_belong_to_its_verdict() -> None:
    served = {name: reported(name).served for name in CASES}
    fit = {name: f"{served[name].requests:,} such requests fit at once; then ended by: {served[name].limit}."
           for name in CASES}  # fmt: skip
    assert said_of("measured") == [fit["measured"]] == said_of("one")
    mean = promised(served["a mix"].confidence, served["a mix"].mean_requests)
    assert said_of("a mix") == [fit["a mix"], f"{served['a mix'].requests:,} fit {mean}."]
    memory = reported("as it is").start.memory
    error = f"±{(memory.high_bytes - memory.low_bytes) / 2**31:.1f} GiB"
    ends = served["as it is"]
    within = f"The memory is estimated (to {error}): {ends.low} to {ends.high} requests fit within that."
    assert said_of("as it is") == [fit["as it is"], within]
    same = f"The memory is estimated (to {error}), and 4 requests fit all the same."
    assert said_of("few at once") == [fit["few at once"], same]
    other = reported("other flags").advised
    typed = f"With {other.text} on {other.options[0].gpus} GPUs {other.served.requests} such requests fit."
    accuracy = "this changes numbers of the model: accuracy is yours to judge"
    assert said_of("other flags") == [typed, accuracy]
    assert said_of("none") == ["no flag nor two of those tried serve it, nor twice the GPUs up to 64"]


def test_remedies_of_a_start_are_said_alone_or_in_pairs() -> None:
    for name, intro in (
        ("refused", "Each of these pairs lets it start: "),
        ("lacking", "Each of these alone lets it start: "),
    ):
        found = reported(name)
        texts = ", ".join(remedy.text for remedy in found.start.remedies)
        assert said_of(name)[0] == f"{intro}{texts}." and texts
        assert said_of(name)[1].startswith("With ")


def test_warnings_stand_once_on_a_report() -> None:
    """Those of the start are the page's; those of the advice are remarks."""
    found = reported("low end")
    (low,) = found.warnings
    assert "at the low end of the estimate the start fails" in str(low)
    own = [warning for warning in found.advised.warnings if warning not in found.warnings]
    page = report_page(found)
    assert page.warnings == found.warnings and page.verdict is not None
    assert len(own) == 1 and page.verdict.remarks[-1] == own[0]
    doubled = found._replace(advised=found.advised._replace(warnings=(*own, low)))
    assert verdict(doubled).remarks[-1] == own[0]


def test_a_report_stands_in_its_order() -> None:
    charts = ["One GPU's memory, to scale", "Context against concurrency"]
    start = ["What vLLM prints, and what it means", "Requests at once", "One request", "One block"]
    last = ["Every formula, with its values and source", "The resolved flags, with reasons", "The command to paste",
            "How this page was made"]  # fmt: skip
    found = {name: [str(one.title) for one in report_page(reported(name)).sections] for name in ("measured", "refused")}
    assert found["measured"][:6] == [*start, *charts] and sorted(found["measured"][-4:]) == sorted(last)
    assert not set(found["refused"]) & set(charts) and found["refused"][0] == "Refused"


def test_a_report_says_why_a_chart_is_not_there() -> None:
    held, refused = report_page(reported("measured")), report_page(reported("refused"))
    assert [name for name, _ in held.missing] == ["host", "prices", "split"]
    assert {name for name, _ in refused.missing} == {"map", "frontier", "prices", "split", "host"}
    failure = reported("refused").start.failure
    assert failure is not None and all(str(why).endswith(failure.reason) for _, why in refused.missing)
    found = reported("measured")
    said = [str(line.text) for line in held.lead][1:]
    assert said == [str(found.head.layout), str(memory_line(found.start.memory)), str(wanted(found))]


def test_formulas_have_their_numbers_and_sources() -> None:
    found = reported("as it is")
    first, second, third = tables(formulas_section(found).blocks)
    assert titles(first) == ["what", "value", "certainty", "source"]
    assert rows(first) == [
        [part.name, f"{part.gib:+.2f} GiB", part.how, part.source] for part in found.start.memory.parts
    ]
    assert titles(second) == ["what", "formula", "in numbers", "source"]
    assert rows(second) == [[each.title, each.formula, each.numbers, each.source] for each in found.formulas]
    assert "memory" not in {each.topic for each in found.formulas} and len(found.formulas) == 7
    (boot,) = (each for each in found.formulas if each.topic == "boot-line")
    start = found.start
    assert int(eval(boot.numbers)) == start.printed.cache_tokens
    assert titles(third) == ["what", "formula", "in numbers", "value", "source"]
    assert [column.kind for column in third.columns] == ["text", "text", "text", "count", "text"]
    assert [column.kind for column in first.columns] == ["text", "count", "text", "text"]
    assert isinstance(first.columns[0], Column)
    for ledger, row in zip(found.cost.ledgers, rows(third), strict=True):
        price = f"{ledger.bytes_per_unit:,} B a {ledger.unit} × {ledger.units:,} = {ledger.nbytes:,} B"
        assert row == [ledger.title, ledger.formula, ledger.formula_in_numbers, price, ledger.source]
    assert all(str(each.folded) for each in (first, second, third))


def test_the_commands_to_paste() -> None:
    plain, changed = paste_section(reported("measured")).blocks, paste_section(reported("other flags")).blocks
    assert len(plain) == 1 and len(changed) == 2
    command = "vllm serve zai-org/GLM-5.3-Flash --tensor-parallel-size 4"
    assert isinstance(changed[0], Code) and isinstance(changed[1], Code)
    assert " ".join(changed[0].text.replace("\\\n", " ").split()) == command
    found = reported("other flags").advised
    assert " ".join(changed[1].text.replace("\\\n", " ").split()) == f"{command} {found.text}"
    assert str(changed[1].introduction) == (
        f"With the advised flags, on {found.options[0].gpus} GPUs, where {found.served.requests} such requests fit:"
    )
