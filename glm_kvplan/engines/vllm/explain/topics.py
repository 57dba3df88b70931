"""The topics by name, in the order in which people ask."""

from collections.abc import Callable

from glm_kvplan.engines.explanation import Explanation
from glm_kvplan.engines.vllm.explain import block_topics as of_blocks
from glm_kvplan.engines.vllm.explain import request_topics as of_requests
from glm_kvplan.engines.vllm.explain.ground import Ground

TOPICS: dict[str, tuple[str, Callable[[Ground], Explanation]]] = {
    "request": ("why a request holds blocks before its first token", of_requests.request),
    "block": ("how many tokens a block holds, and why", of_blocks.block),
    "padding": ("what of a block nothing is written to", of_blocks.padding),
    "boot-line": ("what the tokens of the boot line mean", of_requests.boot_line),
    "prefix-caching": ("what prefix caching costs every request", of_requests.prefix_caching),
    "draft": ("what a draft token adds", of_requests.draft),
    "dtype": ("what fp8 rows gain", of_blocks.dtype),
    "memory": ("what is left for the blocks", of_blocks.memory),
}
TITLES = {name: title for name, (title, _) in TOPICS.items()}
