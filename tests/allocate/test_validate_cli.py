"""`kvplan pools` and `kvplan validate` as a user meets them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import run

from glm_kvplan.allocate import allocation as allocate
from glm_kvplan.show.progress import bytes_bar

SMALL = (
    *("--tp-size", "8", "--context-length", "8192", "--max-total-tokens", "1024"),
    *("--max-mamba-cache-size", "10", "--max-running-requests", "2"),
)


def test_pools_json_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "pools", *SMALL, "--json")
    document: dict[str, Any] = json.loads(out)
    assert code == 0
    assert document["schema"] == "glm-kvplan/pools"
    on_device = sum(tensor["bytes"] for tensor in document["tensors"] if tensor["place"] == "device")
    assert document["allocated_bytes"] == on_device
    assert document["charged_bytes"] + sum(part["bytes"] for part in document["difference"]) == on_device
    assert document["unexplained_bytes"] == 0
    # 11 x (1024 + 64) rows of 512 bf16 elements, from the flags above
    assert next(t["bytes"] for t in document["tensors"] if t["name"] == "kv_buffer") == 11 * 1088 * 1024


def test_pools_of_a_pipeline_rank(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "pools", *SMALL, "--pp-size", "2", "--pp-rank", "1", "--json")
    document = json.loads(out)
    assert (code, document["layers"]) == (0, [22, 45])
    assert next(t["count"] for t in document["tensors"] if t["name"] == "kv_buffer") == 6
    code, out, err = run(capsys, "pools", *SMALL, "--pp-size", "2", "--pp-rank", "2")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "kvplan: --pp-rank 2 must lie between 0 and 1"


def test_validate_on_the_cpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record = tmp_path / "record.md"
    code, out, _ = run(capsys, "validate", *SMALL, "--device", "cpu", "--keep-free", "0", "--json", "-o", str(record))
    document = json.loads(out)
    assert code == 0 and document["ok"] is True
    assert document["predicted_bytes"] == document["taken_bytes"] == sum(t["bytes"] for t in document["tensors"])
    assert [measure["name"] for measure in document["measures"]] == ["framework: storages", "driver: resident memory"]
    text = record.read_text(encoding="utf-8")
    assert f"**equal to the byte: {document['taken_bytes']:,} B in" in text
    assert "| `temporal_state` | 1 | float32 | `[34, 11, 8, 128, 128]` |" in text


def test_the_verdict_is_the_exit_code(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(capsys, "validate", *SMALL, "--device", "meta")[0] == 0
    taken = allocate.Allocation.taken

    def without_tails(self: allocate.Allocation) -> dict[str, allocate.Taken]:
        return {name: found for name, found in taken(self).items() if name != "compress_tail_k"}

    monkeypatch.setattr(allocate.Allocation, "taken", without_tails)
    code, out, _ = run(capsys, "validate", *SMALL, "--device", "meta")
    assert code == 1
    assert "absent" in out and "not equal: 1 of" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--device", "gpu"), "--device 'gpu' is not known"),
        (("--device", "cpu", "--keep-free", "lots"), "--keep-free: 'lots' is not a size"),
        (("--device", "cpu", "--keep-free", "200000GiB"), "are free after --keep-free"),
        (("-o", "/nowhere/at/all.md"), "not a file in a directory that exists"),
        (("--with", "vllm"), "--with 'vllm' is not known"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "validate", *SMALL, *words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1 and says in err


def test_what_the_engine_refuses_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "validate", *SMALL, "--max-total-tokens", "64", "--max-mamba-cache-size", "4")
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1 and "serve no request" in err


def test_without_torch_one_line_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it now fails
    code, out, err = run(capsys, "validate", *SMALL)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1 and "pip install torch" in err


def test_pools_needs_no_torch() -> None:
    probe = "import sys; sys.modules['torch'] = None; from glm_kvplan.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", probe, "pools", *SMALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "kv_buffer" in done.stdout


def test_ctrl_c_frees_and_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[bool] = []
    release = allocate.Allocation.release

    def interrupt(self: allocate.Allocation, *_: object) -> None:
        raise KeyboardInterrupt

    def watched(self: allocate.Allocation) -> None:
        release(self)
        freed.append(not self.taken())

    monkeypatch.setattr(allocate.Allocation, "_zero", interrupt)
    monkeypatch.setattr(allocate.Allocation, "release", watched)
    code, out, err = run(capsys, "validate", *SMALL, "--device", "cpu", "--keep-free", "0")
    assert (code, out) == (130, "")
    assert err == "kvplan: interrupted; everything was freed\n"
    assert freed and all(freed)


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with bytes_bar("allocating") as (begin, advance):
        begin(100)
        advance(100)
    assert capsys.readouterr() == ("", "")


def test_without_the_engine_one_line_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sglang", None)
    code, out, err = run(capsys, "validate", *SMALL, "--with", "sglang")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1 and "sglang does not import here" in err


ENGINE = os.environ.get("KVPLAN_SGLANG_PATH", "")

_STUB = """
from unittest.mock import MagicMock
__version__ = "0.0.0"
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return MagicMock(name=name)
"""


@pytest.mark.engine
@pytest.mark.skipif(not ENGINE, reason="opt-in: KVPLAN_SGLANG_PATH names an unpacked release (docs/validate.md)")
@pytest.mark.parametrize("place", ["cpu", "meta"])
@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--speculative-algorithm", "EAGLE"),
        ("--kv-cache-dtype", "fp8_e4m3"),
        ("--gpu", "b200", "--speculative-algorithm", "EAGLE"),
        ("--disaggregation-mode", "decode", "--disaggregation-decode-extra-slots", "3"),
        ("--mamba-ssm-dtype", "bfloat16", "--disable-radix-cache"),
        ("--speculative-algorithm", "EAGLE", "--enable-linear-replayssm-spec"),
        (
            *("--env", "SGLANG_ENABLE_PP_SPEC=1", "--speculative-algorithm", "EAGLE"),
            *("--pp-size", "3", "--disable-overlap-schedule"),
        ),
    ],
    ids=lambda flags: " ".join(flags) or "plain",
)
def test_the_engine_builds_the_same_tensors(tmp_path: Path, place: str, flags: tuple[str, ...]) -> None:
    """In a process of its own, with the engine on the path and a stub for torchvision, which the pools do not use."""
    for name in ("torchvision", "torchvision/io", "torchvision/transforms", "torchvision/transforms/v2"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "__init__.py").write_text(_STUB, encoding="utf-8")
    for name in ("torchvision/transforms/functional.py", "torchvision/transforms/v2/functional.py"):
        (tmp_path / name).write_text(_STUB, encoding="utf-8")
    path = os.pathsep.join([ENGINE, str(tmp_path), os.environ.get("PYTHONPATH", "")])
    program = "import sys; from glm_kvplan.cli import main; main(sys.argv[1:])"
    common = ("--engine", "installed", "--device", place, "--keep-free", "0", "--with", "sglang", "--json")
    done = subprocess.run(
        [sys.executable, "-c", program, "validate", *SMALL, *common, *flags],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    document = json.loads(done.stdout[done.stdout.index("{") :])
    assert document["built_by"].startswith("sglang ")
    assert document["ok"] is True and document["unexpected"] == []
