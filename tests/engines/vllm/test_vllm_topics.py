"""The topics of `kvplan explain` of a vLLM launch, with and without each flag: every number is one of the plan's."""

from math import ceil

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.explanation import Explanation
from glm_kvplan.engines.vllm.components import index_keys, kda_state
from glm_kvplan.engines.vllm.explain.ground import Ground
from glm_kvplan.engines.vllm.explain.topics import TOPICS
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import block_uses, request_cost, token_bytes
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.engines.vllm.starting import memory_of
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB, MB
from glm_kvplan.workload import Workload

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
NGRAM = {"method": "ngram", "num_speculative_tokens": 2}
OFF = {"enable_prefix_caching": False}


def plan(gpu: str = "h200", release: str = "0.33.0", **flags: object) -> Plan:
    made: Plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu=gpu)
    return made


def told(topic: str, made: Plan, context: int = 131072, requests: int = 1) -> Explanation:
    return TOPICS[topic][1](Ground(made, Workload(context, requests)))


def figures(found: Explanation) -> list[tuple[str, int]]:
    return [(figure.reading, figure.value) for figure in found.figures]


@pytest.mark.parametrize(
    ("gpu", "flags", "usual"),
    [("h200", {}, 64), ("b200", {}, 32), ("h200", {"block_size": 256}, 256), ("rtxpro6000", {}, 64)],
)
def test_the_block_beside_what_its_flag_says(gpu: str, flags: dict[str, object], usual: int) -> None:
    made = plan(gpu, **flags)
    found, blocks = told("block", made), made.blocks
    assert figures(found) == [("right", blocks.size), ("wrong", usual)]
    tokens, price, state = (int(word) for word in found.numbers.replace("*", " ").replace(">=", " ").split())
    assert tokens * price >= state > (tokens - 256) * price
    assert state == kda_state.layer_bytes(made.rank) and tokens == blocks.size
    assert made.deployment.choice("block_size").reason in found.lines[0]
    assert f"It takes {blocks.nbytes:,} B a GPU: {made.rank.token_layers} layers" in found.lines[1]
    assert [figure.unit for figure in found.figures] == ["tokens", "tokens"]


@pytest.mark.parametrize("flags", [{}, {"speculative_config": MTP3}, OFF])
def test_padding_by_its_parts(flags: dict[str, object]) -> None:
    made = plan(**flags)
    found, cost = told("padding", made, 20_000), request_cost(made.blocks, 20_000)
    uses = {use.holds: use for use in block_uses(made.blocks)}
    page, state = kda_state.page_bytes(made.rank), kda_state.layer_bytes(made.rank)
    states = made.deployment.states_per_request
    assert found.lines[0].startswith(f"A state is padded from {state:,} to {page:,} B in every layer")
    assert f"({(page - state) / state:.2%};" in found.lines[0]
    assert found.lines[1] == (
        f"A state block holds {uses['states'].layers} layers at most; in the narrowest group "
        f"{uses['states'].unused_share:.0%} of it is empty. A tail's block is {uses['tail'].unused_share:.2%} empty: "
        f"the tail is {uses['tail'].used_bytes:,} B."
    )
    assert found.lines[2] == f"Of a request of 20,000 tokens {1 - cost.used_bytes / cost.nbytes:.1%} is never written."
    assert figures(found) == [("right", cost.nbytes - cost.used_bytes), ("wrong", (page - state) * 34 * states)]
    assert eval(found.numbers) == cost.nbytes - cost.used_bytes and made.rank.state_layers == 34


@pytest.mark.parametrize(
    ("gpu", "flags", "asked", "narrow"),
    [
        ("h200", {}, "fp8", False),
        ("h200", {"kv_cache_dtype": "fp8"}, "bfloat16", True),
        ("h200", {"kv_cache_dtype": "fp8_ds_mla"}, "bfloat16", True),
        ("b200", {"kv_cache_dtype": "bfloat16"}, "fp8", False),
    ],
)
def test_a_narrower_row_beside_what_it_is_taken_to_save(
    gpu: str, flags: dict[str, object], asked: str, narrow: bool
) -> None:
    made = plan(gpu, **flags)
    found, now = told("dtype", made), request_cost(made.blocks, 131072).nbytes
    other = request_cost(made.with_flags(kv_cache_dtype=asked).blocks, 131072).nbytes
    assert figures(found) == [("right", now), ("right", other), ("wrong", now * 2 if narrow else now // 2)]
    less = 1 - (now / other if narrow else other / now)
    assert 0 < less < 0.5
    assert found.lines[2] == (
        f"With --kv-cache-dtype {asked} the request takes {other / MB:,.1f} MB instead of {now / MB:,.1f}: the "
        f"narrower rows save {less:.0%}."
    )
    row, layers = made.deployment.row_bytes, made.rank.token_layers
    key = index_keys.key_bytes(made.geometry)
    assert found.lines[0].startswith(
        f"A token's row takes {row:,} B in a layer and its index key {key // 4} B: {token_bytes(made.blocks):,} B over "
        f"{layers} layers."
    )
    assert eval(found.numbers) == token_bytes(made.blocks) == layers * (row + key // 4)


@pytest.mark.parametrize(
    ("gpu", "flags", "asked", "factor"),
    [("h200", {"decode_context_parallel_size": 2}, "fp8", 0.5), ("rtxpro6000", {}, "bfloat16", 2)],
)
def test_a_row_that_is_refused_here(gpu: str, flags: dict[str, object], asked: str, factor: float) -> None:
    made = plan(gpu, **flags)
    found, now = told("dtype", made), request_cost(made.blocks, 131072).nbytes
    assert found.lines[2].startswith(f"--kv-cache-dtype {asked} is refused here: ")
    assert figures(found) == [("right", now), ("wrong", int(now * factor))]


def test_memory_as_it_is_known() -> None:
    estimated, given, short = plan(), plan(kv_cache_memory_bytes=60 << 30), plan(tensor_parallel_size=1)
    share = int((143771 << 20) * 0.92)
    for made in (estimated, given, short):
        found, (memory, _) = told("memory", made), memory_of(made, MemoryGiven())
        assert figures(found) == [("right", memory.nbytes), ("wrong", share)]
        assert found.lines[0].startswith(
            "vLLM takes 92% of the card, loads the weights, runs one full step of 8,192 tokens"
        )
        named = ", ".join(f"{part.name} {part.gib:+.2f}" for part in memory.parts)
        how = "as given" if made is given else f"within {(memory.high_bytes - memory.low_bytes) / 2**31:.1f} GiB"
        left = f"Here {memory.nbytes / GIB:.1f} GiB are left"
        if made is short:
            left = f"Here nothing is left, {-memory.nbytes / GIB:.1f} GiB are missing"
        assert found.lines[1] == f"{left} ({how}): {named} GiB."
        assert eval(found.numbers) == pytest.approx(memory.nbytes / GIB, abs=0.06)
        assert not found.numbers.startswith("+") and found.formula.startswith("total * gpu_memory_utilization")


def test_memory_that_cannot_be_estimated_says_why() -> None:
    """At TP 32 two engines' experts are cut inside an FP8 scale: nothing loads."""
    made = plan(tensor_parallel_size=32)
    found = told("memory", made)
    assert found.lines[1].startswith("It is not estimated here: ") and (found.formula, found.numbers) == ("", "")
    assert figures(found) == [("wrong", int((143771 << 20) * 0.92))]


@pytest.mark.parametrize(
    ("release", "flags", "made_of"),
    [
        ("0.33.0", {}, "2 with prefix caching and 1 for FlashKDA's checkpoint in a prefill"),
        ("0.30.0", {}, "2 with prefix caching"),
        ("0.33.0", OFF, "1 that runs"),
        ("0.33.0", {**OFF, "speculative_config": MTP3}, "1 that runs and 3 for draft tokens"),
        ("0.33.0", {"speculative_config": MTP3},
         "2 with prefix caching, 3 for draft tokens and 1 for FlashKDA's checkpoint in a prefill"),
        ("0.33.0", {"kda_prefill_backend": "triton", "decode_context_parallel_size": 2}, "2 with prefix caching"),
    ],
)  # fmt: skip
def test_a_request_by_its_states(release: str, flags: dict[str, object], made_of: str) -> None:
    made = plan(release=release, **flags)
    found, blocks = told("request", made, 20_000), made.blocks
    states = made.deployment.states_per_request
    assert f"({states} in each of {blocks.state_groups} state groups, {made_of})" in found.lines[0]
    assert states == sum(int(word) for word in made_of.split() if word.isdecimal())
    assert f"holds {blocks.fixed} blocks: {blocks.fixed * blocks.nbytes / MB:,.1f} MB a GPU" in found.lines[0]
    cost = blocks.needed(20_000) * blocks.nbytes
    assert f"it takes {blocks.needed(20_000)} blocks, {cost / MB:,.1f} MB a GPU" in found.lines[2]
    assert figures(found) == [("right", cost), ("wrong", 20_000 * token_bytes(blocks))]
    assert eval(found.numbers, {"ceil": ceil}) == cost


@pytest.mark.parametrize("release", ["0.30.0", "0.33.0"])
@pytest.mark.parametrize("flags", [{}, OFF, {"speculative_config": MTP3}, {"kda_prefill_backend": "triton"}])
def test_prefix_caching_on_beside_off(release: str, flags: dict[str, object]) -> None:
    if release == "0.30.0" and "kda_prefill_backend" in flags:
        flags = {}
    made = plan(release=release, **flags)
    found, on = told("prefix-caching", made), made.deployment.enable_prefix_caching
    sides = {True: made.with_flags(enable_prefix_caching=True), False: made.with_flags(**OFF)}
    now, other = (sides[side].deployment.states_per_request for side in (on, not on))
    assert figures(found) == [("right", now), ("wrong", other)] and now != other
    assert found.figures[1].says == f"the same with prefix caching {'off' if on else 'on'}"
    checkpoint = release == "0.33.0" and "kda_prefill_backend" not in flags
    assert ("and FlashKDA's checkpoint of a prefill" in found.lines[0]) == checkpoint
    more = sides[True].blocks.fixed - sides[False].blocks.fixed
    assert found.lines[2] == (
        f"Off, a request holds {sides[False].blocks.fixed} blocks before its first token instead of "
        f"{sides[True].blocks.fixed}: {more * made.blocks.nbytes / MB:,.1f} MB less a GPU."
    )
    assert eval(found.numbers) == now


def test_prefix_caching_that_is_refused_is_beside_nothing() -> None:
    """Off only: with prefix caching a state wants chunked prefill (mamba's own check)."""
    made = plan(**OFF, enable_chunked_prefill=False, max_num_batched_tokens=1048576)
    found = told("prefix-caching", made)
    assert len(found.lines) == 2 and "FlashKDA" not in found.lines[0]
    assert figures(found) == [("right", 1), ("wrong", 1)]


@pytest.mark.parametrize("flags", [{"speculative_config": MTP3}, {"speculative_config": NGRAM}, {}])
def test_a_draft_beside_none(flags: dict[str, object]) -> None:
    made = plan(**flags)
    found = told("draft", made)
    plain = made.with_flags(speculative_config=None)
    drafting = made if flags else made.with_flags(speculative_config=MTP3)
    here, there = (made, plain) if flags else (plain, drafting)
    assert figures(found) == [("right", here.blocks.fixed), ("wrong", there.blocks.fixed)]
    assert found.figures[1].says == ("the same without drafts" if flags else "with 3 of mtp")
    groups = drafting.blocks.state_groups
    assert found.lines[0].startswith(
        f"Every draft token is one state more in each of {groups} state groups: "
        f"{groups * drafting.blocks.nbytes / MB:,.1f} MB a request"
    )
    layered = flags.get("speculative_config") != NGRAM
    price = token_bytes(drafting.blocks) // 12  # of one of twelve token layers, the MTP layer
    says = (
        f"{price:,} B a token."
        if layered
        else "A draft without layers of its own (ngram, suffix) adds nothing to a token."
    )
    assert found.lines[1].endswith(says) and (not layered or drafting.rank.token_layers == 12)
    assert eval(found.numbers) == made.blocks.fixed


@pytest.mark.parametrize(("flags", "requests"), [({}, 5), ({"data_parallel_size": 2}, 5), ({"max_model_len": 9000}, 1)])
def test_the_boot_line_beside_short_requests(flags: dict[str, object], requests: int) -> None:
    made = plan(**flags)
    blocks, context = made.blocks, min(131072, made.context_length)
    found = told("boot-line", made, context, requests)
    engine = -(-requests // made.deployment.data_parallel_size)
    count = engine * blocks.needed(context) + 1
    begun = start(blocks, count * blocks.nbytes)
    short = (count - 1) // blocks.needed(8192)
    assert f"{count:,} blocks hold this workload on a GPU. With them vLLM prints: {begun.line}" in found.lines[0]
    needed = blocks.needed(made.context_length)
    assert (
        f"That is {count:,} blocks over the {needed:,} of one request of {made.context_length:,} tokens"
        in found.lines[1]
    )
    plural = "" if short == 1 else "s"
    assert f"{short} request{plural} of 8,192 tokens fit, {short * 8192:,} tokens" in found.lines[2]
    assert figures(found) == [("right", short * 8192), ("wrong", int(count / needed * made.context_length))]
    assert int(eval(found.numbers)) == begun.printed_tokens


def test_a_fitted_boot_line_of_too_few_blocks_is_of_one_token() -> None:
    """With --max-model-len -1 the blocks of one short request give the context that they hold."""
    made = plan(max_model_len=-1, max_num_seqs=4)
    found = told("boot-line", made, 1, 1)
    count = made.blocks.needed(1) + 1
    begun = start(made.blocks, count * made.blocks.nbytes)
    assert begun.max_model_len == made.blocks.size and found.numbers == f"{count} / {count - 1} * {made.blocks.size}"


def test_sources_are_of_the_subjects_that_the_release_has() -> None:
    made = plan(release="0.30.0")
    found = told("prefix-caching", made).source
    wanted = [made.profile.source(subject) for subject in ("states", "checkpoint", "prefix_caching")]
    assert found == "; ".join(place for place in wanted if place) and not all(wanted)
