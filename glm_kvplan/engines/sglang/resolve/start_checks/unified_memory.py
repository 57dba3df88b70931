"""Start-up checks of one buffer for tokens and state (--enable-unified-memory): what it does not run beside."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch

_VERIFIED = {"triton", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla"}
_TRANSLATED = {"triton", "flashinfer", "fa3"}  # kernels that find a draft's rows in the one buffer
_EAGLE = ("EAGLE", "EAGLE3")


def _cannot_speculate(a: Launch) -> bool:
    name = a.speculative_algorithm
    if name not in (None, "DSPARK", "DFLASH", *_EAGLE) or a.speculative_eagle_topk not in (None, 1):
        return True
    if name in _EAGLE:
        draft = a.speculative_draft_attention_backend
        return bool(a.enable_hierarchical_cache or not _TRANSLATED.issuperset((draft,) if draft else a.attention))
    return name == "DFLASH" and not _TRANSLATED.issuperset(a.attention)


CHECKS = (
    Check(
        "unified_dspark",
        lambda a: (
            bool(a.enable_unified_memory)
            and a.speculative_algorithm is not None
            and (a.speculative_algorithm != "DSPARK" or not _VERIFIED.issuperset(a.attention))
        ),
        "--enable-unified-memory speculates with DSPARK only, on the triton or the MLA kernels of Blackwell GPUs",
        "arg_groups/kv_cache_hook.py:545-569 at 0.5.21",
    ),
    Check(
        "unified_algorithms",
        lambda a: bool(a.enable_unified_memory) and _cannot_speculate(a),
        "--enable-unified-memory speculates with DSPARK, DFLASH, EAGLE or EAGLE3 and top-k 1; DFLASH and EAGLE's draft "
        "on the triton, flashinfer or fa3 kernels, EAGLE without --enable-hierarchical-cache",
        "arg_groups/kv_cache_hook.py:588-680 at 0.5.23",
    ),
    Check(
        "unified_beside",
        lambda a: bool(a.enable_unified_memory) and bool(a.enable_two_batch_overlap or a.enable_lmcache),
        "--enable-unified-memory does not run with --enable-two-batch-overlap and --enable-lmcache",
        "arg_groups/kv_cache_hook.py:653-662 at 0.5.23",
    ),
    Check(
        "unified_hicache",
        lambda a: bool(a.enable_unified_memory) and a.enable_hierarchical_cache,
        "--enable-unified-memory does not run with --enable-hierarchical-cache",
        "arg_groups/kv_cache_hook.py:256 at 0.5.20",
    ),
    Check(
        "unified_linker",
        lambda a: bool(a.enable_unified_memory) and bool(a.enable_unified_cache_external_linker),
        "--enable-unified-memory does not run with --enable-unified-cache-external-linker",
        "arg_groups/kv_cache_hook.py:663-668 at 0.5.23",
    ),
    Check(
        "unified_pd",
        lambda a: (
            bool(a.enable_unified_memory)
            and a.disaggregation_mode != "null"
            and (a.disaggregation_transfer_backend != "mooncake" or a.pp_size > 1)
        ),
        "--enable-unified-memory with PD disaggregation takes the mooncake transfer, without pipeline stages",
        "arg_groups/kv_cache_hook.py:533-547 at 0.5.23",
    ),
    Check(
        "unified_pd_speculation",
        lambda a: (
            bool(a.enable_unified_memory) and a.disaggregation_mode != "null" and a.speculative_algorithm is not None
        ),
        "--enable-unified-memory with PD disaggregation does not speculate",
        "arg_groups/kv_cache_hook.py:548-554 at 0.5.23",
    ),
)
