"""The KDA state: prefix caching, dtypes, and how many states a request holds."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.resolve.site import Decisions

PREFILL_BACKENDS = ("auto", "triton", "flashkda")


class StateCache(NamedTuple):
    """How a state is kept."""

    prefix_caching: bool
    conv_dtype: str
    state_dtype: str
    prefill_checkpoint: bool


def state_cache(given: Decisions) -> StateCache:
    """Prefix caching and the dtypes of a state. Raises RefusedError for what vLLM refuses."""
    profile = given.site.profile
    caching = given.on("enable_prefix_caching", True)
    given.keep("enable_prefix_caching", caching, "on for models with state layers", "prefix_caching")
    modes, mode = profile.cache_modes.split(), given.value("mamba_cache_mode")
    if mode is not None and not modes:
        given.warnings.append(f"--mamba-cache-mode has no effect in {profile.base_release}: prefix caching decides")
        if mode not in (FLAG["mamba_cache_mode"].choices_in(profile.base_release) or ()):
            given.warnings.append(f"--mamba-cache-mode {mode}: the command line does not take it; leave it out")
    elif mode is not None and mode not in modes:
        given.refuse(f"--mamba-cache-mode {mode} is not one of {', '.join(modes)}", "cache_mode")
    if given.value("mamba_block_size") is not None and not caching:
        given.refuse("--mamba-block-size needs prefix caching", "mamba_block_size")
    if caching and not given.on("enable_chunked_prefill", True):
        given.refuse("prefix caching of a state needs chunked prefill", "chunked_prefill")
    if given.on("use_replayssm"):
        given.refuse("--use-replayssm does not know this model", "replayssm")
    if caching and given.on("disable_chunked_mm_input"):
        given.refuse("--disable-chunked-mm-input does not go with prefix caching of a state", "chunked_images")
    if given.on("enable_mamba_cache_stochastic_rounding"):
        given.refuse("--enable-mamba-cache-stochastic-rounding needs a float16 state, which KDA has not", "replayssm")
    conv = given.text("mamba_cache_dtype")
    return StateCache(caching, "bfloat16" if conv == "auto" else conv, _state_dtype(given), _checkpoint(given, caching))


def _state_dtype(given: Decisions) -> str:
    asked = given.text("mamba_ssm_cache_dtype")
    if not given.site.profile.state_dtype_flag:
        if asked not in ("auto", "float32"):
            given.warnings.append(
                f"--mamba-ssm-cache-dtype {asked} changes nothing in {given.site.profile.base_release}: the KDA layers "
                "do not read it and keep float32 (they do from 0.32.0 on)"
            )
        given.decide("mamba_ssm_cache_dtype", "float32", "the KDA layers do not read the flag", "state_dtype")
        return "float32"
    if asked == "float16":
        given.refuse("--mamba-ssm-cache-dtype float16: the KDA state is float32 or bfloat16", "state_dtype")
    dtype = "float32" if asked == "auto" else asked
    given.keep("mamba_ssm_cache_dtype", dtype, "float32 unless asked otherwise", "state_dtype")
    return dtype


def _checkpoint(given: Decisions, caching: bool) -> bool:
    """Whether a prefill keeps a checkpoint of its own: FlashKDA's, where the release has it."""
    if not given.site.profile.prefill_checkpoint:
        return False
    asked = given.value("kda_prefill_backend") or given.table("additional_config").get("kda_prefill_backend", "auto")
    if asked not in PREFILL_BACKENDS:
        given.refuse(f"--kda-prefill-backend {asked}: this model takes {', '.join(PREFILL_BACKENDS)}", "checkpoint")
    kernel = "triton" if asked == "triton" else "flashkda"
    reason = "given" if asked != "auto" else "FlashKDA where the GPU has it"
    if caching and kernel == "flashkda":
        reason += ": one state more a request, the prefill's checkpoint"
    given.decide("kda_prefill_backend", kernel, reason, "checkpoint")
    return kernel == "flashkda"
