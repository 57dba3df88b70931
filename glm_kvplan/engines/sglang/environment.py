"""The table of SGLang's environment variables that change bytes, or what the engine refuses; and their values read."""

from collections.abc import Mapping

from glm_kvplan.engines.flag import BOTH, LARGEST, NOTHING, Variable
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import quoted

# Source: environ.py at 0.5.23.
# fmt: off
_DTYPES = ("float32", "bfloat16", "float16")
_ROWS = (
    Variable("SGLANG_MAMBA_CONV_DTYPE", "word", "bfloat16",
             "convolution window of a state; an unknown word is bfloat16", choices=_DTYPES),
    Variable("SGLANG_MAMBA_SSM_DTYPE", "word", None,
             "recurrent state, below --mamba-ssm-dtype; an unknown word is float32", choices=_DTYPES),
    Variable("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK", "switch", False, "one state slot fewer a request"),
    Variable("SGLANG_VLM_CACHE_SIZE_MB", "mib", 100, "MiB beside the pools for image embeddings"),
    Variable("SGLANG_MM_FEATURE_CACHE_MB", "mib", 1024, "MiB beside the pools for image features that stay on the GPU"),
    Variable("SGLANG_USE_CUDA_IPC_TRANSPORT", "switch", False, "image features stay on the GPU (cuda_ipc)"),
    Variable("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "switch", False,
             "permits a --context-length above the model's", moves=NOTHING),
    Variable("SGLANG_ENABLE_PP_SPEC", "switch", False, "speculation with pipeline stages on every role", moves=NOTHING),
    Variable("SGLANG_PP_LAYER_PARTITION", "ints", None, "layers of each pipeline stage, such as 23,22", moves=BOTH),
    Variable("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING", "switch", False, "sizes the pools after graph capture",
             moves=NOTHING, unread="MLA models are never sized so (arg_groups/overrides.py:1801-1808 at 0.5.23)"),
    Variable("SGLANG_USE_AITER", "switch", False, "ROCm: aiter's kernels, and pages of more than one token"),
    Variable("SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION", "switch", False,
             "ROCm: aiter leaves a given fraction as it is"),
    Variable("SGLANG_DSA_HIP_DISABLE_PRESHUFFLE", "switch", False,
             "ROCm: no preshuffled index, pages of one token"),
    Variable("SGLANG_EMBEDDINGS_SPARSE_HEAD", "word", None, "set at all, it switches the overlap schedule off"),
    Variable("SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "word", "4096",
             "tokens a rank sends to mori at most; refusals only", moves=NOTHING),
    Variable("SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "word", "128",
             "tokens a rank sends to pplx at most; refusals only", moves=NOTHING),
    Variable("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "word", "128",
             "tokens a rank sends to deepep_v2 at most; refusals only", moves=NOTHING),
    Variable("SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "word", None,
             "tokens a rank sends to FlashInfer's exchange at most; refusals only", moves=NOTHING),
    Variable("SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK", "word", "8192",
             "tokens a rank sends through MegaMoE at most; refusals only", moves=NOTHING),
    Variable("SGLANG_DISAGG_STAGING_BUFFER", "switch", False, "a PD pair moves caches through a staging buffer; "
             "refusals only", moves=NOTHING),
    Variable("SGLANG_RUST_SERVER", "switch", False, "the server in Rust; refusals only", moves=NOTHING),
    Variable("SGLANG_GRPC_PORT", "word", None, "port of the gRPC server; refusals only", moves=NOTHING),
)
# fmt: on
ENVIRONMENT: Mapping[str, Variable] = {row.name: row for row in _ROWS}


_ON, _OFF = ("true", "1", "yes", "y"), ("false", "0", "no", "n")


def switched_on(environment: Mapping[str, str], name: str) -> bool:
    """An on/off switch of the environment; one that is unset, or no word of either, is its default.

    Source: environ.py:66-90, 143-150 at 0.5.23.
    """
    word = environment.get(name, "").lower()
    return word in _ON or (word not in _OFF and bool(ENVIRONMENT[name].default))


def plainly_on(environment: Mapping[str, str], name: str) -> bool:
    """The same where the engine's older reader asks: `yes` is off there (utils/common.py:1424-1441 at 0.5.23)."""
    return environment.get(name, "").lower() in _ON[:2]


def unreadable_switches(environment: Mapping[str, str]) -> list[str]:
    """A line for each switch whose word the engine does not know: it warns, and goes on with the default."""
    return [
        f"{row.name}={quoted(text, row.name)} is neither true nor false: the engine reads {int(bool(row.default))}"
        for row in _ROWS
        if row.kind == "switch" and (text := environment.get(row.name)) is not None and text.lower() not in _ON + _OFF
    ]


def megabytes(environment: Mapping[str, str], name: str) -> int:
    """A size in MiB from the environment. Raises InputError for text that is no whole number from 0."""
    text = environment.get(name)
    if text is None:
        return int(str(ENVIRONMENT[name].default))
    if not text.strip().isdecimal() or int(text) > LARGEST:
        raise InputError(f"{name}={text!r} is not a size; write whole MiB, 0 or more")
    return int(text)
