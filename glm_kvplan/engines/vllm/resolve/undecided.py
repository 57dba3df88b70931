"""The flags that no rule decides: as they are given, or at vLLM's own defaults."""

from collections.abc import Mapping

from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.flags import FLAGS
from glm_kvplan.engines.vllm.profile import EngineProfile

# What stands for a flag that is not given where vLLM decides by the model, not by the card or by other flags.
_BY_MODEL: Mapping[str, tuple[object, str]] = {
    "enable_chunked_prefill": (True, "on for models that generate"),
    "disable_hybrid_kv_cache_manager": (False, "the model's layers need several kinds of block"),
    "quantization": (None, "as the checkpoint's config.json says"),
    "speculative_config": (None, "nothing drafts"),
    "kv_cache_memory_bytes": (None, "not given: vLLM profiles what is left"),
    "num_gpu_blocks_override": (None, "not given: as many as the memory holds"),
}


def every_choice(deployment: Deployment, given: Mapping[str, object], profile: EngineProfile) -> tuple[Choice, ...]:
    """A choice for every flag that the release has, in the table's order."""
    decided = {choice.flag: choice for choice in deployment.choices}
    source = f"engine/arg_utils.py at {profile.base_release}"
    found = []
    for row in FLAGS:
        value = given.get(row.name)
        if row.name in decided:
            found.append(decided[row.name])
        elif value is not None:
            found.append(Choice(row.name, value, True, "given", ""))
        elif not row.exists_in(profile.base_release):
            continue
        elif row.name in _BY_MODEL:
            found.append(Choice(row.name, _BY_MODEL[row.name][0], False, _BY_MODEL[row.name][1], ""))
        else:
            reason = "not given" if row.default is None else "vLLM's default"
            found.append(Choice(row.name, row.default, False, reason, "" if row.default is None else source))
    return tuple(found)
