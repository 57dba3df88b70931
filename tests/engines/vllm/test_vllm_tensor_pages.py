"""The pages of `kvplan pools` and `validate` of a vLLM launch: the views' numbers, and a verdict that turns on each."""

from functools import cache

import pytest
from vllm_pages import cells, laid_out, lines, rows, section, spare, table, tables, titles

import glm_kvplan as kv
from glm_kvplan.allocate.validation import Allocating
from glm_kvplan.engines.vllm.answers.pools_answer import PoolsAnswer, answer_pools
from glm_kvplan.engines.vllm.answers.pools_page import pools_page
from glm_kvplan.engines.vllm.answers.validate_answer import ValidateAnswer, answer_validate
from glm_kvplan.engines.vllm.answers.validate_page import validate_page
from glm_kvplan.engines.vllm.block_views import layer_views
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Code
from glm_kvplan.workload import Workload


@cache
def plan(blocks: int = 9) -> Plan:
    flags = {"tensor_parallel_size": 4, "num_gpu_blocks_override": blocks}
    found: Plan = kv.plan(flags, engine="vllm-0.33.0", gpu="h200")
    return found


@cache
def pools(blocks: int = 9) -> PoolsAnswer:
    return answer_pools(plan(blocks), Workload(1024, 1))


@cache
def validated(scale: bool = False) -> ValidateAnswer:
    pytest.importorskip("torch")
    return answer_validate(plan(), Workload(1024, 1), None, Allocating("meta", scale=scale))


@pytest.mark.parametrize("blocks", [1, 9])
def test_the_tensor_and_its_views(blocks: int) -> None:
    found = pools(blocks)
    page = pools_page(found)
    each = found.block_bytes
    said = f"one GPU: {blocks} block{'s' * (blocks > 1)} of {each:,} bytes, {found.block_tokens:,} tokens each"
    assert lines(page.lead) == [(str(found.head.layout), "muted"), (said, "")]
    assert laid_out(page.sections) == [("Tensors", True, 0), ("Views of it", True, 0)]
    (made,) = tables(section(page, "Tensors").blocks)
    assert found.allocated_bytes == blocks * each and blocks * each in made.rows[1].cells
    views = table(page, "Views of it")
    assert titles(views) == [
        "view",
        "layers",
        "shape of a layer",
        "dtype",
        "begins at",
        "layer stride",
        "block stride",
        "page",
    ]
    assert spare(views) == ["begins at", "layer stride"]
    assert rows(views) == [
        [view.name, whole(view.layers), "x".join(map(str, view.shape)), view.dtype, whole(view.offset),
         whole(view.layer_stride), whole(view.block_stride), whole(view.page_bytes)]
        for view in layer_views(plan(blocks).blocks, blocks)
    ]  # fmt: skip
    last = lines(section(page, "Views of it").blocks)
    assert last == [("views overlap: a block holds rows and keys, or states of one group, or a tail", "muted")]


def test_views_of_states_are_numbered_from_one() -> None:
    names = [view.name for view in pools().views if view.component == "kda_state"]
    assert names == [f"KDA states, group {number + 1}" for number in range(len(names))] and len(names) > 1


def test_a_view_that_is_equal_is_good() -> None:
    found = validated()
    page = validate_page(found)
    assert found.ok and found.built_by == "torch" and not found.warnings and found.scale == 1
    assert lines(page.lead)[0] == (str(found.head.layout), "muted")
    assert lines(page.lead)[1][0].startswith("one GPU: 9 blocks of ")
    assert lines(page.lead)[2][0].endswith("; tensors built by torch")
    assert laid_out(page.sections) == [("Tensors", True, 0), ("Views of it", True, 0), ("Measures", True, 0)]
    assert str(page.title) == str(found.head.title)
    views = table(page, "Views of it")
    assert titles(views) == ["view", "layers", "shape of a layer", "dtype", ""]
    assert rows(views) == [
        [view.name, whole(view.layers), "x".join(map(str, view.shape)), view.dtype, "equal"] for view in found.views
    ]
    assert {cell.tone for cell in cells(views, "")} == {"good"}
    verdict = f"equal to the byte: {9 * found.block_bytes:,} B in one tensor, every layer's view inside it"
    assert lines(section(page, "Measures").blocks) == [(verdict, "strong")]


def test_each_prediction_that_fails_is_counted() -> None:
    found = validated()
    views = (found.views[0]._replace(equal=False), *found.views[1:])
    tensors = tuple(tensor._replace(equal=False) for tensor in found.tensors)
    total = len(found.views) + 1
    for changes, wrong in (
        ({"views": views}, 1),
        ({"tensors": tensors}, 1),
        ({"unexpected": ("x", "y")}, 2),
        ({"views": views, "tensors": tensors, "unexpected": ("x",)}, 3),
    ):
        page = validate_page(found._replace(ok=False, **changes))  # type: ignore[arg-type]
        said = (f"not equal: {wrong} of {total} predictions fail", "bad")
        assert lines(section(page, "Measures").blocks) == [said]
    first = cells(table(validate_page(found._replace(views=views)), "Views of it"), "")[0]
    assert (str(first.value), first.tone) == ("differs", "bad")


def test_a_record_is_what_a_team_files() -> None:
    found = validated()
    page = validate_page(found, record=True)
    assert str(page.title) == "kvplan validate"
    titles_of = [str(one.title) for one in page.sections]
    assert titles_of == ["Machine and versions", "Flags", "Tensors", "Views of it", "Measures"]
    assert not any(one.quiet for one in page.sections[:2])
    assert lines(page.lead)[0] == lines(section(page, "Measures").blocks)[0]
    assert lines(page.lead)[1][0] == str(found.head.title)
    versions = table(page, "Machine and versions")
    assert not versions.head and rows(versions) == [list(pair) for pair in found.environment.items()]
    (flags,) = section(page, "Flags").blocks
    assert isinstance(flags, Code) and flags.text == "tensor_parallel_size = 4\nnum_gpu_blocks_override = 9"
    (none,) = section(validate_page(found._replace(flags={}), record=True), "Flags").blocks
    assert isinstance(none, Code) and none.text == "(none)"
    assert len(titles(table(page, "Tensors"))) > len(titles(table(validate_page(found), "Tensors")))


def test_what_is_scaled_is_said() -> None:
    from fractions import Fraction

    from glm_kvplan.engines.vllm.answers.validate_answer import _shrink
    from glm_kvplan.engines.vllm.needed_blocks import NumBlocks

    assert _shrink(NumBlocks(1000), Fraction(1, 3)) == NumBlocks(333)
    assert _shrink(NumBlocks(2), Fraction(1, 3)) == NumBlocks(1)
    assert validated(True) == validated()._replace(seconds=validated(True).seconds)
