"""Pools that the engine has but does not wire for this model: refused where it refuses, warned about elsewhere."""

from glm_kvplan.engines.sglang.environment import unreadable_switches
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Site
from glm_kvplan.errors import RefusedError

_UNIFIED = ("triton", "fa3", "trtllm_mla", "flashinfer", "cutedsl_mla", "tokenspeed_mla", "flashmla")
_UNPLANNED = tuple(flag for flag in FLAGS if flag.unplanned)


def unwired_pools(a: Arguments, site: Site) -> None:
    """Refuse or warn about each such pool that the launch asks for.

    Source: arg_groups/kv_cache_hook.py:770-855 at 0.5.23.
    """
    if a.enable_hisparse:
        raise RefusedError(
            "--enable-hisparse: the engine builds no HiSparse pool for this hybrid model, and its allocator fails "
            "without one",
            "mem_cache/kv_cache_configurator.py:2605-2712, 2892 at 0.5.23",
        )
    if a.enable_unified_memory:
        _unified_memory(a)
    elif a.enable_page_major_kv_layout:
        raise RefusedError(
            "--enable-page-major-kv-layout runs with --enable-unified-memory only",
            "arg_groups/kv_cache_hook.py:783 at 0.5.23",
        )
    if a.enable_kv_cache_sharding:
        raise RefusedError(
            f"--enable-kv-cache-sharding needs one index key a token; this model pools {site.geometry.index_kpool}",
            "arg_groups/kv_shard_hook.py, mem_cache/kv_cache_configurator.py:784-790 at 0.5.23",
        )
    if a.prefill_only_disable_kv_cache:
        raise RefusedError(
            "--prefill-only-disable-kv-cache is for embedding models", "arg_groups/kv_cache_hook.py:880 at 0.5.23"
        )
    if a.enable_dsa_cache_layer_split:
        a.warnings.append(
            "--enable-dsa-cache-layer-split: the engine shrinks the budgeted row but not this hybrid model's pools; "
            "the numbers below are those without it"
        )


def unread_flags(a: Arguments, site: Site) -> None:
    """Warn of flags that change bytes in a way that is not planned: the table says what to know about each."""
    for flag in _UNPLANNED:
        if a.given.get(flag.name):
            a.warnings.append(f"{flag.option}: {flag.unplanned}")
    a.warnings += unreadable_switches(site.environment)


def _unified_memory(a: Arguments) -> None:
    used = {a.prefill_attention_backend or a.attention_backend, a.decode_attention_backend or a.attention_backend}
    wrong = sorted(str(name) for name in used if name not in _UNIFIED)
    if wrong:
        raise RefusedError(
            f"--enable-unified-memory does not run with the {wrong[0]} attention backend of this model",
            "arg_groups/kv_cache_hook.py:822 at 0.5.23",
        )
    a.warnings.append("--enable-unified-memory: not wired for this model; the numbers are those without it")
