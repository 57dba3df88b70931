"""A server whose memory can be counted by hand, shared by the tests of sizing; and a rank of any deployment."""

from typing import Any

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

Flags = dict[str, Any]

GEOMETRY = bundled_geometry()
SLOT = 34 * (36_864 + 1_048_576)  # one state slot on each of four ranks
PAGE = 64 * 11 * (512 + 132)  # of raw rows and their index keys
DRAFT_PAGE = 64 * 12 * (512 + 132)
WIDE_PAGE = 64 * 11 * (1024 + 132)  # of bf16 rows
SCALED_PAGE = 64 * 11 * (528 + 132)  # of FP8 rows with their scales: what an H200 makes of fp8_e4m3
PLAIN: Flags = {
    "tp_size": 4, "kv_row_layout": "fp8_raw", "mem_fraction_static": 0.75, "enable_multimodal": False,
    "chunked_prefill_size": 16384,
}  # fmt: skip
FIXED: Flags = PLAIN | {"max_mamba_cache_size": 100}
WIDE: Flags = {name: value for name, value in FIXED.items() if name != "kv_row_layout"}  # an H200's own bf16 rows
DRAFTS: Flags = FIXED | {
    "speculative_algorithm": "EAGLE", "speculative_num_steps": 7, "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 8, "max_running_requests": 48,
}  # fmt: skip
TWO_WORKERS: Flags = {"dp_size": 2, "enable_dp_attention": True, "chunked_prefill_size": 32768}
TEN = Demand(Contexts((100,), (1,)), 10)  # two pages and five slots each
EXACT = 51 * SLOT + 20 * PAGE  # fifty slots and the pool's own, and twenty pages


def one_rank(deployment: Deployment, profile: EngineProfile, geometry: Geometry = GEOMETRY) -> Rank:
    """A rank with every layer of the checkpoint: the only one of a deployment without pipeline stages."""
    return Rank(geometry, deployment, profile, range(geometry.num_hidden_layers))


def server_of(
    flags: Flags, nbytes: float, release: str = "0.5.21", environment: dict[str, str] | None = None
) -> Server:
    """A server with `nbytes` for states and tokens: 160 GiB before the load, a quarter of which stays free."""
    made = plan(flags, engine=release, environment=environment)
    return Server(made, MemoryGiven(160.0, 40.0 + nbytes / GIB))
