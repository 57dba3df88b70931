"""Flags that change the cache in ways that are not planned: refused here, or said."""

from glm_kvplan.engines.vllm.flags import TABLE
from glm_kvplan.engines.vllm.resolve.site import Decisions
from glm_kvplan.errors import InputError


def unplanned(given: Decisions) -> None:
    """Raise InputError for flags under which the plan would be another one; warn of memory beside the cache."""
    dtype = given.text("dtype")
    if dtype not in ("auto", "bfloat16"):
        raise InputError(f"--dtype {dtype[:40]} is not planned here: bfloat16 is")
    if given.table("hf_overrides"):
        raise InputError("--hf-overrides changes the model that is planned; write the changed config.json, and --model")
    if given.table("attention_config").get("hisparse_config") is not None:
        raise InputError("--attention-config: hisparse_config is not planned here")
    if given.on("disable_hybrid_kv_cache_manager"):
        given.refuse("--disable-hybrid-kv-cache-manager: the model's layers do not share one kind of cache", "groups")
    beside = [row.option for row in TABLE if row.role == "beside" and given.value(row.name) not in (None, False, 0, {})]
    if beside:
        given.warnings.append(f"these take or free GPU memory that is not planned here: {', '.join(beside)}")
