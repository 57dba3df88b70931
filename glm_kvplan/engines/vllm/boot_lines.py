"""What a vLLM boot log says of memory: the lines it prints, and how each is read."""

import ast
import re
from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.engines.flag import check_value
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.errors import InputError
from glm_kvplan.units import GIB

LONGEST_LINE = 1 << 20
_NUMBER = r"(\d{1,15}(?:\.\d{1,6})?)"
_COUNT = r"([\d,]{1,20})"


class Printed(NamedTuple):
    """One printed number. `step` is what its last digit means, in its own unit; `line` counts from 1."""

    name: str
    value: float
    step: float
    line: int

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


def _line(pattern: str, *named: tuple[str, float]) -> LogLine:
    return LogLine(re.compile(pattern), tuple(name for name, _ in named), tuple(step for _, step in named))


# In the order of a start. Values in GiB unless their name says otherwise.
LINES = (
    _line(rf"Model loading took {_NUMBER} GiB memory", ("weights", 0.01)),
    _line(rf"Setting attention block size to {_COUNT} tokens", ("block size", 1)),
    _line(rf"Padding mamba page size by {_NUMBER}%", ("state padding %", 0.01)),
    _line(rf"Estimated CUDA graph memory: {_NUMBER} GiB total", ("graphs estimated", 0.01)),
    _line(r"Available KV cache memory: (-?\d+(?:\.\d+)?) GiB", ("available", 0.01)),
    _line(rf"reserved {_NUMBER} GiB memory for KV Cache as specified", ("reserved", 0.01)),
    _line(rf"Overriding num_gpu_blocks={_COUNT} with num_gpu_blocks_override={_COUNT}", ("blocks", 1), ("override", 1)),
    _line(rf"Auto-fit max_model_len: reduced from {_COUNT} to {_COUNT}", ("context before", 1), ("fitted context", 1)),
    _line(
        rf"KV cache size: {_COUNT} tokens, Maximum concurrency for {_COUNT} tokens per request: {_NUMBER}x",
        ("cache tokens", 1), ("context", 1), ("concurrency", 0.01),
    ),
    _line(rf"Graph capturing finished in .{{1,20}}? took {_NUMBER} GiB", ("graphs", 0.01)),
    _line(
        rf"Free memory on device \({_NUMBER}/{_NUMBER} GiB\) on startup",
        ("free before", 0.01), ("card", 0.01),
    ),
    _line(
        rf"Actual usage is {_NUMBER} GiB for .{{1,60}}? {_NUMBER} GiB for peak activation, and {_NUMBER} GiB for CUDA",
        ("weights and context", 0.01), ("activations", 0.01), ("graphs", 0.01),
    ),
    _line(
        rf"\({_COUNT}\), \({_NUMBER} GiB KV cache is needed, .{{1,60}}?memory \((-?\d+(?:\.\d+)?) GiB\)",
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
_LEAST = ("available", "free before", "card")  # of several GPUs the least counts
_REFUSAL = re.compile("|".join(map(re.escape, REFUSALS)))
_RELEASE = (
    re.compile(r"vLLM (?:API )?server version v?(\d+\.\d+\.\d+\S*)"),
    re.compile(r"Initializing a V1 LLM engine \(v(\d+\.\d+\.\d+[^)]*)\)"),
    re.compile(r"\bversion {1,4}(\d+\.\d+\.\d+\S*)"),
)
_ENGINE, _ERROR, _QUOTE = re.compile("Initializing a V1 LLM engine"), re.compile("Error"), re.compile("[\"']")
_ARGUMENTS = re.compile(r"non-default args: (\{.*\})\s*$")
_FACTS = re.compile(
    r"\b(max_seq_len|tensor_parallel_size|data_parallel_size|decode_context_parallel_size|enforce_eager|kv_cache_dtype|"
    r"enable_prefix_caching|quantization|dtype)=([^,\s]{1,60})"
)
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def _found(pattern: re.Pattern[str], line: str) -> re.Match[str] | None:
    """The match, unless a quote stands before it: then it is a text that somebody sent, in a request's record."""
    found = pattern.search(line)
    if found is None:
        return None
    refusal = _REFUSAL.search(line)  # its own words hold quotes
    begins = found.start() if refusal is None else min(found.start(), refusal.start())
    return found if _QUOTE.search(line, 0, begins) is None else None


def recognizes(text: str) -> bool:
    """Whether a text looks like a log of vLLM."""
    head = text[: 1 << 22]
    return "Initializing a V1 LLM engine" in head or any(line.pattern.search(head) for line in LINES)


def read_boot(text: str) -> Boot:
    """What a boot log says. Raises InputError for a text that is none of vLLM's."""
    release = model = refusal = None
    flags: dict[str, object] = {}
    facts: dict[str, str] = {}
    printed: dict[str, Printed] = {}
    warnings: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _ESCAPES.sub("", raw[:LONGEST_LINE])
        release = release or next((found[1] for pattern in _RELEASE if (found := _found(pattern, line))), None)
        arguments = _found(_ARGUMENTS, line)
        if arguments is not None:
            flags, model = _flags_of(arguments[1], warnings)
        if _found(_ENGINE, line) is not None:
            facts |= {name: value.strip("'\"") for name, value in _FACTS.findall(line)}
        for known in LINES:
            found = _found(known.pattern, line)
            if found is None:
                continue
            for name, value, step in zip(known.names, found.groups(), known.steps, strict=True):
                _keep(printed, Printed(name, float(value.replace(",", "")), step, number))
        if refusal is None and _found(_ERROR, line) is not None and any(words in line for words in REFUSALS):
            refusal = line[line.index("Error") + len("Error") :].strip(": ")[:600]
    if not printed and refusal is None:
        raise InputError("no line of a vLLM boot log found: none of its memory lines stands in the text")
    return Boot(release, model, flags, facts, printed, refusal, tuple(warnings))


def _keep(printed: dict[str, Printed], new: Printed) -> None:
    old = printed.get(new.name)
    if old is None or (new.name in _LEAST and new.value < old.value):
        printed[new.name] = new


def _flags_of(text: str, warnings: list[str]) -> tuple[dict[str, object], str | None]:
    """The memory flags of the printed arguments, a Python dictionary; and the model."""
    try:
        given = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        warnings.append("the line of non-default args cannot be read: give the launch command too")
        return {}, None
    if not isinstance(given, dict):
        return {}, None
    flags: dict[str, object] = {}
    for name, value in given.items():
        row = FLAG.get(name) if isinstance(name, str) else None
        if row is None or row.role != "flag" or value is None:
            continue
        if row.kind == "str" and not isinstance(value, str):
            continue
        try:
            check_value(row, value)
        except InputError as error:
            warnings.append(f"an argument of the log is left out: {error}")
            continue
        flags[name] = value
    model = given.get("model_tag") or given.get("model")
    return flags, model if isinstance(model, str) else None


def gib(printed: Printed) -> int:
    """A printed number of GiB in bytes."""
    return int(printed.value * GIB)
