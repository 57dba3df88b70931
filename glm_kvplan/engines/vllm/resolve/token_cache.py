"""The token cache: its dtype, the attention backend that reads it, and the bytes of one token's row."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.backends import BACKENDS, FLASHMLA, Backend
from glm_kvplan.engines.vllm.profile import EngineProfile
from glm_kvplan.engines.vllm.resolve.site import Decisions
from glm_kvplan.errors import InputError
from glm_kvplan.tensor import DTYPE_BYTES

ROW_SCALE_BLOCK = 128  # elements under one float32 scale in a fp8_ds_mla row
ROPE_SLOT = 64 * 2  # the bfloat16 RoPE part of a fp8_ds_mla row, kept though this model has none


class TokenCache(NamedTuple):
    """How one token lies in one layer. `sized_row_bytes` is what vLLM sizes its block with."""

    dtype: str
    backend: Backend
    row_bytes: int
    sized_row_bytes: int


def token_cache(given: Decisions, decode_context: int) -> TokenCache:
    """Dtype, backend and row. Raises RefusedError where no backend reads such a cache."""
    site = given.site
    asked = given.text("kv_cache_dtype")
    if given.value("kv_cache_dtype_skip_layers"):
        raise InputError("--kv-cache-dtype-skip-layers is not planned here; leave it out")
    dtype, why = (
        asked,
        "given" if given.value("kv_cache_dtype") is not None else "the model's bfloat16 unless asked otherwise",
    )
    if asked == "auto" and site.profile.sm100_fp8_default and site.gpu.sm100:
        dtype, why = "fp8", "the release's own default for this model on SM100"
    if dtype == "float16" and not site.profile.float16_rows:
        given.refuse("--kv-cache-dtype float16 is not the model's bfloat16; auto and bfloat16 are", "float16_rows")
    backend = _backend(given, dtype, decode_context)
    if backend.generation == 12:
        dtype = "fp8_ds_mla"
        why = f"the {backend.name} backend reads scaled rows alone, whatever the flag says"
    row, sized = _row(site.geometry.kv_lora_rank, dtype)
    given.decide("kv_cache_dtype", dtype, f"{why}: {row} bytes a token in a layer", "cache_dtype")
    if sized != row:
        given.warnings.append(
            f"vLLM sizes its blocks as if a token took {sized} bytes a layer; it takes {row}, so they hold "
            f"{row / sized - 1:.0%} more memory than the state needs"
        )
    return TokenCache(dtype, backend, row, sized)


def generation_of(given: Decisions) -> int:
    """The GPU's generation. Raises InputError for a platform that is not planned, RefusedError for too old a card."""
    gpu = given.site.gpu
    if gpu.vendor != "cuda":
        raise InputError(f"{gpu.name}: vLLM on ROCm is not planned here; NVIDIA GPUs are")
    major = gpu.capability[0]
    if not any(backend.generation == major for backend in BACKENDS):
        given.refuse(
            f"{gpu.name} (compute capability {major}.{gpu.capability[1]}) has no sparse MLA backend for this model; "
            "SM90, SM100 and SM120 have",
            "no_backend",
        )
    return major


def _backend(given: Decisions, dtype: str, decode_context: int) -> Backend:
    major = generation_of(given)
    wanted = _wanted(given)
    size = given.value("block_size")
    here = [backend for backend in BACKENDS if backend.generation == major]
    if wanted is not None:
        here = [backend for backend in here if backend.name == wanted]
        if not here:
            given.refuse(
                f"--attention-backend {wanted[:60]} cannot read this model on {given.site.gpu.name}", "selected_backend"
            )
    reasons = {}
    for backend in here:
        reason = _objection(given.site.profile, backend, dtype, decode_context, size)
        if reason is None:
            why = "given" if wanted else f"the first that reads {dtype} rows without RoPE on SM{major}0"
            given.decide("attention_backend", backend.name, why, "backends")
            return backend
        reasons[backend.name] = reason
    listed = "; ".join(f"{name} {reason}" for name, reason in reasons.items())
    subject = "selected_backend" if wanted else "no_backend"
    given.refuse(f"no attention backend reads this cache on {given.site.gpu.name}: {listed}", subject)


def _wanted(given: Decisions) -> str | None:
    """The backend asked for, by its flag or in --attention-config."""
    named = given.value("attention_backend")
    nested = given.table("attention_config").get("backend")
    if named is not None and nested is not None:
        given.refuse("--attention-backend and backend of --attention-config exclude each other", "batches")
    wanted = named if named is not None else nested
    return None if wanted is None or str(wanted).lower() == "auto" else str(wanted).upper()


def _objection(profile: EngineProfile, backend: Backend, dtype: str, decode_context: int, size: object) -> str | None:
    """Why a backend does not read such a cache; None where it does."""
    dtypes = backend.dtypes
    if backend.name == FLASHMLA:
        dtypes = tuple(profile.nope_flashmla.split())
        if not dtypes:
            return "takes no rows without RoPE in this release"
        dtypes = ("auto", *dtypes)
    if dtype not in dtypes:
        return f"takes {', '.join(dtypes)}, not {dtype[:40]}"
    if decode_context > 1 and not backend.decode_context:
        return "knows no decode context parallelism"
    if isinstance(size, int) and size % backend.block_multiple:
        return f"takes blocks of a multiple of {backend.block_multiple} tokens, not {size}"
    return None


def _row(rank: int, dtype: str) -> tuple[int, int]:
    """Bytes of a token's row in a layer, and what the block is sized with (mla_attention.py, interface.py)."""
    if dtype == "fp8_ds_mla":
        scaled = rank + rank // ROW_SCALE_BLOCK * DTYPE_BYTES["float32"] + ROPE_SLOT
        return scaled, rank
    width = rank * DTYPE_BYTES["uint8" if dtype.startswith("fp8") else "bfloat16"]
    return width, width
