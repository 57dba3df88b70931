"""Start-up checks of the scheduler, the prefix cache and the roles of a server."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch


def _tlru(a: Launch) -> bool:
    if a.radix_eviction_policy != "tlru":
        return False
    config = a.radix_eviction_policy_config or {}
    threshold, estimate = config.get("threshold", 0), config.get("next_prompt_estimate", 0)
    return bool(min(threshold, estimate) < 0 or threshold <= estimate)


def _lmcache(a: Launch) -> bool:
    return bool(a.enable_lmcache) and bool(
        a.enable_hierarchical_cache
        or a.enable_unified_cache_external_linker
        or a.disable_radix_cache
        or a.speculative_algorithm is not None
        or a.enable_dp_attention
        or a.dcp_size > 1
        or a.enable_streaming_session
        or a.disaggregation_mode != "null"
    )


def _prefill_complete(a: Launch) -> bool:
    """What decode memory that is taken only once the prefill is complete does not run with."""
    if a.disaggregation_decode_allocation_policy != "prefill_complete":
        return False
    decode, prefill = a.disaggregation_mode == "decode", a.disaggregation_mode == "prefill"
    unwritten = a.hicache_storage_backend is not None or a.hicache_write_policy != "write_back"
    return bool(
        not (decode or prefill)
        or a.disaggregation_transfer_backend != "mooncake"
        or (a.pp_size, a.attn_cp_size, a.dcp_size) != (1, 1, 1)
        or a.tp_size != 1  # attention groups have left --dp-size by then, so that no other width passes
        or a.enable_pdmux
        or a.decoupled_spec_role != "null"
        or a.enable_pd_role_switch
        or a.encoder_only
        or a.language_only
        or (decode and (a.disaggregation_decode_enable_radix_cache or a.enable_hierarchical_cache))
        or (prefill and a.enable_hierarchical_cache and unwritten)
        or (prefill and a.optimistic_prefill_attempts < 0)
        or a.switch("SGLANG_DISAGG_STAGING_BUFFER")
        or a.switch("SGLANG_RUST_SERVER")
    )


def _graph_context(a: Launch) -> bool:
    """The longest context of prefill graphs, in whole pages, against the model's."""
    prefill, decode = (a.cuda_graph_config or {}).get("prefill", {}), (a.cuda_graph_config or {}).get("decode", {})
    asked = prefill.get("max_context_size", a.cuda_graph_prefill_max_context)
    if asked is None:
        return "max_context_size" in decode
    return bool(
        not isinstance(asked, int | float) or asked <= 0 or -(-asked // a.page_size) * a.page_size > a.context_length
    )


def _captures_states(a: Launch) -> bool:
    """Hidden states of a target without a draft: the algorithm's name says which, and nothing speculates."""
    if not a.enable_return_aux_hidden_states:
        return False
    method = (a.given.get("speculative_algorithm") or "").upper()
    layers = a.return_aux_hidden_state_layer_ids
    numbers = [int(layer) for layer in layers or () if str(layer).removeprefix("-").isdecimal()]
    return bool(
        method not in ("EAGLE3", "DFLASH", "DSPARK")
        or a.given.get("speculative_draft_model_path") is not None
        or a.pp_size != 1
        or (method != "EAGLE3" and not layers)
        or any(number < 0 for number in numbers)
        or len(set(numbers)) != len(numbers)
    )


CHECKS = (
    Check(
        "retraction_priority",
        lambda a: a.retraction_policy == "priority" and not a.enable_priority_scheduling,
        "--retraction-policy priority needs --enable-priority-scheduling",
        "arg_groups/validation_hook.py:304 at 0.5.23",
    ),
    Check(
        "priority_policy",
        lambda a: bool(a.enable_priority_scheduling) and a.schedule_policy not in ("fcfs", "lof"),
        "--enable-priority-scheduling takes --schedule-policy fcfs or lof",
        "arg_groups/validation_hook.py:282 at 0.5.23",
    ),
    Check(
        "conservativeness",
        lambda a: a.schedule_conservativeness < 0,
        "--schedule-conservativeness must be 0 or more",
        "arg_groups/validation_hook.py:314 at 0.5.23",
    ),
    Check(
        "micro_batch",
        lambda a: a.pp_max_micro_batch_size is not None and a.pp_max_micro_batch_size < 1,
        "--pp-max-micro-batch-size must be 1 or more",
        "arg_groups/validation_hook.py:183 at 0.5.23",
    ),
    Check(
        "free_slots_delay",
        lambda a: a.pp_size > 1 and a.min_free_slots_delay is not None,
        "--min-free-slots-delay does not run with pipeline stages",
        "arg_groups/validation_hook.py:167 at 0.5.23",
    ),
    Check(
        "prefill_interval",
        lambda a: (
            a.prefill_decode_interval_min_bs < 0
            or (a.prefill_decode_interval is not None and a.prefill_decode_interval < 0)
        ),
        "--prefill-decode-interval and its smallest batch must be 0 or more",
        "arg_groups/validation_hook.py:660 at 0.5.23",
    ),
    Check(
        "pdmux",
        lambda a: (
            bool(a.enable_pdmux)
            and (
                a.pp_size > 1
                or a.chunked_prefill_size != -1
                or a.disaggregation_mode != "null"
                or not a.disable_overlap_schedule
            )
        ),
        "--enable-pdmux needs --chunked-prefill-size -1 and --disable-overlap-schedule, without pipeline stages and PD "
        "roles",
        "arg_groups/validation_hook.py:249-261 at 0.5.23",
    ),
    Check(
        "two_batch_overlap",
        lambda a: bool(a.enable_two_batch_overlap) and a.moe_a2a_backend == "none" and not a.enable_dp_attention,
        "--enable-two-batch-overlap needs attention DP, or an expert exchange (--moe-a2a-backend)",
        "arg_groups/validation_hook.py:768 at 0.5.23",
    ),
    Check(
        "compile_padding",
        lambda a: bool(a.disable_cuda_graph_padding and a.enable_torch_compile),
        "--disable-cuda-graph-padding and --enable-torch-compile exclude each other",
        "arg_groups/validation_hook.py:188 at 0.5.23",
    ),
    Check(
        "quant_communications",
        lambda a: bool(a.enable_quant_communications),
        "--enable-quant-communications is for Ascend NPUs",
        "arg_groups/validation_hook.py:350-353 at 0.5.23",
    ),
    Check(
        "mindspore",
        lambda a: a.model_impl == "mindspore",
        "--model-impl mindspore is for Ascend NPUs",
        "arg_groups/validation_hook.py:319 at 0.5.23",
    ),
    Check(
        "kv_canary",
        lambda a: a.kv_canary_sweep_interval > 0 and a.kv_canary == "none",
        "--kv-canary-sweep-interval needs --kv-canary log or raise",
        "arg_groups/validation_hook.py:375 at 0.5.23",
    ),
    Check(
        "tlru",
        _tlru,
        "--radix-eviction-policy tlru needs a threshold above next_prompt_estimate in --radix-eviction-policy-config",
        "arg_groups/kv_cache_hook.py:380-386 at 0.5.23",
    ),
    Check(
        "offload_kvcache",
        lambda a: (
            bool(a.disaggregation_decode_enable_offload_kvcache)
            and (a.disaggregation_mode != "decode" or a.hicache_storage_backend is None)
        ),
        "--disaggregation-decode-enable-offload-kvcache: on a decode server with --hicache-storage-backend",
        "arg_groups/kv_cache_hook.py:401-409 at 0.5.23",
    ),
    Check(
        "swa_ratio",
        lambda a: a.swa_full_tokens_ratio is not None and not 0 < a.swa_full_tokens_ratio <= 1,
        "--swa-full-tokens-ratio must lie above 0 and be at most 1",
        "arg_groups/kv_cache_hook.py:428 at 0.5.23",
    ),
    Check(
        "swa_tails",
        lambda a: a.swa_prefix_tails is not None and a.swa_prefix_tails < 0,
        "--swa-prefix-tails must be 0 or more",
        "arg_groups/kv_cache_hook.py:431 at 0.5.23",
    ),
    Check(
        "lmcache",
        _lmcache,
        "--enable-lmcache: not with HiCache, linkers, speculation, attention DP, decode CP, streaming sessions or PD "
        "roles, nor without the prefix cache",
        "arg_groups/kv_cache_hook.py:435-471 at 0.5.23",
    ),
    Check(
        "linker",
        lambda a: (
            bool(a.enable_unified_cache_external_linker)
            and bool(a.enable_hierarchical_cache or a.hicache_storage_backend is not None)
        ),
        "--enable-unified-cache-external-linker: not with HiCache or its storage",
        "arg_groups/hicache_hook.py:51-56 at 0.5.23",
    ),
    Check(
        "linker_radix",
        lambda a: (
            bool(a.enable_unified_cache_external_linker)
            and bool(a.disable_radix_cache or a.radix_cache_backend is not None)
        ),
        "--enable-unified-cache-external-linker needs the engine's own prefix cache",
        "arg_groups/hicache_hook.py:46 at 0.5.23",
    ),
    Check(
        "linker_dedup",
        lambda a: (
            bool(a.enable_linker_mla_dedup)
            and (not a.enable_unified_cache_external_linker or a.unified_cache_external_linker_backend != "mooncake")
        ),
        "--enable-linker-mla-dedup needs the Mooncake linker",
        "arg_groups/hicache_hook.py:43 at 0.5.23",
    ),
    Check(
        "host_receive_range",
        lambda a: (
            a.disaggregation_decode_host_receive_threshold is not None
            and not 0 <= a.disaggregation_decode_host_receive_threshold <= 1
        ),
        "--disaggregation-decode-host-receive-threshold must lie between 0 and 1",
        "arg_groups/pd_disaggregation_hook.py:65 at 0.5.23",
    ),
    Check(
        "host_receive",
        lambda a: (
            a.disaggregation_decode_host_receive_threshold is not None
            and a.disaggregation_decode_host_receive_threshold != a.site.profile.host_receive_off_at
        ),
        "--disaggregation-decode-host-receive-threshold {a.disaggregation_decode_host_receive_threshold:g} takes "
        "host_pool retraction, which does not support models with KDA state",
        "arg_groups/pd_disaggregation_hook.py:68-79, mem_cache/registry.py:156-158 at 0.5.23",
    ),
    Check(
        "int8_checkpoint_caches",
        lambda a: bool(a.enable_int8_mamba_checkpoint) and bool(a.radix_cache_backend is not None or a.enable_lmcache),
        "--enable-int8-mamba-checkpoint takes the engine's own prefix cache only",
        "arg_groups/mamba_hook.py:89-98 at 0.5.23",
    ),
    Check(
        "draft_sink",
        lambda a: (
            a.speculative_draft_sink_size is not None
            and (a.speculative_draft_sink_size < 0 or a.speculative_draft_window_size is None)
        ),
        "--speculative-draft-sink-size needs --speculative-draft-window-size",
        "arg_groups/speculative_hook.py:224-228 at 0.5.23",
    ),
    Check(
        "aux_states",
        lambda a: a.return_aux_hidden_state_layer_ids is not None and not a.enable_return_aux_hidden_states,
        "--return-aux-hidden-state-layer-ids needs --enable-return-aux-hidden-states",
        "arg_groups/validation_hook.py:707 at 0.5.23",
    ),
    Check(
        "graph_context",
        _graph_context,
        "--cuda-graph-prefill-max-context must be above 0 and, in whole pages, fit the context of {a.context_length}",
        "arg_groups/cuda_graph_hook.py:423-464 at 0.5.23",
    ),
    Check(
        "aux_capture",
        _captures_states,
        "--enable-return-aux-hidden-states: --speculative-algorithm EAGLE3, DFLASH or DSPARK names the states, with "
        "layers for the latter two, without a draft model and pipeline stages",
        "arg_groups/validation_hook.py:705-747 at 0.5.23",
    ),
    Check(
        "prefill_complete",
        _prefill_complete,
        "--disaggregation-decode-allocation-policy prefill_complete: PD roles over mooncake on one GPU, without "
        "HiCache but write_back on a prefill server, radix cache, role switching, staging and optimistic prefill off",
        "arg_groups/pd_disaggregation_hook.py:199-242 and arg_groups/serving_hook.py:534-541 at 0.5.23",
    ),
    Check(
        "diffusion",
        lambda a: a.dllm_algorithm is not None,
        "--dllm-algorithm: this is no diffusion model",
        "dllm/algorithm/__init__.py:35 at 0.5.23",
    ),
)
