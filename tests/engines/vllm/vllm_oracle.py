"""vLLM's own plans (tests/data/vllm.jsonl.gz), and the flags each was made from."""

import gzip
import json
from functools import lru_cache
from typing import Any

from paths import DATA

from glm_kvplan.engines.vllm.blocks import Blocks, blocks_of
from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.profile import load_profile
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.engines.vllm.resolve.resolver import resolve
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.model.loader import bundled_geometry

NAMES = {"tp": "tensor_parallel_size", "kv": "kv_cache_dtype", "prefix": "enable_prefix_caching"}
NOT_FLAGS = ("available", "name", "observed", "mtp")


@lru_cache
def records() -> tuple[dict[str, Any], ...]:
    with gzip.open(DATA / "vllm.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def flags_of(record: dict[str, Any]) -> dict[str, object]:
    """The flags a record was made from, by vLLM's field names."""
    given = {NAMES.get(name, name): value for name, value in record["input"].items() if name not in NOT_FLAGS}
    if record["input"]["mtp"]:
        given["speculative_config"] = {"method": "mtp", "num_speculative_tokens": record["input"]["mtp"]}
    return given


def resolved(flags: dict[str, object], release: str = "0.33.0", gpu: str = "h200", **environment: str) -> Deployment:
    """Flags resolved for the published checkpoint."""
    profile = load_profile(release)
    return resolve(flags, geometry=bundled_geometry(), profile=profile, gpu=find_gpu(gpu), environment=environment)


def blocks(flags: dict[str, object], release: str = "0.33.0", gpu: str = "h200", **environment: str) -> Blocks:
    """The blocks of flags for the published checkpoint."""
    deployment = resolved(flags, release, gpu, **environment)
    return blocks_of(Rank(bundled_geometry(), deployment, load_profile(release)))
