"""Axes: names and values by hand, and that anything else is one line of InputError."""

import re
from fractions import Fraction
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.answers.sweep.axes import axis_names, count_points, flag_value, points, read_axis
from glm_kvplan.engines.by_name import assumed_engine
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sweep_columns import Column
from glm_kvplan.errors import InputError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("tp_size=1,2,4,8", [1, 2, 4, 8]),
        ("context_length=8k..1m:x2", [8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576]),
        ("context_length=1000..5000:x2", [1000, 2000, 4000]),
        ("context=1..2:x1.5,8K", None),
        ("max_running_requests=1..5", [1, 2, 3, 4, 5]),
        ("max_running_requests=none,10..30:10,7", [None, 10, 20, 30, 7]),
        ("mem_fraction_static=0.70..0.90:0.05", [0.7, 0.75, 0.8, 0.85, 0.9]),
        ("mem_fraction_static=0.1..0.35:0.1", [0.1, 0.2, 0.3]),
        ("mamba_full_memory_ratio=0.5..4:x2", [0.5, 1.0, 2.0, 4.0]),
        ("disable_radix_cache=on,off,none", [True, False, None]),
        ("mm_enable_dp_encoder=true,false", [True, False]),
        ("tp_size=8..8", [8]),
        ("context=100..102:x1.01", [100, 101]),
        ("context=281474976710656", [1 << 48]),
        ("quantization=none,fp8", [None, "fp8"]),
        ("chunked_prefill_size=-1,2k", [-1, 2048]),
        ("speculative_algorithm=none,EAGLE", [None, "EAGLE"]),
        ("moe_a2a_backend=none,deepep", ["none", "deepep"]),
        ("cuda_graph_bs_decode=1+2+4,none", ["1+2+4", None]),
        ("engine=0.5.21,0.5.23", ["0.5.21", "0.5.23"]),
        ("gpu=h200,b200:180000", ["h200", "b200:180000"]),
        ("checkpoint=fp8,nvfp4", ["fp8", "nvfp4"]),
        ("pre_gib=170..172:0.5", [170.0, 170.5, 171.0, 171.5, 172.0]),
    ],
)
def test_values_by_hand(text: str, values: list[object] | None) -> None:
    if values is None:
        with pytest.raises(InputError, match="whole numbers"):
            read_axis(text)
        return
    axis = read_axis(text)
    found = list(axis)
    assert found == values and len(axis) == len(values)
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize("spelling", ["tp_size", "--tp-size", "--tp", "tp", "--tensor-parallel-size", "tp-size"])
def test_every_spelling_of_a_flag(spelling: str) -> None:
    assert read_axis(f"{spelling}=4").name == "tp_size"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mem_fraction=0.8", "nearest"),
        ("tp_size", "NAME=VALUES"),
        ("=1", "NAME=VALUES"),
        ("tp_size=", "empty"),
        ("tp_size=1,,2", "empty"),
        ("tp_size=two", "not a number"),
        ("tp_size=1.5", "whole"),
        ("tp_size=8..1", "backwards"),
        ("tp_size=1..8:x1", "factor"),
        ("tp_size=1..8:x2k", "not a number"),
        ("mamba_full_memory_ratio=1..8:x1.009", "factor"),
        ("context=281474976710657", "2\\*\\*48"),
        ("context=1..100000001", "has 100,000,001 values"),
        ("gpu=none", "not known"),
        ("checkpoints=1", "now --over prefix_states"),
        ("context_lenght=1k", "nearest: context_length"),
        ("tp_size=0..8:x2", "above 0"),
        ("tp_size=1..8:0", "step"),
        ("tp_size=1..8:-1", "step"),
        ("mem_fraction_static=0.7..0.9", "no step"),
        ("mem_fraction_static=8k", "not a number"),
        ("context=1..900000000", "values"),
        ("context=99999999999999999", "2\\*\\*48"),
        ("disable_radix_cache=maybe", "on, off or none"),
        ("kv_cache_dtype=fp7", "takes one of"),
        ("engine=0.1.0", "0.5.21"),
        ("engine=none", "none"),
        ("gpu=abacus", "not known"),
        ("checkpoint=fp3", "known"),
        ("json_model_override_args={}", "JSON"),
        ("cuda_graph_bs_decode=1+x", "whole"),
    ],
)
def test_what_cannot_be_read(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as error:
        read_axis(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("{}", 60),
        ("{}=1", 40),
        ("tp_size={}", 40),
        ("disable_radix_cache={}", 40),
        ("tp_size=1,,{}", 60 - len("1,,")),
    ],
)
def test_what_cannot_be_read_is_shown_in_part(text: str, length: int) -> None:
    with pytest.raises(InputError) as error:
        read_axis(text.format("x" * 99))
    assert [len(run) for run in re.findall("x{9,}", str(error.value))] == [length]


@pytest.mark.parametrize(
    ("text", "role", "name", "kind"),
    [
        ("engine=0.5.23", "site", "engine", "text"),
        ("gpu=h200", "site", "gpu", "text"),
        ("pre_gib=170", "memory", "pre_gib", "float"),
        ("available_gib=80", "memory", "available_gib", "float"),
        ("weights_gib=40", "memory", "weights_gib", "float"),
        ("draft_weights_gib=4", "memory", "draft_weights_gib", "float"),
        ("checkpoint=fp8", "memory", "checkpoint", "text"),
        ("context=8k", "workload", "context", "int"),
        ("concurrency=4", "workload", "concurrency", "int"),
        ("prefix_states=4", "workload", "prefix_states", "int"),
        ("prompt=8k", "workload", "prompt", "int"),
        ("tp_size=4", "flag", "tp_size", "int"),
        ("max_running_requests=4", "flag", "given_max_running_requests", "int"),
        ("mem_fraction_static=0.8", "flag", "mem_fraction_static", "float"),
        ("disable_radix_cache=on", "flag", "disable_radix_cache", "flag"),
        ("mm_enable_dp_encoder=on", "flag", "mm_enable_dp_encoder", "flag"),
        ("kv_cache_dtype=auto", "flag", "kv_cache_dtype", "text"),
        ("cuda_graph_bs_decode=1+2", "flag", "cuda_graph_bs_decode", "text"),
    ],
)
def test_the_column_of_an_axis(text: str, role: str, name: str, kind: str) -> None:
    """A column that results have too is said to be given."""
    axis = read_axis(text)
    assert (axis.role, axis.column) == (role, Column(name, kind, "axis"))
    assert axis.name in axis_names(assumed_engine())


def test_the_nearest_names_are_three() -> None:
    with pytest.raises(InputError) as error:
        read_axis("speculative_draft=1")
    assert str(error.value).partition("nearest: ")[2].partition(" (")[0].count(",") == 2


@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(0, 60), st.sampled_from((1, 10, 100, 1000)))
def test_arithmetic_ranges_are_exact(first: int, step: int, count: int, scale: int) -> None:
    """Every value is the float of the exact decimal, the last one included."""

    def decimal(number: int) -> str:
        whole, part = divmod(number, scale)
        return f"{whole}.{part:0{len(str(scale)) - 1}d}" if scale > 1 else str(whole)

    last = first + step * count
    axis = read_axis(f"mamba_full_memory_ratio={decimal(first)}..{decimal(last)}:{decimal(step)}")
    assert list(axis) == [float(Fraction(first + step * at, scale)) for at in range(count + 1)]
    assert [float(decimal(first + step * at)) for at in range(count + 1)] == list(axis)


@given(st.text(alphabet="tp_size=0123456789.,:xkm-nof ", max_size=40))
def test_any_text_is_an_axis_or_one_line(text: str) -> None:
    try:
        axis = read_axis(text)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert len(list(islice(axis, 1000))) == min(len(axis), 1000)


def test_points_are_the_product_with_the_last_axis_fastest() -> None:
    axes = [read_axis(text) for text in ("tp_size=1,2", "disable_radix_cache=on,off", "context=1..3")]
    assert list(points(axes)) == list(product(*axes))
    assert count_points(axes) == 12


def test_a_product_is_never_written_out() -> None:
    axes = [read_axis(f"{name}=1..100000000") for name in ("context", "concurrency", "prompt")]
    assert count_points(axes) == 10**24
    assert list(islice(points(axes), 2)) == [(1, 1, 1), (1, 1, 2)]


def test_off_leaves_a_plain_flag_out() -> None:
    assert flag_value(FLAG["disable_radix_cache"], False) is None
    assert flag_value(FLAG["disable_radix_cache"], True) is True
    assert flag_value(FLAG["mm_enable_dp_encoder"], False) is False
    assert flag_value(FLAG["cuda_graph_bs_decode"], "1+2") == [1, 2]
