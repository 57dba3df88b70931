"""What the page of a sweep shows of its rows: columns, numbers, tones, reasons, and what stands around the table."""

from functools import cache
from typing import Any

import pytest

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.memory_readings import reading_notes
from glm_kvplan.answers.sweep.order import Order, read_order
from glm_kvplan.answers.sweep.pareto import frontier
from glm_kvplan.answers.sweep.points import Sweep, Workload
from glm_kvplan.answers.sweep.sweep_answer import SweepAnswer, answer_sweep
from glm_kvplan.answers.sweep.sweep_page import sweep_page
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.answers.sweep_point import COLUMNS
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sweep_columns import COMMON, LEADING, Column
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.page import Cell, Line, Page, Table

BOTH = ("engine=sglang-0.5.23,vllm-0.33.0", "context=8k,1m")
OWN = ("tp_size=3,8", "mem_fraction_static=0.8")


def swept(*over: str, workload: Workload | None = None, memory: MemoryGiven | None = None, **flags: object) -> Sweep:
    start = given({"tp_size": 8, **flags}, gpu="h200", engine="0.5.23")
    return Sweep(start, [read_axis(text) for text in over], memory, workload)


@cache
def answer(*over: str, most: int = 40) -> SweepAnswer:
    sweep = swept(*over)
    return answer_sweep(sweep, sweep, most)


def table(page: Page) -> Table:
    (found,) = (block for section in page.sections for block in section.blocks if isinstance(block, Table))
    return found


def lines(page: Page) -> list[tuple[str, str]]:
    blocks = [block for section in page.sections for block in section.blocks]
    return [(str(block.text), block.tone) for block in blocks if isinstance(block, Line)]


def lead(found: SweepAnswer) -> list[str]:
    return [str(line.text) for line in sweep_page(found).lead]


# --- columns ---------------------------------------------------------------------------------------------------------


def test_the_columns_of_one_engine_and_of_several() -> None:
    """The axes, what serves, then an engine's own columns; of several engines all that they say alike."""
    own = [str(column.title) for column in table(sweep_page(answer(*OWN))).columns]
    named = [str(column.title) for column in COLUMNS[len(COMMON) :] if column.title]
    assert own == ["tp size", "mem fraction static", *(str(each.title) for each in COMMON[:LEADING]), *named]
    both = [str(column.title) for column in table(sweep_page(answer(*BOTH))).columns]
    assert both == ["engine", "context", *(str(column.title) for column in COMMON if column.title)]
    kinds = {str(column.title): column.kind for column in table(sweep_page(answer(*BOTH))).columns}
    for column in COMMON:
        if column.title:
            of_bytes = column.name.endswith("_bytes")
            counted = "decimal" if of_bytes else "count" if column.kind in ("int", "float") else "text"
            assert kinds[str(column.title)] == counted
    spare = {str(column.title): column.spare for column in table(sweep_page(answer(*BOTH))).columns}
    assert [name for name in spare if not spare[name]] == ["engine", "context", "GPUs", "requests at once", "bound by"]


def test_columns_of_a_frontier_are_the_deployment_s() -> None:
    found = answer(*OWN)._replace(frontier=True)
    shown = {str(column.title) for column in table(sweep_page(found)).columns}
    own = {str(column.title): column.whose for column in COLUMNS if column.title}
    assert not [name for name in shown if own.get(name) == "worker"]
    assert {name for name, whose in own.items() if whose == "GPU"} & shown


def test_columns_say_whose_they_are() -> None:
    """Of SGLang's own: a worker's sizes and limits, a GPU's bytes, and the requests of all workers."""
    whose = {column.name: column.whose for column in COLUMNS}
    assert {name for name, of in whose.items() if of == "worker"} == {
        "max_total_num_tokens", "max_mamba_cache_size", "max_running_requests", "tokens_bound_by", "requests_bound_by",
    }  # fmt: skip
    assert {name for name, of in whose.items() if of == "GPU"} == {
        "slot_bytes", "row_bytes", "free_bytes", "needed_bytes", "free_gib", "headroom",
    }  # fmt: skip
    assert {column.name: column.kind for column in COLUMNS if column.kind != "int"} == {
        "served_per_gpu": "float", "served_bound_by": "text", "certainty": "text", "tokens_bound_by": "text",
        "requests_bound_by": "text", "free_gib": "float", "headroom": "text",
    }  # fmt: skip


# --- cells -----------------------------------------------------------------------------------------------------------


def shown(**values: Any) -> dict[str, Cell]:
    """The cells of a row that has these values, by the names of the columns that are shown."""
    found = answer(*OWN)
    row = {**found.rows[1], **values}
    page = sweep_page(found._replace(rows=(row,)))
    names = ["tp_size", "mem_fraction_static", *(each.name for each in COMMON[:LEADING])]
    names += [column.name for column in COLUMNS[len(COMMON) :] if column.title]
    (cells,) = (each.cells for each in table(page).rows)
    return {name: cell for name, cell in zip(names, cells, strict=True) if isinstance(cell, Cell)}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("mem_fraction_static", None, "none"),
        ("mem_fraction_static", 0.8, "0.8"),
        ("mem_fraction_static", 1 / 3, "0.333333"),
        ("mem_fraction_static", True, True),
        ("tp_size", 8, 8),
        ("tp_size", "a_b", "a_b"),
        ("tp_size", [1, 2], "[1, 2]"),
        ("served", 64, 64),
        ("served", None, None),
        ("served_per_gpu", 9.999, "10.00"),
        ("served_per_gpu", 10.0, "10.0"),
        ("served_per_gpu", -10.04, "-10.0"),
        ("served_per_gpu", 1234.56, "1,234.6"),
        ("served_bound_by", "state_slots", "state slots"),
    ],
)
def test_a_value_as_it_is_written(name: str, value: Any, text: Any) -> None:
    assert shown(**{name: value})[name].value == text


def test_a_verdict_has_its_tone() -> None:
    tones = {"fits": "good", "tight": "careful", "short": "bad", "else": ""}
    assert {verdict: shown(headroom=verdict)["headroom"].tone for verdict in tones} == tones


def test_a_reason_is_said_once_below_the_table() -> None:
    found = answer(*OWN)
    refused, held = found.rows
    assert refused["status"] == "refused" and held["status"] == "ok"
    other = {**refused, "reason": "another"}
    page = sweep_page(found._replace(rows=(refused, held, other, refused), more=False))
    served = [str(column.title) for column in table(page).columns].index("requests at once")
    cells = [row.cells[served] for row in table(page).rows]
    assert [str(cell.value) for cell in cells if isinstance(cell, Cell)] == [
        "refused [1]", str(held["served"]), "refused [2]", "refused [1]",
    ]  # fmt: skip
    assert [cell.tone for cell in cells if isinstance(cell, Cell)] == ["bad", "", "bad", "bad"]
    first = table(page).rows[0].cells
    assert {cell.value for at, cell in enumerate(first[2:], 2) if at != served and isinstance(cell, Cell)} == {""}
    told = lines(page)
    assert told[:2] == [(f"[1] {refused['reason']}", "bad"), ("[2] another", "bad")]
    assert {tone for _, tone in told[2:]} == {"muted"} and len(told) == 4  # advice, and whose the numbers are
    assert page.sections[0].quiet


# --- around the table ------------------------------------------------------------------------------------------------


def test_the_first_rows_and_how_many_follow() -> None:
    found = answer("context=1k..5k", "tp_size=8", most=2)
    assert (len(found.rows), found.more, found.points) == (2, True, 4097)
    assert lines(sweep_page(found))[-1][0].startswith("the first 2 rows of 4,097 points;")
    whole = answer("tp_size=4,8", most=2)
    assert (len(whole.rows), whole.more) == (2, False)
    assert not lines(sweep_page(whole))[-1][0].startswith("the first")


def test_what_is_said_of_the_workload_and_the_order() -> None:
    found = answer(*OWN)
    assert lead(found) == ["requests of 131,072 tokens each"]
    assert lead(found._replace(contexts="")) == []
    assert lead(found._replace(confidence=0.99))[0].startswith("requests of 131,072 tokens: 99% of the time")
    assert lead(found._replace(confidence=0.0))[0].startswith("requests of 131,072 tokens: by the mean")
    assert lead(found._replace(order="served:desc"))[1:] == ["ordered by served, the most first"]
    assert lead(found._replace(order="gpus"))[1:] == lead(found._replace(order="gpus:asc"))[1:] == ["ordered by gpus"]


def test_what_a_sweep_is_of() -> None:
    assert str(answer("tp_size=8").title) == "GLM-5.3-Flash on SGLang 0.5.23, H200"
    assert str(answer("engine=0.5.22,0.5.23").title) == "GLM-5.3-Flash on SGLang, H200"
    assert str(answer("gpu=h200,b200").title) == "GLM-5.3-Flash on SGLang 0.5.23"
    assert str(answer(*BOTH).title) == "GLM-5.3-Flash on SGLang and vLLM, H200"
    assert (answer(*BOTH).contexts, answer(*OWN).contexts) == ("", "131,072")
    mix = swept("tp_size=8", workload=Workload(parse_contexts("0.8:8k,0.2:128k")))
    assert (answer_sweep(mix, mix, 1).confidence, answer(*OWN).confidence) == (0.99, None)


def test_advice_is_of_the_rows_and_names_its_engine_where_there_are_several() -> None:
    """A sweep whose memory was read asks for nothing."""
    (own,) = map(str, answer("tp_size=8").advice)
    assert own.startswith("memory is estimated: --pre-gib and --available-gib")
    assert [str(text).partition(": ")[0] for text in answer(*BOTH).advice] == ["SGLang", "vLLM"]
    read = swept("context=8k", memory=MemoryGiven(138.5, 84.0))
    assert answer_sweep(read, read, 1).advice == answer_sweep(read, read, 1).warnings == ()


def test_readings_of_other_weights_are_noted() -> None:
    flags = FLAG.values()
    read = MemoryGiven(138.5, 84.0)
    assert reading_notes(["context"], read, flags) == reading_notes(["tp_size"], MemoryGiven(138.5), flags) == []
    (note,) = reading_notes(["tp_size", "context"], read, flags)
    assert note == "available_gib is taken as it is at every point, though tp_size moves the weights"
    (note,) = reading_notes(["gpu", "tp_size"], read._replace(weights_gib=40.0), flags)
    assert note.startswith("available_gib, weights_gib is taken as it is at every point, though gpu, tp_size moves")
    assert reading_notes(["tp_size", "available_gib"], read, flags) == []


# --- order and frontier ----------------------------------------------------------------------------------------------


def test_an_order_names_a_column_and_a_way() -> None:
    columns = [Column("a", "int", ""), Column("b", "int", "")]
    assert (read_order("b", columns), read_order("b:desc", columns)) == (Order(1, False), Order(1, True))
    with pytest.raises(InputError, match="--sort"):
        read_order("a:up", columns)


def test_a_frontier_needs_contexts_and_no_cap() -> None:
    plain = swept("tp_size=8")
    with pytest.raises(InputError, match="--frontier needs contexts"):
        frontier(plain, plain)


def test_the_best_of_each_context_and_no_shorter_one_that_serves_no_more() -> None:
    sweep = swept("context=1k..5k:1k", "tp_size=4,8")
    names = [column.name for column in sweep.columns]
    served, context = names.index("served"), names.index("context")

    def row(length: int, requests: int | None, mark: int) -> tuple[Any, ...]:
        made: list[Any] = [None] * len(names)
        made[context], made[served], made[names.index("tp_size")] = length, requests, mark
        return tuple(made)

    rows = [row(1, 9, 1), row(1, 9, 2), row(2, 9, 3), row(3, 7, 4), row(3, 8, 5), row(4, 0, 6), row(5, None, 7)]
    assert frontier(sweep, rows) == [row(2, 9, 3), row(3, 8, 5)]
    assert frontier(sweep, [row(1, 9, 1), row(1, 9, 2)]) == [row(1, 9, 1)]  # the first of equals
