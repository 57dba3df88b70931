"""What of a vLLM launch can be turned: each knob one step on with its price, or as little as does what is wanted."""

from collections.abc import Callable
from functools import cache

import pytest

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.vllm.moves import NO_DRAFT, moves
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.priced_moves import priced_moves, remedies
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.engines.vllm.turns import turns, typed
from glm_kvplan.memory.given import MemoryGiven

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
NGRAM = {"method": "ngram", "num_speculative_tokens": 2}
MEASURED = MemoryGiven(available_gib=45.07)


def plan(environment: dict[str, str] | None = None, **flags: object) -> Plan:
    made: Plan = kv.plan(
        {"tensor_parallel_size": 4, **flags}, engine="vllm-0.33.0", gpu="h200", environment=environment or {}
    )
    return made


Turned = dict[str, list[tuple[str, str, bool]]]


def turned(made: Plan, blocks: int = 5000) -> Turned:
    """(before, after, whether measured memory still counts) of each knob, at a start with so many blocks."""
    found: Turned = {}
    for move in moves(made, start(made.blocks, blocks * made.blocks.nbytes)):
        found.setdefault(move.name, []).append((move.before, move.after, move.measured))
    return found


def test_every_knob_goes_one_step() -> None:
    assert turned(plan()) == {
        "--kv-cache-dtype": [("auto", "fp8", True), ("auto", "fp8_ds_mla", True)],
        "--mamba-ssm-cache-dtype": [("float32", "bfloat16", True)],
        "--enable-prefix-caching": [("on", "off", True)],
        "--kda-prefill-backend": [("flashkda", "triton", True)],
        "--tensor-parallel-size": [("4", "8", False)],
        "--decode-context-parallel-size": [("1", "2", True)],
        "--gpu-memory-utilization": [("0.92", "0.93", True)],
        "--enforce-eager": [("off", "on", False)],
        "--block-size": [("1152", "2304", True)],
    }


def test_moves_change_the_flags_that_they_name() -> None:
    made = plan(speculative_config=MTP3, max_num_seqs=600)
    for move in moves(made, start(made.blocks, 500 * made.blocks.nbytes)):
        again = made.with_flags(**move.flags).deployment
        now = {
            "--kv-cache-dtype": again.cache_dtype,
            "--mamba-ssm-cache-dtype": again.state_dtype,
            "--enable-prefix-caching": "on" if again.enable_prefix_caching else "off",
            "--kda-prefill-backend": "flashkda" if again.prefill_checkpoint else "triton",
            "num_speculative_tokens": str(again.num_speculative_tokens),
            "--speculative-config": str(again.speculative_method).lower(),
            "--tensor-parallel-size": str(again.tensor_parallel_size),
            "--decode-context-parallel-size": str(again.decode_context_parallel_size),
            "--gpu-memory-utilization": str(again.gpu_memory_utilization),
            "--enforce-eager": "off" if again.cuda_graphs else "on",
            "--block-size": str(again.block_size),
            "--max-num-seqs": str(again.max_num_seqs),
            "--max-model-len": str(again.max_model_len),
        }[move.name]
        assert now == move.after, move.name


@pytest.mark.parametrize(
    ("asked", "others"),
    [
        ("bfloat16", ["fp8", "fp8_ds_mla"]),
        ("fp8", ["bfloat16", "fp8_ds_mla"]),
        ("fp8_e4m3", ["bfloat16", "fp8_ds_mla"]),
        ("fp8_ds_mla", ["bfloat16", "fp8"]),
    ],
)
def test_another_dtype_is_another(asked: str, others: list[str]) -> None:
    assert turned(plan(kv_cache_dtype=asked))["--kv-cache-dtype"] == [(asked, other, True) for other in others]
    half = turned(plan(mamba_ssm_cache_dtype="bfloat16"))["--mamba-ssm-cache-dtype"]
    assert half == [("bfloat16", "float32", True)]


def test_knobs_that_are_not_there_are_not_turned() -> None:
    off = turned(plan(enable_prefix_caching=False))
    assert not {"--enable-prefix-caching", "--kda-prefill-backend"} & off.keys()
    assert "--kda-prefill-backend" not in turned(plan(kda_prefill_backend="triton"))
    assert "--enforce-eager" not in turned(plan(enforce_eager=True))
    assert "--enforce-eager" not in turned(plan({"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"}))
    assert "--decode-context-parallel-size" not in turned(plan(tensor_parallel_size=1))
    assert turned(plan(decode_context_parallel_size=2))["--decode-context-parallel-size"] == [("2", "4", True)]
    assert "--decode-context-parallel-size" not in turned(plan(decode_context_parallel_size=4))


def test_drafts_go_by_one_and_all_at_once() -> None:
    three, two, one = (plan(speculative_config={**MTP3, "num_speculative_tokens": number}) for number in (3, 2, 1))
    assert turned(three)["num_speculative_tokens"] == [("3", "2", True)]
    assert turned(two)["num_speculative_tokens"] == [("2", "1", True)] and "num_speculative_tokens" not in turned(one)
    assert turned(three)["--speculative-config"] == [("3 draft tokens", "none", False)]
    assert turned(plan(speculative_config=NGRAM))["--speculative-config"] == [("2 draft tokens", "none", True)]


@pytest.mark.parametrize(("now", "then"), [(0.95, "0.96"), (0.96, "0.97"), (0.961, None), (0.97, None)])
def test_the_share_of_the_card_ends_at_97_percent(now: float, then: str | None) -> None:
    found = turned(plan(gpu_memory_utilization=now)).get("--gpu-memory-utilization")
    assert found == (None if then is None else [(f"{now:g}", then, True)])


def test_given_bytes_go_by_a_gib_and_no_share_counts() -> None:
    found = turned(plan(kv_cache_memory_bytes=6 << 30))
    assert found["--kv-cache-memory-bytes"] == [(str(6 << 30), str(7 << 30), True)]
    made = plan(kv_cache_memory_bytes=6 << 30)
    (move,) = (one for one in moves(made, start(made.blocks, 6 << 30)) if one.name == "--kv-cache-memory-bytes")
    assert made.with_flags(**move.flags).deployment.kv_cache_memory_bytes == 7 << 30
    assert not {"--gpu-memory-utilization", "--enforce-eager"} & found.keys()


def test_limits_are_lowered_to_what_the_blocks_hold() -> None:
    made = plan(max_num_seqs=600)
    for blocks in (599, 600):
        found = turned(made, blocks)
        assert found.get("--max-num-seqs") == ([("600", "599", True)] if blocks == 599 else None)
        longest = made.blocks.longest_context(blocks)
        assert found["--max-model-len"] == [("1048576", str(longest), True)]
    assert "--max-num-seqs" not in turned(plan(max_num_seqs=600, enforce_eager=True), 599)
    assert "--max-num-seqs" not in turned(made, 0) and "--max-model-len" not in turned(made, 1)
    assert "--max-model-len" not in turned(plan(max_model_len=-1), 100)
    held = made.blocks.longest_context(100)
    assert "--max-model-len" not in turned(plan(max_model_len=held), 100)
    assert turned(plan(max_model_len=held + 1), 100)["--max-model-len"] == [(str(held + 1), str(held), True)]


@cache
def begun(memory: float | None = 45.07, draft: bool = False, **flags: object) -> Begun:
    config = {"speculative_config": MTP3} if draft else {}
    return begin(plan(**flags, **config), MemoryGiven(available_gib=memory))


def test_a_price_is_the_difference_of_two_starts() -> None:
    for memory, lengths in ((45.07, "128k"), (None, "0.8:8k,0.2:128k")):
        now, mix, given = begun(memory), parse_contexts(lengths), MemoryGiven(available_gib=memory)
        prices = priced_moves(now, given, mix)
        knobs = [price.knob for price in prices]
        assert ("--enforce-eager" in knobs, "--tensor-parallel-size" in knobs) == (memory is None,) * 2
        changed = {move.name: move.flags for move in moves(now.plan, now.start)}
        for price in prices:
            if price.failure is not None or price.knob == "--kv-cache-dtype":
                continue
            then = begin(now.plan.with_flags(**changed[price.knob]), given, now.plan)
            ends = (
                served(then.start, mix).requests - served(now.start, mix).requests,
                then.start.longest_context - now.start.longest_context,
                then.plan.blocks.fixed * then.plan.blocks.nbytes - now.plan.blocks.fixed * now.plan.blocks.nbytes,
                then.plan.gpus - now.plan.gpus,
            )
            assert price[3:7] == ends != (0, 0, 0, 0), price.knob


def test_a_price_of_a_start_that_fails_then_is_what_is_lost() -> None:
    """Half as wide rows hold one request of the model's length, whole ones do not."""
    tight = begun(7.0, max_num_seqs=16, kv_cache_dtype="fp8")
    found = priced_moves(tight, MemoryGiven(available_gib=7.0), parse_contexts("8k"))
    (lost,) = (price for price in found if price.after == "bfloat16" and price.knob == "--kv-cache-dtype")
    assert tight.failure is None and lost.failure is None
    assert (lost.requests, lost.longest_context) == (-16, -1048576)


def test_what_is_refused_is_a_price_with_its_reason() -> None:
    shared = begun(None, decode_context_parallel_size=2)
    (refused,) = (price for price in priced_moves(shared, MemoryGiven(), parse_contexts("8k")) if price.failure)
    assert refused[:3] == ("--kv-cache-dtype", "auto", "fp8") and refused[3:7] == (None, None, None, 0)
    assert "no attention backend reads this cache" in str(refused.failure)


def test_remedies_are_single_where_one_is_enough() -> None:
    """12.4 GiB hold a request of the model's length, but no 1,024 states: one limit, or a step of memory."""
    failed = begun(12.5)
    assert failed.failure is not None and failed.failure.kind == "requests above blocks"
    found = remedies(failed, MemoryGiven(available_gib=12.5))
    assert [remedy.name for remedy in found if remedy.beside is None] == [remedy.name for remedy in found]
    (lowered,) = (remedy for remedy in found if remedy.name == "--max-num-seqs")
    assert lowered.after == str(failed.start.count) and lowered.text == f"--max-num-seqs {failed.start.count}"
    for remedy in found:
        (move,) = (one for one in moves(failed.plan, failed.start) if (one.name, one.after) == remedy[:2])
        assert begin(failed.plan.with_flags(**move.flags), MemoryGiven(available_gib=12.5), failed.plan).failure is None


def test_remedies_in_pairs_lower_a_limit_once() -> None:
    found = remedies(begun(4.0), MemoryGiven(available_gib=4.0))
    pairs = [frozenset((remedy.name, remedy.beside[0])) for remedy in found if remedy.beside is not None]
    assert len(pairs) == len(found) == len(set(pairs)) and all(len(pair) == 2 for pair in pairs)
    limits = {"--max-num-seqs", "--max-model-len"}
    assert all(remedy.beside is not None and remedy.beside[0] in limits for remedy in found)
    assert frozenset(limits) in pairs


def test_remedies_by_more_gpus_are_the_fewest() -> None:
    weights = begin(plan(tensor_parallel_size=1), MemoryGiven())
    found = remedies(weights, MemoryGiven())
    assert [(remedy.name, remedy.after, remedy.beside, remedy.text) for remedy in found][:1] == [
        ("--tensor-parallel-size", "4", None, "--tensor-parallel-size 4")
    ]


def always(then: Begun) -> bool:
    return True


def texts(
    now: Begun, does: Callable[[Begun], bool] = always, requests: int = 0, given: MemoryGiven = MEASURED
) -> list[str]:
    return [turn.text for turn in turns(now, given, does, requests)]


def test_turns_come_in_their_order() -> None:
    blocks = begun().start.count
    assert texts(begun(draft=True), requests=30) == [
        "--max-num-seqs 30",
        "--gpu-memory-utilization 0.93",
        "--kda-prefill-backend triton",
        "--no-enable-prefix-caching",
        '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\'',
        "--kv-cache-dtype fp8",
        "--kv-cache-dtype fp8_ds_mla",
        "--kv-cache-dtype bfloat16",
        "--mamba-ssm-cache-dtype bfloat16",
        "--tensor-parallel-size 8",
        "--data-parallel-size 2",
    ]
    ours = texts(begun())
    assert ours[0] == f"--max-num-seqs {blocks}" and "--gpu-memory-utilization 0.93" in ours
    assert "--mamba-ssm-cache-dtype bfloat16" not in texts(begun(mamba_ssm_cache_dtype="bfloat16"))
    accuracy = {turn.text for turn in turns(begun(), MEASURED, always) if turn.accuracy}
    assert accuracy == {text for text in ours if "dtype" in text}
    estimated = {turn.text for turn in turns(begun(), MEASURED, always) if turn.estimated}
    assert estimated == {"--tensor-parallel-size 8", "--data-parallel-size 2"}
    unknown = turns(begun(None), MemoryGiven(), always)
    assert not any(turn.estimated for turn in unknown)


def test_requests_are_limited_to_what_is_asked_or_what_there_is() -> None:
    count = begun().start.count
    first = [text for text in texts(begun(), requests=1024) if "seqs" in text]
    assert first == [f"--max-num-seqs {count}"]  # 1,024 is what it has
    assert [text for text in texts(begun(max_num_seqs=count)) if "seqs" in text] == []
    enough = texts(begun(), lambda then: then.plan.deployment.max_num_seqs > 40, requests=40)
    assert f"--max-num-seqs {count}" in enough and "--max-num-seqs 40" not in enough


def lengths(now: Begun, context: int = 0, least: int = 0) -> list[object]:
    def does(then: Begun) -> bool:
        return then.plan.context_length >= least

    found = [turn.flags for turn in turns(now, MemoryGiven(available_gib=5.0), does, 0, context)]
    return [flags["max_model_len"] for flags in found if "max_model_len" in flags]


def test_the_length_goes_to_what_is_asked_to_what_the_blocks_hold_or_to_the_models_own() -> None:
    few = begun(5.0, max_model_len=32768, max_num_seqs=64)
    held = few.start.blocks.longest_context(few.start.count)
    assert 50_000 < held < 1048576
    assert lengths(few, 50_000) == [50_000] and lengths(few, 1048576) == [1048576]
    for none in (0, 1000, 32768, 1048577):  # nothing is asked, less than there is, or more than the model has
        assert lengths(few, none) == [held]
    assert lengths(few, 50_000, held) == [held] and lengths(few, 50_000, held + 1) == [1048576]
    assert lengths(few, 0, 1048577) == []
    assert lengths(begun(5.0, max_model_len=held, max_num_seqs=64)) == [1048576]
    assert lengths(begun(45.07, max_model_len=32768)) == [1048576]
    assert lengths(begun(0.05, max_model_len=32768, max_num_seqs=64)) == [1048576]  # the blocks hold nothing


def test_memory_goes_up_as_little_as_does_it() -> None:
    def share(least: float) -> Callable[[Begun], bool]:
        return lambda then: then.plan.deployment.gpu_memory_utilization >= least

    for least, wanted in ((0.94, "0.94"), (0.97, "0.97"), (0.98, None)):
        found = [text for text in texts(begun(), share(least)) if "utilization" in text]
        assert found == ([] if wanted is None else [f"--gpu-memory-utilization {wanted}"])
    odd = [text for text in texts(begun(gpu_memory_utilization=0.926)) if "utilization" in text]
    assert odd == ["--gpu-memory-utilization 0.94"]  # 93 hundredths are what it has, rounded


def test_given_bytes_become_the_fewest_blocks_that_do() -> None:
    fixed = begun(None, kv_cache_memory_bytes=64 << 30)
    size, now = fixed.plan.blocks.nbytes, fixed.start.count

    def some(least: int) -> list[str]:
        found = texts(fixed, lambda then: then.start.count >= least, given=MemoryGiven())
        return [text for text in found if "memory" in text]

    assert some(now + 1) == [f"--kv-cache-memory-bytes {(now + 1) * size}"]
    assert some(6000) == [f"--kv-cache-memory-bytes {6000 * size}"]
    most = (143771 << 20) // size
    assert some(most) == [f"--kv-cache-memory-bytes {most * size}"] and some(most + 1) == []


def test_drafts_go_down_to_the_most_that_do() -> None:
    def drafts(most: int) -> Callable[[Begun], bool]:
        return lambda then: then.plan.deployment.num_speculative_tokens <= most

    for most, wanted in ((2, 2), (1, 1), (0, None)):
        found = [
            turn.flags
            for turn in turns(begun(draft=True), MEASURED, drafts(most))
            if "speculative_config" in turn.flags
        ]
        config = {"method": "mtp", "num_speculative_tokens": wanted}
        assert found == ([] if wanted is None else [{**NO_DRAFT, "speculative_config": config}])
    ngram = begin(plan(speculative_config=NGRAM), MEASURED)
    assert "without --speculative-config" in texts(ngram, drafts(0))
    assert not any("speculative" in text for text in texts(begun(), always))


def test_more_gpus_are_the_fewest_up_to_64() -> None:
    def on(gpus: int) -> Callable[[Begun], bool]:
        return lambda then: then.plan.gpus >= gpus

    def more(gpus: int) -> list[str]:
        return [text for text in texts(begun(), on(gpus)) if "parallel" in text]

    assert more(9) == ["--tensor-parallel-size 16", "--data-parallel-size 4"]
    assert more(64) == ["--data-parallel-size 16"]  # TP 64 cuts FP8 weights inside a scale
    assert more(65) == []
    engines = begin(plan(data_parallel_size=3, enable_expert_parallel=True), MEASURED)
    widths = [text for text in texts(engines, lambda then: then.plan.gpus > 12) if "parallel" in text]
    assert widths == ["--tensor-parallel-size 8", "--data-parallel-size 6"]


def test_flags_are_typed_as_they_are_spelt() -> None:
    assert typed({"enable_prefix_caching": False, "max_num_seqs": 4}) == "--no-enable-prefix-caching --max-num-seqs 4"
    assert typed(NO_DRAFT) == "without --speculative-config" and typed({"spec_tokens": None}) == ""
