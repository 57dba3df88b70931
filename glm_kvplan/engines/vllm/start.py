"""What vLLM does with the memory it has for blocks: how many, the context they allow, and whether it starts."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from glm_kvplan.engines.vllm.blocks import Blocks
from glm_kvplan.units import GIB

FailureKind = Literal["no memory", "one request", "requests above blocks"]


class Failure(NamedTuple):
    """Why a start fails, in our words, and where the release says so."""

    kind: FailureKind
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Start:
    """The blocks one GPU gets out of `available` bytes; of an engine the least of its GPUs counts.

    `max_model_len` is what vLLM goes on with: with --max-model-len -1 what the blocks can hold.
    """

    blocks: Blocks
    available: int
    count: int
    max_model_len: int
    failure: Failure | None

    @property
    def usable(self) -> int:
        """Blocks that requests can have: vLLM never gives one of them out."""
        return max(self.count - 1, 0)

    @property
    def concurrency(self) -> float:
        """What the boot line calls maximum concurrency."""
        return self.count / self.blocks.needed(self.max_model_len)

    @property
    def printed_tokens(self) -> int:
        """What the boot line calls the cache size: the concurrency in tokens, not tokens that fit."""
        return int(self.concurrency * self.max_model_len)

    @property
    def line(self) -> str:
        """The line of the boot log."""
        return (
            f"GPU KV cache size: {self.printed_tokens:,} tokens, Maximum concurrency for {self.max_model_len:,} tokens "
            f"per request: {self.concurrency:.2f}x"
        )

    @property
    def longest_context(self) -> int:
        """Tokens the longest single request can have; 0 where not even a short one fits."""
        return min(self.blocks.longest_context(self.count), self.max_model_len)

    def requests(self, context: int) -> int:
        """Requests of `context` tokens that run at once in this engine; 0 above --max-model-len."""
        if context > self.max_model_len:
            return 0
        return min(self.usable // self.blocks.needed(context), self.blocks.rank.deployment.max_num_seqs)


def start(blocks: Blocks, available: int) -> Start:
    """What becomes of `available` bytes a GPU, as vLLM decides it (get_kv_cache_configs, then the graphs)."""
    deployment, profile = blocks.rank.deployment, blocks.rank.profile
    count = max(blocks.count(available), 0)
    if deployment.num_gpu_blocks_override is not None:
        available = count * blocks.nbytes
    length = deployment.max_model_len
    if deployment.fits_max_model_len:
        length = max(min(length, blocks.longest_context(count)), 0)

    def failing(kind: FailureKind, reason: str, subject: str) -> Start:
        return Start(blocks, available, count, length, Failure(kind, reason, profile.source(subject)))

    if available < 0:
        return failing("no memory", f"{_gib(-available)} are lacking before the first block", "no_memory")
    if available <= blocks.nbytes:
        return failing(
            "no memory",
            f"{_gib(available)} for blocks, and one of {_gib(blocks.nbytes)} is never given out: none is left",
            "no_memory",
        )
    if deployment.fits_max_model_len and not length:
        needed = blocks.needed(1)
        return failing("one request", f"{count} blocks, and a request of one token needs {needed + 1}", "auto_fit")
    needed = blocks.needed(length)
    if needed * blocks.nbytes > available - blocks.nbytes:
        return failing(
            "one request",
            f"one request of {length:,} tokens needs {needed} blocks and one is never given out; there are {count}"
            + _longest_that_fits(blocks, count),
            "one_request",
        )
    if deployment.full_cuda_graphs and deployment.max_num_seqs > count:
        return failing(
            "requests above blocks",
            f"--max-num-seqs {deployment.max_num_seqs} is above the {count} blocks, and the CUDA graphs want a state "
            f"block for each; lower it to {count}",
            "mamba_blocks",
        )
    return Start(blocks, available, count, length, None)


def _longest_that_fits(blocks: Blocks, count: int) -> str:
    longest = blocks.longest_context(count)
    return f"; --max-model-len {longest} fits" if longest else "; not even a request of one token fits"


def _gib(nbytes: int) -> str:
    return f"{nbytes / GIB:.2f} GiB"
