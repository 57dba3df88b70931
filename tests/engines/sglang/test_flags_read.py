"""No launch flag is accepted and then forgotten, and none is read that cannot be given."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.resolve.arguments import Arguments

PACKAGE = Path(kv.__file__).parent
RESOLVED = {field.name for field in fields(Arguments)}
# Flags that no rule resolves: who reads them instead.
READ_BY = {
    "quantization": "engines/sglang/weight_format.py",
    "moe_runner_backend": "memory/weights.py",
    "mm_enable_dp_encoder": "memory/weights.py",
    "json_model_override_args": "engines/sglang/resolve/unwired.py",
    "speculative_draft_kv_cache_dtype": "engines/sglang/resolve/unwired.py",
    "speculative_draft_model_quantization": "engines/sglang/resolve/unwired.py",
    "cpu_offload_gb": "engines/sglang/resolve/unwired.py",
    "int8_mamba_ckpt_size": "engines/sglang/resolve/unwired.py",
}
# Flags that move no byte of a pool: the allocator's region, where a setting stands, the device of all.
WITHOUT_BYTES = {"enable_memory_saver", "hisparse_config", "device"}


def test_every_flag_is_read_or_warned_about() -> None:
    names = {flag.name for flag in FLAGS}
    assert names - RESOLVED == READ_BY.keys() | WITHOUT_BYTES
    for name, path in READ_BY.items():
        assert f'"{name}"' in (PACKAGE / path).read_text(encoding="utf-8")


def test_no_flag_is_read_that_cannot_be_given() -> None:
    names = {flag.name for flag in FLAGS} | {"kv_row_layout"}
    read = re.compile(r'flags\.get\("(\w+)"|"(\w+)" in \w+\.flags')
    for path in PACKAGE.rglob("*.py"):
        for found in read.finditer(path.read_text(encoding="utf-8")):
            assert (found[1] or found[2]) in names, path


@pytest.mark.parametrize(
    "flags",
    [
        {"json_model_override_args": {"max_position_embeddings": 4096}},
        {"speculative_algorithm": "EAGLE", "speculative_draft_kv_cache_dtype": "bf16"},
        {"speculative_algorithm": "EAGLE", "speculative_draft_model_quantization": "fp8"},
        {"cpu_offload_gb": 4},
        {"enable_int8_mamba_checkpoint": True},
    ],
    ids=str,
)
def test_what_is_not_planned_is_said(flags: dict[str, object]) -> None:
    said = " ".join(kv.plan(flags, gpu="h200").resolution.warnings)
    assert next(reversed(flags)).replace("_", "-") in said
