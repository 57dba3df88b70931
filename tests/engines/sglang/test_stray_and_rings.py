"""Draft tokens without an algorithm, and replay rings of any length: what the engine allocates beside its budget."""

import pytest

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.components import rank_ledgers, tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.profile import releases
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.attribution import attribution
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.errors import RefusedError

SIZES = PoolSizes(1_000_192, 700, 140)
EAGLE = {"speculative_algorithm": "EAGLE"}


def nbytes_of(gpu: str, release: str, **flags: object) -> dict[str, int]:
    found = plan({"tp_size": 4, **flags}, gpu=gpu, engine=release)
    return {spec.name: spec.nbytes for spec in tensor_specs(rank_of(found), SIZES)}


@pytest.mark.parametrize("release", releases())
def test_stray_draft_tokens_allocate_what_speculation_would(release: str) -> None:
    """The same snapshots, tails and state layers as with the algorithm; no draft pool, no charge."""
    stray = plan({"tp_size": 4, "speculative_num_draft_tokens": 4}, gpu="b200", engine=release)
    ours = nbytes_of("b200", release, speculative_num_draft_tokens=4)
    theirs = nbytes_of("b200", release, max_running_requests=4096, **EAGLE)
    same = ("intermediate_ssm", "intermediate_conv_window", "temporal_state", "conv_state", "compress_tail_k")
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    assert not any(name.startswith("draft.") for name in ours)
    assert costs(rank_of(stray)).snapshot_drafts == 0
    found = attribution(rank_of(stray), SIZES)
    assert found.rest == 0
    linear = ours["intermediate_ssm"] + ours["intermediate_conv_window"]
    named = {part.name: part.nbytes for part in found.parts}
    assert named["stray draft snapshots"] + named.get("draft layer snapshots", 0) == linear
    assert any("nothing speculates" in line for line in stray.warnings)


@pytest.mark.parametrize("release", releases())
def test_decode_rings_are_allocated_and_not_charged(release: str) -> None:
    """d and k in the state's fp32, the gate in fp32 and a cursor a slot (memory_pool.py:656-742, 928 at 0.5.21)."""
    flags = {"disable_radix_cache": True, "enable_linear_replayssm": True}
    found = plan({"tp_size": 4, **flags}, gpu="b200", engine=release)
    rank = rank_of(found)
    ours = {spec.name: spec for spec in tensor_specs(rank, SIZES)}
    ring = 34 * 701 * (64 // 4) * 16 * 128 * 4
    assert [ours[f"replayssm_{name}"].nbytes for name in ("d", "k", "g")] == [ring] * 3
    assert ours["replayssm_write_pos"].nbytes == 701 * 4
    assert not any(ours[f"replayssm_{name}"].charged for name in ("d", "k", "g", "write_pos"))
    assert costs(rank).ring_bytes == 0
    answer = attribution(rank, SIZES)
    assert answer.rest == 0
    assert {part.name: part.nbytes for part in answer.parts}["decode rings"] == 3 * ring + 701 * 4
    ledger = next(ledger for ledger in rank_ledgers(rank, SIZES) if ledger.account.name == "decode_ring")
    assert ledger.bytes_per_unit == 34 * 16 * 16 * 128 * 12 + 4
    with pytest.raises(RefusedError, match="no_buffer"):
        plan({"tp_size": 4, "enable_linear_replayssm": True}, gpu="b200", engine=release)


def test_a_longer_ring_is_charged_by_its_length() -> None:
    """Sixteen records are the default: twice as many cost twice as much (configs/mamba_utils.py:128-152 at 0.5.21)."""
    flags = {"tp_size": 4, "enable_linear_replayssm_spec": True, **EAGLE}
    short = costs(rank_of(plan(flags, gpu="b200")))
    long = costs(rank_of(plan({**flags, "linear_replayssm_cache_len": 32}, gpu="b200")))
    assert (short.ring_bytes * 4, long.ring_bytes) == (53_616_640, 2 * short.ring_bytes)
    specs = nbytes_of("b200", "0.5.21", enable_linear_replayssm_spec=True, linear_replayssm_cache_len=32, **EAGLE)
    assert specs["replayssm_g"] == 35 * 701 * 16 * 32 * 128 * 4


@pytest.mark.parametrize("release", ["0.5.21", "0.5.22", "0.5.23"])
def test_a_ring_holds_twice_the_drafts_and_is_a_power_of_two(release: str) -> None:
    drafts = {"speculative_num_steps": 8, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 9, **EAGLE}
    ring = {"tp_size": 4, "enable_linear_replayssm_spec": True}
    with pytest.raises(RefusedError, match="twice the 9 draft tokens"):
        plan({**ring, **drafts}, gpu="b200", engine=release)
    assert plan({**ring, **drafts, "linear_replayssm_cache_len": 32}, gpu="b200", engine=release)
    assert plan({**ring, **drafts}, gpu="b200", engine="0.5.20")  # no ring there
    with pytest.raises(RefusedError, match="power of two"):
        plan({**ring, "linear_replayssm_cache_len": 24}, gpu="b200", engine=release)
    block = {"speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft"}
    with pytest.raises(RefusedError, match="DFLASH in this release"):
        plan({**ring, **block}, gpu="b200", engine="0.5.20")
