"""A whole start, foretold: whose memory, which stage, what host tiers, and what differs between two of them."""

from dataclasses import replace

import pytest
from hand_counted import one_rank

from glm_kvplan.answers.diff.starts import Side, start_changes
from glm_kvplan.engines.changes import Change, byte_changes, unit_changes
from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.planner import Plan, plan
from glm_kvplan.engines.sglang.answers.release_comparison import compare_engines
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.host_answer import HostGiven, host_answer
from glm_kvplan.engines.sglang.sizing.host_coverage import balance
from glm_kvplan.engines.sglang.sizing.remedies import remedies
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.engines.sglang.weight_placement import placement
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.weights import estimate_weights
from glm_kvplan.tensor import device_bytes
from glm_kvplan.units import GIB

B200 = plan({"tp_size": 4, "speculative_algorithm": "EAGLE"}, gpu="b200")
READ = MemoryGiven(177.0, 126.0)
TIERS = plan({"tp_size": 4, "enable_hierarchical_cache": True}, gpu="b200")
SLOT = 34 * (36_864 + 1_048_576)


def sized(of: Plan, available: float) -> PoolSizes | None:
    solution = attempt(of, 177.0, available)
    return None if solution.failure else solution.sizes


# -- one start ---------------------------------------------------------------------------------------------------------


def test_worked_example_b_from_its_flags() -> None:
    answer = boot(B200, READ)
    example = PoolSizes(8_563_520, 706, 48)
    assert answer.solution.sizes == example and answer.span == (example, example)
    assert (answer.budget.how, answer.budget.available_gib, answer.weights) == ("measured", 126.0, None)
    assert (answer.stage, answer.stages, answer.failure, answer.remedies) == (0, (range(45),), None, ())
    assert answer.map is not None and answer.needs is not None and answer.headroom is not None
    assert answer.host is None and answer.limits is not None
    assert answer.map.unallocated == 126 * GIB - answer.map.pools
    assert answer.needs.prompt_tokens == 1_048_576 - 6
    shorter = boot(B200, READ, 1000)
    assert shorter.needs is not None and shorter.needs.prompt_tokens == 1000


def test_whose_memory_it_is() -> None:
    """Both weights given need no estimate; the target's alone does, where there is a draft."""
    given = boot(B200, MemoryGiven(177.0, weights_gib=50.9, draft_weights_gib=0.0))
    assert given.weights is None and given.budget.available_gib == pytest.approx(126.0)
    available = given.budget.available_gib  # 0.1 GiB may be off
    assert given.span == (sized(B200, available - 0.1), sized(B200, available + 0.1))
    assert given.budget.error_gib == pytest.approx(0.1)
    assert Server(B200, MemoryGiven(177.0, weights_gib=50.9)).weights is not None
    plain = plan({"tp_size": 4}, gpu="b200")
    assert Server(plain, MemoryGiven(177.0, weights_gib=50.9)).weights is None
    estimated = boot(B200, MemoryGiven())
    assert estimated.weights is not None and estimated.budget.how == "estimated"
    lighter_file = Server(B200, MemoryGiven(checkpoint="nvfp4-mlp"))
    other, weights = lighter_file.budget, lighter_file.weights
    assert weights is not None and weights.checkpoint == "nvfp4-mlp" != estimated.weights.checkpoint
    assert other.available_gib > estimated.budget.available_gib
    assert estimated.weights == estimate_weights(
        B200.geometry, placement(B200.geometry, B200.deployment, B200.gpu), "fp8"
    )
    text_only = plan({"tp_size": 4, "speculative_algorithm": "EAGLE", "language_only": True}, gpu="b200")
    lighter = Server(text_only, MemoryGiven()).weights
    assert lighter is not None and lighter.target[0] < estimated.weights.target[0]  # no vision tower
    assert given.budget.total_gib == 183_359 / 1024  # the card's, beside a reading
    unnamed = plan({"tp_size": 4})
    assert unnamed.gpu_assumed and boot(unnamed, READ).budget.total_gib is None
    assert Server(unnamed, MemoryGiven()).budget.total_gib is not None
    nothing = boot(B200, MemoryGiven(177.0, weights_gib=200.0 - 23.2, draft_weights_gib=0.0))
    assert nothing.span == (None, None) and nothing.failure is not None  # 0.1 GiB, less 0.1 of error


def test_a_start_that_is_refused_says_what_would_help() -> None:
    given = MemoryGiven(177.0, 30.0)
    answer = boot(B200, given)
    assert answer.failure is not None and answer.solution.failure == answer.failure.kind
    assert (answer.map, answer.needs, answer.headroom, answer.limits, answer.host) == (None,) * 5
    assert (answer.budget.pre_gib, answer.budget.available_gib, answer.weights) == (177.0, 30.0, None)
    assert answer.remedies == tuple(remedies(Server(B200, given))) != ()
    chunks = [remedy for remedy in answer.remedies if remedy.flag == "chunked_prefill_size"]
    assert chunks and int(chunks[0].value) < B200.deployment.chunked_prefill_size  # found by resolving anew
    low = boot(B200.with_flags(mem_fraction_static=0.2), MemoryGiven())
    assert low.failure is not None and low.weights is not None
    wider = Server(B200, MemoryGiven()).with_flags(tp_size=8)  # another layout's weights are estimated anew
    assert wider.budget.available_gib > boot(B200, MemoryGiven()).budget.available_gib


def test_the_fullest_stage_speaks() -> None:
    stages = plan({"tp_size": 4, "pp_size": 2}, gpu="b200")
    answer = boot(stages, READ)
    assert len(answer.solutions) == len(answer.stages) == 2 and answer.map is not None
    pools = [
        device_bytes(
            tensor_specs(Rank(stages.geometry, stages.deployment, stages.profile, stage), answer.solution.sizes)
        )
        for stage in answer.stages
    ]
    assert pools[0] != pools[1] and answer.map.unallocated == 126 * GIB - max(pools)
    layers = answer.stages[answer.stage]
    full = sum(layer % 4 == 3 for layer in layers)
    latent = next(segment.nbytes for segment in answer.map.segments if segment.name == "latent KV")
    assert latent == full * answer.solution.tokens * 512


def test_rocm_bounds_its_logits() -> None:
    answer = boot(plan({"tp_size": 8}, gpu="mi300x"), MemoryGiven(180.0, 120.0))
    assert answer.needs is not None
    logits = next(item.nbytes for item in answer.needs.items if item.name == "indexer logits")
    assert logits == (2**31 - 1) // (1024 * 1024) * 1024 * 1024  # 262,143 rows, padded to 262,144 of four bytes


# -- host tiers --------------------------------------------------------------------------------------------------------


def test_staging_is_on_the_map() -> None:
    answer = boot(TIERS, READ)
    assert answer.map is not None and answer.host is not None
    segments = {segment.name: segment.nbytes for segment in answer.map.segments}
    assert segments["HiCache staging"] == 64 * 64 * 11 * 512
    assert answer.host.balance is None and answer.host.fit is None and answer.host.given == HostGiven()
    assert answer.host.coverage.prefix_tokens == 131_072
    assert answer.host.plan.pools[0].pages == 2 * answer.solution.tokens // 64 + 1


@pytest.mark.parametrize("gib", [100, 300, 1000])
@pytest.mark.parametrize("prefix", [131_072, 20_000, 1000, 300])
def test_the_level_is_where_the_tiers_meet(gib: int, prefix: int) -> None:
    """Beside the slots named, one more or one fewer holds no more whole prefixes; the ratio stays as it was."""
    answer = boot(TIERS, READ, host_given=HostGiven(gib * GIB, None, prefix)).host
    assert answer is not None and answer.level is not None and answer.fit is not None
    ratio = answer.plan.ratio
    assert ratio is not None and answer.plan.sizing == "automatic" and answer.plans[0].ratio == ratio
    pages = -(-prefix // 64)

    def usable(slots: int) -> int:
        deployment = replace(TIERS.deployment, max_mamba_cache_size=slots)
        sizes = attempt(one_rank(deployment, TIERS.profile, TIERS.geometry), 177.0, 126.0).sizes
        return min((int(sizes.tokens * ratio) // 64 + 1) // pages, int(sizes.state_slots * ratio) + 1)

    slots = answer.level.max_mamba_cache_size
    found = answer.level.coverage
    assert answer.level.sizes.state_slots == slots and found.prefix_tokens == prefix
    assert found.usable_prefixes == usable(slots) > answer.coverage.usable_prefixes
    assert usable(slots) >= max(usable(slots - 1), usable(slots + 1), usable(slots - 2), usable(slots + 2))
    if found.state_prefixes >= found.kv_prefixes:
        assert usable(slots - 1) < usable(slots)  # the fewest


def test_tiers_that_are_level_stay() -> None:
    found = boot(TIERS, READ).host
    assert found is not None and found.level is not None
    slots = found.level.max_mamba_cache_size
    flags = {"tp_size": 4, "enable_hierarchical_cache": True, "max_mamba_cache_size": slots}
    level = boot(plan(flags, gpu="b200"), READ).host
    assert level is not None and level.level is None
    assert level.coverage.usable_prefixes == found.level.coverage.usable_prefixes


@pytest.mark.parametrize(("layers", "stage"), [((39, 6), 0), ((6, 39), 1)])
def test_the_stage_that_takes_the_most(layers: tuple[int, int], stage: int) -> None:
    partition = {"SGLANG_PP_LAYER_PARTITION": f"{layers[0]},{layers[1]}"}
    flags = {"tp_size": 4, "pp_size": 2, "enable_hierarchical_cache": True}
    uneven = plan(flags, gpu="b200", environment=partition)
    answer = host_answer(uneven, PoolSizes(64_000, 100, 16), HostGiven())
    assert answer is not None and answer.stage == stage and answer.plan is answer.plans[stage]
    assert answer.plans[stage].nbytes == max(one.nbytes for one in answer.plans)
    assert max(answer.host_bytes) == 4 * sum(one.nbytes for one in answer.plans)
    two = plan({**flags, "nnodes": 2}, gpu="b200", environment=partition)  # a host for each stage
    apart = host_answer(two, PoolSizes(64_000, 100, 16), HostGiven())
    assert apart is not None and apart.fullest == stage and apart.ranks == 4
    assert max(apart.host_bytes) == apart.host_bytes[stage] == 4 * apart.plan.nbytes
    assert apart.pool_bytes == tuple(4 * pool.nbytes for pool in apart.plan.pools)


def test_host_pools_of_sizes_given_by_hand() -> None:
    """A balance, hazards that know the container and the coverage, and the stage that takes the most."""
    flags = {"tp_size": 4, "enable_hierarchical_cache": True, "hicache_ratio": 2.0}
    older = plan(flags, gpu="b200", engine="0.5.20")
    answer = host_answer(older, PoolSizes(64_000, 100, 16), HostGiven(None, 4096 * GIB, 5 * 64))
    assert answer is not None and answer.balance is not None and answer.fits
    assert {"pod_limit_unseen", "state_tier_short"} <= {hazard.kind for hazard in answer.hazards}
    assert answer.better is answer.balance and answer.balance.prefixes > answer.coverage.usable_prefixes == 201
    assert answer.ranks == 4 and max(answer.host_bytes) == 4 * answer.plan.nbytes == sum(answer.pool_bytes)
    long = host_answer(older, PoolSizes(64_000, 100, 16), HostGiven(None, None, 10**7))
    level = answer.coverage._replace(kv_prefixes=answer.balance.prefixes, state_prefixes=answer.balance.prefixes)
    assert answer._replace(coverage=level).better is None and answer._replace(balance=None).better is None
    assert long is not None and long.balance is None  # not one request's five slots
    for slots in (4, 5):
        prefix = next(n for n in range(64, 10**6, 64) if balance(answer.plan, older.deployment, n).state_slots == slots)
        at = host_answer(older, PoolSizes(64_000, 100, 16), HostGiven(None, None, prefix))
        assert at is not None and (at.balance is not None) == (slots == 5)
    assert host_answer(B200, PoolSizes(64_000, 100, 16), HostGiven()) is None


# -- two of them -------------------------------------------------------------------------------------------------------


def ledger(name: str, price: int) -> Ledger:
    return Ledger(Account(name, "", "token", "", "", True, False), price, 1, ())


def test_differences_of_two_tables() -> None:
    found = list(byte_changes("pool", {"a": 1, "b": 2, "same": 5, "none": 0}, {"b": 3, "c": 4, "same": 5}))
    assert found == [
        Change("pool", "a", 1, 0, -1), Change("pool", "b", 2, 3, 1), Change("pool", "c", 0, 4, 4),
    ]  # fmt: skip
    assert list(unit_changes([ledger("kv", 512), ledger("x", 1)], [ledger("kv", 1024), ledger("x", 1)])) == [
        Change("unit", "kv, bytes per token", 512, 1024)
    ]


def side(of: Plan, given: MemoryGiven = READ) -> Side:
    return Side("", of, of.started(given, 131072))


def named(a: Side, b: Side) -> dict[str, Change]:
    return {change.name: change for change in start_changes(a, b)}


def test_workers_together_and_servers_that_do_not_start() -> None:
    """Worked example A: 2,076,032 tokens and 31 requests a worker, 8 workers."""
    flags = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
    eight = side(plan(flags, gpu="h200"), MemoryGiven(138.5, 84.0))
    one = side(plan({"tp_size": 8}, gpu="h200"), MemoryGiven(138.5, 84.0))
    found = named(one, eight)
    together = found["tokens of all workers"], found["requests of all workers"]
    assert [(change.before, change.after) for change in together] == [(None, 8 * 2_076_032), (None, 8 * 31)]
    assert (found["enable_dp_attention"].before, found["enable_dp_attention"].after) == (None, "on")
    assert found["dp_size"].after == 8 and found["dp_size"].why
    back = named(eight, one)["enable_dp_attention"]
    assert (back.before, back.after, back.why) == ("on", None, "")
    two = side(plan(flags | {"tp_size": 2, "dp_size": 2}, gpu="b200"), MemoryGiven(177.0, 126.0))
    sizes = boot(two.plan, MemoryGiven(177.0, 126.0)).solution
    assert named(one, two)["tokens of all workers"].after == 2 * sizes.tokens
    assert named(one, two)["requests of all workers"].after == 2 * sizes.running_requests
    copies = side(plan({"tp_size": 4, "dp_size": 2}, gpu="b200"))
    assert copies.plan.deployment.replicas == 2
    single = side(plan({"tp_size": 4}, gpu="b200"))
    assert named(single, copies)["tokens of all workers"].after == 2 * boot(single.plan, READ).solution.tokens
    dead = named(eight, side(eight.plan, MemoryGiven(138.5, 30.0)))
    for name in ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests"):
        assert dead[name].after == 0
    assert dead["start"].before == "starts" and "no state slot" in str(dead["start"].after)
    assert not any(change.kind in ("pool", "limit") for change in dead.values())


def test_limits_and_headroom_that_change() -> None:
    capped = plan({"tp_size": 4, "speculative_algorithm": "EAGLE", "max_total_tokens": 640_000}, gpu="b200")
    found = named(side(B200), side(capped))
    bound = found["tokens bound by"]
    assert bound.before != bound.after and None not in (bound.before, bound.after) and "640" in bound.why
    assert "headroom" not in found
    assert (found["max_total_tokens"].before, found["max_total_tokens"].after) == (None, 640_000)
    radix = named(side(B200), side(B200.with_flags(disable_radix_cache=True)))["disable_radix_cache"]
    assert (radix.before, radix.after) == ("off", "on")
    requests = named(side(B200), side(B200.with_flags(max_running_requests=None, max_mamba_cache_size=100)))
    fewer = requests["running requests bound by"]
    limits = boot(B200.with_flags(max_mamba_cache_size=100), READ).limits, boot(B200, READ).limits
    assert limits[0] is not None and limits[1] is not None
    assert (fewer.before, fewer.after) == (limits[1].requests[0].name, limits[0].requests[0].name)
    tight = plan({"tp_size": 4, "speculative_algorithm": "EAGLE", "mem_fraction_static": 0.98}, gpu="b200")
    verdict = named(side(B200), side(tight))["headroom"]
    assert verdict.before == "fits" and verdict.after in ("tight", "short") and "GiB" in verdict.why


def test_two_releases_of_one_model() -> None:
    """0.5.22 pools index keys by four and pages by 256 (ENGINE_MODEL 9); a page of one row is 8448 bytes in both."""
    found = compare_engines(load_profile("0.5.21"), load_profile("0.5.22"))
    assert (found.before, found.after, found.workload) == ("0.5.21", "0.5.22", (131_072, 32))
    assert ("page_size_times_index_kpool", False, True) in found.fields
    assert "release" not in {name for name, *_ in found.fields}
    assert all(old != new for _, old, new in found.fields)
    assert [title for title, _ in found.deployments] == ["B200, --tp-size 4, MTP", "H200, --tp-size 8, FP8 rows"]
    drafts, plain = ({change.name: change for change in changes} for _, changes in found.deployments)
    fraction = drafts["mem_fraction_static"]  # worked example B
    assert (fraction.before, fraction.after) == pytest.approx((0.81225, 0.8037), abs=1e-12)
    assert "draft.index_k_buffer" in drafts and not any(name.startswith("draft.") for name in plain)
    for _, changes in found.deployments:
        bytes_of = [abs(change.nbytes) for change in changes]
        assert bytes_of == sorted(bytes_of, reverse=True)
        by_name = {change.name: change for change in changes}
        whole = by_name["allocated on a rank"]
        tensors = [change.nbytes for change in changes if change.kind == "tensor"]
        assert whole.kind == "rank" and whole.nbytes == int(str(whole.after)) - int(str(whole.before)) == sum(tensors)
        index = by_name["index_k_buffer"]
        tokens = 32 * 131_072
        assert index.before == (tokens // 64 + 1) * 11 * 8448
        assert (by_name["page_size"].kind, by_name["page_size"].before, by_name["page_size"].after) == ("flag", 64, 256)
