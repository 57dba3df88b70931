"""What small mistakes in vLLM's plans left unnoticed: reasons, units, scopes, edges of a printed length."""

import re
from pathlib import Path

import pytest
from paths import DATA
from vllm_boots import read_boot
from vllm_oracle import resolved

import glm_kvplan as kv
from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.vllm.answers.started import started
from glm_kvplan.engines.vllm.answers.sweep_point import COLUMNS
from glm_kvplan.engines.vllm.boot_fits import fit_boot
from glm_kvplan.engines.vllm.components import ledgers
from glm_kvplan.engines.vllm.flags import FLAGS
from glm_kvplan.engines.vllm.moves import moves
from glm_kvplan.engines.vllm.profile import load_profile, releases
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven

TP4 = {"tensor_parallel_size": 4, "max_model_len": 131072}
MTP = {**TP4, "speculative_config": {"method": "mtp", "num_speculative_tokens": 3}}


def test_an_unknown_mode_of_graphs_is_refused() -> None:
    with pytest.raises(InputError, match="cudagraph_mode TWICE is not one of"):
        resolved({"compilation_config": {"cudagraph_mode": "twice"}})


@pytest.mark.parametrize(("level", "mode"), [("0", "NONE"), ("1", "PIECEWISE"), ("2", "FULL_AND_PIECEWISE")])
def test_a_level_is_spelt_with_and_without_its_letter(level: str, mode: str) -> None:
    wanted = resolved({"compilation_config": {"cudagraph_mode": mode}})
    for text in (level, f"O{level}"):
        assert resolved({"optimization_level": text}).full_cuda_graphs == wanted.full_cuda_graphs


def test_a_width_that_nobody_gave_says_so() -> None:
    reasons = {choice.flag: choice.reason for choice in kv.plan({}, engine="vllm-0.33.0", gpu="h200").choices}
    assert reasons["tensor_parallel_size"] == "one GPU unless given"
    assert reasons["data_parallel_size"] == "one engine unless given"


@pytest.mark.parametrize("release", releases())
def test_every_release_lists_every_source(release: str) -> None:
    """One that a release has no line for is empty; what is no subject is an error."""
    profile = load_profile(release)
    assert profile.sources.keys() == load_profile(releases()[-1]).sources.keys()
    assert profile.source("batches").endswith(f" at {release}")
    with pytest.raises(KeyError):
        profile.source("no such subject")


@pytest.mark.parametrize("flags", [TP4, MTP])
@pytest.mark.parametrize("release", releases())
def test_a_knob_goes_by_an_option(release: str, flags: dict[str, object]) -> None:
    plan = kv.plan(flags, engine=f"vllm-{release}", gpu="h200")
    options = {option for flag in FLAGS for option in flag.options}
    begun = begin(plan, MemoryGiven())
    names = {move.name for move in moves(plan, begun.start)}
    assert names - options <= {"num_speculative_tokens"} and "--kv-cache-dtype" in names


def test_the_kernel_that_keeps_checkpoints_can_be_changed() -> None:
    plan = kv.plan(TP4, engine="vllm-0.33.0", gpu="h200")
    assert plan.deployment.prefill_checkpoint
    (move,) = (one for one in moves(plan, begin(plan, MemoryGiven()).start) if one.name == "--kda-prefill-backend")
    assert (move.before, move.after, move.flags) == ("flashkda", "triton", {"kda_prefill_backend": "triton"})


def test_blocks_are_of_a_gpu_and_tokens_of_a_worker() -> None:
    """One engine's log prints its own; what all serve together is the deployment's."""
    plan = kv.plan({**TP4, "data_parallel_size": 2}, engine="vllm-0.33.0", gpu="h200")
    scopes = {one.name: (one.unit, one.whose) for one in started(plan, MemoryGiven(), 131072).measures}
    assert scopes["num_gpu_blocks"] == ("block", "GPU") and scopes["block_bytes"] == ("byte", "GPU")
    assert scopes["block_size"] == ("token", "GPU") and scopes["printed cache tokens"] == ("token", "worker")
    assert scopes["cache_bytes"] == ("byte", "deployment") and scopes["token_bytes"] == ("byte", "GPU")


def test_every_ledger_is_paid_from_the_budget_and_none_is_copied() -> None:
    """Blocks are all there is, and this model's are offloaded by nothing that is planned here."""
    plan = kv.plan(MTP, engine="vllm-0.33.0", gpu="h200")
    for ledger in ledgers(plan.rank, tokens=1000, states=9, requests=1):
        assert (ledger.account.charged, ledger.account.backed_up) == (True, False), ledger.account.name


def test_memory_rows_of_a_public_log_are_in_gib() -> None:
    text = (DATA / "vllm_logs" / "h200x4-tp4-mtp3.log").read_text(encoding="utf-8")
    units = {row.title: row.unit for row in fit_boot(read_boot(text), BesideLog()).held.rows}
    assert units["activations"] == units["weights and context"] == "GiB"


def test_of_several_gpus_the_smallest_card_counts() -> None:
    line = "(Worker_TP{} pid=9) INFO 09-03 10:11:30 [gpu_worker.py:300] Free memory on device ({}/{} GiB) on startup.\n"
    said = (("139.20", "139.79"), ("138.10", "138.50"), ("139.00", "139.50"))
    boot = read_boot("".join(line.format(rank, *memory) for rank, memory in enumerate(said)))
    assert {name: boot.printed[name].value for name in ("free before", "card")} == {"free before": 138.1, "card": 138.5}


def test_the_longest_that_fits_is_held_to_the_printed_memory() -> None:
    """The memory is printed to 0.01 GiB, beside the block that is never given out: other lengths differ."""
    text = (DATA / "logs_corpus" / "vllm-refused-length.log").read_text(encoding="utf-8")
    blocks = fit_boot(read_boot(text), BesideLog(gpu="h200")).plan.blocks
    ends = [blocks.longest_context(int((6.0 + end) * 2**30) // blocks.nbytes + 1) for end in (-0.005, 0.005)]
    lengths = {ends[0]: "same", ends[1]: "same", ends[0] - 1: "differs", ends[1] + 1: "differs"}
    for length, verdict in lengths.items():
        printed = re.sub(r"length is \d+", f"length is {length}", text)
        rows = fit_boot(read_boot(printed), BesideLog(gpu="h200")).held.rows
        (row,) = (row for row in rows if row.title == "longest that fits")
        assert (row.verdict, row.unit) == (verdict, "tokens"), length


def test_a_start_that_fails_before_memory_is_printed_is_read() -> None:
    """No memory, no verdict of ours on the failure."""
    lines = (DATA / "logs_corpus" / "vllm-refused-length.log").read_text(encoding="utf-8").splitlines(True)
    error = "(EngineCore pid=9) ERROR 09-03 10:13:02 [core.py:1001] ValueError: No valid attention backend found\n"
    found = fit_boot(read_boot("".join((*lines[:2], error))), BesideLog(gpu="h200"))
    assert found.boot.refusal and not found.held.rows


def test_columns_of_a_sweep_say_whose_they_are() -> None:
    whose = {column.name: column.whose for column in COLUMNS}
    assert {name for name, of in whose.items() if of == "GPU"} >= {"num_blocks", "block_size", "block_bytes"}
    assert whose["request_blocks"] == whose["fixed_blocks"] == "request" and whose["max_num_seqs"] == "worker"


def test_the_blocks_of_a_refusal_are_held_to_the_printed_memory() -> None:
    lines = (DATA / "logs_corpus" / "vllm-refused-length.log").read_text(encoding="utf-8").splitlines(True)
    error = (
        "(EngineCore pid=9) ERROR 09-03 10:13:02 [core.py:1001] ValueError: max_num_seqs (4096) exceeds available Mamba"
    )
    error += " cache blocks ({}). Each decode request requires one.\n"
    blocks = fit_boot(read_boot("".join(lines)), BesideLog(gpu="h200")).plan.blocks
    low, high = (blocks.count(int((6.0 + end) * 2**30)) for end in (-0.005, 0.005))
    for count, verdict in {low: "same", high: "same", low - 1: "differs", high + 1: "differs"}.items():
        boot = read_boot("".join((*lines[:3], error.format(count))))
        (row,) = (row for row in fit_boot(boot, BesideLog(gpu="h200")).held.rows if row.title == "blocks")
        assert (row.verdict, row.unit) == (verdict, "blocks"), count


def test_a_profile_of_ones_own_changes_one_source_and_keeps_the_others(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "0.33.0"\n[sources]\nbatches = "mine.py:1"\n')
    mine, release = load_profile(str(file)), load_profile("0.33.0")
    assert mine.source("batches") == "mine.py:1 at 0.33.0" and mine.source("ring") == release.source("ring")
    file.write_text('base = "0.33.0"\n[sources]\nbatches = 5\n')
    load_profile.cache_clear()
    with pytest.raises(InputError, match=r"sources\.batches = 5: it takes text"):
        load_profile(str(file))
