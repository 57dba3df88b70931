"""The resolver against the engine's own resolution of thousands of launches, and against launches nobody meant."""

import gzip
import json
from functools import cache
from typing import Any

from hand_counted import one_rank
from hypothesis import given
from hypothesis import strategies as st
from paths import DATA

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.engines.sglang.sizing.failures import SizingError
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.errors import KvplanError, RefusedError
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.model.loader import bundled_geometry

RECORDS = DATA / "resolve.jsonl.gz"
CARDS = {
    "H100": "h100",
    "H20": "h20",
    "H200": "h200",
    "B200": "b200",
    "B300": "b300",
    "RTX PRO 6000": "rtxpro6000",
    "GB10": "gb10",
}
MI300X = Gpu("MI300X", 196608, "rocm", (9, 4), False, "a stand-in")
A100 = Gpu("A100 80GB", 81920, "cuda", (8, 0), False, "a stand-in")


@cache
def records() -> tuple[dict[str, Any], ...]:
    with gzip.open(RECORDS, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def outcome(record: dict[str, Any]) -> Deployment | None:
    """What our resolver makes of a record; None where it refuses. Any other error is a failure."""
    release = record["engine"].removeprefix("sglang-")
    try:
        return resolve(
            read_launch_command(["sglang", "serve", "m", *record["argv"]], release).flags,
            geometry=bundled_geometry(),
            profile=load_profile(release),
            gpu=find_gpu(CARDS[record["gpu"]]),
        )
    except RefusedError:
        return None


def derived(deployment: Deployment) -> dict[str, Any]:
    """The engine's derived numbers, out of our deployment."""
    geometry = bundled_geometry()
    scales = geometry.kv_lora_rank // 128 * 4 if deployment.kv_layout == "fp8_scaled" else 0
    return {
        "attn_tp_size": deployment.attn_tp_size,
        "attn_dp_size": deployment.attn_dp_size,
        "attn_cp_size": deployment.attn_cp_size,
        "linear_attn_tp_size": deployment.linear_attn_tp_size,
        "context_len": deployment.context_length,
        "kv_cache_dim": geometry.latent_width + scales,
        "mamba_ratio": slots_per_request(deployment),
        "max_draft_tokens": deployment.max_draft_tokens,
        "req_to_token_extra": deployment.request_table_extra,
        "mamba_state_dtype": {"conv": deployment.mamba_conv_dtype, "temporal": deployment.mamba_ssm_dtype},
    }


def unset(record: dict[str, Any], field: str, value: Any) -> Any:
    """What the engine's None says of the two fields that our deployment always fills in."""
    if value is None and field == "mamba_ssm_dtype":  # read from the environment, then the default
        return record["derived"]["mamba_state_dtype"]["temporal"]
    return 0 if value is None and field == "disaggregation_decode_extra_slots" else value


def slots_per_request(deployment: Deployment) -> int | str:
    try:
        return costs(one_rank(deployment, deployment.site.profile, bundled_geometry())).slots_per_request
    except SizingError as error:
        assert error.kind == "lazy_needs_overlap"
        return "refused"


def test_the_engine_and_the_resolver_refuse_the_same_launches() -> None:
    wrong = [
        (record["engine"], record["gpu"], " ".join(record["argv"]))
        for record in records()
        if (outcome(record) is None) != ("refused" in record)
    ]
    assert len(records()) == 4368
    assert not wrong


def test_every_resolved_and_derived_field_is_the_engines() -> None:
    wrong, compared = [], 0
    for record in records():
        deployment = outcome(record)
        if deployment is None:
            continue
        ours = derived(deployment)
        for field, value in record["resolved"].items():
            compared += 1
            if getattr(deployment, field) != unset(record, field, value):
                wrong.append((record["engine"], record["gpu"], record["argv"], field, value))
        for field, value in record["derived"].items():
            compared += 1
            expected = "refused" if isinstance(value, dict) and "refused" in value else value
            if ours[field] != expected:
                wrong.append((record["engine"], record["gpu"], record["argv"], field, value))
    assert not wrong
    assert compared > 170_000


SAME_NAME = [
    *("page_size", "kv_cache_dtype", "dsa_prefill_backend", "dsa_decode_backend", "mamba_radix_cache_strategy"),
    *("disable_overlap_schedule", "disable_radix_cache", "mem_fraction_static", "chunked_prefill_size"),
    *("max_running_requests", "max_total_tokens", "max_mamba_cache_size", "mamba_full_memory_ratio"),
    *("speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"),
    *("tp_size", "pp_size", "ep_size", "attn_cp_size", "linear_attn_backend", "enable_linear_replayssm_spec"),
    *("hicache_ratio", "hicache_size", "hicache_mem_layout", "hicache_io_backend", "enable_hierarchical_cache"),
    *("disaggregation_mode", "decode_graph_max_bs", "decode_graph", "prefill_graph"),
]


def test_the_deployment_carries_the_resolved_arguments() -> None:
    for record in records():
        deployment = outcome(record)
        if deployment is not None:
            for field in SAME_NAME:
                assert getattr(deployment, field) == record["resolved"][field], (field, record["argv"])
            engines = record["resolved"]["dp_size"] if record["derived"]["attn_dp_size"] == 1 else 1
            assert deployment.replicas == engines


_SIZES = st.one_of(st.sampled_from([1, 2, 3, 4, 8, 64, 256, 4096, 8192]), st.integers(-2, 1 << 50))
_VALUES = {
    "int": _SIZES,
    "count": _SIZES,
    "float": st.floats(),
    "flag": st.booleans(),
    "switch": st.booleans(),
    "ints": st.lists(_SIZES, max_size=3),
    "json": st.dictionaries(
        st.sampled_from(["decode", "prefill"]),
        st.dictionaries(st.sampled_from(["backend", "max_bs", "bs"]), st.one_of(_SIZES, st.text(max_size=3))),
    ),
    "str": st.sampled_from(["EAGLE", "NEXTN", "EAGLE3", "DFLASH", "DSPARK", "STANDALONE", "", "x"]),
}
_GARBAGE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers()))


@st.composite
def launches(draw: st.DrawFn) -> dict[str, object]:
    flags: dict[str, object] = {"tp_size": draw(st.sampled_from([1, 2, 4, 8, 16]))}
    for flag in draw(st.lists(st.sampled_from(FLAGS), max_size=8)):
        likely = st.sampled_from(flag.choices) if flag.choices else _VALUES[flag.kind]
        flags[flag.name] = draw(likely if draw(st.integers(0, 19)) else _GARBAGE)
    return flags


@given(
    flags=launches(),
    release=st.sampled_from(releases()),
    gpu=st.sampled_from([*map(find_gpu, CARDS.values()), MI300X, A100]),
    environment=st.dictionaries(
        st.sampled_from(
            [
                "SGLANG_USE_AITER",
                "SGLANG_PP_LAYER_PARTITION",
                "SGLANG_ENABLE_PP_SPEC",
                "SGLANG_VLM_CACHE_SIZE_MB",
                "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
            ]
        ),
        st.sampled_from(["1", "0", "true", "20,25", "", "-1", "²"]),
        max_size=2,
    ),
)
def test_no_launch_raises_anything_but_our_errors(
    flags: dict[str, object], release: str, gpu: Gpu, environment: dict[str, str]
) -> None:
    try:
        deployment = resolve(
            flags, geometry=bundled_geometry(), profile=load_profile(release), gpu=gpu, environment=environment
        )
    except KvplanError as error:
        assert "\n" not in str(error)
        return
    assert deployment.choices
    assert deployment.attn_tp_size >= 1
    assert deployment.attn_tp_size * deployment.attn_dp_size * deployment.attn_cp_size == deployment.tp_size
    assert deployment.kv_layout == "bf16" if deployment.kv_cache_dtype == "bfloat16" else deployment.kv_layout != "bf16"
