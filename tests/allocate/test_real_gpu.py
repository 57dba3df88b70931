"""Allocation on a real GPU, with both of torch's ways to grow; skipped where there is none."""

import os
import subprocess
import sys

import pytest
import torch
from paths import ROOT
from test_validate import run, tensor

from glm_kvplan.allocate.allocation import Allocation
from glm_kvplan.allocate.device import available_memory, find_device
from glm_kvplan.allocate.device_failures import AllocationError
from glm_kvplan.units import GIB

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]

ELSEWHERE = """
import sys
sys.path[:0] = ["tests", "tests/allocate"]
from test_validate import run
found = run("cuda")
assert found.ok
assert [measure.explained for measure in found.measures[:3]] == [True] * 3, found.measures
assert "expandable" in found.measures[2].explanation
"""
FAILING = """
import torch
from glm_kvplan.allocate.device import Device
from glm_kvplan.allocate.device_failures import as_failure
try:
    torch.zeros(4, device="cuda")[torch.tensor([1 << 40], device="cuda")].sum().item()
except RuntimeError as error:
    print(type(as_failure(error, Device("cuda:0", ""), 0)).__name__)
"""


def elsewhere(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_measures() -> None:
    found = run("cuda")
    assert found.ok
    requested, allocated, reserved, driver = found.measures
    assert requested.difference == 0
    assert allocated.explained and reserved.explained
    assert driver.nbytes is not None and driver.nbytes >= (reserved.nbytes or 0)


def test_measures_with_expandable_segments() -> None:
    elsewhere(
        ELSEWHERE, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True", PYTORCH_ALLOC_CONF="expandable_segments:True"
    )


def test_everything_is_given_back() -> None:
    target = find_device("auto")
    before = torch.cuda.memory_reserved(target.name)
    run(target.name)
    assert torch.cuda.memory_reserved(target.name) == before


def test_out_of_memory_is_one_line_and_frees() -> None:
    target = find_device("auto")
    free = available_memory(target)
    before = torch.cuda.memory_reserved(target.name)
    assert free is not None
    with pytest.raises(AllocationError, match="everything was freed"):
        Allocation(target).take((tensor(GIB, free // GIB + 2),), touch=False)
    assert torch.cuda.memory_reserved(target.name) == before
    assert (available_memory(target) or 0) > free - GIB


def test_a_failing_kernel_is_no_lack_of_memory() -> None:
    assert elsewhere(FAILING).strip() == "DeviceFailedError"
