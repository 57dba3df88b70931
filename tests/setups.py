"""A server whose memory can be counted by hand, shared by the tests of sizing; and a rank of any deployment."""

from collections.abc import Callable
from dataclasses import replace

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile, load_profile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.engines.sglang.sizing.what_if import Memory, Setup
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB

GEOMETRY = bundled_geometry()
SLOT = 34 * (36_864 + 1_048_576)  # one state slot on each of four ranks
PAGE = 64 * 11 * (512 + 132)  # of raw rows and their index keys
DRAFT_PAGE = 64 * 12 * (512 + 132)
PLAIN = Deployment(
    tp_size=4, linear_attn_tp_size=4, kv_cache_dtype="fp8_e4m3", kv_layout="fp8_raw", mem_fraction_static=0.75,
    multimodal=False, chunked_prefill_size=16384,
)  # fmt: skip
FIXED = replace(PLAIN, max_mamba_cache_size=100)
DRAFTS = replace(
    FIXED, speculative_algorithm="EAGLE", speculative_num_steps=7, speculative_eagle_topk=1,
    speculative_num_draft_tokens=8, max_draft_tokens=8, max_running_requests=48,
)  # fmt: skip
TEN = Demand(Contexts((100,), (1,)), 10)  # two pages and five slots each
EXACT = 51 * SLOT + 20 * PAGE  # fifty slots and the pool's own, and twenty pages
Resolver = Callable[..., Deployment]


def one_rank(deployment: Deployment, profile: EngineProfile, geometry: Geometry = GEOMETRY) -> Rank:
    """A rank with every layer of the checkpoint: the only one of a deployment without pipeline stages."""
    return Rank(geometry, deployment, profile, range(geometry.num_hidden_layers))


def setup_of(deployment: Deployment, nbytes: float, resolver: Resolver | None = None, release: str = "0.5.21") -> Setup:
    """A setup with `nbytes` for states and tokens: 160 GiB before the load, a quarter of which stays free."""

    def memory(asked: Deployment) -> Memory:
        assert isinstance(asked, Deployment)
        return Memory(160.0, 40.0 + nbytes / GIB)

    return Setup(GEOMETRY, load_profile(release), deployment, memory, resolver)
