"""From the arguments a server printed, all resolved, back to flags that resolve to the same deployment."""

import json
from collections.abc import Mapping
from typing import Any

from glm_kvplan.engines.flag import Flag, check_value
from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.memory.gpu import Vendor


def flags_of(arguments: Mapping[str, object]) -> dict[str, object]:
    """Launch flags with the meaning of the printed arguments.

    The engine prints its chunk divided by the attention-DP width, and in 0.5.22 and later the width itself under
    another name (arg_groups/parallel_hook.py:314-332 at 0.5.23, :39-60 at 0.5.23). A HiCache ratio that the engine
    chose is told by its memory fraction, which an explicit one clears (mem_cache/hicache_auto_size.py:83-90 at 0.5.23).
    """
    flags = {name: given for name, value in arguments.items() if (given := _as_given(FLAG[name], value)) is not None}
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
    if flags.get("speculative_draft_model_path") == arguments.get("model_path"):  # the checkpoint's own draft layer
        flags.pop("speculative_draft_model_path", None)
    _host_cache(flags, arguments)
    if flags.get("disaggregation_mode") == "null":
        del flags["disaggregation_mode"]
        if not flags.get("enable_pd_role_switch"):
            flags.pop("disaggregation_decode_extra_slots", None)
    return flags


def _as_given(flag: Flag, printed: object) -> Any:
    """A printed value as one would give it; None where there is nothing to give.

    A value that no release known here takes matters only where pools follow from it: there it is refused later.
    """
    value = printed
    if flag.printed != "flag" or value is False or value == "auto":
        return None
    if flag.kind == "json" and isinstance(value, str):  # printed as it was typed
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if flag.name == "cuda_graph_config":
        value = _graphs(value)
    if flag.kind == "json" and not value:
        return None
    if "pools" not in flag.moves:
        try:
            check_value(flag, value)
        except InputError:
            return None
    return value


def _graphs(config: object) -> dict[str, dict[str, Any]]:
    """Of each phase's resolved graph settings the backend and the largest batch: nothing is sized by the others.

    A largest batch of -1 is that of a server without prefill chunks.
    """
    found: dict[str, dict[str, Any]] = {}
    for phase, settings in config.items() if isinstance(config, dict) else ():
        if isinstance(settings, dict):
            sizes = settings.get("bs")
            largest = max(sizes) if isinstance(sizes, list) and sizes else settings.get("max_bs")
            kept = {"backend": settings.get("backend"), "max_bs": largest}
            found[str(phase)] = {key: value for key, value in kept.items() if value is not None and value != -1}
    return found


def attention_width(arguments: Mapping[str, object]) -> int:
    """The attention-DP width, whichever field holds it."""
    width = arguments.get("attn_dp_size")
    if isinstance(width, int) and width > 1:
        return width
    size = arguments.get("dp_size")
    return size if arguments.get("enable_dp_attention") is True and isinstance(size, int) else 1


def _host_cache(flags: dict[str, object], arguments: Mapping[str, object]) -> None:
    for name in [name for name in flags if FLAG[name].under and not flags.get(FLAG[name].under)]:
        del flags[name]
    size = flags.get("hicache_size")
    if not size:
        flags.pop("hicache_size", None)
    if size or arguments.get("hicache_host_memory_fraction") is not None:
        flags.pop("hicache_ratio", None)


def environment_of(boot: Boot, vendor: Vendor) -> dict[str, str]:
    """The engine's switches that the log shows the effect of: pages of more than one token on ROCm need aiter."""
    page = boot.arguments.get("page_size")
    if vendor == "rocm" and (page is None or (isinstance(page, int) and page > 1)):
        return {"SGLANG_USE_AITER": "1"}
    return {}


def shortest_flags(plan: Plan, keep_cards_choices: bool) -> dict[str, object]:
    """The flags of `plan` without those that the engine would fill in the same way by itself.

    What is left is what a person would have typed; the defaults stay free to move with the next change.
    """
    groups: dict[str, list[str]] = {}
    for name in plan.flags:
        groups.setdefault(FLAG[name].together or name, []).append(name)
    for group in sorted(groups.values(), key=len):
        if keep_cards_choices and FLAG[group[0]].of_card:
            continue
        try:
            without = plan.with_flags(**dict.fromkeys(group))
        except KvplanError:
            continue
        if (without.deployment, without.deployment.warnings) == (plan.deployment, plan.deployment.warnings):
            plan = without
    return dict(plan.flags)
