"""The sparse MLA backends that read this model's rows: which GPU, which cache dtypes, which strides."""

from typing import NamedTuple

FLASHMLA = "FLASHMLA_SPARSE"


class Backend(NamedTuple):
    """A sparse MLA backend that can read rows without a RoPE part, on one generation of GPUs."""

    name: str
    generation: int  # major compute capability
    dtypes: tuple[str, ...]  # cache dtypes it takes, most preferred first
    block_multiple: int  # of --block-size
    decode_context: bool
    stride_rows: int  # a packed block is a multiple of so many rows; 0: of a 64-row page where it has several


# In vLLM's order of preference within a generation.
BACKENDS = (
    Backend("FLASHINFER_MLA_SPARSE_SM90", 9, ("auto", "bfloat16", "fp8", "fp8_e4m3"), 64, False, 1),
    Backend("FLASH_ATTN_MLA_SPARSE", 9, ("auto", "bfloat16"), 64, False, 1),
    Backend(FLASHMLA, 9, (), 64, True, 1),  # its dtypes stand in the profile
    Backend("FLASHINFER_MLA_SPARSE", 10, ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3"), 32, True, 32),
    Backend("FLASHINFER_MLA_SPARSE_SM120", 12, ("auto", "fp8", "fp8_e4m3", "fp8_ds_mla"), 64, False, 0),
)


def find_backend(name: str) -> Backend:
    """The backend of a resolved deployment."""
    return next(backend for backend in BACKENDS if backend.name == name)
