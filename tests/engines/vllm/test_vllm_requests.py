"""What a request costs, how many run at once, and that every priced change gives what it promises."""

import pytest

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.vllm.components import ledgers
from glm_kvplan.engines.vllm.moves import moves
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.priced_moves import priced_moves, remedies
from glm_kvplan.engines.vllm.request_cost import block_uses, fixed_cost, request_cost, token_bytes
from glm_kvplan.engines.vllm.served_requests import blocks_of_mix, served
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB

MTP = {"method": "mtp", "num_speculative_tokens": 3}
MEASURED = MemoryGiven(available_gib=45.07)


def plan(release: str = "0.33.0", gpu: str = "h200", **flags: object) -> Plan:
    found: Plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu=gpu)
    return found


def test_a_request_by_hand() -> None:
    """H200 TP4, MTP3, 0.33: 3 state groups of 6 states, a tail, and 114 blocks of 1,152 tokens for 131,072."""
    found = plan(speculative_config=MTP)
    assert found.blocks.nbytes == 14_631_936
    cost = request_cost(found.blocks, 131072)
    assert (cost.token_blocks, cost.state_blocks, cost.tail_blocks) == (114, 18, 1)
    assert cost.nbytes == 133 * 14_631_936
    rows = 131072 * (1024 + 33) * 12
    states = 6 * 34 * (6 * 6144 * 2 + 16 * 128 * 128 * 4)
    tail = 12 * 8 * 512
    assert cost.used_bytes == rows + states + tail
    assert fixed_cost(found.blocks) == (19, 19 * 14_631_936, 19 * 1152)
    assert token_bytes(found.blocks) == (1024 + 33) * 12


def test_the_ledgers_of_a_request_are_what_it_writes() -> None:
    for release in ("0.30.0", "0.33.0"):
        found = plan(release, speculative_config=MTP)
        states = found.deployment.states_per_request
        bill = ledgers(found.rank, tokens=131072, states=states, requests=1)
        used = sum(ledger.total for ledger in bill if ledger.account.name != "state_padding")
        assert used == request_cost(found.blocks, 131072).used_bytes


def test_every_formula_is_its_price() -> None:
    for release in ("0.30.0", "0.33.0"):
        for ledger in ledgers(plan(release, speculative_config=MTP).rank, tokens=1, states=1, requests=1):
            assert eval(ledger.formula_in_numbers) == ledger.bytes_per_unit


@pytest.mark.parametrize("release", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"])
@pytest.mark.parametrize("gpu", ["h200", "b200", "gb10"])
def test_a_block_is_what_is_used_padded_and_left(release: str, gpu: str) -> None:
    found = plan(release, gpu, speculative_config=MTP)
    for use in block_uses(found.blocks):
        assert use.used_bytes + use.padding_bytes + use.rest_bytes == found.blocks.nbytes
        assert use.used_bytes > 0 and use.padding_bytes >= 0 and use.rest_bytes >= 0
    tail = block_uses(found.blocks)[-1]
    assert tail.holds == "tail" and tail.unused_share > 0.99


def test_what_runs_at_once() -> None:
    begun = begin(plan("0.30.0", max_model_len=131072, speculative_config=MTP), MEASURED)
    assert (begun.low.count, begun.start.count, begun.high.count) == (3311, 3311, 3312)
    assert served(begun.start, parse_contexts("128k")) == (25, 25, "blocks")  # 3,310 over 130
    assert served(begun.start, parse_contexts("1k")).requests == 3310 // 17
    assert served(begun.start, parse_contexts("256k")) == (0, 0, "--max-model-len")
    few = begin(plan("0.30.0", max_num_seqs=8, max_model_len=131072, speculative_config=MTP), MEASURED)
    assert served(few.start, parse_contexts("1k")) == (8, 8, "--max-num-seqs")


def test_a_mix_is_held_to_the_last_request() -> None:
    begun = begin(plan(max_model_len=131072, data_parallel_size=2), MEASURED)
    mix = parse_contexts("0.8:8k,0.2:128k")
    found = served(begun.start, mix)
    assert found.requests == 2 * found.per_engine
    assert blocks_of_mix(begun.start, mix, found.per_engine) <= begun.start.usable
    assert blocks_of_mix(begun.start, mix, found.per_engine + 1) > begun.start.usable


def test_a_mix_may_take_the_last_block() -> None:
    made, mix = plan(max_model_len=131072), parse_contexts("0.8:8k,0.2:128k")
    begun = begin(made, MEASURED)
    for requests in (5, 20):
        needed = blocks_of_mix(begun.start, mix, requests) + 1  # and the one that is never given out
        for blocks, fit in ((needed, requests), (needed - 1, requests - 1)):
            tight = start(made.with_flags(max_num_seqs=64).blocks, blocks * made.blocks.nbytes)
            assert tight.failure is None and served(tight, mix).requests == fit


def test_estimated_memory_has_ends() -> None:
    begun = begin(plan(speculative_config=MTP), MemoryGiven())
    assert begun.low.count < begun.start.count < begun.high.count
    assert begun.memory.certainty == "estimated" and begun.weights is not None


CASES = [
    ("0.30.0", "h200", {"speculative_config": MTP, "max_model_len": 131072}, MEASURED),
    ("0.33.0", "h200", {"speculative_config": MTP}, MemoryGiven()),
    ("0.33.0", "b200", {"max_model_len": 262144}, MEASURED),
    ("0.32.0", "gb10", {"tensor_parallel_size": 2, "speculative_config": MTP}, MemoryGiven(available_gib=20.0)),
    ("0.31.0", "rtxpro6000", {"max_model_len": 65536}, MemoryGiven(weights_gib=45.0)),
    ("0.33.0", "h200", {"kv_cache_memory_bytes": 6 * GIB, "max_num_seqs": 64}, MemoryGiven()),
]


@pytest.mark.parametrize(("release", "gpu", "flags", "given"), CASES)
def test_every_priced_change_typed_in_gives_what_it_promised(
    release: str, gpu: str, flags: dict[str, object], given: MemoryGiven
) -> None:
    begun = begin(plan(release, gpu, **flags), given)
    contexts = parse_contexts("32k")
    now = served(begun.start, contexts).requests
    priced = {(move.knob, move.after): move for move in priced_moves(begun, given, contexts)}
    assert priced
    for move in moves(begun.plan, begun.start):
        found = priced.get((move.name, move.after))
        if found is None:
            continue
        typed = {name: value for name, value in {**begun.plan.flags, **move.flags}.items() if value is not None}
        try:
            again: Plan = kv.plan(typed, engine=f"vllm-{release}", gpu=gpu)
        except KvplanError as error:
            assert found.failure == str(error)
            continue
        then = begin(again, given, begun.plan)
        assert found.requests == served(then.start, contexts).requests - now
        assert found.fixed_bytes == fixed_cost(again.blocks).nbytes - fixed_cost(begun.plan.blocks).nbytes


def test_a_printed_memory_prices_no_knob_that_moves_it() -> None:
    begun = begin(plan(max_model_len=131072), MEASURED)
    names = {move.knob for move in priced_moves(begun, MEASURED, parse_contexts("32k"))}
    assert "--gpu-memory-utilization" in names
    assert not names & {"--tensor-parallel-size", "--enforce-eager"}
    estimated = begin(plan(max_model_len=131072), MemoryGiven())
    names = {move.knob for move in priced_moves(estimated, MemoryGiven(), parse_contexts("32k"))}
    assert {"--tensor-parallel-size", "--enforce-eager"} <= names


@pytest.mark.parametrize(
    ("flags", "given", "code"),
    [
        ({"max_model_len": 32768}, MemoryGiven(available_gib=8.0), "requests above blocks"),
        ({"max_num_seqs": 8}, MemoryGiven(available_gib=6.0), "one request"),
        ({"max_num_seqs": 8, "speculative_config": MTP}, MemoryGiven(available_gib=6.0), "one request"),
    ],
)
def test_every_remedy_lets_it_start(flags: dict[str, object], given: MemoryGiven, code: str) -> None:
    begun = begin(plan(**flags), given)
    assert begun.start.failure is not None and begun.start.failure.kind == code
    named = {(remedy.name, remedy.after) for remedy in remedies(begun, given)}
    assert named
    for move in moves(begun.plan, begun.start):
        if (move.name, move.after) in named:
            assert begin(begun.plan.with_flags(**move.flags), given, begun.plan).start.failure is None
