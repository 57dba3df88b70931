"""Exact cache-memory planning for GLM-5.3-Flash on SGLang and vLLM.

    >>> import glm_kvplan as kv
    >>> plan = kv.plan({"tp_size": 8, "kv_cache_dtype": "fp8_e4m3"}, gpu="h200")
    >>> kv.estimate(plan, kv.Workload(context=131072, concurrency=64)).largest.attribution.allocated  # bytes of one GPU

Names are loaded when they are first used, so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # of typing, which takes ten times as long as all else here

__version__ = "0.1.0"

_HOME = {
    "KvplanError": "errors",
    "InputError": "errors",
    "RefusedError": "errors",
    "plan": "engines.planner",
    "Plan": "engines.sglang.plan",
    "Deployment": "engines.sglang.deployment",
    "KvLayout": "engines.sglang.deployment",
    "EngineProfile": "engines.sglang.profile",
    "Gpu": "memory.gpu",
    "Geometry": "model.geometry",
    "Ledger": "engines.ledger",
    "PoolSizes": "engines.sglang.components.pool_sizes",
    "TensorSpec": "tensor",
    "Workload": "engines.sglang.sizing.workload_cost",
    "Estimate": "engines.sglang.sizing.workload_cost",
    "estimate": "engines.sglang.sizing.workload_cost",
}

__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from typing import Any

    from glm_kvplan.engines.ledger import Ledger as Ledger
    from glm_kvplan.engines.planner import plan as plan
    from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes as PoolSizes
    from glm_kvplan.engines.sglang.deployment import Deployment as Deployment
    from glm_kvplan.engines.sglang.deployment import KvLayout as KvLayout
    from glm_kvplan.engines.sglang.plan import Plan as Plan
    from glm_kvplan.engines.sglang.profile import EngineProfile as EngineProfile
    from glm_kvplan.engines.sglang.sizing.workload_cost import Estimate as Estimate
    from glm_kvplan.engines.sglang.sizing.workload_cost import Workload as Workload
    from glm_kvplan.engines.sglang.sizing.workload_cost import estimate as estimate
    from glm_kvplan.errors import InputError as InputError
    from glm_kvplan.errors import KvplanError as KvplanError
    from glm_kvplan.errors import RefusedError as RefusedError
    from glm_kvplan.memory.gpu import Gpu as Gpu
    from glm_kvplan.model.geometry import Geometry as Geometry
    from glm_kvplan.tensor import TensorSpec as TensorSpec


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
