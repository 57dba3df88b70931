"""What serving still needs from the part of HBM that stays free: graphs, activations, logits, images.

The indexer scores every query row of a prefill chunk against every index row of the batch's contexts, in fp32. One
index row stands for `index_kpool` tokens and a batch's contexts add up, cached prefixes included: prefilling a few
long conversations at once needs more than one long prompt does.
"""

from collections.abc import Sequence
from typing import NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.units import GIB, MIB

LOGIT_BYTES = 4
# The index is gathered by whole pages of 64 rows (layers/attention/dsa/kpool_plan.py:229, 298 at 0.5.23).
INDEX_PAGE_ROWS = 64
LOGITS_ROW_UNIT = 256  # DeepGEMM pads a row to 256 columns (layers/attention/mqa_logits_utils.py:25-26 at 0.5.23)
FREE_FRACTION = 0.2  # SGLANG_DSA_MQA_LOGITS_FREE_MEM_FRACTION
TOTAL_FRACTION = 0.3
UNCHECKED_LOGITS = 8_000_000  # smaller matrices are never split
ROCM_LOGITS = 2**31 - 1
_BUDGET = "layers/attention/mqa_logits_utils.py:22-102 at 0.5.23"
_UNBOUNDED = "layers/attention/dsa/dsa_indexer_kpool.py:881-945 at 0.5.20 (no bound)"

# Decode graphs against public boot logs (GiB printed; captured tokens = largest batch x draft tokens, over all
# step counts): B200 TP4 5.08 at 672, 6.16 at 780, ~9 at 1248; RTX PRO 6000 TP4 ~2 at 144, ~4 at 480.
GRAPH_BASE, GRAPH_TOKEN = GIB // 2, int(7.5 * MIB)
PREFILL_GRAPH = 1536 * MIB  # the engine's own allowance (arg_groups/memory_hook.py:272-328 at 0.5.23)
# An RTX PRO 6000 TP4 server with chunks of 8192 lost about 3 GiB of free memory while it warmed up.
ACTIVATION_TOKEN = 384 * 1024
ADAPTIVE_STEPS = (0, 1, 3, 5, 7)  # speculative/adaptive_spec_params.py:29-101 at 0.5.23
UNSURE = 0.4  # share by which an estimated transient may be off: the worst miss against the logs above


class Transient(NamedTuple):
    """One need of serving. `bound` says what it grows with; certainty is exact, derived or estimated."""

    name: str
    nbytes: int
    bound: str
    certainty: Certainty
    source: str


class Transients(NamedTuple):
    """The needs while one prompt of `prompt_tokens` is prefilled, and what batches of prompts could need."""

    items: tuple[Transient, ...]
    prompt_tokens: int
    largest_context: int | None  # tokens of context one prefill batch may hold before it dies; None: no limit
    pool_tokens: int

    @property
    def nbytes(self) -> int:
        return sum([item.nbytes for item in self.items])

    @property
    def unsure_bytes(self) -> int:
        """How far the sum may be off because of its estimated parts."""
        return int(sum([item.nbytes for item in self.items if item.certainty == "estimated"]) * UNSURE)


def index_rows(contexts: Sequence[int], index_kpool: int) -> int:
    """Index rows that a prefill batch with these contexts (tokens, cached prefix included) is scored against."""
    return sum([-(-(tokens // index_kpool) // INDEX_PAGE_ROWS) for tokens in contexts]) * INDEX_PAGE_ROWS


def logits_bytes(query_rows: int, rows: int) -> int:
    """Bytes of the fp32 logits of `query_rows` query rows against `rows` index rows, all at once."""
    return query_rows * _row_bytes(rows)


def logits_budget(total_bytes: int, free_bytes: int, mem_fraction_static: float, *, rocm: bool = False) -> int:
    """Bytes the bounded releases allow one logits matrix: a fifth of what is free and of what was to stay free.

    The engine takes the least of the two and of 0.3 of the card (_BUDGET), truncating each as here.
    """
    static_free = int(total_bytes * max(0.0, 1.0 - mem_fraction_static))
    budget = min(int(static_free * FREE_FRACTION), int(total_bytes * TOTAL_FRACTION))
    budget = min(int(max(free_bytes, 0) * FREE_FRACTION), budget)
    return max(1, min(budget, ROCM_LOGITS) if rocm else budget)


def bounded_logits_bytes(query_rows: int, rows: int, budget: int) -> int:
    """Bytes of the largest logits matrix when a bounded release splits the query rows into chunks that fit."""
    if query_rows * rows < UNCHECKED_LOGITS or query_rows * rows * LOGIT_BYTES <= budget:
        return logits_bytes(query_rows, rows)
    return logits_bytes(min(query_rows, max(1, budget // _row_bytes(rows))), rows)


def largest_context(free_bytes: int, query_rows: int, index_kpool: int) -> int:
    """Tokens of context whose logits still fit at once: what an unbounded release can prefill, in one batch."""
    columns = max(free_bytes, 0) // (query_rows * LOGIT_BYTES) // LOGITS_ROW_UNIT * LOGITS_ROW_UNIT
    return columns * index_kpool + index_kpool - 1  # what does not fill a pool has no row


def query_rows(deployment: Deployment) -> int:
    """Prompt tokens of one prefill step on one rank, context parallelism's share."""
    chunk = deployment.chunked_prefill_size
    return -(-(chunk if chunk > 0 else deployment.max_prefill_tokens) // deployment.attn_cp_size)


def graph_bytes(deployment: Deployment, running_requests: int, captured_tokens: int | None = None) -> int:
    """CUDA graphs: estimated. `captured_tokens`: largest batch times draft tokens, over all step counts captured."""
    nbytes = PREFILL_GRAPH if deployment.prefill_graph != "disabled" else 0
    if deployment.decode_graph == "disabled" or deployment.disaggregation_mode == "prefill":
        return nbytes
    if captured_tokens is None:
        batch = min(deployment.decode_graph_max_bs, running_requests)
        drafts = deployment.speculative_num_draft_tokens or 1
        most = deployment.max_draft_tokens or drafts
        adaptive = most > drafts
        captured_tokens = batch * (sum(step + 1 for step in ADAPTIVE_STEPS if step < most) if adaptive else drafts)
    return nbytes + GRAPH_BASE + GRAPH_TOKEN * captured_tokens


def transients(
    rank: Rank,
    sizes: PoolSizes,
    *,
    free_bytes: int,
    total_bytes: int,
    rocm: bool = False,
    prompt_tokens: int | None = None,
    captured_tokens: int | None = None,
    graphs_off_gib: float = 0.0,
) -> Transients:
    """What one prompt needs while it is prefilled, out of `free_bytes`; `total_bytes` is the card's memory.

    `graphs_off_gib` is how much more than estimated a boot's CUDA graphs took.

    `prompt_tokens` None: the longest prompt the server admits. The chunk of `deployment` is one DP worker's.
    """
    geometry, deployment, profile, _ = rank
    longest = min(deployment.context_length, sizes.tokens) - 6  # managers/tp_worker.py:550-573 at 0.5.23
    prompt = max(1, longest if prompt_tokens is None else prompt_tokens)
    items: list[Transient] = []
    graphs = graph_bytes(deployment, sizes.running_requests, captured_tokens)
    if graphs:
        graphs = max(graphs + int(graphs_off_gib * GIB), 0)
        bound = "grows with the largest captured batch and the draft tokens; kept for good"
        source = "a boot's own, grown as estimated" if graphs_off_gib else "fitted to five public boot logs"
        items.append(Transient("CUDA graphs", graphs, bound, "estimated", source))
    decode = deployment.disaggregation_mode == "decode"
    chunk = query_rows(deployment)
    width = sizes.running_requests * (deployment.max_draft_tokens or 1) if decode else chunk
    # Attention DP gathers every worker's tokens for the experts.
    activations = ACTIVATION_TOKEN * max(width, 2048) * deployment.attn_dp_size
    note = "grows with the chunk; the engine's own heuristic allows four times as much"
    items.append(Transient("activations", activations, note, "estimated", "warm-up of a public TP4 server"))
    left = free_bytes - graphs - activations
    if deployment.multimodal and rank.geometry.vision is not None:
        images = deployment.mm_reserve_mib * MIB
        note = "the engine's reserve for image features; the encoder's own work on large images is not in it"
        source = "mem_cache/kv_cache_configurator.py:214 at 0.5.23"
        items.append(Transient("image processing", images, note, "estimated", source))
        left -= images
    limit: int | None = None
    if not decode:
        query = min(chunk, prompt)
        rows = index_rows((prompt,), geometry.index_kpool)
        if profile.pooled_logits_bounded or geometry.index_kpool == 1:
            budget = logits_budget(total_bytes, free_bytes - graphs, deployment.mem_fraction_static, rocm=rocm)
            nbytes = bounded_logits_bytes(query, rows, budget)
            bound = f"at most {budget / GIB:.2f} GiB, a fifth of the free memory: longer contexts take more passes"
            items.append(Transient("indexer logits", nbytes, bound, "derived", _BUDGET))
        else:
            limit = largest_context(left, chunk, geometry.index_kpool)
            bound = "chunk x context rows x 4 B, over all prompts of a prefill batch; nothing bounds it"
            items.append(Transient("indexer logits", logits_bytes(query, rows), bound, "exact", _UNBOUNDED))
    return Transients(tuple(items), prompt, limit, sizes.tokens)


def _row_bytes(rows: int) -> int:
    return -(-rows // LOGITS_ROW_UNIT) * LOGITS_ROW_UNIT * LOGIT_BYTES
