"""Every public boot from its flags alone, and the fit of what a card does not show: for docs/accuracy.md.

A boot's memory before the load is as printed, or what its printed sizes imply when everything else is as estimated.
Boots of one server are one measurement. The intervals are 95 % prediction intervals for one more server.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from statistics import fmean, stdev
from typing import NamedTuple

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.memory.before_load import OTHER, Taken, platform, taken_before_load
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.memory.measurements import Measurement, measurements

T_95 = (0.0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)  # by degrees of freedom
# Boots whose weights are not known well enough to tell what was taken before them.
WEIGHTS_UNKNOWN = frozenset({"b200x4-nvfp4-tp4-conc128", "b200x4-nvfp4-tp4-conc32", "mi355xx4-mxfp4-tp4"})


class Judged(NamedTuple):
    """One boot: what it printed, what was predicted and between which ends, in tokens or in GiB before the load."""

    boot: Measurement
    what: str
    printed: float
    middle: float
    least: float
    most: float
    half: float  # of the printed figure's last digit

    @property
    def inside(self) -> bool:
        return self.least - self.half <= self.printed <= self.most + self.half


@lru_cache
def planned(name: str) -> Plan:
    """The launch of a boot as kvplan resolves it."""
    boot = next(each for each in measurements() if each.id == name)
    return plan(boot.flags, gpu=boot.gpu, engine=boot.engine, environment=boot.environment)


def budget_of(boot: Measurement) -> MemoryBudget:
    """Its memory from the card and the checkpoint alone."""
    return Server(planned(boot.id), MemoryGiven(checkpoint=boot.checkpoint)).budget


def gpus(boot: Measurement) -> int:
    return planned(boot.id).deployment.world_size


def group(boot: Measurement) -> str:
    return platform(find_gpu(boot.gpu))


# -- what is taken before the load -------------------------------------------------------------------------------------


@lru_cache
def taken(name: str) -> float:
    """GiB taken before a boot's load: printed, or implied."""
    boot = next(each for each in measurements() if each.id == name)
    total = find_gpu(boot.gpu).memory_mib / 1024
    if boot.pre_gib is not None:
        return total - boot.pre_gib
    budget, rank = budget_of(boot), rank_of(planned(name))
    after = budget.pre_gib - budget.available_gib
    least, most = 0.0, 60.0
    for _ in range(50):
        middle = (least + most) / 2
        found = attempt(rank, total - middle, max(total - middle - after, 0.0))
        least, most = (middle, most) if found.tokens > boot.tokens else (least, middle)
    return (least + most) / 2


def servers(boots: Iterable[Measurement]) -> dict[tuple[str, bool], dict[str, float]]:
    """What each server takes, by platform and whether it has one GPU: the mean of its boots."""
    found: dict[tuple[str, bool], dict[str, list[float]]] = {}
    for boot in boots:
        if boot.id not in WEIGHTS_UNKNOWN:
            of_platform = found.setdefault((group(boot), gpus(boot) == 1), {})
            of_platform.setdefault(boot.server, []).append(taken(boot.id))
    return {key: {server: fmean(values) for server, values in each.items()} for key, each in found.items()}


def _error(values: list[float]) -> float:
    """How far one value more may lie from their mean."""
    return float(T_95[len(values) - 1] * stdev(values) * (1 + 1 / len(values)) ** 0.5)


def fit(boots: Iterable[Measurement]) -> Mapping[tuple[str, bool], tuple[float, float]]:
    """Figure and error by platform (`OTHER`: the vendor's) and whether a server has one GPU."""
    found = servers(boots)
    fitted: dict[tuple[str, bool], tuple[float, float]] = {}
    several = {name: list(each.values()) for (name, one), each in found.items() if not one and name != "ROCm"}
    alone = [value for (name, one), each in found.items() if one and name != "ROCm" for value in each.values()]
    every = [value for values in several.values() for value in values]
    error = _error(every)
    for key, values in (((OTHER, False), every), ((OTHER, True), alone)):
        # Of a platform of one server or none its mean is as unknown as the server; nothing takes less than nothing.
        fitted[key] = (fmean(values), min(error * 2**0.5, fmean(values)))
    for name, values in several.items():
        if len(values) > 1:
            fitted[name, False] = (fmean(values), error)  # two or three servers have no spread of their own
    rocm = [value for (name, _), each in found.items() if name == "ROCm" for value in each.values()]
    if rocm:
        fitted["ROCm", False] = fitted["ROCm", True] = (fmean(rocm), fmean(rocm))
    return fitted


def without(boot: Measurement) -> Taken | None:
    """What would be stated for this boot without its server; None where nothing else of its vendor is measured."""
    fitted = fit(each for each in measurements() if each.server != boot.server)
    key = (group(boot), gpus(boot) == 1)
    figures = fitted.get(key) if key[0] == "ROCm" else fitted.get(key, fitted[OTHER, key[1]])
    return None if figures is None else Taken(*figures, "")


# -- what loading takes beside the weights it prints -------------------------------------------------------------------


def left_by_loading() -> dict[str, float]:
    """GiB less free at the sizing than the printed reading less the printed weights, as the printed sizes imply."""
    found: dict[str, list[float]] = {}
    for boot in measurements():
        if boot.pre_gib is None or boot.target_gib is None or boot.tokens is None:
            continue
        rank, loaded = rank_of(planned(boot.id)), boot.pre_gib - boot.target_gib - (boot.draft_gib or 0.0)
        least, most = -1.0, 3.0
        for _ in range(50):
            middle = (least + most) / 2
            enough = attempt(rank, boot.pre_gib, loaded - middle).tokens > boot.tokens
            least, most = (middle, most) if enough else (least, middle)
        found.setdefault(boot.server, []).append((least + most) / 2)
    return {server: fmean(values) for server, values in found.items()}


# -- boots judged ------------------------------------------------------------------------------------------------------


def judge(boot: Measurement, instead: Taken | None = None) -> Judged:
    """A boot against the stated interval, or against `instead` of what is stated to be taken before the load."""
    budget = budget_of(boot) if boot.sized else None
    stated = taken_before_load(find_gpu(boot.gpu), gpus(boot))
    used = instead or stated
    if budget is None:
        assert boot.pre_gib is not None
        middle = find_gpu(boot.gpu).memory_mib / 1024 - used.gib
        ends = middle - used.error_gib, middle + used.error_gib
        return Judged(boot, "GiB before the load", boot.pre_gib, middle, *ends, 0.005)
    assert boot.tokens is not None
    moved = stated.gib - used.gib
    pre, available = budget.pre_gib + moved, budget.available_gib + moved
    error = max(budget.error_gib**2 - stated.error_gib**2 + used.error_gib**2, 0.0) ** 0.5
    least, middle, most = (_tokens(boot, pre, available + off) for off in (-error, 0.0, error))
    return Judged(boot, "tokens", boot.tokens, middle, least, most, boot.tokens_step / 2)


def _tokens(boot: Measurement, pre: float, available: float) -> int:
    found = attempt(rank_of(planned(boot.id)), pre, max(available, 0.0))
    return 0 if found.failure is not None else found.sizes.tokens


def judged() -> list[Judged]:
    """Every boot against what is stated."""
    return [judge(boot) for boot in measurements()]


def left_out() -> list[Judged | None]:
    """Every boot against the interval fitted without its server; None where there is nothing left to fit."""
    found = []
    for boot in measurements():
        other = without(boot)
        found.append(None if other is None else judge(boot, other))
    return found
