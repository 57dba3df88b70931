"""Allocated against charged: the worked examples of the engine's memory model, and any deployment at all."""

from dataclasses import replace

import pytest
from hand_counted import one_rank
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.pool_units import effective_state_slots, request_rows
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.pipeline import pipeline_stages
from glm_kvplan.engines.sglang.profile import load_profile, page_size
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.attribution import Attribution, attribution
from glm_kvplan.engines.sglang.sizing.rank_pools import granted
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.tensor import TensorSpec, device_bytes

GEOMETRY = bundled_geometry()
RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")

# B200, TP4, raw FP8 rows, EAGLE with 4 draft tokens, 48 requests by default.
B200 = Deployment(
    tp_size=4,
    linear_attn_tp_size=4,
    kv_cache_dtype="fp8_e4m3",
    kv_layout="fp8_raw",
    speculative_algorithm="EAGLE",
    speculative_num_steps=3,
    speculative_eagle_topk=1,
    speculative_num_draft_tokens=4,
    max_draft_tokens=4,
    max_running_requests=48,
)
B200_SIZES = PoolSizes(tokens=8_563_520, state_slots=706, running_requests=48)


def named(deployment: Deployment, release: str, sizes: PoolSizes) -> dict[str, TensorSpec]:
    profile = load_profile(release)
    deployment = replace(deployment, page_size=page_size(GEOMETRY, profile))
    return {spec.name: spec for spec in tensor_specs(one_rank(deployment, profile), sizes)}


def explain(deployment: Deployment, release: str, sizes: PoolSizes) -> tuple[Attribution, dict[str, int]]:
    profile = load_profile(release)
    deployment = replace(deployment, page_size=page_size(GEOMETRY, profile))
    found = attribution(one_rank(deployment, profile), sizes)
    assert found.rest == 0
    return found, {part.name: part.nbytes for part in found.parts}


def test_example_a() -> None:
    """H200, TP8, attention DP 8, no speculation: bytes of every tensor, and what the budget left out."""
    deployment = Deployment(tp_size=8, attn_dp_size=8)
    sizes = PoolSizes(tokens=2_076_032, state_slots=159, running_requests=31)
    specs = named(deployment, "0.5.21", sizes)
    assert specs["conv_state"].nbytes == 802_160_640
    assert specs["temporal_state"].nbytes == 22_817_013_760
    assert specs["kv_buffer"].nbytes == 23_385_145_344
    assert specs["index_k_buffer"].nbytes == 3_014_491_392
    assert specs["req_to_token"].nbytes == 134_218_240
    assert specs["compress_tail_k"].nbytes + specs["compress_tail_score"].nbytes == 743_424
    found, parts = explain(deployment, "0.5.21", sizes)
    assert found.charged == 23_619_174_400 + 12_716 * 2_076_032
    assert parts == {
        "request table": 134_218_240,
        "request maps": 32 * 4 + 32 * 2 * 8,
        "compress tails": 743_424,
        "free lists": 8 * (32_438 + 159),
        "pointer tables": 11 * 8,
        "padding page": 11 * (64 * 1024 + 8448),
    }


def test_example_b() -> None:
    """B200, TP4, MTP: over the budget by 1.19 GB, 0.98 GB of it the draft layer's slab of states and snapshots."""
    specs = named(B200, "0.5.21", B200_SIZES)
    assert specs["conv_state"].nbytes == 912_199_680
    assert specs["temporal_state"].nbytes == 25_947_013_120
    assert specs["intermediate_ssm"].nbytes == 7_193_231_360
    assert specs["intermediate_conv_window"].nbytes == 252_887_040
    assert specs["kv_buffer"].nbytes == 48_230_105_088
    assert specs["index_k_buffer"].nbytes == 12_434_323_968
    assert specs["draft.kv_buffer"].nbytes == 4_384_555_008
    assert specs["draft.index_k_buffer"].nbytes == 1_130_393_088
    assert specs["req_to_token"].nbytes == 205_534_812
    found, parts = explain(B200, "0.5.21", B200_SIZES)
    assert found.charged == 26_091_806_720 + 7_233_372_160 + 7_728 * 8_563_520
    assert parts["draft layer states"] == 707 * (36_864 + 1_048_576)
    assert parts["draft layer snapshots"] == 49 * 4 * (36_864 + 1_048_576)
    assert round((parts["draft layer states"] + parts["draft layer snapshots"]) / 1e9, 2) == 0.98
    assert "snapshot rows" not in parts


def test_the_draft_slab_is_gone_in_0_5_23() -> None:
    sizes = PoolSizes(tokens=9_932_544, state_slots=695, running_requests=48)
    for release, over, slab in (("0.5.22", 1.18, True), ("0.5.23", 0.21, False)):
        found, parts = explain(B200, release, sizes)
        assert ("draft layer states" in parts) is slab
        assert round((found.allocated - found.charged) / 1e9, 2) == over


def test_pd_decode_raises_slots_and_rows() -> None:
    """Radix cache off, 16 requests a worker, 32 pre-allocated: three times the slots the budget paid for."""
    decode = replace(
        B200,
        disaggregation_mode="decode",
        disaggregation_decode_extra_slots=32,
        disable_radix_cache=True,
        max_running_requests=16,
    )
    sizes = PoolSizes(tokens=131_072, state_slots=16, running_requests=16)
    assert request_rows(decode, sizes) == 49
    assert effective_state_slots(decode, sizes) == 3 * sizes.state_slots
    specs = named(decode, "0.5.21", sizes)
    assert specs["req_to_token"].shape == (16 + 32 + 1, 1_048_576 + 71)
    assert specs["compress_tail_k"].shape == (16 + 32 + 2, 8, 128)
    assert specs["temporal_state"].shape == (35, 48 + 1, 16, 128, 128)
    assert specs["intermediate_ssm"].shape == (35, 16 + 32 + 1, 4, 16, 128, 128)
    assert specs["mamba_allocator.free_slots"].shape == (48,)
    _, parts = explain(decode, "0.5.21", sizes)
    layer = 36_864 + 1_048_576
    assert parts["PD decode state slots"] == 35 * 32 * layer
    assert parts["PD decode snapshot rows"] == 35 * 32 * 4 * layer


def test_pd_decode_with_radix_cache_counts_tracking_slots() -> None:
    decode = replace(B200, disaggregation_mode="decode", disaggregation_decode_extra_slots=0)
    sizes = PoolSizes(tokens=131_072, state_slots=100, running_requests=48)
    assert effective_state_slots(decode, sizes) == 48 * 3


@pytest.mark.parametrize(("release", "absent"), [("0.5.21", True), ("0.5.23", False)])
def test_prefill_snapshots(release: str, absent: bool) -> None:
    """A prefill server allocates none; the older releases charge them all the same."""
    prefill = replace(B200, disaggregation_mode="prefill")
    assert "intermediate_ssm" not in named(prefill, release, B200_SIZES)
    _, parts = explain(prefill, release, B200_SIZES)
    assert parts.get("absent snapshots") == (-7_233_372_160 if absent else None)


def test_adaptive_buffers_fit_the_maximum() -> None:
    adaptive = replace(B200, max_draft_tokens=8)
    assert named(adaptive, "0.5.21", B200_SIZES)["intermediate_ssm"].shape[2] == 8
    _, parts = explain(adaptive, "0.5.21", B200_SIZES)
    assert parts["adaptive draft extra"] == (8 - 4) * 34 * (36_864 + 1_048_576) * 49


def test_requests_are_capped_as_the_engine_caps_them() -> None:
    sizes = PoolSizes(tokens=1_000_000, state_slots=200, running_requests=48)
    assert granted(B200, sizes) == sizes._replace(running_requests=40)
    assert granted(B200, sizes._replace(tokens=64)).running_requests == 32
    with pytest.raises(RefusedError):
        granted(B200, sizes._replace(state_slots=4))


geometries = st.builds(
    lambda kinds, head, kpool, compress, rank, nextn: replace(
        GEOMETRY,
        num_hidden_layers=len(kinds),
        full_attention_layers=tuple(i for i, full in enumerate(kinds) if full),
        linear_attention_layers=tuple(i for i, full in enumerate(kinds) if not full),
        linear_head_dim=head,
        index_kpool=kpool,
        index_kpool_compress=compress,
        kv_lora_rank=rank,
        num_nextn_predict_layers=nextn,
        **_shared_indexers(kinds),
    ),
    st.lists(st.booleans(), min_size=4, max_size=24).filter(lambda kinds: not all(kinds)),
    st.sampled_from((64, 128)),
    st.sampled_from((1, 2, 4, 8)),
    st.booleans(),
    st.sampled_from((128, 512, 640)),
    st.integers(1, 2),
)


def _shared_indexers(kinds: list[bool]) -> dict[str, object]:
    """Every other full-attention layer owns no index buffer, where the geometry can say so."""
    fields = Geometry.__dataclass_fields__
    owners = tuple([i for i, full in enumerate(kinds) if full][::2])
    return {"index_layers": owners} if "index_layers" in fields else {}


deployments = st.builds(
    Deployment,
    tp_size=st.just(8),
    attn_dp_size=st.sampled_from((1, 2, 8)),
    linear_attn_tp_size=st.sampled_from((1, 4, 8)),
    pp_size=st.integers(1, 4),
    kv_layout=st.sampled_from(("bf16", "fp8_scaled", "fp8_raw")),
    context_length=st.integers(1, 1 << 21),
    disable_radix_cache=st.booleans(),
    mamba_radix_cache_strategy=st.sampled_from(("extra_buffer", "no_buffer")),
    disable_overlap_schedule=st.booleans(),
    mamba_ssm_dtype=st.sampled_from(("float32", "bfloat16")),
    mamba_conv_dtype=st.sampled_from(("float32", "bfloat16")),
    skip_decode_lock=st.booleans(),
    max_running_requests=st.integers(1, 512),
    speculative_algorithm=st.sampled_from((None, "EAGLE", "DFLASH")),
    speculative_num_draft_tokens=st.just(4),
    max_draft_tokens=st.sampled_from((4, 8)),
    disaggregation_mode=st.sampled_from(("null", "prefill", "decode")),
    disaggregation_decode_extra_slots=st.integers(0, 64),
    enable_pd_role_switch=st.booleans(),
    enable_linear_replayssm_spec=st.booleans(),
)
pools = st.builds(PoolSizes, st.integers(1, 4096), st.integers(1, 2000), st.integers(1, 512))


@settings(max_examples=300, deadline=None)
@given(geometries, deployments, pools, st.sampled_from(RELEASES), st.data())
def test_every_byte_of_any_deployment_is_explained(
    geometry: Geometry, deployment: Deployment, sizes: PoolSizes, release: str, data: st.DataObject
) -> None:
    profile = load_profile(release)
    page = 8 * page_size(geometry, profile)
    deployment = replace(deployment, page_size=page)
    sizes = sizes._replace(tokens=sizes.tokens * page)
    stage = data.draw(st.sampled_from(pipeline_stages(geometry.num_hidden_layers, deployment.pp_size)))
    found = attribution(Rank(geometry, deployment, profile, stage), sizes)
    assert found.rest == 0
    assert found.allocated == device_bytes(tensor_specs(Rank(geometry, deployment, profile, stage), sizes))
    assert all(part.nbytes for part in found.parts)
