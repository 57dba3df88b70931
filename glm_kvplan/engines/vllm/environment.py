"""The table of vLLM's environment variables that change bytes, or what it refuses."""

from collections.abc import Mapping

from glm_kvplan.engines.flag import NOTHING, Variable

# Source: envs.py at 0.33.0 to 0.33.0.
# fmt: off
_ROWS = (
    Variable("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "switch", False,
             "permits a --max-model-len above the model's", moves=NOTHING),
    Variable("VLLM_KV_CACHE_LAYOUT", "word", None,
             "how caches lie in memory; this model's take one layout alone"),
    Variable("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "switch", True,
             "take an estimate of the CUDA graphs from the blocks' memory"),
)
# fmt: on
ENVIRONMENT: Mapping[str, Variable] = {row.name: row for row in _ROWS}
