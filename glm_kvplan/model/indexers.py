"""Which full-attention layers run an indexer of their own, and so own an index-K buffer."""

from collections.abc import Callable, Mapping
from typing import Any


def shares_indexer(config: Mapping[str, Any], text: Mapping[str, Any]) -> Callable[[int], bool]:
    """A test of one layer id: does it reuse the top-k of a layer before it?

    `config` is the whole config.json, `text` its text part. The engine looks at its top-level config, onto which it
    lifts the `index_topk_*` keys of the text part but neither `indexer_types` nor `cli_factor`; the published
    `text_config.indexer_types` is therefore never read, in a flat config it is.
    Source: configs/model_config.py:488-522 and configs/glm5_next.py:8-74 at 0.5.23.
    """
    kinds = config.get("indexer_types")
    if kinds is not None:
        return lambda layer: layer < len(kinds) and kinds[layer] == "shared"
    factor = config.get("cli_factor")
    if factor is not None and factor > 1:
        return lambda layer: layer % factor != 0
    pattern = text.get("index_topk_pattern")
    if pattern is not None:
        return lambda layer: layer < len(pattern) and pattern[layer] == "S"
    frequency = text.get("index_topk_freq")
    if frequency is None or frequency == 1:
        return lambda layer: False
    offset = text.get("index_skip_topk_offset")
    first = 1 if offset is None else offset - 1
    return lambda layer: max(layer - first, 0) % frequency != 0
