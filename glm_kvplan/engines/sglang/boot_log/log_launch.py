"""From the arguments a server printed, all resolved, back to flags that resolve to the same deployment."""

from collections.abc import Mapping

from glm_kvplan.engines.sglang.boot_log.boot import Boot, logged_memory
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.gpu import known_gpus

# Printed, but no flag of the memory model, or forced by the engine whatever is given.
_NOT_FLAGS = ("model_path", "revision", "device", "page_size", "hicache_host_memory_fraction")
# The smallest part of a card's memory that was ever seen free before the load.
_LEAST_FREE = 0.94
_ROCM_KERNELS = ("triton", "aiter")


def flags_of(arguments: Mapping[str, object]) -> dict[str, object]:
    """Launch flags with the meaning of the printed arguments.

    The engine prints its chunk divided by the attention-DP width, and in 0.5.22 and later the width itself under
    another name (arg_groups/parallel_hook.py:255-267 at 0.5.21, :39-60 at 0.5.22). A HiCache ratio that the engine
    chose is told by its memory fraction, which an explicit one clears (mem_cache/hicache_auto_size.py:83-90).
    """
    flags = {
        name: value
        for name, value in arguments.items()
        if name not in _NOT_FLAGS and value is not False and value != "auto"
    }
    width = attention_width(arguments)
    for name in ("attn_dp_size", "enable_dp_attention"):
        flags.pop(name, None)
    if width > 1:
        flags.update(dp_size=width, enable_dp_attention=True)
        chunk = flags.get("chunked_prefill_size")
        if isinstance(chunk, int) and chunk > 0:
            flags["chunked_prefill_size"] = chunk * width
    if flags.get("mm_feature_transport") == "cpu":
        del flags["mm_feature_transport"]
    if arguments.get("enable_multimodal") is True:
        flags.pop("enable_multimodal")
    _host_cache(flags, arguments)
    if flags.get("disaggregation_mode") == "null":
        del flags["disaggregation_mode"]
        if not flags.get("enable_pd_role_switch"):
            flags.pop("disaggregation_decode_extra_slots", None)
    return flags


def attention_width(arguments: Mapping[str, object]) -> int:
    """The attention-DP width, whichever field holds it."""
    width = arguments.get("attn_dp_size")
    if isinstance(width, int) and width > 1:
        return width
    size = arguments.get("dp_size")
    return size if arguments.get("enable_dp_attention") is True and isinstance(size, int) else 1


def _host_cache(flags: dict[str, object], arguments: Mapping[str, object]) -> None:
    if not flags.get("enable_hierarchical_cache"):
        for name in [name for name in flags if name.startswith("hicache_")]:
            del flags[name]
        return
    size = flags.get("hicache_size")
    if not size:
        flags.pop("hicache_size", None)
    if size or arguments.get("hicache_host_memory_fraction") is not None:
        flags.pop("hicache_ratio", None)


def environment_of(boot: Boot, vendor: str) -> dict[str, str]:
    """The engine's switches that the log shows the effect of: pages of more than one token on ROCm need aiter."""
    page = boot.arguments.get("page_size")
    if vendor == "rocm" and (page is None or (isinstance(page, int) and page > 1)):
        return {"SGLANG_USE_AITER": "1"}
    return {}


def likely_gpu(boot: Boot) -> str | None:
    """The card, by its memory and its kernels; None where nothing tells. A log never names it.

    With the arguments resolved, the card decides little: its maker, and what is free before the load.
    """
    arguments = boot.arguments
    rocm = arguments.get("dsa_decode_backend") in _ROCM_KERNELS
    fp8 = arguments.get("kv_cache_dtype") == "fp8_e4m3"
    blackwell = fp8 and "trtllm" in (arguments.get("dsa_prefill_backend"), arguments.get("dsa_decode_backend"))
    memory = logged_memory(boot)
    cards = [(key, gpu) for key, gpu in known_gpus().items() if (gpu.vendor == "rocm") == rocm]
    if memory is not None:
        fitting = [
            (gpu.memory_mib, blackwell and gpu.capability[0] < 10, len(key), key)
            for key, gpu in cards
            if _LEAST_FREE * gpu.memory_mib / 1024 <= memory.pre_gib <= gpu.memory_mib / 1024
        ]
        if fitting:
            return min(fitting)[-1]
    if rocm and cards:
        return cards[-1][0]
    return "b200" if blackwell else None


# The engine wants these all or none.
_TOGETHER = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
# What a card decides: kept where the card is only guessed.
_OF_THE_CARD = ("kv_cache_dtype", "dsa_prefill_backend", "dsa_decode_backend", "mem_fraction_static")


def shortest_flags(plan: Plan, keep_cards_choices: bool) -> dict[str, object]:
    """The flags of `plan` without those that the engine would fill in the same way by itself.

    What is left is what a person would have typed; the defaults stay free to move with the next change.
    """
    names = [(name,) for name in plan.flags if name not in _TOGETHER]
    for group in (*names, _TOGETHER):
        if keep_cards_choices and group[0] in _OF_THE_CARD:
            continue
        try:
            without = plan.with_flags(**dict.fromkeys(group))
        except KvplanError:
            continue
        if without.deployment == plan.deployment:
            plan = without
    return dict(plan.flags)
