"""What the costs refuse, in words, and what they just let through."""

from typing import Any

import pytest
from hand_counted import one_rank

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.failures import SizingError
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.errors import InputError
from glm_kvplan.model.loader import bundled_geometry

GEOMETRY = bundled_geometry()
PROFILE = load_profile("0.5.21")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mem_fraction_static": 0.0}, "mem_fraction_static 0.0 must lie in (0, 1]"),
        ({"mem_fraction_static": 1.01}, "mem_fraction_static 1.01 must lie in (0, 1]"),
        ({"mamba_full_memory_ratio": -0.1}, "mamba_full_memory_ratio -0.1 must be a number, 0 or more"),
        (
            {"mamba_full_memory_ratio": 1.0000000005e9},
            "mamba_full_memory_ratio 1000000000.5 must be a number, 0 or more",
        ),
        ({"mamba_full_memory_ratio": float("nan")}, "mamba_full_memory_ratio nan must be a number, 0 or more"),
        ({"page_size": 0}, "page_size and context_length must be positive and at most 2**48"),
        ({"page_size": (1 << 48) + 1}, "page_size and context_length must be positive and at most 2**48"),
        ({"context_length": 0}, "page_size and context_length must be positive and at most 2**48"),
        ({"context_length": (1 << 48) + 1}, "page_size and context_length must be positive and at most 2**48"),
        ({"max_running_requests": -1}, "max_running_requests -1 must lie between 0 and 2**48"),
        ({"max_mamba_cache_size": (1 << 48) + 1}, "max_mamba_cache_size 281474976710657 must lie between 0 and 2**48"),
        ({"max_total_tokens": -1}, "max_total_tokens -1 must lie between 0 and 2**48"),
        ({"speculative_num_draft_tokens": -1}, "speculative_num_draft_tokens -1 must lie between 0 and 2**48"),
        ({"mm_reserve_mib": -1}, "mm_reserve_mib -1 must lie between 0 and 2**48"),
        ({"attn_dp_size": 0}, "attn_dp_size, linear_attn_tp_size and pp_size must be 1 or more"),
        ({"linear_attn_tp_size": 0}, "attn_dp_size, linear_attn_tp_size and pp_size must be 1 or more"),
        ({"pp_size": 0}, "attn_dp_size, linear_attn_tp_size and pp_size must be 1 or more"),
        (
            {"speculative_algorithm": "EAGLE"},
            "speculation needs max_running_requests; the engine fills in 48 where none is given",
        ),
    ],
)
def test_values_that_cannot_be(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        costs(one_rank(Deployment(**fields), PROFILE))
    assert str(caught.value) == words


@pytest.mark.parametrize(
    "fields",
    [
        {"mem_fraction_static": 1.0},
        {"mamba_full_memory_ratio": 0.0},
        {"mamba_full_memory_ratio": 1e9},
        {"page_size": 1},
        {"page_size": 1 << 48},
        {"context_length": 1},
        {"context_length": 1 << 48},
        {"max_running_requests": 0},
        {"max_mamba_cache_size": 1 << 48},
        {"max_total_tokens": 0},
        {"mm_reserve_mib": 0},
    ],
)
def test_values_that_just_can_be(fields: dict[str, Any]) -> None:
    assert costs(one_rank(Deployment(**fields), PROFILE)).slot_bytes == 34 * (147_456 + 4_194_304)


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({}, False),
        ({"disable_overlap_schedule": True}, True),
        ({"disable_overlap_schedule": True, "disable_radix_cache": True}, False),
        ({"disable_overlap_schedule": True, "mamba_radix_cache_strategy": "extra_buffer"}, False),
    ],
)
def test_the_lazy_strategy_needs_the_overlap_schedule(fields: dict[str, Any], refused: bool) -> None:
    deployment = Deployment(**{"mamba_radix_cache_strategy": "extra_buffer_lazy", **fields})
    if not refused:
        assert costs(one_rank(deployment, PROFILE)).slots_per_request in (1, 4)
        return
    with pytest.raises(SizingError) as caught:
        costs(one_rank(deployment, PROFILE))
    assert (caught.value.kind, caught.value.source) == (
        "lazy_needs_overlap",
        "mem_cache/kv_cache_configurator.py:3073-3076 at 0.5.23",
    )
    assert caught.value.reason == (
        "mamba_radix_cache_strategy extra_buffer_lazy needs the overlap schedule, which is off "
        "(--disable-overlap-schedule or pipeline stages); use extra_buffer"
    )
