"""HiCache in advice: no advised set asks for more host memory than there is; the sums are taken by hand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from running import run

from glm_kvplan.units import GIB

HICACHE = ("--engine", "0.5.23", "--gpu", "h200", "--enable-hierarchical-cache")
DP8 = ("--tp-size", "8", "--dp-size", "8", "--enable-dp-attention")
LOAD = ("--context", "0.8:8k,0.2:128k", "--concurrency", "100")
RESERVE = 10 * GIB  # mem_cache/pool_host/base.py:28 at 0.5.23
PAGE, KV, INDEX, STATE = 256, 11_264, 363, 147_619_840  # of 0.5.23: a token's rows and keys, a whole state


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = run(capsys, *words, "--json")
    assert code in (0, 1), err
    return json.loads(out)


def rank_bytes(tokens: int, slots: int, ratio: float, tp: int) -> int:
    """One rank's host pools by ratio, counted as docs/host.md has it: one page or slot more, of index keys two."""
    pages = int(tokens * ratio) // PAGE + 1
    keys = (pages + 1) * PAGE * INDEX
    return pages * PAGE * KV + (int(slots * ratio) + 1) * STATE // tp + keys


def size_bytes(size: int, device_kv: int, device_state: int, tp: int) -> int:
    """One rank's host pools by size in GB: dealt out as KV and states lie on the device."""
    share = device_kv / (device_kv + device_state)
    pages = int(size * share * 1e9 // KV) // PAGE + 1
    slots = int(size * (1 - share) * 1e9 // (STATE // tp)) + 1
    return pages * PAGE * KV + slots * (STATE // tp) + (pages + 1) * PAGE * INDEX


@pytest.mark.parametrize("host", [300, 600, 1000])
@pytest.mark.parametrize(("layout", "tp", "workers"), [(("--tp-size", "8"), 8, 1), (DP8, 1, 8)])
def test_an_advised_ratio_is_the_largest_that_the_host_holds(
    layout: tuple[str, ...], tp: int, workers: int, host: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "advise", *HICACHE, *LOAD, *layout, "--hicache-ratio", "4", "--host-gib", str(host))
    ratio, sizes = found["flags"]["hicache_ratio"], found["sizes"]
    assert found["holds"] and 0 < ratio < 4
    for more, fits in ((0.0, True), (0.001, False)):
        taken = 8 * rank_bytes(sizes["tokens"], sizes["state_slots"], ratio + more, tp)
        assert (taken <= host * GIB - RESERVE) is fits
    assert found["host"]["bytes_by_host"] == [8 * rank_bytes(sizes["tokens"], sizes["state_slots"], ratio, tp)]


def test_an_advised_size_is_the_largest_that_the_host_holds(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "advise", *HICACHE, *LOAD, "--tp-size", "8", "--hicache-size", "200", "--host-gib", "900")
    size = found["flags"]["hicache_size"]
    (stage,) = found["host"]["stages"]
    kv_gb, state_gb = stage["split_gb"]["kv"], stage["split_gb"]["mamba"]
    assert kv_gb + state_gb == pytest.approx(size)
    share = int(kv_gb * 1e9), int(state_gb * 1e9)
    for more, fits in ((0, True), (1, False)):
        assert (8 * size_bytes(size + more, *share, 8) <= 900 * GIB - RESERVE) is fits


def test_what_fits_or_lowers_itself_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    card = (*HICACHE, *LOAD, "--tp-size", "8")
    for words in (("--host-gib", "3000", "--hicache-ratio", "2"), ("--host-gib", "600")):
        found = document(capsys, "advise", *card, *words)
        assert found["holds"] and not {"hicache_ratio", "hicache_size"} & set(found["flags"])
        assert found["host"]["bytes_by_host"][0] <= int(words[1]) * GIB - RESERVE
    plain = document(capsys, "advise", "--engine", "0.5.23", "--gpu", "h200", "--tp-size", "8", *LOAD)
    assert plain["host"] is None and plain["flags"] == found["flags"]


@pytest.mark.parametrize("search", [("--tp-size", "8"), ("--gpus", "8")])
def test_where_no_pool_fits_it_is_a_no(search: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    words = ("advise", *HICACHE, *LOAD, *search, "--host-gib", "9")  # less than the engine's own reserve
    code, out, _ = run(capsys, *words)
    assert code == 1
    if "--gpus" in search:
        (layout,) = document(capsys, *words)["layouts"]
        assert (layout["limit"], layout["host"]["fits"]) == ("host memory", False)
    else:
        assert "no host pools fit a host" in " ".join(out.split())


@pytest.mark.parametrize("search", [("--tp-size", "8"), ("--gpus", "8")])
def test_host_memory_that_nobody_named_is_said(search: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "advise", *HICACHE, *LOAD, *search)
    said = " ".join(out.split())
    assert code == 0
    assert re.search(r"host pools of up to [\d,.]+ GB, held against nothing: --host-gib says how much a host has", said)
    _, out, _ = run(capsys, "advise", *HICACHE, *LOAD, *search, "--hicache-ratio", "1")
    assert "host pools of up to" not in out and "held against nothing" in out
    _, out, _ = run(capsys, "advise", "--gpu", "h200", *LOAD, *search)
    assert "host" not in out


@pytest.mark.parametrize("release", ["0.5.20", "0.5.23"])
def test_servers_share_a_host(release: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two servers of four GPUs: what each would take by itself is not what both may take together."""
    plan = tmp_path / "plan.kvplan.yaml"
    load = ("--context", "8k", "--concurrency", "40", "--gpus", "8", "--tp-size", "4")
    words = ("advise", *HICACHE, "--engine", release, *load, "--host-gib", "300")
    found = document(capsys, *words, "--save", str(plan))["best"]
    assert (found["servers"], found["hosts"]) == (2, 1) and found["flags"]["hicache_ratio"] < 2
    assert found["host"]["bytes"] <= 300 * GIB - RESERVE == found["host"]["available_bytes"]
    if release == "0.5.23":
        tokens, slots = found["sizes"]["tokens"], found["sizes"]["state_slots"]
        assert found["host"]["bytes"] == 8 * rank_bytes(tokens, slots, found["flags"]["hicache_ratio"], 4)
        assert 8 * rank_bytes(tokens, slots, found["flags"]["hicache_ratio"] + 0.001, 4) > 300 * GIB - RESERVE
    assert "--hicache-ratio" in found["command"]
    assert run(capsys, "check", str(plan))[0] == 0
    assert 'host_memory: "fits"' in plan.read_text(encoding="utf-8")
    alone = document(capsys, *words, "--gpus-per-host", "4")["best"]  # a host each
    assert alone["hosts"] == 2 and alone["host"]["bytes"] <= 300 * GIB - RESERVE
    assert alone["host"]["bytes"] * 2 > 300 * GIB - RESERVE


def test_other_layouts_are_held_to_the_host_too(capsys: pytest.CaptureFixture[str]) -> None:
    load = ("--context", "128k", "--concurrency", "100", "--tp-size", "8", "--hicache-ratio", "2", "--host-gib", "400")
    found = document(capsys, "advise", *HICACHE, *load)
    assert found["layouts"] and all(0 < each["changes"]["hicache_ratio"] < 2 for each in found["layouts"])
    free = document(capsys, "advise", *HICACHE, *load[:-2])
    assert [each["changes"] for each in free["layouts"]] == [
        {name: value for name, value in each["changes"].items() if name != "hicache_ratio"} for each in found["layouts"]
    ]


def test_host_memory_belongs_to_hicache(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "advise", "--gpu", "h200", "--tp-size", "8", "--host-gib", "100")
    assert code == 2 and "--enable-hierarchical-cache" in err
    code, _, err = run(capsys, "advise", "--host-gib", "100", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash")
    assert code == 2 and "vLLM's host memory is not planned here" in err
