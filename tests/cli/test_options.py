"""Options of kvplan's own that every command shares."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

KVPLAN = str(Path(sys.executable).with_name("kvplan"))


def kvplan(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KVPLAN, *words], capture_output=True, text=True, timeout=30, check=False)


def ledgers(*words: str) -> dict[str, dict[str, int]]:
    done = kvplan("estimate", "--json", *words)
    assert done.returncode == 0, done.stderr
    return {entry["name"]: entry for entry in json.loads(done.stdout)["stages"][0]["ledgers"]}


def test_the_row_layout_of_a_patched_build() -> None:
    assert ledgers("--kv-row-layout", "fp8_scaled")["latent_kv"]["bytes_per_unit"] == 5808
    assert ledgers("--kv-row-layout", "fp8_raw")["latent_kv"]["bytes_per_unit"] == 5632


def test_a_switch_of_the_server() -> None:
    # ENGINE_MODEL 1.4: an fp32 convolution window doubles the 147,456 bytes of each of 34 layers
    plain = ledgers()["kda_state"]["bytes_per_unit"]
    wide = ledgers("--env", "SGLANG_MAMBA_CONV_DTYPE=float32")["kda_state"]["bytes_per_unit"]
    assert wide - plain == 34 * 147456


def test_reserve_and_payload_of_the_indexer_are_two_numbers() -> None:
    index = ledgers()["indexer"]
    assert (index["bytes_per_unit"], index["written_bytes_per_unit"]) == (1452, 363)


@pytest.mark.parametrize("words", [("--env", "HOME=/root"), ("--env", "SGLANG_USE_AITER"), ("--kv-row-layout", "x")])
def test_what_cannot_be_used_is_one_line(words: tuple[str, ...]) -> None:
    done = kvplan("estimate", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tp-size", "x"), "--tp-size 'x' is not accepted; it takes a whole number"),
        (("--tp-size", "0"), "--tp-size 0 is not accepted; it takes a whole number from 1 to 65536"),
        (("--cuda-graph-bs-decode", "1,x"), "--cuda-graph-bs-decode 'x' is not accepted; it takes whole numbers"),
        (("--kv-row-layout", "x"), "--kv-row-layout 'x' is not accepted; it takes one of bf16, fp8_scaled, fp8_raw"),
        (("--max-total-tokens", "1Kb"), "such as 128Ki"),
        (("--tp-sise", "4"), "--tp-size"),
        (("--enable-pd-role-switch", "--engine", "0.5.20"), "does not exist in 0.5.20; leave it out"),
    ],
)
def test_a_wrong_value_says_what_is_accepted(words: tuple[str, ...], says: str) -> None:
    assert says in kvplan("estimate", *words).stderr


def test_without_the_script() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "glm_kvplan", "info", "gpus"], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, kvplan("info", "gpus").stdout, "")
