"""The GPU table, the names people type, and nvidia-smi's listings."""

import os
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import GPUS, find_gpu, gpu_of_listing, known_gpus

# Total MiB as nvidia-smi, rocminfo or (GB10) torch reports it, and the compute capability.
REPORTED = {
    "A100 80GB": (81920, (8, 0)),
    "H100": (81559, (9, 0)),
    "H800": (81559, (9, 0)),
    "H20": (97871, (9, 0)),
    "H20 141GB": (143771, (9, 0)),
    "H200": (143771, (9, 0)),
    "GH200 480GB": (97871, (9, 0)),
    "GH200 144G HBM3e": (146831, (9, 0)),
    "B200": (183359, (10, 0)),
    "B300": (275040, (10, 3)),
    "GB200": (189471, (10, 0)),
    "GB300": (284208, (10, 3)),
    "DGX Station": (256703, (10, 3)),
    "RTX PRO 6000": (97887, (12, 0)),
    "NVIDIA RTX 6000D": (85651, (12, 0)),
    "GB10": (124546, (12, 1)),
    "MI300X": (201310208 // 1024, (9, 4)),
    "MI325X": (274861129728 // 2**20, (9, 4)),
    "MI350X": (309220868096 // 2**20, (9, 5)),
    "MI355X": (309220868096 // 2**20, (9, 5)),
}


@pytest.mark.parametrize("name", REPORTED)
def test_memory_is_what_the_driver_reports(name: str) -> None:
    gpu = find_gpu(name)
    assert (gpu.memory_mib, gpu.capability) == REPORTED[name]
    assert gpu.vendor == ("rocm" if name.startswith("MI") else "cuda")
    assert gpu.integrated == (name == "GB10")
    assert gpu.source


def test_the_table_is_whole() -> None:
    assert len(known_gpus()) == len(REPORTED)
    spellings = []
    for key, entry in tomllib.loads(GPUS.read_text(encoding="utf-8")).items():
        for spelling in {key, entry["name"], *entry.get("aliases", ())}:
            assert find_gpu(spelling) == known_gpus()[key]
        spellings.append(entry["name"])
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *(("h100", "H100 80GB"), ("h100-80gb", "H100 80GB"), ("NVIDIA H100 80GB HBM3", "H100 80GB")),
        *(("rtx-pro-6000", "RTX PRO 6000 Blackwell"), ("RTXPRO6000", "RTX PRO 6000 Blackwell")),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell"),
        *(("dgx-spark", "GB10 (DGX Spark)"), ("NVIDIA GB10", "GB10 (DGX Spark)")),
        *(("h20-3e", "H20 141GB"), ("NVIDIA H20-3e", "H20 141GB"), ("h20-96gb", "H20 96GB")),
        *(("AMD Instinct MI300X", "MI300X"), ("a100-sxm4-80gb", "A100 80GB"), (" b200 ", "B200")),
        ("NVIDIA B300 SXM6 AC", "B300"),
        *(
            ("AMD Instinct MI325X", "MI325X"),
            ("mi350x", "MI350X"),
            ("h20 141gb", "H20 141GB"),
            ("H20-141GB", "H20 141GB"),
        ),
    ],
)
def test_spellings(typed: str, name: str) -> None:
    assert find_gpu(typed).name == name


def test_memory_can_be_given() -> None:
    gpu = find_gpu("h200:140000")
    assert (gpu.name, gpu.memory_mib, gpu.capability) == ("H200", 140000, (9, 0))
    assert gpu.source == "given: 140000 MiB"
    for typed in ("h200:", "h200:x", "h200:0", "h200:-1", "h200:1.5", "h200:99999999999", "h200:1:2", "h200:٣"):
        with pytest.raises(InputError, match="is not a memory in MiB"):
            find_gpu(typed)


@pytest.mark.parametrize(("typed", "near"), [("h10", "H100"), ("rtx pro 600", "RTX PRO 6000"), ("gb20", "GB200")])
def test_unknown_names_list_the_nearest(typed: str, near: str) -> None:
    with pytest.raises(InputError, match=f"is not known; nearest: .*{near}.*; known: a100, h100"):
        find_gpu(typed)


@given(st.text(max_size=30))
def test_any_name_is_found_or_refused(name: str) -> None:
    if name.strip().lower().startswith("local"):
        return
    try:
        find_gpu(name)
    except InputError as error:
        assert "\n" not in str(error)


def test_listings() -> None:
    listing = "NVIDIA H200, 143771, 9.0\nNVIDIA H200, 143771, 9.0\n"
    assert gpu_of_listing(listing) == find_gpu("h200").__class__(
        "H200", 143771, "cuda", (9, 0), False, "nvidia-smi on this machine"
    )
    # The smallest of the listed cards counts.
    mixed = gpu_of_listing("NVIDIA H200, 143771, 9.0\nNVIDIA H100 80GB HBM3, 81559, 9.0\n")
    assert mixed.memory_mib == 81559
    # No number from the driver: torch's total, from the table.
    spark = gpu_of_listing("NVIDIA GB10, [N/A], 12.1\n")
    assert (spark.memory_mib, spark.integrated, spark.capability) == (124546, True, (12, 1))
    other = gpu_of_listing("NVIDIA L40S, 46068, 8.9\n")
    assert (other.name, other.memory_mib, other.capability) == ("L40S", 46068, (8, 9))
    for bad in ("", "No devices were found\n", "NVIDIA L40S, [N/A], 8.9\n", "NVIDIA L40S, 46068, [N/A]\n", ",,\n"):
        with pytest.raises(InputError, match="--gpu local"):
            gpu_of_listing(bad)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in driver is a shell script")
def test_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="nvidia-smi is not on this machine"):
        find_gpu("local")
    program = tmp_path / "nvidia-smi"

    def answer(script: str) -> None:
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    answer("echo 'NVIDIA B200, 183359, 10.0'")
    assert find_gpu("local").memory_mib == 183359
    assert find_gpu("LOCAL:180000").memory_mib == 180000
    answer("echo 'driver not loaded' >&2; exit 9")
    with pytest.raises(InputError, match=r"failed \(9\): driver not loaded"):
        find_gpu("local")
