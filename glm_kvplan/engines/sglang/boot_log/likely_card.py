"""Which card wrote a log: one that fits its memory and its kernels, or none that is known."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from glm_kvplan.engines.sglang.boot_log.boot import Boot, logged_memory
from glm_kvplan.memory.gpu import UNKNOWN_CARD, Gpu, known_gpus

# The smallest part of a card's memory that was ever seen free before the load, and the usual part.
_LEAST_FREE, _USUALLY_FREE = 0.94, 0.985
_Agrees = Callable[[Gpu], bool]


def _cuda(gpu: Gpu) -> bool:
    return gpu.vendor == "cuda"


# Kernels that only some cards run; tilelang runs on all (arg_groups/overrides.py:550-741 at 0.5.23).
_KERNELS: dict[str, _Agrees] = {
    "triton": lambda gpu: not _cuda(gpu),
    "aiter": lambda gpu: not _cuda(gpu),
    "trtllm": lambda gpu: gpu.blackwell,
    "fa3": lambda gpu: _cuda(gpu) and not gpu.blackwell,
    "flashinfer_sparse_mla": lambda gpu: gpu.capability[0] == 12,
    "flashmla_sparse": _cuda,
    "flashmla_kv": _cuda,
    "flashmla_sparse_q8": lambda gpu: _cuda(gpu) and gpu.capability[0] == 9,
}
_STAND_INS = ("h200", "b200", "mi355x", "rtxpro6000")


class LikelyCard(NamedTuple):
    """`known`: a card of the table fits all that the log says. Otherwise `gpu` stands in for one that is not."""

    gpu: Gpu
    known: bool


def likely_card(boot: Boot, flags: Mapping[str, object], environment: Mapping[str, str]) -> LikelyCard | None:
    """The card by the memory and the kernels that the log shows; None where it shows neither.

    A log never names its card. Of several that fit, the one with the least memory.
    """
    kernels = _kernels(boot, flags)
    rocm = (
        "aiter" in (flags.get("moe_runner_backend"), flags.get("attention_backend"))
        or "SGLANG_USE_AITER" in environment
    )
    tests = [_KERNELS[name] for name in kernels if name in _KERNELS]
    if rocm:
        tests.append(lambda gpu: not _cuda(gpu))
    cards = {key: gpu for key, gpu in known_gpus().items() if all(test(gpu) for test in tests)}
    memory = logged_memory(boot)
    if memory is None:
        stand_in = next((cards[key] for key in _STAND_INS if key in cards), None)
        return LikelyCard(stand_in, False) if tests and stand_in is not None else None
    memory_mib = memory.pre_gib * 1024
    fitting = [
        (gpu.memory_mib, len(key), key)
        for key, gpu in cards.items()
        if _LEAST_FREE * gpu.memory_mib <= memory_mib <= gpu.memory_mib
    ]
    if fitting:
        return LikelyCard(cards[min(fitting)[-1]], True)
    alike = next((cards[key] for key in _STAND_INS if key in cards), None) or known_gpus()[_STAND_INS[0]]
    unknown = replace(
        alike,
        name=UNKNOWN_CARD,
        memory_mib=int(memory_mib / _USUALLY_FREE),
        source=f"{memory.pre_gib:.2f} GiB were free before the load, on no card of the table",
    )
    return LikelyCard(unknown, False)


def _kernels(boot: Boot, flags: Mapping[str, object]) -> set[object]:
    """Names of the sparse kernels: as the engine printed them, resolved, or as the launch gives them."""
    chosen = boot.first("sparse_kernels") or {}
    found: set[object] = set(chosen.values())
    for name in ("dsa_prefill_backend", "dsa_decode_backend"):
        found |= {boot.arguments.get(name), flags.get(name)}
    return found
