"""Which card wrote a log: by its memory and its kernels, or none."""

import pytest
from boots import BOOTS, LOGS, boots_of, read_log

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.boot_log.likely_card import likely_card
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.memory.gpu import find_gpu

FLAGS = {
    "quantization": "modelopt_fp4", "context_length": 1048576, "mem_fraction_static": 0.85, "max_running_requests": 16,
    "cuda_graph_max_bs_decode": 16, "chunked_prefill_size": 8192, "max_prefill_tokens": 8192,
    "kv_cache_dtype": "fp8_e4m3", "max_mamba_cache_size": 48, "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 5, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 6,
}  # fmt: skip


def boot(*lines: str) -> Boot:
    return read_log(lines)[0]


def free(gib: str, kernels: str | None = None) -> tuple[str, ...]:
    chosen = (
        () if kernels is None else (f"Set DSA backends for fp8_e4m3 KV Cache: prefill={kernels}, decode={kernels}.",)
    )
    return (
        *chosen,
        f"Load weight begin. avail mem={gib} GB",
        f"Load weight end. elapsed=1.0 s, type=X, avail mem={float(gib) - 9:.2f} GB, mem usage=9.00 GB.",
    )


@pytest.mark.parametrize("gpu", [None, "gb300-station", "gb300:256703"])
def test_a_dgx_station_is_no_h200(gpu: str | None) -> None:
    """248.90 GiB free and trtllm kernels: the same verdict with and without --gpu."""
    (log,) = boots_of(BOOTS / "gb300-station-mtp6.log")
    answer = reconcile(log, BesideLog(gpu=gpu, flags=FLAGS))
    assert answer.explained
    assert answer.plan.gpu.memory_mib == 256703
    assert (answer.gpu_guessed, answer.gpu_unknown) == (gpu is None, False)


@pytest.mark.parametrize(
    ("gib", "kernels", "name"),
    [
        ("176.25", "trtllm", "B200"),
        ("138.09", "flashmla_kv", "H200"),
        ("138.09", None, "H200"),
        ("94.00", "fa3", "H20 96GB"),
        ("94.00", "flashinfer_sparse_mla", "RTX PRO 6000 Blackwell"),
        ("83.00", "flashinfer_sparse_mla", "RTX 6000D"),
        ("274.00", "triton", "MI350X"),
        ("185.00", "triton", "MI300X"),
        ("185.00", "aiter", "MI300X"),
        ("178.00", "flashmla_kv", "B200"),
        ("178.00", "flashmla_sparse", "B200"),
        ("178.00", "tilelang", "B200"),
        ("138.09", "flashmla_sparse_q8", "H200"),
        ("138.09", "fa3", "H200"),
    ],
)
def test_cards_that_fit(gib: str, kernels: str | None, name: str) -> None:
    found = likely_card(boot(*free(gib, kernels)), {}, {})
    assert found is not None and found.known and found.gpu.name == name


@pytest.mark.parametrize(
    ("gib", "kernels", "capability"),
    [
        ("222.00", "trtllm", (10, 0)),
        ("138.09", "trtllm", (10, 0)),
        ("222.00", "flashmla_kv", (9, 0)),
        ("178.00", "flashmla_sparse_q8", (9, 0)),
        ("178.00", "fa3", (9, 0)),
        ("178.00", "flashinfer_sparse_mla", (12, 0)),
        ("600.00", None, (9, 0)),
    ],
)
def test_a_card_that_is_in_no_table(gib: str, kernels: str | None, capability: tuple[int, int]) -> None:
    found = likely_card(boot(*free(gib, kernels)), {}, {})
    assert found is not None and not found.known and found.gpu.name == "unknown card"
    assert found.gpu.capability == capability
    assert float(gib) < found.gpu.memory_mib / 1024 < 1.03 * float(gib)


@pytest.mark.parametrize(("part", "known"), [(0.99999, True), (1.0001, False), (0.94001, True), (0.9399, False)])
def test_the_part_of_a_card_that_is_free_before_the_load(part: float, known: bool) -> None:
    """All of it at most; the least that was ever seen is 94 %. No smaller card of its kind is in the table."""
    card = find_gpu("b200")
    found = likely_card(boot(*free(f"{card.memory_mib * part / 1024:.5f}", "trtllm")), {}, {})
    assert found is not None and (found.known and found.gpu.name == card.name) == known


def test_without_a_reading_nothing_is_known() -> None:
    (log,) = boots_of(LOGS / "mi355x-nospec.log")
    found = likely_card(log, {}, {})
    assert found is not None and not found.known and found.gpu.vendor == "rocm"
    answer = reconcile(log)
    assert answer.gpu_unknown and answer.explained
    numbers = "chunked_prefill_size=1, max_prefill_tokens=1, max_running_requests=1, context_len=1"
    nothing = boot(f"max_total_num_tokens=64, {numbers}")
    assert likely_card(nothing, {}, {}) is None
    for tells in ({"moe_runner_backend": "aiter"}, {"dsa_decode_backend": "triton"}):
        found = likely_card(nothing, tells, {})
        assert found is not None and found.gpu.vendor == "rocm"
    found = likely_card(nothing, {"dsa_decode_backend": "tilelang"}, {"SGLANG_USE_AITER": "1"})
    assert found is not None and found.gpu.vendor == "rocm"
