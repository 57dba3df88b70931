"""The two readings of memory and what they are made of, part by part, and the map's segments, counted by hand."""

from collections import Counter
from dataclasses import replace
from math import hypot
from typing import Any

import pytest
from hand_counted import one_rank
from running import ended

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap, Segment, memory_map
from glm_kvplan.engines.sglang.sizing.pool_map import pool_segments
from glm_kvplan.errors import InputError
from glm_kvplan.memory.budget import MemoryBudget, MemoryPart, NoRoomError, memory_budget, show_gib
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.memory.weights import WeightEstimate
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB

GEOMETRY = bundled_geometry()
CARD = Gpu("Card", 100 * 1024, "cuda", (9, 0), False, "its sheet")
SHARED = Gpu("Shared", 100 * 1024, "cuda", (12, 1), True, "its sheet")
PLAIN = Deployment(tp_size=4, linear_attn_tp_size=4, kv_layout="fp8_raw")
DRAFTS = Deployment(
    tp_size=4, linear_attn_tp_size=4, kv_layout="fp8_raw", speculative_algorithm="EAGLE",
    speculative_num_draft_tokens=4, max_draft_tokens=4,
)  # fmt: skip
PLACED, DRAFTED = Placement(gpus=4), Placement(gpus=4, draft=True, mtp_draft=True)
# The second stage is the heavier one: 12 and 2 GiB against 10 and 3.
WEIGHTS = WeightEstimate(
    "x", (10 * GIB, 12 * GIB), (3 * GIB, 2 * GIB), ((), ()), ((), ()), (GIB, GIB // 2), None, "seen", ()
)


# -- the readings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("placed", "gpu", "before", "error"),
    [
        (PLACED, CARD, 98.1, 1.2),
        (Placement(gpus=2), CARD, 98.1, 1.2),
        (PLACED, replace(CARD, capability=(10, 3)), 97.3, 1.2),
        (PLACED, replace(CARD, capability=(12, 0)), 98.3, 1.2),
        (PLACED, replace(CARD, capability=(8, 0)), 97.9, 1.7),
        (PLACED, replace(CARD, capability=(11, 0)), 97.9, 1.7),
        (PLACED, replace(CARD, vendor="rocm", capability=(9, 5)), 88.8, 11.2),
        (Placement(), replace(CARD, vendor="rocm", capability=(9, 5)), 88.8, 11.2),
        (Placement(), CARD, 98.6, 1.4),
        (Placement(), replace(CARD, capability=(10, 3)), 98.6, 1.4),
        (PLACED, SHARED, 94.4, 5.6),
        (Placement(), SHARED, 94.4, 5.6),
    ],
)
def test_a_card_less_what_it_does_not_show(placed: Placement, gpu: Gpu, before: float, error: float) -> None:
    found = memory_budget(placed, gpu=gpu, weights_gib=40.0)
    assert (found.pre_gib, found.total_gib, found.weights_gib) == (before, 100.0, 40.0)
    assert found.available_gib == pytest.approx(before - 40 - 0.1)  # 0.1 is what loading leaves behind
    assert found.error_gib == pytest.approx(hypot(error, 0.1))
    assert (found.how, found.draft_weights_gib, found.returned_gib) == ("estimated", None, 0.0)
    assert [part.how for part in found.parts] == ["given", "estimated", "given", "estimated"]
    assert [part.source for part in found.parts[::2]] == ["its sheet", "--weights-gib"]
    assert sum(part.gib for part in found.parts) == pytest.approx(found.available_gib)
    assert found.total_bytes == 100 * GIB
    read = memory_budget(placed, gpu=gpu, available_gib=50.0)
    assert (read.how, read.error_gib, read.available_gib, read.weights_gib) == ("estimated", error, 50.0, None)
    assert [part.gib for part in read.parts] == pytest.approx([100.0, before - 100, 50.0])
    assert (read.parts[0].name, read.parts[2].name) == (f"{gpu.name} memory", "free after the load")


def test_both_readings_measured() -> None:
    found = memory_budget(DRAFTED, pre_gib=90.0, available_gib=40.0, weights_gib=30.0, draft_weights_gib=5.0)
    assert (found.how, found.error_gib, found.total_gib, found.total_bytes) == ("measured", 0.0, None, 90 * GIB)
    assert (found.pre_gib, found.available_gib, found.weights_gib, found.draft_weights_gib) == (90.0, 40.0, 30.0, 5.0)
    assert [(part.gib, part.error_gib) for part in found.parts] == [(90.0, 0), (-30.0, 0), (-5.0, 0), (40.0, 0)]
    assert [part.how for part in found.parts] == ["measured", "given", "given", "measured"]
    assert [part.source for part in found.parts] == [
        "--pre-gib", "--weights-gib", "--draft-weights-gib", "--available-gib",
    ]  # fmt: skip
    assert [part.name for part in found.parts[::3]] == ["free before the load", "free after the load"]
    assert found.returned_gib == 0.0
    known = memory_budget(DRAFTED, pre_gib=90.0, available_gib=40.0, weights=WEIGHTS)
    assert (known.weights_gib, known.draft_weights_gib, known.returned_gib) == (12.0, 2.0, 0.5)
    assert memory_budget(PLACED, pre_gib=90.0, available_gib=90.0).available_gib == 90.0
    on_card = memory_budget(PLACED, gpu=CARD, pre_gib=100.0, available_gib=40.0)
    assert (on_card.how, on_card.error_gib, on_card.total_gib) == ("measured", 0.0, 100.0)


def test_given_weights_leave_an_estimate() -> None:
    found = memory_budget(DRAFTED, pre_gib=90.0, weights_gib=40.0, draft_weights_gib=5.0)
    assert found.available_gib == pytest.approx(44.9)
    assert (found.how, found.error_gib) == ("estimated", pytest.approx(0.1))
    none = memory_budget(DRAFTED, pre_gib=90.0, weights_gib=40.0, draft_weights_gib=0.0, weights=WEIGHTS)
    assert (none.draft_weights_gib, none.returned_gib) == (0.0, 0.0)


def test_estimated_weights_of_the_heaviest_stage() -> None:
    """Unmeasured: 2 % of each; 0.3 left by loading. Independent, so the errors add in squares."""
    found = memory_budget(DRAFTED, pre_gib=90.0, weights=WEIGHTS)
    assert (found.weights_gib, found.draft_weights_gib, found.returned_gib) == (12.0, 2.0, 0.5)
    assert found.available_gib == pytest.approx(90 - 12 - 2 - 0.3)
    assert found.error_gib == pytest.approx(hypot(0.24, 0.04, 0.3))
    assert [part.how for part in found.parts] == ["measured", "estimated", "estimated", "estimated"]
    assert [part.source for part in found.parts[1:3]] == ["seen", "seen"]
    assert [part.name for part in found.parts[1:3]] == ["target weights", "draft weights"]
    plain = memory_budget(PLACED, pre_gib=90.0, weights=WEIGHTS._replace(error_gib=0.4))
    assert (plain.weights_gib, plain.draft_weights_gib, plain.returned_gib) == (12.0, None, 0.0)
    assert plain.available_gib == pytest.approx(90 - 12 - 0.3)
    assert plain.error_gib == pytest.approx(0.5)


def test_given_weights_win_over_estimated_ones() -> None:
    target = memory_budget(DRAFTED, pre_gib=90.0, weights_gib=20.0, weights=WEIGHTS)
    assert (target.weights_gib, target.draft_weights_gib) == (20.0, 2.0)
    assert target.available_gib == pytest.approx(90 - 20 - 2 - 0.3)
    draft = memory_budget(DRAFTED, pre_gib=90.0, draft_weights_gib=0.25, weights=WEIGHTS)
    assert (draft.weights_gib, draft.draft_weights_gib) == (12.0, 0.25)
    assert draft.returned_gib == 0.25  # no more than there is
    assert draft.available_gib == pytest.approx(90 - 12 - 0.25 - 0.3)


@pytest.mark.parametrize("flag", ["--pre-gib", "--available-gib", "--weights-gib", "--draft-weights-gib"])
@pytest.mark.parametrize("value", [-0.001, float("inf"), float("nan")])
def test_no_amount_of_memory(flag: str, value: float) -> None:
    given: dict[str, Any] = {"pre_gib": 90.0, "weights_gib": 1.0, "draft_weights_gib": 1.0}
    given[flag.removeprefix("--").replace("-", "_")] = value
    with pytest.raises(InputError, match=f"{flag} {value}: must be a number of GiB, not negative"):
        memory_budget(DRAFTED, **given)


def test_memory_that_cannot_be() -> None:
    with pytest.raises(InputError, match="--pre-gib 0"):
        memory_budget(PLACED, pre_gib=0.0, available_gib=0.0)
    with pytest.raises(InputError, match=r"--pre-gib 100.5 is more than a Card has \(100.00 GiB\)"):
        memory_budget(PLACED, gpu=CARD, pre_gib=100.5, available_gib=1.0)
    with pytest.raises(InputError, match=r"--available-gib 98.2 is above the 98.10 GiB free before"):
        memory_budget(PLACED, gpu=CARD, available_gib=98.2)
    for mib in (1945, 1000):
        with pytest.raises(InputError, match=rf"Tiny with {mib} MiB is no larger than what .* take \(~1.9 GiB\)"):
            memory_budget(PLACED, gpu=Gpu("Tiny", mib, "cuda", (9, 0), False, ""), weights_gib=0.0)
    assert memory_budget(
        PLACED, gpu=Gpu("Tiny", 2048, "cuda", (9, 0), False, ""), weights_gib=0.0
    ).pre_gib == pytest.approx(0.1)
    assert memory_budget(PLACED, pre_gib=1.0, weights_gib=0.0).available_gib == pytest.approx(0.9)
    assert memory_budget(PLACED, pre_gib=1.0, available_gib=0.0).available_gib == 0.0


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(NoRoomError):
        memory_budget(PLACED, pre_gib=0.2, weights_gib=0.1)  # 0.1 more is left by loading: nothing remains
    with pytest.raises(NoRoomError, match=r"the weights \(45.0 GiB a rank\) do not fit in the 44.0 GiB free"):
        memory_budget(DRAFTED, pre_gib=44.0, weights_gib=40.0, draft_weights_gib=5.0)


@pytest.mark.parametrize("command", ["solve", "advise"])
def test_the_fewest_gpus_that_hold_the_weights_are_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(command, "--gpu", "h200", "--tp-size", "1") == 1
    assert capsys.readouterr().err.endswith("; it starts with --tp-size 4\n")
    assert ended(command, "--gpu", "h200", "--tp-size", "2") == 1
    capsys.readouterr()
    assert ended("solve", "--gpu", "h200", "--tp-size", "4") == 0


def test_a_reading_has_the_digits_it_deserves() -> None:
    assert [show_gib(12.346, how) for how in ("measured", "given", "estimated")] == ["12.35", "12.35", "~12.3"]


# -- the map -----------------------------------------------------------------------------------------------------------

SIZES = PoolSizes(64_000, 50, 10)


def budget(how: str = "estimated", **changes: Any) -> MemoryBudget:
    hows = changes.pop("hows", ("given", "estimated"))
    parts = tuple(
        MemoryPart(name, 0.0, 0.0, how, "") for name, how in zip(("target weights", "draft weights"), hows, strict=True)
    )
    known = MemoryBudget(90.0, 40.0, how, 0.0, 100.0, 30.0, 5.0, 1.0, parts)
    return known._replace(**changes)


def drawn(given: MemoryBudget, **changes: Any) -> MemoryMap:
    return memory_map(one_rank(DRAFTS, load_profile("0.5.21")), SIZES, given, **changes)


def pool_bytes(rank: Rank) -> Counter[str]:
    """Bytes of the pools' segments with pools of SIZES; 0 for what is not there."""
    return Counter({segment.name: segment.nbytes for segment in pool_segments(rank, SIZES)})


def heads(found: MemoryMap) -> list[tuple[str, int, bool, str]]:
    """The segments above the pools, bytes in GiB."""
    names = [segment.name for segment in found.segments]
    above = found.segments[: names.index("latent KV")]
    return [(segment.name, segment.nbytes // GIB, segment.charged, segment.certainty) for segment in above]


def test_segments_above_the_pools() -> None:
    """100 GiB: 10 before the load, 50 taken by it: 30 target, 5 draft (1 of them returned), 15 more."""
    found = drawn(budget())
    assert heads(found) == [
        ("context and communication", 10, False, "estimated"),
        ("weights", 30, True, "derived"),
        ("draft weights", 4, True, "estimated"),
        ("draft embedding and head", 1, True, "estimated"),
        ("left by loading", 15, True, "estimated"),
    ]
    assert found.total == 100 * GIB and found.unallocated == 40 * GIB - found.pools
    assert found.usable == found.unallocated + GIB
    assert found.segments[-1].certainty == "estimated"
    measured = drawn(budget("measured", hows=("estimated", "given"), returned_gib=0.0))
    assert heads(measured) == [
        ("context and communication", 10, False, "derived"),
        ("weights", 30, True, "estimated"),
        ("draft weights", 5, True, "derived"),
        ("left by loading", 15, True, "derived"),
    ]
    assert measured.usable == measured.unallocated and measured.segments[-1].certainty == "derived"


def test_segments_that_are_not_there() -> None:
    no_card = drawn(budget(total_gib=None, draft_weights_gib=None, returned_gib=0.0, available_gib=60.0))
    assert heads(no_card) == [("weights", 30, True, "derived")]
    assert no_card.total == 90 * GIB
    unknown = drawn(budget(total_gib=90.0, weights_gib=None, draft_weights_gib=None, returned_gib=0.0))
    assert heads(unknown) == [("weights", 50, True, "derived")] and unknown.segments[0].note
    less = drawn(budget(total_gib=90.0, available_gib=57.0, returned_gib=0.0))  # 33 taken, 35 said
    assert heads(less) == [("weights", 28, True, "derived"), ("draft weights", 5, True, "estimated")]
    exact = drawn(budget(total_gib=90.0, available_gib=55.0, returned_gib=0.0))
    assert heads(exact) == [("weights", 30, True, "derived"), ("draft weights", 5, True, "estimated")]


def test_pools_are_exact_and_charged_or_not() -> None:
    found = drawn(budget(), staging_bytes=12_345)
    pools = found.segments[5:-1]
    assert {segment.certainty for segment in pools} == {"exact"} and all(segment.note for segment in found.segments)
    assert [(segment.name, segment.charged) for segment in pools] == [
        ("latent KV", True), ("index K", True), ("draft KV", True), ("state slots", True), ("verify snapshots", True),
        ("padding page", False), ("draft-layer state slab", False), ("compress tails", False),
        ("request table", False), ("free lists", False), ("HiCache staging", False),
    ]  # fmt: skip
    assert pools[-1].nbytes == 12_345
    assert found.uncharged == sum(segment.nbytes for segment in pools if not segment.charged)
    assert found.pools == sum(segment.nbytes for segment in pools)
    assert found.segments[-1].charged is False
    assert all(type(segment.nbytes) is int for segment in found.segments)


def test_rings_are_a_segment_of_their_own() -> None:
    rings = replace(DRAFTS, enable_linear_replayssm_spec=True)
    profile = load_profile("0.5.21")
    held = [spec for spec in tensor_specs(one_rank(rings, profile), SIZES) if spec.name.startswith("replayssm_")]
    found = pool_bytes(one_rank(rings, profile))
    layers = {spec.shape[0] for spec in held}
    assert held and layers == {35}  # the draft layer's part is the slab's
    assert found["replay rings"] == sum(spec.nbytes for spec in held) // 35 * 34


def test_a_pipeline_stage_holds_its_layers() -> None:
    """A KDA layer's slot of four ranks is 36,864 + 1,048,576 B, a latent row 512 B, an index page of a layer 8448 B."""
    profile = load_profile("0.5.21")
    for stage in (range(20), range(20, GEOMETRY.num_hidden_layers)):
        full = sum(layer not in GEOMETRY.linear_attention_layers for layer in stage)
        found = pool_bytes(Rank(GEOMETRY, PLAIN, profile, stage))
        assert found["latent KV"] == full * 64_000 * 512
        assert found["index K"] == full * 1000 * 8448
        assert found["padding page"] == full * (64 * 512 + 8448)
        assert found["state slots"] == (len(stage) - full) * 51 * (36_864 + 1_048_576)
        assert found["draft-layer state slab"] == found["verify snapshots"] == found["replay rings"] == 0
        given = budget(draft_weights_gib=None, returned_gib=0.0)
        by_name = {s.name: s.nbytes for s in memory_map(Rank(GEOMETRY, PLAIN, profile, stage), SIZES, given).segments}
        assert by_name["latent KV"] == found["latent KV"] and "draft KV" not in by_name


def test_sums_of_a_map() -> None:
    pools = (("latent KV", 4, True), ("padding page", 2, False))
    others = (("draft embedding and head", 8, True), ("free", 16, False))
    segments = [Segment(*row, "exact", "", "token", ("latent_kv",)) for row in pools]
    found = MemoryMap(30, (*segments, *(Segment(*row, "exact", "") for row in others)))
    assert (found.unallocated, found.usable, found.pools, found.uncharged) == (16, 24, 6, 2)
