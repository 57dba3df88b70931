"""The token pool's shape: context length, page, KV dtype, sparse-attention backends and the row layout they need."""

from glm_kvplan.engines.sglang.environment import plainly_on
from glm_kvplan.engines.sglang.profile import page_size
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, KvLayout, Reason, Site, switched_on
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.model.geometry import QUANT_BLOCK

_CONTEXT = Reason("max_position_embeddings of the checkpoint", "configs/model_config.py:1291-1329 at 0.5.23")
_DSA = Reason("the model's own sparse attention", "arg_groups/model_overrides/deepseek_v2.py:102-104 at 0.5.23")
_PAGE = Reason(
    "forced for sparse attention: a user's --page-size is not read",
    "arg_groups/model_overrides/deepseek_v2.py:162-173 at 0.5.23",
)
_PAGE_ONE = Reason(
    "forced on ROCm without aiter's preshuffled index kernel (SGLANG_USE_AITER)",
    "arg_groups/model_overrides/deepseek_v2.py:147-160 at 0.5.23",
)
_DTYPE_FP8 = Reason(
    "{gpu.name} is Blackwell (compute capability {gpu.capability[0]}.{gpu.capability[1]}): FP8 rows",
    "arg_groups/overrides.py:531-538 at 0.5.23",
)
_DTYPE_BF16 = Reason(
    "{gpu.name} is older than Blackwell (compute capability {gpu.capability[0]}.{gpu.capability[1]}): BF16 rows",
    "arg_groups/overrides.py:531-538 at 0.5.23",
)
_DTYPE_ALIAS = Reason("bf16 is bfloat16", "arg_groups/overrides.py:539-540 at 0.5.23")
_DTYPE_OF_LAYOUT = Reason("follows --kv-row-layout")
_KERNELS = "arg_groups/overrides.py:704-727 at 0.5.23"
_ROCM = Reason("ROCm runs the triton sparse kernels", _KERNELS)
_FP8_BLACKWELL = Reason("FP8 rows on Blackwell", _KERNELS)
_FP8_HOPPER = Reason("FP8 rows before Blackwell", _KERNELS)
_BF16_PREFILL = Reason("BF16 rows", _KERNELS)
_BF16_DECODE_BLACKWELL = Reason("BF16 rows on Blackwell", _KERNELS)
_BF16_DECODE = Reason("BF16 rows before Blackwell", _KERNELS)

_LAYOUT = "mem_cache/kv_cache_configurator.py:3412-3475 at 0.5.23"
_PLAIN = Reason("BF16 rows carry no scales", _LAYOUT)
_TRTLLM = Reason("trtllm reads FP8 rows without scales", _LAYOUT)
_RAW_ROCM = Reason("ROCm's sparse kernels read FP8 rows without scales", _LAYOUT)
_RAW_TILELANG = Reason(
    "tilelang on both sides reads FP8 rows without scales", "mem_cache/kv_cache_configurator.py:3448-3455 at 0.5.23"
)
_SCALED = Reason("the backends read one FP32 scale per 128 elements behind each FP8 row", _LAYOUT)
_GIVEN_LAYOUT = Reason("given: the layout of this build")

_OF_OWN_BUILDS = "flashinfer_sparse_mla"
_ON_SM12X = (_OF_OWN_BUILDS, "tilelang", "triton_sparse_mla")
_CONSTRAINTS = "arg_groups/overrides.py:550-575 at 0.5.23"
_SPARSE = ("dsa", "nsa", None)  # names of the sparse attention, and none given


def context_length(a: Arguments, site: Site) -> None:
    """The longest request: the checkpoint's unless the user gives another; longer ones need the engine's switch."""
    longest = site.geometry.max_position_embeddings
    if a.context_length is None:
        a.context_length = longest
        a.because["context_length"] = _CONTEXT
    elif a.context_length > longest:
        if not switched_on(site.environment, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"):
            raise RefusedError(
                f"--context-length {a.context_length} is above the checkpoint's {longest}; "
                "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 permits it",
                "configs/model_config.py:1314 at 0.5.23",
            )
        a.warnings.append(f"--context-length {a.context_length} is above the checkpoint's {longest}")


def attention_backend(a: Arguments, site: Site) -> None:
    """The attention family: the model's sparse attention unless the user names another."""
    if a.attention_backend is a.prefill_attention_backend is a.decode_attention_backend is None:
        a.attention_backend = "dsa"
        a.because["attention_backend"] = _DSA
    elif not all(
        name in _SPARSE for name in (a.attention_backend, a.prefill_attention_backend, a.decode_attention_backend)
    ):
        a.warnings.append(
            "--attention-backend: this model's sparse attention is dsa; pool sizes do not depend on the name"
        )


def check_index(site: Site) -> None:
    """The index pool takes keys of one width (mem_cache/memory_pool.py:5346 at 0.5.23)."""
    if site.geometry.index_head_dim != QUANT_BLOCK:
        raise RefusedError(
            f"the index pool takes keys of {QUANT_BLOCK} elements, the checkpoint's have "
            f"{site.geometry.index_head_dim} (index_head_dim)",
            "mem_cache/memory_pool.py:5346 at 0.5.23",
        )


def page(a: Arguments, site: Site) -> None:
    """The KV page: forced, whatever the user gave; on ROCm 1 unless aiter's index kernel takes whole pages."""
    if site.gpu.vendor == "cuda":
        a.page_size = page_size(site.geometry, site.profile)
        a.because["page_size"] = _PAGE
        return
    aiter = plainly_on(site.environment, "SGLANG_USE_AITER")
    if aiter and not switched_on(site.environment, "SGLANG_DSA_HIP_DISABLE_PRESHUFFLE"):
        a.page_size = page_size(site.geometry, site.profile)
        a.because["page_size"] = _PAGE
        return
    a.page_size = 1
    a.because["page_size"] = _PAGE_ONE
    if site.profile.page_size_times_index_kpool and site.geometry.index_kpool > 1:
        raise RefusedError(
            f"ROCm without SGLANG_USE_AITER=1: a page of 1 token cannot hold an index group of "
            f"{site.geometry.index_kpool}; set it",
            "mem_cache/memory_pool.py:5331 at 0.5.23",
        )
    a.warnings.append("ROCm without SGLANG_USE_AITER=1 (the official images set it): pages of 1 token")


def kv_dtype(a: Arguments, site: Site) -> None:
    """The KV dtype by GPU generation; `--kv-row-layout` (ours) implies one.

    Source: arg_groups/overrides.py:491-547 at 0.5.23.
    """
    layout = a.kv_row_layout
    if layout is not None:
        implied = "bfloat16" if layout == "bf16" else "fp8_e4m3"
        if a.kv_cache_dtype == "auto":
            a.kv_cache_dtype = implied
            a.because["kv_cache_dtype"] = _DTYPE_OF_LAYOUT
        elif ("bfloat16" if a.kv_cache_dtype == "bf16" else a.kv_cache_dtype) != implied:
            raise InputError(
                f"--kv-row-layout {layout} is a layout of {implied} rows, not of --kv-cache-dtype {a.kv_cache_dtype}"
            )
    if a.kv_cache_dtype == "auto":
        a.kv_cache_dtype = "fp8_e4m3" if site.gpu.blackwell else "bfloat16"
        a.because["kv_cache_dtype"] = _DTYPE_FP8 if site.gpu.blackwell else _DTYPE_BF16
    elif a.kv_cache_dtype == "bf16":
        a.kv_cache_dtype = "bfloat16"
        a.because["kv_cache_dtype"] = _DTYPE_ALIAS
    if a.kv_cache_dtype not in ("bfloat16", "fp8_e4m3"):
        raise RefusedError(
            f"--kv-cache-dtype {a.kv_cache_dtype}: sparse attention takes bfloat16 or fp8_e4m3",
            "arg_groups/overrides.py:541-544 at 0.5.23",
        )


def sparse_backends(a: Arguments, site: Site) -> None:
    """The sparse-attention kernels of prefill and decode, and the combinations that cannot run.

    Source: arg_groups/overrides.py:540-584, 622-741 at 0.5.23.
    """
    fp8 = a.kv_cache_dtype == "fp8_e4m3"
    cuda, blackwell = site.gpu.vendor == "cuda", site.gpu.blackwell
    if not cuda:
        prefill = decode = "triton"
        why_prefill = why_decode = _ROCM
    elif fp8:
        prefill = decode = "trtllm" if blackwell else "flashmla_kv"
        why_prefill = why_decode = _FP8_BLACKWELL if blackwell else _FP8_HOPPER
    else:
        prefill, decode = "flashmla_sparse", "trtllm" if blackwell else "fa3"
        why_prefill, why_decode = _BF16_PREFILL, _BF16_DECODE_BLACKWELL if blackwell else _BF16_DECODE
    if a.dsa_prefill_backend is None:
        a.dsa_prefill_backend = prefill
        a.because["dsa_prefill_backend"] = why_prefill
    if a.dsa_decode_backend is None:
        a.dsa_decode_backend = decode
        a.because["dsa_decode_backend"] = why_decode
    _check_backends(a, site, fp8)
    if _OF_OWN_BUILDS in (a.dsa_prefill_backend, a.dsa_decode_backend):
        _say_own_builds(a, site)
    if cuda and site.gpu.capability < (9, 0):
        a.kernels_missing = True
        a.warnings.append(
            f"{site.gpu.name}: nothing refuses it at start-up, but the FP8 index kernels (DeepGEMM) and the sparse "
            "prefill kernel (FlashMLA) need compute capability 9.0; expect the model to fail on its first prefill"
        )
    if cuda and site.gpu.capability[0] == 12:
        missing = {a.dsa_prefill_backend, a.dsa_decode_backend}.difference(_ON_SM12X)
        if missing:
            a.kernels_missing = True
            a.warnings.append(_no_kernels(site, fp8, " and ".join(sorted(missing))))


def _say_own_builds(a: Arguments, site: Site) -> None:
    """flashinfer_sparse_mla: releases run it for another architecture alone, on SM120 and SM121, and say so when the
    pools are there already; builds of people's own run it for this model.

    Source: layers/attention/dsa_backend.py:742-752, kernels/ops/attention/flash_mla_sm120.py:678-701 at 0.5.23.
    """
    if site.gpu.vendor != "cuda" or site.gpu.capability[0] != 12:
        a.kernels_missing = True
        a.warnings.append(
            f"{site.gpu.name}: the {_OF_OWN_BUILDS} sparse kernels are built for compute capability 12 alone; expect "
            "the server to die once its pools are there"
        )
    elif site.profile.release == site.profile.base_release:
        a.warnings.append(
            f"{_OF_OWN_BUILDS}: release {site.profile.release} refuses it for this model once its pools are there; "
            "people run it in builds of their own"
        )


def _no_kernels(site: Site, fp8: bool, missing: str) -> str:
    """SM120 and SM121: what the engine chooses by itself boots and dies in its first forward (sglang issue 40286); fa3
    and flashmla are of other cards (issue 37105), and flashmla_sparse becomes trtllm.

    Source: layers/attention/dsa/dsa_backend_kpool.py:63-78 at 0.5.23.
    """
    major, minor = site.gpu.capability
    instead = "flashinfer_sparse_mla (FP8 rows of 528 or, --kv-row-layout fp8_padded, 656 bytes)" if fp8 else "tilelang"
    return (
        f"{site.gpu.name}: nothing refuses it at start-up, but the {missing} sparse kernels are not built for "
        f"compute capability {major}.{minor}; expect the model to fail on its first forward; people run "
        f"it with {instead}, in builds of their own, as --dsa-prefill-backend and --dsa-decode-backend"
    )


def _check_backends(a: Arguments, site: Site, fp8: bool) -> None:
    prefill, decode = a.dsa_prefill_backend, a.dsa_decode_backend
    if site.gpu.vendor == "cuda":
        if "triton" in (prefill, decode):
            raise RefusedError("the triton sparse backend runs on ROCm only", _CONSTRAINTS)
        if fp8 and "tilelang" in (prefill, decode):
            _check_tilelang(a, site)
    if prefill == "flashmla_sparse_q8":
        _check_sparse_q8(a, site, fp8)
    if decode == "flashmla_sparse_q8":
        raise RefusedError(
            "--dsa-decode-backend flashmla_sparse_q8: it is a prefill kernel; use flashmla_kv",
            "layers/attention/dsa_backend.py:483-489 at 0.5.23",
        )


def _check_sparse_q8(a: Arguments, site: Site, fp8: bool) -> None:
    name, hopper = "--dsa-prefill-backend flashmla_sparse_q8", site.gpu.vendor == "cuda" and site.gpu.capability[0] == 9
    if not site.profile.q8_reads_bf16:
        if not (fp8 and hopper):
            raise RefusedError(
                f"{name} takes FP8 rows on Hopper only; {site.profile.otherwise(q8_reads_bf16=True)}",
                "layers/attention/dsa_backend.py:501-513 at 0.5.21",
            )
        return
    source = "layers/attention/dsa_backend.py:434-482 at 0.5.23"
    if not hopper:
        raise RefusedError(f"{name} runs on Hopper only", source)
    if fp8 and site.geometry.qk_rope_head_dim == 0:
        raise RefusedError(
            f"{name} reads BF16 rows only for a model without RoPE; give --kv-cache-dtype bfloat16", source
        )
    if a.enable_mixed_chunk:
        raise RefusedError(f"{name} runs without --enable-mixed-chunk", source)


def _check_tilelang(a: Arguments, site: Site) -> None:
    if not site.profile.tilelang_fp8_raw:
        raise RefusedError(
            "the tilelang sparse backend reads BF16 rows only on CUDA; give --kv-cache-dtype bfloat16, or, "
            + site.profile.otherwise(tilelang_fp8_raw=True),
            "arg_groups/overrides.py:542-545 at 0.5.21",
        )
    source = "arg_groups/overrides.py:569-584 at 0.5.23"
    if a.dsa_prefill_backend != a.dsa_decode_backend:
        raise RefusedError("FP8 rows with tilelang: both sparse backends must be tilelang", source)
    if a.dcp_size > 1:
        raise RefusedError("FP8 rows with tilelang: not with decode CP", source)
    if site.gpu.capability < (8, 9):
        raise RefusedError(f"FP8 rows with tilelang need compute capability 8.9; {site.gpu.name} has less", source)


def row_layout(a: Arguments, site: Site) -> None:
    """What one latent row holds: BF16, raw FP8 or FP8 with scales behind it.

    Only the backend of this server's own role counts under PD.
    Source: mem_cache/kv_cache_configurator.py:3412-3475 at 0.5.23.
    """
    if a.kv_row_layout is not None:
        a.kv_layout, why = a.kv_row_layout, _GIVEN_LAYOUT
    else:
        a.kv_layout, why = _layout_of_backends(a, site)
    a.because["kv_row_layout"] = why


def _layout_of_backends(a: Arguments, site: Site) -> tuple[KvLayout, Reason]:
    if a.kv_cache_dtype == "bfloat16":
        return "bf16", _PLAIN
    prefill, decode = a.dsa_prefill_backend, a.dsa_decode_backend
    mode = a.disaggregation_mode
    if (mode != "decode" and prefill == "trtllm") or (mode != "prefill" and decode == "trtllm"):
        return "fp8_raw", _TRTLLM
    raw_on_rocm = ("tilelang", "triton", "aiter")
    if site.gpu.vendor != "cuda" and (prefill in raw_on_rocm or decode in raw_on_rocm):
        return "fp8_raw", _RAW_ROCM
    if site.profile.tilelang_fp8_raw and prefill == decode == "tilelang":
        return "fp8_raw", _RAW_TILELANG
    return "fp8_scaled", _SCALED
