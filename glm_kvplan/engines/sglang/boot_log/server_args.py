"""The engine's `server_args=...` line: a mapping of some 500 fields, of which only a known few are ever kept.

Nothing is evaluated but plain literals, and a field that is not in the list below is dropped where it is read:
keys, passwords and tokens never reach a variable that outlives the scan.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.errors import InputError

# Fields that decide memory. Graph and kernel choices without a size of their own are left out on purpose.
_KEPT = (
    "model_path revision device page_size "
    "tp_size pp_size dp_size enable_dp_attention attn_dp_size attn_cp_size enable_prefill_cp cp_strategy dcp_size "
    "ep_size moe_dp_size moe_dense_tp_size moe_a2a_backend enable_dp_lm_head nnodes "
    "kv_cache_dtype max_total_tokens context_length attention_backend dsa_prefill_backend dsa_decode_backend "
    "enable_hisparse enable_unified_memory enable_page_major_kv_layout enable_kv_cache_sharding "
    "max_mamba_cache_size mamba_full_memory_ratio mamba_ssm_dtype mamba_radix_cache_strategy disable_radix_cache "
    "disable_overlap_schedule linear_attn_backend enable_linear_replayssm_spec linear_replayssm_cache_len "
    "enable_int8_mamba_checkpoint "
    "speculative_algorithm speculative_num_steps speculative_eagle_topk speculative_num_draft_tokens "
    "speculative_adaptive speculative_dflash_block_size "
    "max_running_requests chunked_prefill_size max_prefill_tokens "
    "mem_fraction_static language_only enable_multimodal mm_feature_transport keep_mm_feature_on_device "
    "disaggregation_mode disaggregation_decode_extra_slots disaggregation_decode_enable_radix_cache "
    "enable_pd_role_switch "
    "enable_hierarchical_cache hicache_ratio hicache_size hicache_mem_layout hicache_io_backend "
    "hicache_host_memory_mode hicache_host_memory_fraction hicache_storage_backend "
)
KEPT = frozenset(_KEPT.split())

LONGEST_VALUE = 4096
_NAME = re.compile(r"\s*(?:'(\w{1,80})'|\"(\w{1,80})\")\s*:\s*|\s*(\w{1,80})=")
_OPEN, _CLOSE = "([{", ")]}"
_USERINFO = re.compile(r"//[^/@\s]*@")


class ServerArguments(NamedTuple):
    """What was kept. `names` holds every field's name, never a value; `complete` says the line was not cut."""

    values: dict[str, object]
    names: frozenset[str]
    complete: bool


def parse(text: str) -> ServerArguments | None:
    """The arguments in `text`, which starts at `{` or `ServerArgs(`; None where it starts with neither.

    Both printed forms are read: `{'tp_size': 4, ...}` of releases 0.5.20 to 0.5.23 and `ServerArgs(tp_size=4, ...)`.
    Values are literals or are dropped. A line that was cut gives what came before the cut.
    """
    opening = re.match(r"\{|ServerArgs\(", text)
    if opening is None:
        return None
    values: dict[str, object] = {}
    names: set[str] = set()
    at = opening.end()
    while True:
        match = _NAME.match(text, at)
        if match is None:
            return ServerArguments(values, frozenset(names), text[at:].lstrip()[:1] in tuple(_CLOSE))
        end = _value_end(text, match.end())
        if end is None:
            return ServerArguments(values, frozenset(names), False)
        name = match.group(1) or match.group(2) or match.group(3)
        names.add(name)
        if name in KEPT:
            _keep(values, name, text[match.end() : end])
        at = end + 1
        if text[end] != ",":
            return ServerArguments(values, frozenset(names), True)


def from_mapping(data: Mapping[str, object]) -> ServerArguments:
    """The same from a JSON object, as /server_info gives it."""
    values: dict[str, object] = {}
    for name, value in data.items():
        if name in KEPT and isinstance(value, str | int | float | bool):
            values[name] = _clean(value)
    return ServerArguments(values, frozenset(data), True)


def _keep(values: dict[str, object], name: str, text: str) -> None:
    if len(text) > LONGEST_VALUE:
        return
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    if isinstance(value, str | int | float | bool):
        values[name] = _clean(value)


def _clean(value: object) -> object:
    """A model path may be an address with a user and a password in it."""
    return _USERINFO.sub("//", value) if isinstance(value, str) else value


def _value_end(text: str, start: int) -> int | None:
    """Where the value that starts at `start` ends: its comma, or the closing bracket of the whole. None: it was cut."""
    depth, quote, at = 0, "", start
    for at in _marks(text, start):
        mark = text[at]
        if quote:
            if mark == quote and not _escaped(text, at):
                quote = ""
        elif mark in "'\"":
            quote = mark
        elif mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            if depth == 0:
                return at
            depth -= 1
        elif depth == 0:
            return at
    return None


_MARK = re.compile(r"['\"()\[\]{},]")


def _marks(text: str, start: int) -> Iterator[int]:
    return (match.start() for match in _MARK.finditer(text, start))


def _escaped(text: str, at: int) -> bool:
    """An odd number of backslashes stands before the quote."""
    before = at
    while before and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1


def require_model(arguments: Mapping[str, object]) -> None:
    """Raises InputError where the arguments name no tensor-parallel width, which every server has."""
    if "tp_size" not in arguments:
        raise InputError("the server's arguments name no tp_size; is this an SGLang server of release 0.5.20 or later?")
