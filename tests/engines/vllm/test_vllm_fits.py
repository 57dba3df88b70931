"""Which release and card a vLLM log is of, what would explain one that does not fit, and the file to go on with."""

from typing import Any

import pytest
from paths import DATA
from vllm_boots import read_boot

import glm_kvplan as kv
from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.vllm.boot_fits import BootFit, Fit, fit_boot, plan_document
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.errors import InputError, RefusedError

CORE = "(EngineCore pid=9) INFO 09-03 10:13:01 [kv_cache_utils.py:1148] "
CARD = "(Worker_TP0 pid=2) INFO 09-03 10:11:31 [gpu_worker.py:300] Free memory on device (1.0/{:.2f} GiB) on startup.\n"
MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
TP4: dict[str, object] = {"tensor_parallel_size": 4, "max_model_len": 131072, "max_num_seqs": 64}


def text_of(name: str) -> str:
    return (DATA / "vllm_logs" / f"{name}.log").read_text(encoding="utf-8")


def fitted(text: str, **beside: Any) -> BootFit:
    return fit_boot(read_boot(text), BesideLog(**beside))


def plan(release: str, **flags: object) -> Plan:
    made: Plan = kv.plan({**TP4, **flags}, engine=f"vllm-{release}", gpu="h200")
    return made


def sized(made: Plan, blocks: int = 3000) -> str:
    """The line that vLLM prints of so many blocks."""
    return f"{CORE}{start(made.blocks, blocks * made.blocks.nbytes).line}\n"


def test_a_named_release_that_explains_everything_is_enough() -> None:
    found = fitted(text_of("h200x4-tp4-mtp3"))
    assert [fit.engine for fit in found.fits] == ["0.30.0"] and found.chosen == "the server says 0.30.0"
    assert found.fits[0] == Fit("0.30.0", 0, sum(row.verdict == "same" for row in found.held.rows))
    assert (found.gpu_guessed, found.gpu_unknown, found.causes) == (True, False, ())
    wrong = fitted(text_of("h200x4-tp4-mtp3"), engine="vllm-0.33.0", gpu="h200")
    assert [fit.engine for fit in wrong.fits] == ["0.33.0", "0.30.0", "0.31.0", "0.32.0"]
    assert (wrong.chosen, wrong.gpu_guessed, wrong.plan.profile.release) == ("named", False, "0.33.0")
    assert fitted(text_of("h200x4-tp4-mtp3"), engine="vllm").chosen == "fits best"
    later = fitted(text_of("h200x4-tp4-mtp3").replace("0.30.0", "0.30.5"))
    assert later.chosen == "the log is of vLLM 0.30.5: planned as 0.30.0"


def test_the_best_of_releases_explains_most_and_the_newest_wins() -> None:
    """A size of blocks alone, of a deployment that 0.32 and 0.33 plan alike."""
    found = fitted(sized(plan("0.33.0")), flags=TP4)
    assert found.explained and (found.plan.profile.release, found.chosen) == ("0.33.0", "fits best")
    old = fitted(sized(plan("0.30.0")), flags=TP4)
    assert old.explained and old.plan.profile.release in ("0.30.0", "0.31.0")


def test_ranks_of_fits() -> None:
    fits = [Fit("a", 0, 9, "no"), Fit("b", 2, 9), Fit("c", 1, 3), Fit("d", 1, 4)]
    assert [fit.engine for fit in sorted(fits, key=lambda fit: fit.rank)] == ["d", "c", "b", "a"]


def test_a_release_that_refuses_is_no_fit_unless_it_is_named() -> None:
    flags = {**TP4, "decode_context_parallel_size": 2}
    found = fitted(sized(plan("0.33.0", decode_context_parallel_size=2)), flags=flags)
    refused = {fit.engine: fit.refused for fit in found.fits if fit.refused}
    assert set(refused) == {"0.30.0", "0.31.0"} and all(refused.values())
    assert {fit[1:3] for fit in found.fits if fit.refused} == {(0, 0)}
    assert found.explained and found.plan.profile.release == "0.33.0"
    with pytest.raises(RefusedError, match="knows no decode context parallelism"):
        fitted(sized(plan("0.33.0")), flags=flags, engine="vllm-0.30.0")
    with pytest.raises(InputError, match=r"line 1: no release known here takes these flags: "):
        fitted(sized(plan("0.33.0")), flags={**TP4, "pipeline_parallel_size": 2})


def test_a_profile_of_ones_own_is_tried_beside_the_releases(tmp_path: Any) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "0.33.0"\nprefill_checkpoint = false\n', encoding="utf-8")
    found = fitted(sized(plan("0.33.0", kda_prefill_backend="triton")), flags=TP4, engine=f"vllm-{file}")
    assert found.explained and found.plan.profile.base_release == "0.33.0" and found.chosen == "named"


def test_what_is_not_planned_of_a_log() -> None:
    with pytest.raises(InputError, match="is another model"):
        fitted(text_of("h200x4-tp4").replace("zai-org/GLM-5.3-Flash", "Qwen/Qwen3-8B"))
    with pytest.raises(InputError, match="--draft-config"):
        fitted(text_of("h200x4-tp4"), draft="x.json")
    with pytest.raises(InputError, match=r"line 1: the boot prints no arguments; give its launch command after --"):
        fitted(sized(plan("0.33.0")))


def test_flags_that_the_user_gives_win_over_the_printed_ones() -> None:
    found = fitted(text_of("h200x4-tp4-mtp3"), flags={"max_num_seqs": 9})
    assert found.plan.flags["max_num_seqs"] == 9 and found.plan.flags["max_model_len"] == 131072


FACTS = (
    "(EngineCore pid=9) INFO 09-03 10:11:30 [core.py:99] Initializing a V1 LLM engine (v0.33.0) with config: "
    "model='zai-org/GLM-5.3-Flash', dtype=torch.bfloat16, max_seq_len=65536, tensor_parallel_size=4, "
    "data_parallel_size=2, decode_context_parallel_size=2, kv_cache_dtype=fp8_ds_mla, enable_prefix_caching=False, "
    "enforce_eager=True, speculative_config=SpeculativeConfig(method='mtp', model='x', num_spec_tokens=2)\n"
)


def test_what_an_engine_says_of_itself_becomes_flags() -> None:
    found = fitted(FACTS + sized(plan("0.33.0")), gpu="h200")
    assert found.plan.flags == {
        "tensor_parallel_size": 4,
        "data_parallel_size": 2,
        "decode_context_parallel_size": 2,
        "max_model_len": 65536,
        "kv_cache_dtype": "fp8_ds_mla",
        "enable_prefix_caching": False,
        "enforce_eager": True,
        "speculative_config": {"method": "mtp", "num_speculative_tokens": 2},
    }
    odd = FACTS.replace("=65536", "=many").replace("data_parallel_size=2", "data_parallel_size=x")
    odd = odd.replace("enforce_eager=True", "enforce_eager=None").partition(", speculative")[0] + "\n"
    flags = fitted(odd + sized(plan("0.33.0")), gpu="h200").plan.flags
    assert not {"max_model_len", "data_parallel_size", "enforce_eager", "speculative_config"} & flags.keys()


@pytest.mark.parametrize(
    ("printed", "card"),
    [
        (139.79, "h200"), (140.39, "h200"), (140.41, None), (139.21, "h200"), (139.19, None),
        (79.05, "h100"), (178.46, "b200"), (121.63, "gb10"), (191.38, None), (94.98, "h20"),
    ],
)  # fmt: skip
def test_a_card_by_what_cuda_calls_its_memory(printed: float, card: str | None) -> None:
    """Within 0.6 GiB of a card that vLLM runs this model on; of several the one of the shortest name."""
    flags = {**TP4, "kv_cache_memory_bytes": 40 << 30}
    found = fitted(CARD.format(printed) + sized(plan("0.33.0")), flags=flags, engine="vllm-0.33.0")
    named = kv.plan(flags, engine="vllm-0.33.0", gpu=card or "h200").gpu
    assert (found.plan.gpu, found.gpu_unknown) == (named, card is None)


def test_an_unknown_card_is_no_evidence() -> None:
    """What is estimated from the card that stands in is not held; what is exact is."""
    text = text_of("h200x4-tp4")
    known, unknown = fitted(text), fitted(text.replace("139.79", "60.00"))
    within = {row.title for row in known.held.rows if row.verdict == "within"}
    assert within == {row.title for row in unknown.held.rows if row.verdict == "not planned"} != set()
    assert unknown.explained and fitted(text.replace("139.79", "60.00"), gpu="h100").gpu_unknown is False


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"enable_prefix_caching": False}, "prefix caching is off"),
        ({"speculative_config": MTP3}, "3 draft tokens"),
        ({"speculative_config": {**MTP3, "num_speculative_tokens": 7}}, "7 draft tokens"),
        ({"kv_cache_dtype": "fp8"}, "--kv-cache-dtype fp8"),
        ({"kv_cache_dtype": "fp8_ds_mla"}, "--kv-cache-dtype fp8_ds_mla"),
        ({"mamba_ssm_cache_dtype": "bfloat16"}, "a bfloat16 state"),
        ({"kda_prefill_backend": "triton"}, "--kda-prefill-backend triton"),
        ({"tensor_parallel_size": 8}, "--tensor-parallel-size 8"),
        ({"tensor_parallel_size": 2}, "--tensor-parallel-size 2"),
        ({"tensor_parallel_size": 1}, "--tensor-parallel-size 1"),
    ],
)
def test_the_flag_that_was_another_one_is_named(changes: dict[str, object], said: str) -> None:
    """The line of a start with the flag, read with the flags of one without it."""
    true = plan("0.33.0", **changes)
    blocks = f"{CORE}Setting attention block size to {true.blocks.size} tokens to ensure that it is\n"
    found = fitted(blocks + sized(true, 3001), flags=TP4, engine="vllm-0.33.0")
    assert not found.explained and f"{said}: with it every number is explained" in found.causes


def test_flags_that_there_are_taken_away_are_named_too() -> None:
    for base, said in (
        ({"speculative_config": MTP3}, "0 draft tokens"),
        ({"enable_prefix_caching": False}, "prefix caching is on"),
        ({"kv_cache_dtype": "fp8"}, "--kv-cache-dtype bfloat16"),
        ({"tensor_parallel_size": 8}, "--tensor-parallel-size 4"),
    ):
        true = plan("0.33.0")
        blocks = f"{CORE}Setting attention block size to {true.blocks.size} tokens to ensure that it is\n"
        found = fitted(blocks + sized(true, 3001), flags={**TP4, **base}, engine="vllm-0.33.0")
        assert not found.explained and f"{said}: with it every number is explained" in found.causes
        assert not any(cause.startswith(f"{said} draft") for cause in found.causes)


def test_releases_that_would_explain_it_are_named_first() -> None:
    found = fitted(text_of("h200x4-tp4-mtp3"), engine="vllm-0.33.0")
    assert found.causes[0] == "the engine is 0.30.0 or 0.31.0: under it every number is explained"
    nothing = fitted(text_of("h200x4-tp4-mtp3").replace("3,338,303", "3,338,304"), engine="vllm-0.30.0")
    assert not any(cause.startswith("the engine is") for cause in nothing.causes)


def test_the_file_to_go_on_with() -> None:
    for printed, memory in (("45.07", 45.07), ("45.09", None)):
        found = fitted(text_of("h200x4-tp4-mtp3").replace("45.07", printed), engine="vllm-0.30.0")
        document: dict[str, Any] = plan_document(found, "boot.log")
        assert (document["model"], document["engine"], document["gpu"]) == (
            "zai-org/GLM-5.3-Flash",
            "vllm-0.30.0",
            "H200",
        )
        assert document["flags"] == dict(found.plan.flags) and "environment" not in document
        assert document["expect"] == {"min_context": 131072}
        given = document["memory"]["available_gib"]
        assert found.plan.blocks.count(int(given * 2**30)) == 3311
        how = "the printed memory" if memory else "the memory that gives the printed size"
        assert document["memory"]["source"] == f"boot.log: {how}" and given == (memory or given) == round(given, 6)
    fixed: dict[str, Any] = plan_document(fitted(text_of("h200x4-tp4-mtp3-6gib")), "x")
    assert "memory" not in fixed and fixed["flags"]["kv_cache_memory_bytes"] == 6442450944
    without = "".join(line for line in text_of("h200x4-tp4").splitlines(True) if "KV cache size" not in line)
    assert "expect" not in plan_document(fitted(without), "x")
    switched = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"}
    kept: dict[str, Any] = plan_document(fitted(text_of("h200x4-tp4"), environment=switched), "x")
    assert kept["environment"] == switched


def test_a_card_that_is_smaller_than_the_log_says() -> None:
    text = CARD.format(178.46) + sized(plan("0.33.0"))
    with pytest.raises(InputError, match=r"--gpu h200: .* shows 178\.46 GiB on a card, and H200 has 140\.40"):
        fitted(text, flags=TP4, gpu="h200")
    assert fitted(text, flags=TP4, gpu="b200").plan.gpu.name == "B200"


@pytest.mark.parametrize("share", ["0.92", "0.9965"])
def test_what_a_boot_found_free_is_not_estimated(share: str) -> None:
    """The log prints what was left for blocks: the server was there, whatever is usually free."""
    text = text_of("h200x4-tp4-mtp3").replace("'max_model_len'", f"'gpu_memory_utilization': {share}, 'max_model_len'")
    assert f"'gpu_memory_utilization': {share}" in text
    assert fitted(text, engine="vllm-0.30.0").held.start is not None


@pytest.mark.parametrize("method", ["compressed-tensors", "modelopt_fp4", "awq"])
def test_a_log_of_another_checkpoint_is_not_held_to_the_published_one(method: str) -> None:
    text = text_of("h200x4-tp4-mtp3").replace("'max_model_len'", f"'quantization': '{method}', 'max_model_len'")
    assert f"'quantization': '{method}'" in text
    assert fitted(text, engine="vllm-0.30.0").plan.profile.release == "0.30.0"
