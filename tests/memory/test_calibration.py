"""One boot of the user's own in the place of estimates: what of it holds for the next plan, and what does not."""

from dataclasses import replace
from math import hypot
from pathlib import Path
from typing import Any

import pytest
from boots import BOOTS, LOGS, boots_of, held, read_log

from glm_kvplan.answers.check.calibrating_boot import read_calibration
from glm_kvplan.answers.check.checking import check_file
from glm_kvplan.cli import main
from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.boot_log.calibrated import of_boot
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.engines.sglang.sizing.transients import graph_bytes
from glm_kvplan.errors import InputError
from glm_kvplan.memory.budget import memory_budget
from glm_kvplan.memory.calibration import Calibration
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.memory.weights import WeightEstimate
from glm_kvplan.units import GIB

B200 = find_gpu("b200")
PLACED = Placement(gpus=4, attn_tp=4, tp=4, moe=4, shared=4, dense_tp=4, lm_head=4, draft=True, mtp_draft=True)
BOOT = Calibration("mine.log", B200, PLACED, "nvfp4", 176.0, 45.0, 4.0, 0.2, 0.5)
WEIGHTS = WeightEstimate(
    "nvfp4", (int(44.8 * GIB),), (int(3.9 * GIB),), ((),), ((),), (GIB // 2,), 0.3, "seen", ()
)  # fmt: skip
FLAGS = {
    "tp_size": 4, "ep_size": 4, "quantization": "modelopt_fp4", "kv_cache_dtype": "fp8_e4m3",
    "dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm", "moe_runner_backend": "flashinfer_cutlass",
    "speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4, "max_running_requests": 96, "max_mamba_cache_size": 700,
    "context_length": 524288, "chunked_prefill_size": 4096, "mem_fraction_static": 0.75,
}  # fmt: skip


def kvplan(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert isinstance(left.value.code, int)
    return left.value.code


def hows(placed: Placement, calibration: Calibration = BOOT, **given: Any) -> tuple[list[str], float]:
    found = memory_budget(placed, gpu=B200, weights=WEIGHTS, calibration=calibration, **given)
    return [part.how for part in found.parts], found.error_gib


def test_everything_of_an_equal_placement() -> None:
    found = memory_budget(PLACED, gpu=B200, weights=WEIGHTS, calibration=BOOT)
    total = B200.memory_mib / 1024
    assert [part.gib for part in found.parts] == pytest.approx([total, 176 - total, -45.0, -4.0, -0.2])
    assert [part.how for part in found.parts] == ["given", *["calibrated"] * 4]
    assert {part.source for part in found.parts[1:]} == {"mine.log"}
    assert (found.how, found.certainty, found.graphs_off_gib) == ("calibrated", "estimated", 0.5)
    assert found.error_gib == pytest.approx(hypot(0.2, 0.05))
    assert found.calibrated == (
        "calibrated by mine.log: driver, context and communication, target weights, draft weights, left by loading, "
        "CUDA graphs; the rest is estimated",
    )
    assert memory_budget(PLACED, gpu=B200, weights=WEIGHTS).calibrated == ()


def test_what_does_not_hold_elsewhere_is_estimated() -> None:
    """Of another width: its weights. Between one GPU and several: what it took before the load, too."""
    same = ["calibrated"] * 4
    assert hows(PLACED)[0][1:] == same
    assert hows(PLACED._replace(draft=False, mtp_draft=False))[0][1:] == same[:3]
    assert hows(PLACED._replace(swizzled_copies=True))[0][1:] == same  # within 1 % of the estimate: the same weights
    far = BOOT._replace(weights_gib=50.0)
    assert hows(PLACED, far)[0][1:] == same  # the same checkpoint, whatever it weighs
    assert hows(PLACED, far._replace(checkpoint="fp8"))[0][1:] == ["calibrated", *["estimated"] * 3]
    assert hows(PLACED._replace(swizzled_copies=True), far)[0][1:] == ["calibrated", *["estimated"] * 3]
    assert hows(PLACED._replace(tp=8, gpus=8))[0][1:] == ["calibrated", *["estimated"] * 3]
    assert hows(PLACED._replace(gpus=1))[0][1:] == ["estimated", *same[1:]]
    assert hows(PLACED, BOOT._replace(draft_weights_gib=None))[0][1:] == [*same[:2], "estimated", "estimated"]
    two = (range(20), range(20, 45))
    assert hows(PLACED._replace(stages=two), BOOT._replace(placement=PLACED._replace(stages=two)))[0][2] == "estimated"


def test_what_the_user_gives_wins() -> None:
    assert hows(PLACED, weights_gib=40.0)[0] == ["given", "calibrated", "given", "calibrated", "estimated"]
    assert hows(PLACED, draft_weights_gib=4.0)[0][3] == "given"
    assert hows(PLACED, pre_gib=170.0)[0][0] == "measured"
    found = memory_budget(PLACED, gpu=B200, pre_gib=170.0, available_gib=99.0, weights=WEIGHTS, calibration=BOOT)
    assert (found.how, found.available_gib) == ("measured", 99.0)


def test_a_boot_of_another_card_is_refused() -> None:
    with pytest.raises(InputError, match=r"--calibrate mine.log is a boot on B200 .* and the plan is for H200"):
        memory_budget(PLACED, gpu=find_gpu("h200"), weights=WEIGHTS, calibration=BOOT)
    renamed = replace(B200, name="my card")
    assert memory_budget(PLACED, gpu=renamed, weights=WEIGHTS, calibration=BOOT).how == "calibrated"


def test_one_public_boot_foretells_another_of_its_server() -> None:
    """Judged by another boot than the one it was read from: 700 slots and 6,389,760 tokens were printed."""
    calibration = read_calibration(str(LOGS / "b200x4-mtp6-frac80.log"))
    made = plan(FLAGS, gpu="b200", engine="0.5.20")
    found = boot(made, MemoryGiven(checkpoint="nvfp4-mlp", calibration=calibration))
    assert found.solution.sizes == PoolSizes(6_389_952, 700, 96)
    assert found.budget.error_gib < 0.25
    least, most = found.span
    assert least is not None
    assert most is not None
    assert least.tokens < 6_389_760 < most.tokens
    assert most.tokens - least.tokens < 0.01 * 6_389_760
    assert found.weight_notes[0].startswith("calibrated by ")


def test_graphs_of_a_log_that_reaches_the_ready_server() -> None:
    lines = (LOGS / "example-b-0.5.21.log").read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if "available_gpu_mem" in line)
    lines.insert(at, f"{lines[at].partition(']')[0]}] Memory pool end. avail mem=30.15 GB")
    answer = reconcile(read_log(lines)[-1])
    calibration = of_boot(answer, "it")
    pools, ready = 30.15, 26.40
    sizes = answer.sizing.sizes
    assert sizes is not None
    estimated = graph_bytes(answer.plan.deployment, sizes.running_requests) / GIB
    assert calibration.graphs_off_gib == pytest.approx(pools - ready - estimated)
    assert calibration.graphs_off_gib
    again = boot(answer.plan, MemoryGiven(calibration=calibration))
    assert again.needs is not None
    graphs = next(item for item in again.needs.items if item.name == "CUDA graphs")
    assert graphs.nbytes / GIB == pytest.approx(pools - ready, abs=1e-6)
    assert graphs.source == "a boot's own, grown as estimated"
    assert of_boot(held("b200x4-mtp6-frac80"), "it").graphs_off_gib is None  # cut before that


def test_the_saved_file_carries_the_graphs(tmp_path: Path) -> None:
    lines = (LOGS / "example-b-0.5.21.log").read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if "available_gpu_mem" in line)
    lines.insert(at, f"{lines[at].partition(']')[0]}] Memory pool end. avail mem=37.33 GB")
    log, saved = tmp_path / "mine.log", tmp_path / "mine.kvplan.yaml"
    log.write_text("\n".join(lines))
    assert kvplan("reconcile", str(log), "--save", str(saved)) == 0
    one, other = read_calibration(str(log)), read_calibration(str(saved))
    assert one.graphs_off_gib == pytest.approx(other.graphs_off_gib, abs=1e-6)
    held_again = check_file(str(saved))  # the file's own server takes what was read
    graphs = next(item for item in held_again.answer.needs.items if item.name == "CUDA graphs")
    assert graphs.nbytes / GIB == pytest.approx(37.33 - 26.40, abs=1e-6)


def test_the_saved_file_says_the_same_where_no_graphs_were_printed(tmp_path: Path) -> None:
    log, saved = str(LOGS / "example-b-0.5.21.log"), tmp_path / "mine.kvplan.yaml"
    assert kvplan("reconcile", log, "--save", str(saved)) == 0
    one, other = read_calibration(log), read_calibration(str(saved))
    assert other.left_gib == pytest.approx(one.left_gib, abs=1e-6)
    assert other._replace(source="", left_gib=0, graphs_off_gib=None) == one._replace(
        source="", left_gib=0, graphs_off_gib=None
    )
    assert other.graphs_off_gib is None


def test_what_does_not_say_enough(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not tell the card: `kvplan reconcile"):
        read_calibration(str(LOGS / "mi355x-nospec.log"))
    (log,) = boots_of(BOOTS / "h20-3e-older-build.log")
    answer = reconcile(log, BesideLog(flags={"tp_size": 8}, gpu="h20-3e"))
    with pytest.raises(InputError, match="prints no memory before and after the load"):
        of_boot(answer, "it")
    empty = tmp_path / "plan.yaml"
    empty.write_text("gpu: b200\nflags: {tp_size: 4}\nmemory: {pre_gib: 170}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"takes memory.pre_gib, available_gib and target_weights_gib"):
        read_calibration(str(empty))


def test_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    mine = ["--calibrate", str(LOGS / "example-b-0.5.21.log")]
    assert kvplan("solve", "--gpu", "b200", "--tp-size", "4", *mine) == 0
    said = capsys.readouterr().out
    assert "(calibrated, +-" in said
    assert "! calibrated by " in said
    assert kvplan("solve", "--gpu", "h200", *mine) == 2
    assert "give --gpu, or a boot of that card" in capsys.readouterr().err.replace("\n", " ")


def test_a_boot_of_vllm_calibrates_nothing_and_says_what_to_give(tmp_path: Path) -> None:
    file = tmp_path / "v.yaml"
    file.write_text("engine: vllm\ngpu: H200\nflags: {tensor_parallel_size: 4}\nmemory: {available_gib: 84}\n")
    with pytest.raises(InputError, match="give --available-gib"):
        read_calibration(str(file))


@pytest.mark.parametrize(("names", "gpu"), [(("b-0.5.21", "a-0.5.20"), "H200"), (("a-0.5.20", "b-0.5.21"), "B200")])
def test_the_last_boot_of_a_log_calibrates(names: tuple[str, str], gpu: str, tmp_path: Path) -> None:
    log = tmp_path / "boots.log"
    log.write_bytes(b"".join((LOGS / f"example-{name}.log").read_bytes() for name in names))
    found = read_calibration(str(log))
    assert (found.gpu.name, found.source) == (gpu, str(log))
