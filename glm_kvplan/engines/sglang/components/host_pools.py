"""Host (DRAM) pools of HiCache: what one rank's copies of latent KV, KDA state and index keys cost."""

from typing import NamedTuple

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.sglang.components import draft_model, latent_kv
from glm_kvplan.engines.sglang.components import index_keys as indexer
from glm_kvplan.engines.sglang.components.component import KV_SPLIT
from glm_kvplan.engines.sglang.components.pool_units import Unit
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank

STAGING_PAGES = 64  # pages of the write-back buffer on the GPU (mem_cache/pool_host/base.py:30 at 0.5.23)

_KV = Account(
    "host_kv",
    "Host latent KV",
    "token",
    "kv_layers * host_row_bytes",
    "mem_cache/pool_host/base.py:221-230, mem_cache/pool_host/mla.py:195-208 at 0.5.23",
    charged=False,
    backed_up=False,
)
_MAMBA = Account(
    "host_mamba",
    "Host KDA state",
    "state slot",
    "kda_layers * layer_state_bytes",
    "mem_cache/pool_host/mamba.py:165-174 at 0.5.23",
    charged=False,
    backed_up=False,
)
_INDEXER = Account(
    "host_indexer",
    "Host index keys",
    "page",
    "index_layers * index_page_bytes",
    "mem_cache/pool_host/dsa.py:200-340 at 0.5.23",
    charged=False,
    backed_up=False,
)

_DRAFT = Account(
    "host_draft",
    "Host draft model KV",
    "token",
    "draft_layers * draft_row_bytes",
    "mem_cache/hybrid_cache/hybrid_pool_assembler.py:1619-1654 at 0.5.23",
    charged=False,
    backed_up=False,
)


class HostPool(NamedTuple):
    """One host pool of one rank, by the engine's name: "kv", "mamba", "indexer" or "draft".

    `pages` holds the one page (or slot) more that the engine always adds; every one of them can hold data.
    `nbytes` is allocated; `requested_bytes` is what the engine checks against host memory, a little less for the
    indexer. `staging_bytes` lies on the GPU, outside the memory budget.
    """

    name: str
    page_size: int  # tokens a page; 1 for state slots
    pages: int
    layers: int
    row_bytes: int  # of one token or slot in one layer
    nbytes: int
    staging_bytes: int
    ledger: Ledger

    @property
    def unit(self) -> Unit:
        """What the pool holds: tokens (kv, indexer, draft) or state slots (mamba)."""
        return "state slot" if self.name == "mamba" else "token"

    @property
    def units(self) -> int:
        """How many of them."""
        return self.pages * self.page_size

    @property
    def bytes_per_unit(self) -> int:
        """Bytes of one token or slot over all its layers."""
        return self.row_bytes * self.layers

    @property
    def requested_bytes(self) -> int:
        """Bytes the engine compares with (and books from) the memory the rank may claim."""
        return self.units * self.bytes_per_unit


def row_bytes(rank: Rank) -> int:
    """Bytes of one token in one layer of the KV host pool: 1024 (bf16), 512, or 528 where scales are kept.

    Without `host_row_is_device_row` a scaled row is stored as its elements alone, so its scales are lost.
    Source: mem_cache/hybrid_cache/hybrid_pool_assembler.py:184-187, 1331-1340 at 0.5.23.
    """
    geometry, deployment, profile, _ = rank
    itemsize = 2 if deployment.kv_layout == "bf16" else 1
    if profile.host_row_is_device_row:
        row = latent_kv.row_bytes(geometry, deployment.kv_layout, profile)
    else:
        row = geometry.latent_width * itemsize
    if deployment.hicache_mem_layout == KV_SPLIT:
        row += geometry.index_head_dim * itemsize  # this layout keeps index keys beside the latent rows
    return row


def kv_pool(rank: Rank, layers: int, tokens: int) -> HostPool:
    """The KV pool for `tokens` tokens before rounding over `layers` full-attention and packed draft layers."""
    geometry, deployment, profile, _ = rank
    page_size = deployment.page_size
    pages = tokens // page_size + 1
    row = stored = row_bytes(rank)
    if deployment.hicache_mem_layout == KV_SPLIT and deployment.row_scales:
        # Checked as bare rows, allocated as wide as the device's (mem_cache/pool_host/mla.py:347-425 at 0.5.23).
        stored += latent_kv.row_bytes(geometry, deployment.kv_layout, profile) - geometry.latent_width
    staged = _staged_pages(deployment, pages)
    ledger = Ledger(_KV, layers * stored, pages * page_size, (("kv_layers", layers), ("host_row_bytes", stored)))
    return HostPool("kv", page_size, pages, layers, row, ledger.total, staged * page_size * layers * stored, ledger)


def state_pool(layers: int, layer_bytes: int, slots: int) -> HostPool:
    """The state pool for `slots` slots before rounding; `layer_bytes` is one slot's state in one of its layers."""
    terms = (("kda_layers", layers), ("layer_state_bytes", layer_bytes))
    ledger = Ledger(_MAMBA, layers * layer_bytes, slots + 1, terms)
    return HostPool("mamba", 1, slots + 1, layers, layer_bytes, ledger.total, 0, ledger)


def index_pool(rank: Rank, layers: int, kv: HostPool) -> HostPool:
    """The index pool that follows the pages of `kv`; one page more is allocated than checked."""
    page_bytes = indexer.page_bytes(rank.geometry, rank.profile, kv.page_size)
    pages = kv.pages + 1
    staged = _staged_pages(rank.deployment, pages)
    ledger = Ledger(_INDEXER, layers * page_bytes, pages, (("index_layers", layers), ("index_page_bytes", page_bytes)))
    return HostPool(
        "indexer",
        kv.page_size,
        kv.pages,
        layers,
        page_bytes // kv.page_size,
        ledger.total,
        staged * layers * page_bytes,
        ledger,
    )


def draft_pool(rank: Rank, tokens: int, kv: HostPool) -> HostPool | None:
    """The pool of a draft model of its own beside `kv`, where the rank holds `tokens` tokens of it; None without one.

    Its rows are the device's, K and V of all layers; indices are those of `kv`. Its buffer on the GPU is as theirs.
    Source: mem_cache/pool_host/base.py:217-232, mem_cache/pool_host/mha.py:96-132 at 0.5.23.
    """
    row, draft, page_size = draft_model.held(rank), rank.deployment.draft_model, kv.page_size
    if draft is None or not row:
        return None
    pages, layers = kv.pages, draft.pool_layers
    if not rank.profile.host_draft_has_kv_pages:
        pages = int(tokens * (kv.units / tokens)) // page_size + 1
    terms = (("draft_layers", layers), ("draft_row_bytes", row // layers))
    ledger = Ledger(_DRAFT, row, pages * page_size, terms)
    staging = _staged_pages(rank.deployment, pages) * page_size * row
    return HostPool("draft", page_size, pages, layers, row // layers, ledger.total, staging, ledger)


def _staged_pages(deployment: Deployment, pages: int) -> int:
    """Pages of a pool's write-back buffer on the GPU; layouts that copy pages directly have none."""
    return min(pages, STAGING_PAGES) if deployment.hicache_mem_layout == "page_first" else 0
