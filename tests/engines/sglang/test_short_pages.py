"""What the shorter pages say of their answers: reconcile, advise, explain, pools, two releases, the heads and feet."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from boots import held

from glm_kvplan.allocate.validation import Allocating
from glm_kvplan.answers.engines_answer import answer_engines
from glm_kvplan.answers.engines_page import engines_page
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.load_verdict import ServedNow
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.advise_answer import AdviseAnswer, answer_advise
from glm_kvplan.engines.sglang.answers.advise_page import advise_page
from glm_kvplan.engines.sglang.answers.comparison_page import comparison_page
from glm_kvplan.engines.sglang.answers.explain_answer import PlacesAnswer, answer_explain
from glm_kvplan.engines.sglang.answers.explain_page import explain_page
from glm_kvplan.engines.sglang.answers.memory_verdict import in_memory
from glm_kvplan.engines.sglang.answers.model_answer import answer_model
from glm_kvplan.engines.sglang.answers.model_page import model_page
from glm_kvplan.engines.sglang.answers.overrun_shown import overrun_warnings, show_overrun
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.answers.pools_answer import answer_pools
from glm_kvplan.engines.sglang.answers.pools_page import pools_page, rank_lines
from glm_kvplan.engines.sglang.answers.reconcile_answer import ReconcileAnswer, answer_reconcile
from glm_kvplan.engines.sglang.answers.reconcile_page import reconcile_page
from glm_kvplan.engines.sglang.answers.release_comparison import compare_engines
from glm_kvplan.engines.sglang.answers.served_now import served_now
from glm_kvplan.engines.sglang.answers.terms import terms
from glm_kvplan.engines.sglang.answers.validate_answer import ValidateAnswer, answer_validate
from glm_kvplan.engines.sglang.answers.validate_page import validate_page
from glm_kvplan.engines.sglang.boot_log.log_rows import Row
from glm_kvplan.engines.sglang.boot_log.reconciliation import Fit
from glm_kvplan.engines.sglang.components.decode_overrun import DecodeOverrun
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.model.loader import load_model
from glm_kvplan.show.format import count, decimal, gib
from glm_kvplan.show.page import Cell, Code, Line, Page, Section, Table, Verdict
from glm_kvplan.units import GIB
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven, Workload

DP8 = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}


def lines(section: Section) -> list[Line]:
    return [block for block in section.blocks if isinstance(block, Line)]


def texts(section: Section) -> list[str]:
    return [str(line.text) for line in lines(section)]


def tables(page: Page) -> list[Table]:
    return [block for section in page.sections for block in section.blocks if isinstance(block, Table)]


# --- reconcile -------------------------------------------------------------------------------------------------------


@cache
def reconciled(number: int = 1, boots: int = 1) -> ReconcileAnswer:
    return answer_reconcile(held("example-b-0.5.23"), number, boots)


def test_a_row_a_printed_number() -> None:
    found = reconciled()
    (shown,) = tables(reconcile_page(found))
    assert [column.kind for column in shown.columns] == ["text", "code", "count", "count", "count"]
    marks = {True: ("=", "good"), False: ("x", "bad"), None: ("", "")}
    for row, boot_row in zip(shown.rows, found.rows, strict=True):
        mark, name, predicted, printed, _ = row.cells
        assert isinstance(mark, Cell) and (mark.value, mark.tone) == marks[boot_row.explained]
        assert (predicted, printed) == (boot_row.predicted, boot_row.printed)
        assert str(name).startswith(boot_row.name) and boot_row.rank in str(name)
    assert {row.explained for row in found.rows} >= {True, None}


@pytest.mark.parametrize(
    ("rank", "name", "shown"),
    [("", "slots", "slots"), ("TP0", "slots", "slots (TP0)"), ("TP0", "slots TP0", "slots TP0")],
)
def test_a_rank_is_named_once(rank: str, name: str, shown: str) -> None:
    found = reconciled()._replace(rows=(Row(name, rank, "1", "1", 0, True, "flags"),))
    assert tables(reconcile_page(found))[0].rows[0].cells[1] == shown


@pytest.mark.parametrize(
    ("difference", "printed", "explained", "note", "shown"),
    [
        (None, "a", True, "", ""),
        (None, "a", False, "", ""),
        (0, "5", True, "", "0"),
        (0, "5", True, "why", "0"),
        (3, "5", True, "", "0"),  # within rounding
        (3, "5", True, "why", "+3"),
        (-1234, "5", False, "", "-1,234"),
        (0.25, "1.50", False, "", "+0.25"),
        (0.0004, "1.50", False, "", "+0.0004"),
    ],
)
def test_a_difference_is_shown_where_it_says_something(
    difference: float | None, printed: str, explained: bool, note: str, shown: str
) -> None:
    found = reconciled()._replace(rows=(Row("n", "", "1", printed, difference, explained, "flags", note),))
    assert tables(reconcile_page(found))[0].rows[0].cells[4] == shown


def test_notes_stand_below_the_rows_once() -> None:
    noted = (
        ("a", "x"),
        ("b", "exact with 2.10 GiB less free"),
        ("a", "x"),
        ("c", "x"),
        ("d", ""),
        ("e", "exact with care"),
    )
    rows = [Row(name, "", "1", "1", 0, True, "flags", note) for name, note in noted]
    numbers = reconcile_page(reconciled()._replace(rows=tuple(rows))).sections[0]
    assert texts(numbers) == ["a, c: x", "b: exact with 2.10 GiB less free", "e: exact with care"]
    assert numbers.quiet and reconcile_page(reconciled()).sections[1].quiet


def test_the_boot_and_its_memory() -> None:
    found = reconciled()
    memory, ranks = found.memory, found.boot.ranks
    assert memory is not None and memory.draft_weights_gib is not None
    layout, origin, read = reconcile_page(found).lead
    assert layout.text == found.head.layout and str(origin.text) == f"{found.boot.origin}; {count(ranks, 'rank')}"
    weights = f"weights {memory.target_weights_gib:.2f} + {memory.draft_weights_gib:.2f} draft"
    around = f"{memory.pre_gib:.2f} GiB free before the load, {memory.available_gib:.2f} after it ({weights})"
    assert str(read.text) == around
    second = reconcile_page(reconciled(1, 2)).lead
    assert str(second[1].text).startswith(f"boot 1 of 2, {found.boot.origin}; ")
    plain = reconcile_page(found._replace(memory=memory._replace(draft_weights_gib=None))).lead[2]
    assert str(plain.text).endswith(f"(weights {memory.target_weights_gib:.2f})")
    assert "no memory reading" in str(reconcile_page(found._replace(memory=None)).lead[2].text)


def test_the_verdict_of_a_boot() -> None:
    found = reconciled()
    assert found.explained
    verdict = reconcile_page(found).sections[1]
    assert [line.tone for line in lines(verdict)] == ["good"] and texts(verdict) == [str(found.verdict)]
    assert (
        str(found.verdict) == f"explained to rounding: all {sum(row.explained is True for row in found.rows)} numbers"
    )
    fits = (Fit("0.5.22", 3, 5, "x"), Fit("0.5.20", 0, 8, ""), Fit("0.5.23", 0, 0, "", "no such flag"))
    wrong = found._replace(explained=False, likely_causes=("a", "b"), engines_tried=fits)
    _, *causes, tried = texts(reconcile_page(wrong).sections[1])
    assert lines(reconcile_page(wrong).sections[1])[0].tone == "bad" and causes == ["  likely: a", "  likely: b"]
    assert tried == "  tried: 0.5.20 explains all; 0.5.22 leaves 3; 0.5.23 refuses these flags"
    for fits in ((Fit("0.5.20", 0, 8, ""),), ()):  # nothing that tells them apart
        assert len(lines(reconcile_page(wrong._replace(engines_tried=fits)).sections[1])) == 3
    for fit in (Fit("0.5.22", 3, 5, "x"), Fit("0.5.23", 0, 0, "", "no such flag")):
        assert len(lines(reconcile_page(wrong._replace(engines_tried=(fit,))).sections[1])) == 4
    assert len(lines(reconcile_page(found._replace(engines_tried=fits)).sections[1])) == 1


def test_what_to_know_of_a_log_before_its_numbers() -> None:
    found = held("example-b-0.5.23")
    assert answer_reconcile(found, 1, 1).warnings == ()

    def said(**changes: Any) -> list[str]:
        class Changed:
            def __getattr__(self, name: str) -> Any:
                return changes[name] if name in changes else getattr(found.boot, name)

        return [*map(str, answer_reconcile(found._replace(boot=Changed()), 1, 1).warnings)]

    assert said(arguments_cut=True)[0].startswith("the server_args line is cut")
    assert said(arguments={})[0].startswith("the boot has no server_args line")
    assert said(ready=False)[0].startswith("the log ends before the server was ready")
    assert said(failure="x", ready=False)[0].startswith("the engine refused to start") and len(said(failure="x")) == 1


# --- advise ----------------------------------------------------------------------------------------------------------


@cache
def advised(kind: str) -> AdviseAnswer:
    flags: dict[str, Any] = {"fits": {"tp_size": 8}, "far": {"tp_size": 4}, "workers": DP8}.get(kind, {})
    context, host = {"far": "256k", "mix": "0.8:8k,0.2:128k"}.get(kind, "64k"), UNKNOWN_HOST
    if kind == "host":
        flags, host = {**DP8, "enable_hierarchical_cache": True}, HostGiven(host_bytes=4000 * GIB)
    made = plan(flags or {"tp_size": 8}, gpu="h200", engine="0.5.23")
    return answer_advise(made, Demand(parse_contexts(context), 64), MemoryGiven(), host_given=host)


def sections(found: AdviseAnswer) -> dict[str, Section]:
    return {str(section.title): section for section in advise_page(found).sections}


def test_what_is_advised() -> None:
    found = advised("workers")
    shown, sizes, floor = sections(found), found.sizes, found.floor
    assert sizes is not None and floor is not None and found.flags
    code = shown["Flags to add"].blocks[0]
    assert isinstance(code, Code)
    assert code.text.splitlines() == [f"--{name.replace('_', '-')} {value}" for name, value in found.flags.items()]
    assert f"they serve {found.served.requests:,} of 64 at once" in str(code.introduction)
    assert texts(shown["The pools"]) == [
        f"the engine then sizes per DP worker {sizes.tokens:,} tokens, {sizes.state_slots:,} state slots, "
        f"{sizes.running_requests} running requests",
        f"the load needs {floor.tokens:,} tokens, {floor.state_slots:,} state slots; "
        f"memory gives {found.ceiling_tokens:,} tokens",
    ]
    assert texts(sections(advised("fits"))["The pools"])[0].startswith("the engine then sizes ")
    assert "per DP worker" not in texts(sections(advised("fits"))["The pools"])[0]
    default = found.default_served
    split = f"would serve {default.requests:,}, bound by {default.limit}"
    assert texts(shown["The engine's own split"])[0].endswith(split)
    kept = found._replace(conversations_kept=3)
    assert texts(sections(kept)["The engine's own split"])[1] == "keeps 3 finished conversations cached on a worker"
    assert len(texts(sections(found._replace(conversations_kept=0))["The engine's own split"])) == 1


def test_what_is_remarked_of_the_memory() -> None:
    """And that all is an upper bound, where the draft is not known."""
    draft = {"tp_size": 4, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/nowhere/draft"}
    made = plan(draft, gpu="b200", engine="0.5.23")
    bound = answer_advise(made, Demand(parse_contexts("64k"), 8), MemoryGiven(177.0, 126.0))
    for found, remarks in ((bound, 2), (advised("fits"), 1)):
        verdict = advise_page(found).verdict
        assert verdict is not None and len(verdict.remarks) == remarks
        assert "before the load" in str(verdict.remarks[0])
    served = str(sections(bound)["Flags to add"].blocks[0].introduction)
    assert "they serve at most 8 of 8" in served


def test_how_far_the_estimate_moves_what_is_served() -> None:
    found = advised("fits")
    for span, said in (((60, 64), ["60 to 64 within the memory's estimate"]), ((64, 64), [])):
        told = texts(sections(found._replace(served_span=span))["Flags to add"])
        assert len(told) == len(said) and all(line.startswith(one) for line, one in zip(told, said, strict=True))
    mixed = advised("mix")
    assert texts(sections(mixed)["Flags to add"])[0].startswith("99% of the time")


@pytest.mark.parametrize(("free", "tone"), [(99, "bad"), (100, "careful"), (129, "careful"), (130, "good")])
def test_the_tone_of_what_stays_free(free: int, tone: str) -> None:
    """Needed are 100, to 30."""
    found = advised("fits")
    headroom = found.headroom._replace(free_bytes=free * GIB, needed_bytes=100 * GIB, unsure_bytes=30 * GIB)
    (line,) = lines(sections(found._replace(headroom=headroom))["Headroom"])
    assert line.tone == tone
    told = f"{gib(free * GIB)} stay free on a GPU; serving takes ~100.0 GiB of it (+-30.0 GiB)"
    assert str(line.text) == told


def test_the_host_is_said_beside_the_headroom() -> None:
    found = advised("host")
    assert found.host is not None and found.host.fit is not None
    _, line = texts(sections(found)["Headroom"])
    assert line.startswith("host pools of ") and " fit a host: " in line
    unknown = found._replace(host=found.host._replace(fit=None))
    assert texts(sections(unknown)["Headroom"])[1].startswith("host pools of up to ")  # sized by the automatic rule
    assert len(texts(sections(advised("fits"))["Headroom"])) == 1


def test_what_is_short_and_the_nearest_layouts() -> None:
    found = advised("far")
    shortage = found.shortage
    assert shortage is not None and found.layouts and not found.holds
    shown = sections(found)
    short, intro, search = lines(shown["What is short"])
    assert str(short.text).startswith(f"{count(shortage.missing_requests, 'request')} short, bound by ")
    assert short.tone == "bad" and str(intro.text).endswith("serve it all:")
    (table,) = (block for block in shown["What is short"].blocks if isinstance(block, Table))
    assert not table.head and [column.kind for column in table.columns] == ["count", "code"]
    for row, layout in zip(table.rows, found.layouts, strict=True):
        gpus, flags = map(str, row.cells)
        assert gpus == f"  {layout.gpus} GPUs" and flags.endswith("(its memory estimated)") == layout.estimated
        assert all("--" + name.replace("_", "-") in flags for name in layout.changes)
    more = found._replace(shortage=shortage._replace(missing_bytes=3 * GIB // 2))
    assert texts(sections(more)["What is short"])[0].endswith("; 1.5 GiB more a rank would do")
    less = found._replace(shortage=shortage._replace(missing_bytes=None), layouts=())
    told = texts(sections(less)["What is short"])
    assert "more a rank" not in told[0] and told[1].startswith("no layout") and told[2] == str(search.text)
    assert "What is short" not in sections(advised("fits"))
    served = found.served.requests
    assert found.servers is not None and (found.servers - 1) * served < 64 <= found.servers * served
    assert str(search.text).endswith(
        f"; {found.servers} of them with these flags, {4 * found.servers} GPUs, serve it all at the middle of the "
        "memory's estimate"
    )
    assert advised("fits").servers is None


def test_sections_of_advice_and_which_go_first_where_one_screen_is_all() -> None:
    fits, far = sections(advised("fits")), sections(advised("far"))
    assert [*fits] == ["Flags to add", "The pools", "The engine's own split", "Headroom"]
    assert all(section.quiet for section in (*fits.values(), *far.values()))
    order = sorted((section.spare, title) for title, section in far.items() if section.spare)
    assert [title for _, title in order] == ["The engine's own split", "Headroom", "The pools"]
    assert fits["The pools"].spare == 0 and len({number for number, _ in order}) == 3
    assert [*sections(advised("far")._replace(sizes=None))] == ["What is short"]


def now(flags: dict[str, Any], gpu: str, memory: MemoryGiven, requests: int = 8, host_gib: int = 0) -> ServedNow:
    """Of requests of 8,192 tokens."""
    made, demand = plan(flags, gpu=gpu, engine="0.5.23"), Demand(parse_contexts("8k"), requests)
    host = HostGiven(host_bytes=host_gib * GIB) if host_gib else UNKNOWN_HOST
    return served_now(made, boot(made, memory, 8192, host), demand)


def test_what_is_served_as_launched() -> None:
    read = MemoryGiven(176.25, 130.0)
    found = now({"tp_size": 4}, "b200", read)
    assert found == ServedNow(8, 8, 8, "concurrency", None, False)
    refused = now({"tp_size": 4, "max_mamba_cache_size": 9000}, "b200", read)
    assert refused[:4] == (0, 0, 0, "memory") and str(refused.failure).startswith("the engine refuses to start: ")
    short = now({"tp_size": 4, "mem_fraction_static": 0.97}, "b200", read)
    assert short.requests == 8 and "the first prompt of 8,192 tokens dies" in str(short.failure) and not short.tight
    tight = now({"tp_size": 4, "mem_fraction_static": 0.95}, "b200", read)
    assert tight.failure is None and tight.tight
    estimated = now({"tp_size": 8}, "h200", MemoryGiven(), 5000)
    assert 0 < estimated.low < estimated.requests < estimated.high < 5000


def test_a_host_that_holds_no_pools_serves_nobody() -> None:
    """Where the demand fits the GPUs; where it does not, that is what is said."""
    flags = {**DP8, "enable_hierarchical_cache": True, "hicache_ratio": 2.0}
    found = now(flags, "h200", MemoryGiven(), 8, 64)
    assert found.requests == 8 and str(found.failure) == "the host's memory does not hold the HiCache pools"
    assert now(flags, "h200", MemoryGiven(), 5000, 64).failure is None
    assert now(flags, "h200", MemoryGiven(), 8, 4000).failure is None


# --- explain where ---------------------------------------------------------------------------------------------------


def places(**flags: object) -> PlacesAnswer:
    found = answer_explain(plan(flags, engine="0.5.23"), Workload(131_072, 1), "where")
    assert isinstance(found, PlacesAnswer)
    return found


def test_the_map_of_objects_and_their_copies() -> None:
    found = places(enable_hierarchical_cache=True)
    shown, why = tables(explain_page(found))
    assert [column.kind for column in shown.columns] == ["text", "count", "fixed", "text"]
    assert str(shown.columns[3].title) == "DRAM" and not why.head
    rows = iter(shown.rows)
    pools: list[str] = []
    short = {"token": "token", "state slot": "slot", "request row": "row", "rank": "rank"}
    for place in found.places:
        if place.pool not in pools:
            pools.append(place.pool)
            assert next(rows).cells == (place.pool,)
        name, price, tree, copy = next(rows).cells
        head = place.head
        assert str(name) == f"  {head.title}" and str(price) == f"{head.bytes_per_unit:,} B/{short[head.unit]}"
        assert isinstance(tree, Cell) and isinstance(copy, Cell)
        if head.host_pool is None:
            assert (tree.value, tree.tone, str(copy.value), copy.tone) == (head.tree or "", "", "no copy", "muted")
        else:
            arrow = str(tree.value)
            assert arrow.startswith(f"{head.tree} ─") and arrow.endswith("─▶") and len(arrow) == 14
            assert (tree.tone, copy.value, copy.tone) == ("good", head.host_pool, "good")
    assert next(rows, None) is None
    assert [(str(row.cells[0]), row.cells[1]) for row in why.rows] == [
        (place.head.title, place.head.reason) for place in found.places
    ]


def test_the_tree_and_dram_where_there_are_none() -> None:
    shown = explain_page(places())
    assert str(tables(shown)[0].columns[3].title) == "DRAM (off)"
    assert "in pages of 256" in texts(shown.sections[2])[0]
    off = explain_page(places(disable_radix_cache=True))
    assert texts(off.sections[2]) == ["There is no radix tree: the prefix cache is off."]


def test_two_loads_are_the_topic_of_one() -> None:
    with pytest.raises(InputError, match="explain row shows one load; explain loads takes two"):
        answer_explain(plan({}), Workload(1024, 1), "row", Workload(2048, 1))
    assert answer_explain(plan({}), Workload(1024, 4), "loads", Workload(2048, 1))


# --- pools -----------------------------------------------------------------------------------------------------------


def test_what_the_pools_of_a_rank_add_up_to() -> None:
    found = answer_pools(plan({"tp_size": 4}, gpu="h200"), Workload(131_072, 8))
    charged, *parts, allocated = tables(pools_page(found))[-1].rows
    assert charged.cells[1] == found.charged_bytes and allocated.cells[1:] == (
        found.allocated_bytes, decimal(found.allocated_bytes),
    )  # fmt: skip
    for row, part in zip(parts, found.difference, strict=True):
        nbytes, why = row.cells[1:]
        assert isinstance(nbytes, Cell) and isinstance(why, Cell)
        assert (nbytes.value, nbytes.kind, why.value) == (part.nbytes, "byte_change", part.reason)
    assert not found.unexplained_bytes and all(section.quiet for section in pools_page(found).sections)
    bug = tables(pools_page(found._replace(unexplained_bytes=5)))[-1].rows[-1]
    assert str(bug.cells[0]) == "unexplained" and bug.tone == "bad" and bug.cells[1] == Cell(5, kind="byte_change")


@pytest.mark.parametrize(("stages", "said"), [(1, 0), (2, 1)])
def test_a_rank_says_its_stage_where_there_are_several(stages: int, said: int) -> None:
    told = [str(line.text) for line in rank_lines("layout", stages, 1, range(22, 45), PoolSizes(64, 5, 1))]
    assert told[-1] == "one rank: 64 tokens, 5 state slots, 1 running request"
    assert told[1:-1] == ["pipeline rank 1: layers 22-44"] * said


@cache
def validated(**flags: Any) -> ValidateAnswer:
    pytest.importorskip("torch")
    made = plan({"tp_size": 4, **flags}, gpu="h200", engine="0.5.23")
    return answer_validate(made, Workload(4096, 2), None, Allocating("meta"))


def test_a_validation_and_its_record() -> None:
    found = validated()
    assert (found.built_by, found.ok, found.scale, found.warnings) == ("torch", True, 1.0, ())
    page, record = validate_page(found), validate_page(found, record=True)
    assert [str(section.title) for section in page.sections] == ["Tensors", "Measures"]
    assert all(section.quiet for section in page.sections)
    assert str(page.lead[-1].text).endswith("tensors built by torch") and page.lead[0].text == found.head.layout
    assert [str(section.title) for section in record.sections] == [
        "Machine and versions", "Flags", "Tensors", "Measures",
    ]  # fmt: skip
    assert not any(section.quiet for section in record.sections)
    (versions,) = (block for block in record.sections[0].blocks if isinstance(block, Table))
    assert [row.cells for row in versions.rows] == [*found.environment.items()] and not versions.head
    (flags,) = record.sections[1].blocks
    assert isinstance(flags, Code) and flags.text == "\n".join(
        f"{name} = {value}" for name, value in found.flags.items()
    )
    told = [str(line.text) for line in record.lead]
    assert told[1] == str(found.head.title) and "pipeline rank 0, layers 0-44" in told
    assert f"device: {'meta'}" in told[-3] and told[-3].endswith(f"{found.keep_free_bytes:,} B kept free")
    assert found.touched and told[-2] == f"tensors built by torch, zero-filled, {found.seconds:.2f} s"
    sizes = found.allocated_sizes
    assert told[-1].startswith(f"sizes taken: {sizes.tokens:,} tokens, {sizes.state_slots} state slots, ")
    untouched = validate_page(found._replace(touched=False, flags={}), record=True)
    assert "not touched" in str(untouched.lead[-2].text)
    (bare,) = untouched.sections[1].blocks
    assert isinstance(bare, Code) and bare.text == "(none)"


def test_fewer_requests_than_were_asked_for_are_a_warning() -> None:
    """Five state slots are those of one request."""
    found = validated(max_mamba_cache_size=5)
    assert (found.asked_sizes.running_requests, found.sizes.running_requests) == (2, 1)
    (warning,) = map(str, found.warnings)
    assert warning == "2 requests asked; the tokens and state slots admit fewer"


# --- two releases ----------------------------------------------------------------------------------------------------


def test_two_releases_beside_each_other() -> None:
    found = compare_engines(load_profile("0.5.21"), load_profile("0.5.22"))
    page = comparison_page(found)
    fields, *deployments = tables(page)
    assert str(page.title) == "SGLang 0.5.21 → 0.5.22" and page.sections[0].quiet
    assert not page.sections[1].quiet and "32 requests of 131,072 tokens" in str(page.sections[1].title)
    assert [row.cells[0] for row in fields.rows] == [field.name for field in found.fields] and found.fields
    assert "release" not in [field.name for field in found.fields]
    sized = 0
    for table, compared in zip(deployments, found.deployments, strict=True):
        assert [column.kind for column in table.columns] == ["text", "text", "text", "byte_change"]
        for row, change in zip(table.rows, compared.changes, strict=True):
            name, before, after, nbytes = row.cells
            of_bytes = change.kind in ("tensor", "rank")
            assert name == change.name and isinstance(nbytes, Cell) and nbytes.value == (change.nbytes or None)
            for shown, value in ((before, change.before), (after, change.after)):
                if isinstance(value, bool) or not isinstance(value, int):
                    assert shown == str(value)
                else:
                    assert shown == (decimal(value) if of_bytes else f"{value:,}")
            sized += of_bytes
        largest = [abs(change.nbytes) for change in compared.changes]
        assert largest == sorted(largest, reverse=True)
        (rank,) = (change for change in compared.changes if change.kind == "rank")
        assert rank.nbytes == rank.after - rank.before
        assert {"tensor", "rank", "flag"} <= {change.kind for change in compared.changes}
    assert sized > 10
    again = compare_engines(load_profile("0.5.22"), load_profile("0.5.22"))
    assert again.fields == () and all(compared.changes == () for compared in again.deployments)


def test_a_row_a_release_with_what_is_said_of_it() -> None:
    found = answer_engines()
    first = found.engines[0]._replace(assumed="0.5.21", installed="0.5.22")
    page = engines_page(found._replace(engines=(first._replace(installed=None), first, *found.engines[1:])))
    bare, shown, *_ = tables(page)
    for table, installed in ((bare, None), (shown, "0.5.22")):
        assert [row.cells[0] for row in table.rows] == [*first.facts]
        notes = {row.cells[0]: str(row.cells[-1]) for row in table.rows}
        said = {"0.5.21": "the default"} | ({installed: "installed here"} if installed else {})
        assert notes == {release: said.get(str(release), "") for release in first.facts}
    assert [str(section.title) for section in page.sections[2:]] == [
        *(each.title for each in found.engines[1:]),
        "More",
    ]
    assert page.sections[-1].quiet and texts(page.sections[-1])[0].endswith(" ".join([*first.facts][-2:]))


# --- the model -------------------------------------------------------------------------------------------------------


def test_the_model_s_layers_and_widths() -> None:
    found = answer_model(load_model())
    page = model_page(found)
    layers, widths = tables(page)
    assert [column.kind for column in layers.columns] == ["text", "count", "text", "text"] and not widths.head
    assert [(str(row.cells[0]), row.cells[1]) for row in layers.rows] == [
        ("full attention", 11),
        ("KDA", 34),
        ("all", 45),
    ]
    assert layers.rows[-1].cells[2:] == ("0-44", "1-45") and layers.rows[-1].tone == "strong"
    assert all(section.quiet for section in page.sections)
    assert widths.columns[1].kind == "count"
    notes = {str(row.cells[2].value) for row in widths.rows if isinstance(row.cells[2], Cell)}
    assert {"num_attention_heads", "num_nextn_predict_layers", "max_position_embeddings"} <= notes
    vision = found.vision
    assert vision is not None and "no num_hidden_layers in vision_config" in notes
    deep = model_page(found._replace(vision=replace(vision, num_hidden_layers=24)))
    assert str(tables(deep)[1].rows[-1].cells[2].value) == "num_hidden_layers 24"
    told = {str(row.cells[0].value): row.cells[1] for row in widths.rows if isinstance(row.cells[0], Cell)}
    assert told["attention heads"] == 64 and told["draft (MTP) layers"] == 1 and told["context length"] == 1_048_576
    bare = {str(row.cells[0].value): row.cells[1] for row in tables(model_page(found._replace(vision=None)))[1].rows
            if isinstance(row.cells[0], Cell)}  # fmt: skip
    assert str(bare["vision tower"]) == "none" and str(told["vision tower"]).endswith(" wide")
    own = found._replace(layers=found.layers._replace(index=(3, 7)))
    second = tables(model_page(own))[0].rows[1]
    assert (str(second.cells[0]), *second.cells[1:]) == ("  own indexer", 2, "3, 7", "4, 8")


# --- heads and feet --------------------------------------------------------------------------------------------------


def test_the_layout_in_words() -> None:
    def layout(**flags: object) -> str:
        return str(head_of(plan(flags, gpu="h200", engine="0.5.22")).layout)

    assert layout(tp_size=8) == "TP 8, attention TP 8, bf16 rows, float32 state, 5 slots a request"
    assert layout(**DP8).startswith("TP 8, attention DP 8, attention TP 1, ")
    assert layout(tp_size=4, pp_size=2).startswith("TP 4, PP 2, attention TP 4, ")
    assert layout(tp_size=4, dp_size=2).startswith("TP 4, replicas 2, attention TP 4, ")
    drafts = layout(tp_size=4, speculative_algorithm="EAGLE", kv_cache_dtype="fp8_e4m3", mamba_ssm_dtype="bfloat16")
    assert "bfloat16 state" in drafts and drafts.endswith(" draft tokens") and "FP8 rows" in drafts
    assert layout(tp_size=8, disaggregation_mode="prefill").endswith(", prefill role")
    assert "role" not in layout(tp_size=8) and "draft" not in layout(tp_size=8)
    values = head_of(plan(DP8, gpu="h200")).deployment
    assert (values["attn_tp_size"], values["attn_dp_size"], values["slots_per_request"]) == (1, 8, 5)


def test_the_words_of_the_engine_at_the_foot() -> None:
    one, several = head_of(plan({"tp_size": 8}, gpu="h200")), head_of(plan(DP8, gpu="h200"))
    assert [*map(str, terms(one))] == ["a state slot holds one KDA state, of all KDA layers; a request takes 5 slots"]
    assert len(terms(one, ranks=True)) == 1 and str(terms(one, ranks=True)[0]).startswith("a rank is ")
    assert str(terms(several)[1]).startswith("a DP worker is ")


def test_a_verdict_on_memory_of_kernels_that_do_not_run() -> None:
    head = head_of(plan({"tp_size": 8}, gpu="h200"))
    verdict = Verdict("Yes.", "good", ("r",))
    assert not head.deployment["kernels_missing"] and in_memory(head, verdict) == verdict
    told = in_memory(head._replace(deployment={**head.deployment, "kernels_missing": True}), verdict)
    assert str(told.text).endswith("In memory: Yes.") and (told.tone, told.remarks) == ("bad", ("r",))


def test_what_a_decode_server_takes_beyond_its_budget() -> None:
    parts = tuple((f"tensor {number}", 10**9) for number in range(4))
    overrun = DecodeOverrun(64, 128, 193, 320, 960, parts)
    shown = show_overrun(overrun)
    assert shown is not None and show_overrun(None) is None
    (warning,) = map(str, overrun_warnings(shown))
    assert "the pool holds 960 state slots where the budget pays for 320 (3 times), 128 request rows" in warning
    assert "tensor 2 " in warning and "tensor 3" not in warning and "4.00 GB a rank" in warning
    (plain,) = map(str, overrun_warnings(shown._replace(slots=320)))
    assert "the pool holds 128 request rows" in plain
    assert [*overrun_warnings(shown._replace(nbytes=0))] == [*overrun_warnings(None)] == []


def test_where_no_server_starts_none_of_the_mean_is_served() -> None:
    made = plan({"tp_size": 4, "mem_fraction_static": 0.3}, gpu="h200")
    found = answer_advise(made, Demand(parse_contexts("64k"), 8), MemoryGiven(138.0, 62.0))
    assert found.sizes is None and (found.mean_served, found.served.requests, found.holds) == (0, 0, False)


@pytest.mark.parametrize(("context", "longer"), [("64k", {}), ("65537", {"context_length": 65537})])
def test_a_longer_context_is_advised_where_it_is_needed(context: str, longer: dict[str, int]) -> None:
    made = plan({"tp_size": 8, "context_length": 65536}, gpu="h200")
    found = answer_advise(made, Demand(parse_contexts(context), 8), MemoryGiven(138.0, 100.0))
    assert {name: value for name, value in found.flags.items() if name == "context_length"} == longer
