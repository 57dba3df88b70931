"""What a vLLM boot log says of memory: the lines it prints, and how each is read."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_NUMBER = r"(\d{1,15}(?:\.\d{1,6})?)"
_COUNT = r"(\d[\d,]{0,19})"


class Printed(NamedTuple):
    """One printed number. `step` is what its last digit means, in its own unit; `line` counts from 1."""

    name: str
    value: float
    step: float
    line: int

    @property
    def ends(self) -> tuple[float, float]:
        """What the number itself lies between."""
        return self.value - self.step / 2, self.value + self.step / 2

    def agrees(self, value: float) -> bool:
        """Whether `value` would be printed so."""
        return abs(value - self.value) <= self.step / 2 + 1e-9 * max(1.0, abs(value))


class LogLine(NamedTuple):
    """One line of the log: a pattern whose groups are numbers, and what they are called."""

    pattern: re.Pattern[str]
    names: tuple[str, ...]
    steps: tuple[float, ...]


class Boot(NamedTuple):
    """What a log says. Of a number printed by several GPUs the least of memory and the first of others is kept.

    `flags` are the server's own arguments by vLLM's field names, as far as the log prints them; `refusal` is the error
    that ended the start, in vLLM's words.
    """

    release: str | None
    model: str | None
    flags: Mapping[str, object]
    facts: Mapping[str, str]
    printed: Mapping[str, Printed]
    refusal: str | None
    warnings: tuple[str, ...]
    origin: str = ""  # where it begins

    @property
    def arguments(self) -> Mapping[str, object]:
        """What tells one server from another in a log of several."""
        return self.flags


def _line(pattern: str, *named: tuple[str, float]) -> LogLine:
    return LogLine(re.compile(pattern), tuple(name for name, _ in named), tuple(step for _, step in named))


# In the order of a start, each from where its message begins. Values in GiB unless their name says otherwise.
LINES = (
    _line(rf"Model loading took {_NUMBER} GiB memory", ("weights", 0.01)),
    _line(rf"Setting attention block size to {_COUNT} tokens", ("block size", 1)),
    _line(rf"Padding mamba page size by {_NUMBER}%", ("state padding %", 0.01)),
    _line(rf"Estimated CUDA graph memory: {_NUMBER} GiB total", ("graphs estimated", 0.01)),
    _line(r"Available KV cache memory: (-?\d{1,15}(?:\.\d{1,6})?) GiB", ("available", 0.01)),
    _line(
        rf"Initial free memory .{{1,40}}?, reserved {_NUMBER} GiB memory for KV Cache as specified", ("reserved", 0.01)
    ),
    _line(rf"Overriding num_gpu_blocks={_COUNT} with num_gpu_blocks_override={_COUNT}", ("blocks", 1), ("override", 1)),
    _line(rf"Auto-fit max_model_len: reduced from {_COUNT} to {_COUNT}", ("context before", 1), ("fitted context", 1)),
    _line(
        rf"(?:[\w +]{{1,40}} )?KV cache size: {_COUNT} tokens, Maximum concurrency for {_COUNT} tokens per request: "
        rf"{_NUMBER}x",
        ("cache tokens", 1), ("context", 1), ("concurrency", 0.01),
    ),
    _line(rf"Graph capturing finished in .{{1,20}}? took {_NUMBER} GiB", ("graphs", 0.01)),
    _line(
        rf"Free memory on device \({_NUMBER}/{_NUMBER} GiB\) on startup",
        ("free before", 0.01), ("card", 0.01),
    ),
    _line(
        rf"Free memory on device .{{1,200}}?Actual usage is {_NUMBER} GiB for .{{1,60}}? {_NUMBER} GiB for peak "
        rf"activation, and {_NUMBER} GiB for CUDA",
        ("weights and context", 0.01), ("activations", 0.01), ("graphs", 0.01),
    ),
)  # fmt: skip
# Numbers in the error that ends a start, anywhere in it.
ERROR_NUMBERS = (
    _line(
        rf"\({_COUNT}\), \({_NUMBER} GiB KV cache is needed, .{{1,60}}?memory \((-?\d{{1,15}}(?:\.\d{{1,6}})?) GiB\)",
        ("context", 1), ("needed", 0.01), ("left for blocks", 0.01),
    ),
    _line(rf"the estimated maximum model length is {_COUNT}", ("longest that fits", 1)),
    _line(
        rf"max_num_seqs \({_COUNT}\) exceeds available Mamba cache blocks \({_COUNT}\)",
        ("requests asked", 1), ("blocks", 1),
    ),
)  # fmt: skip
REFUSALS = (
    "To serve at least one request",
    "No available memory for the cache blocks",
    "exceeds available Mamba cache",
    "No valid attention backend found",
    "is not valid for this configuration",
    "Cannot auto-fit max_model_len",
    "DCP not support sliding window",
)
LEAST = ("available", "free before", "card")  # of several GPUs the least counts
# The logger's prefix: `(EngineCore_DP0 pid=9) INFO 09-03 10:11:30 [FILE:LINE]`.
PREFIX = re.compile(
    r"(?:\(\w{1,80} pid=\d{1,10}\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d "
    r"\[[\w./-]{1,120}:\d{1,6}\]"
)
ARGUMENTS, ENGINE = "non-default args: ", "Initializing a V1 LLM engine"
RELEASE = (
    re.compile(r"vLLM (?:API )?server version v?(\d{1,5}\.\d{1,5}\.\d{1,5}[^\s,]{0,60})"),
    re.compile(r"Initializing a V1 LLM engine \(v(\d{1,5}\.\d{1,5}\.\d{1,5}[^)]{0,60})\)"),
    re.compile(r"[^\w\"']{0,60}version {1,4}(\d{1,5}\.\d{1,5}\.\d{1,5}\S{0,60})"),  # beside the logo
)
DRAFT = re.compile(r"speculative_config=SpeculativeConfig\(method='(\w{1,40})'.{0,400}?num_spec_tokens=(\d{1,3})\b")
# A piece of every line that is read: what a file is searched for.
ANCHORS = (
    *("server version", "version 0.", ARGUMENTS, ENGINE, "Model loading took"),
    *("Setting attention block size", "Padding mamba page size", "Estimated CUDA graph memory", "KV cache memory:"),
    *("memory for KV Cache as specified", "Overriding num_gpu_blocks", "Auto-fit max_model_len", "KV cache size:"),
    *(
        "Graph capturing finished",
        "Free memory on device",
        "for peak activation",
        "GiB KV cache is needed",
        "estimated maximum model length",
    ),
    *REFUSALS,
)
FACTS = re.compile(
    r"\b(max_seq_len|tensor_parallel_size|data_parallel_size|decode_context_parallel_size|enforce_eager|kv_cache_dtype|"
    r"enable_prefix_caching|quantization|dtype)=([^,\s]{1,60})"
)
