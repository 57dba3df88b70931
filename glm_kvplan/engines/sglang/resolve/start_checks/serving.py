"""Start-up checks of the HTTP and gRPC fronts, of workers, metrics and files: nothing here touches the GPU."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch

_SSL = "arg_groups/serving_hook.py:48-116 at 0.5.23"
_GRPC = "arg_groups/serving_hook.py:361-426 at 0.5.23"


def _buckets(rule: list[str] | None) -> bool:
    """Whether a --*-tokens-buckets rule is none the engine reads."""
    if not rule:
        return False
    kind, *words = rule
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return True
    if kind == "tse":
        return len(numbers) != 3 or not words[2].isdecimal() or numbers[1] <= 1 or min(numbers[0], numbers[2]) <= 0
    if kind == "custom":
        return not numbers or len(set(numbers)) < len(numbers) or min(numbers) < 0
    return kind != "default" or bool(words)


def _legacy_grpc(a: Launch) -> bool:
    return bool(a.smg_grpc_mode or a.grpc_mode)


def _grpc_port(a: Launch) -> int | None:
    port: int | None = a.grpc_port
    if port is None and "SGLANG_GRPC_PORT" in a.site.environment:
        port = a.number("SGLANG_GRPC_PORT", None)
    return a.port + 10000 if port is None and _legacy_grpc(a) else port


def _native_grpc(a: Launch) -> bool:
    return _grpc_port(a) is not None and not _legacy_grpc(a)


def _media(a: Launch) -> bool:
    limits = a.limit_mm_data_per_request
    return isinstance(limits, dict) and not limits.keys() <= {"image", "video", "audio"}


def _publisher(a: Launch) -> bool:
    endpoint = (a.load_publish_endpoint or "").strip()
    return bool(endpoint) and endpoint.lower() != "off" and not a.kv_events_config


CHECKS = (
    Check(
        "ssl_pair",
        lambda a: bool(a.ssl_keyfile) != bool(a.ssl_certfile),
        "--ssl-keyfile and --ssl-certfile go together",
        _SSL,
    ),
    Check(
        "ssl_alone",
        lambda a: not a.ssl_certfile and bool(a.ssl_ca_certs or a.ssl_keyfile_password or a.enable_ssl_refresh),
        "--ssl-ca-certs, --ssl-keyfile-password and --enable-ssl-refresh need --ssl-certfile and --ssl-keyfile",
        _SSL,
    ),
    Check(
        "http2",
        lambda a: (
            bool(a.enable_http2)
            and (
                not 0 < a.http2_max_concurrent_streams < 2**32
                or not 1024 <= a.http2_initial_connection_window_size < 2**31
                or bool(a.enable_ssl_refresh)
            )
        ),
        "--enable-http2: streams of 1 to 4294967295, a window of 1024 to 2147483647, no --enable-ssl-refresh",
        _SSL,
    ),
    Check(
        "reuseport",
        lambda a: bool(a.enable_http_worker_reuseport) and (a.tokenizer_worker_num <= 1 or a.enable_http2),
        "--enable-http-worker-reuseport needs --tokenizer-worker-num above 1, without --enable-http2",
        "arg_groups/serving_hook.py:91 at 0.5.23",
    ),
    Check(
        "sidecar_args",
        lambda a: (
            a.sidecar_args is not None
            and (
                a.sidecar is None
                or not isinstance(a.sidecar_args, list)
                or not all(isinstance(word, str) for word in a.sidecar_args)
            )
        ),
        "--sidecar-args is a JSON list of texts beside --sidecar",
        _GRPC,
    ),
    Check(
        "sidecar",
        lambda a: a.sidecar is not None and (not a.sidecar.strip() or _legacy_grpc(a) or _grpc_port(a) is None),
        "--sidecar needs a name and the native gRPC server (--grpc-port)",
        _GRPC,
    ),
    Check(
        "grpc_port",
        lambda a: _grpc_port(a) is not None and not 1 <= (_grpc_port(a) or 0) <= 65535,
        "--grpc-port must lie between 1 and 65535",
        _GRPC,
    ),
    Check(
        "grpc_same_port",
        lambda a: _native_grpc(a) and _grpc_port(a) == a.port,
        "--grpc-port and --port are the same",
        "arg_groups/validation_hook.py:360 at 0.5.23",
    ),
    Check(
        "grpc_native",
        lambda a: (
            _native_grpc(a)
            and bool(a.use_ray or a.encoder_only or a.tokenizer_worker_num > 1 or a.api_key or a.admin_api_key)
        ),
        "--grpc-port: not with --use-ray, --encoder-only, several tokenizer workers or API keys",
        _GRPC,
    ),
    Check(
        "grpc_timeout",
        lambda a: a.grpc_response_timeout_secs <= 0,
        "--grpc-response-timeout-secs must be above 0",
        "arg_groups/serving_hook.py:373 at 0.5.23",
    ),
    Check(
        "log_level",
        lambda a: (
            a.log_level.upper() not in ("CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET")
        ),
        "--log-level {a.log_level}: not a level of Python's logging",
        "server_args.py:704 at 0.5.23",
    ),
    Check(
        "buckets",
        lambda a: _buckets(a.prompt_tokens_buckets) or _buckets(a.generation_tokens_buckets),
        "--prompt-tokens-buckets and --generation-tokens-buckets take: default, tse MIDDLE BASE COUNT, or custom N...",
        "arg_groups/validation_hook.py:382-432 at 0.5.23",
    ),
    Check(
        "load_publish",
        _publisher,
        "--load-publish-endpoint needs --kv-events-config",
        "arg_groups/validation_hook.py:453 at 0.5.23",
    ),
    Check(
        "metrics_file",
        lambda a: bool(a.export_metrics_to_file) and a.export_metrics_to_file_dir is None,
        "--export-metrics-to-file needs --export-metrics-to-file-dir",
        "arg_groups/validation_hook.py:341 at 0.5.23",
    ),
    Check(
        "workers",
        lambda a: (
            min(a.tokenizer_worker_num, a.detokenizer_worker_num) < 1
            or min(a.mm_processor_worker_num, a.mm_io_worker_num) < 0
        ),
        "tokenizer and detokenizer workers: 1 or more; multimodal workers: 0 or more",
        "arg_groups/validation_hook.py:273-276 at 0.5.23",
    ),
    Check(
        "gpu_ids",
        lambda a: a.base_gpu_id < 0 or a.gpu_id_step < 1,
        "--base-gpu-id is 0 or more, --gpu-id-step 1 or more",
        "arg_groups/validation_hook.py:204-205 at 0.5.23",
    ),
    Check(
        "model_name",
        lambda a: ":" in (a.served_model_name or "") and "://" not in a.served_model_name,
        "--served-model-name holds a colon, which names a LoRA adapter there",
        "arg_groups/validation_hook.py:215 at 0.5.23",
    ),
    Check(
        "gc_threshold",
        lambda a: bool(a.gc_threshold) and len(a.gc_threshold) > 3,
        "--gc-threshold takes one to three numbers",
        "arg_groups/validation_hook.py:370 at 0.5.23",
    ),
    Check(
        "response_store",
        lambda a: bool(a.enable_response_store) and a.disaggregation_mode != "null",
        "--enable-response-store does not run under PD disaggregation",
        "arg_groups/validation_hook.py:112 at 0.5.23",
    ),
    Check(
        "asr",
        lambda a: min(a.asr_max_buffer_seconds, a.asr_max_concurrent_sessions) <= 0,
        "--asr-max-buffer-seconds and --asr-max-concurrent-sessions must be above 0",
        "arg_groups/serving_hook.py:121-132 at 0.5.23",
    ),
    Check(
        "mm_cache",
        lambda a: a.mm_preprocess_cache_size_mb is not None and a.mm_preprocess_cache_size_mb < 0,
        "--mm-preprocess-cache-size-mb must be 0 or more",
        "arg_groups/serving_hook.py:135-142 at 0.5.23",
    ),
    Check(
        "mm_limits",
        _media,
        "--limit-mm-data-per-request names image, video and audio only",
        "arg_groups/serving_hook.py:612 at 0.5.23",
    ),
    Check(
        "image_processor",
        lambda a: bool(a.disable_fast_image_processor) and a.image_processor_backend not in ("auto", "pil"),
        "--disable-fast-image-processor contradicts --image-processor-backend {a.image_processor_backend}",
        "arg_groups/serving_hook.py:265 at 0.5.23",
    ),
    Check(
        "chat_template",
        lambda a: a.default_chat_template_kwargs is not None and not isinstance(a.default_chat_template_kwargs, dict),
        "--default-chat-template-kwargs is a JSON object",
        "arg_groups/serving_hook.py:505 at 0.5.23",
    ),
    Check(
        "tokenizer_batching",
        lambda a: bool(a.enable_tokenizer_batch_encode and a.enable_dynamic_batch_tokenizer),
        "--enable-tokenizer-batch-encode and --enable-dynamic-batch-tokenizer exclude each other",
        "arg_groups/serving_hook.py:774 at 0.5.23",
    ),
    Check(
        "sampling_mask",
        lambda a: a.sampling_mask_max_tokens <= 0,
        "--sampling-mask-max-tokens must be above 0",
        "arg_groups/validation_hook.py:688 at 0.5.23",
    ),
    Check(
        "sampling_backend",
        lambda a: a.sampling_backend == "intel_xpu",
        "--sampling-backend intel_xpu is for Intel GPUs",
        "arg_groups/validation_hook.py:490 at 0.5.23",
    ),
    Check(
        "encoder",
        lambda a: bool(a.encoder_only) and (a.language_only or a.disaggregation_mode != "null"),
        "--encoder-only: not with --language-only or PD disaggregation",
        "arg_groups/pd_disaggregation_hook.py:310-314 at 0.5.23",
    ),
    Check(
        "prefix_mm_cache",
        lambda a: bool(a.enable_prefix_mm_cache) and not a.encoder_only,
        "--enable-prefix-mm-cache needs --encoder-only",
        "arg_groups/pd_disaggregation_hook.py:306 at 0.5.23",
    ),
    Check(
        "watermark_alone",
        lambda a: a.watermark_config is not None and not a.enable_watermark,
        "--watermark-config needs --enable-watermark",
        "arg_groups/validation_hook.py:37 at 0.5.23",
    ),
    Check(
        "watermark",
        lambda a: (
            bool(a.enable_watermark)
            and (
                bool(a.enable_custom_logit_processor or a.speculative_use_rejection_sampling)
                or a.disaggregation_mode != "null"
                or a.speculative_algorithm not in (None, "EAGLE", "EAGLE3")
                or (a.pp_size > 1 and a.speculative_algorithm is not None)
            )
        ),
        "--enable-watermark: not with custom logit processors, rejection sampling, PD roles, block drafts, or drafts "
        "over pipeline stages",
        "arg_groups/validation_hook.py:74-106 at 0.5.23",
    ),
)
