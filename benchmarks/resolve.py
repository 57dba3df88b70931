"""Resolving a launch: every rule and start-up check, no reason put into words. `python benchmarks/resolve.py`"""

import time

from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.model.loader import bundled_geometry

ALLOWED_US = 50  # a sweep resolves every point anew and makes 8,000 of them a second: 125 us for all of it
ROUNDS, RUNS = 9, 2000
LAUNCHES: dict[str, dict[str, object]] = {
    "plain": {"tp_size": 8},
    "MTP": {"tp_size": 4, "speculative_algorithm": "EAGLE", "max_running_requests": 64, "mem_fraction_static": 0.8},
    "attention DP and HiCache": {
        "tp_size": 8,
        "dp_size": 8,
        "enable_dp_attention": True,
        "kv_cache_dtype": "fp8_e4m3",
        "enable_hierarchical_cache": True,
        "max_mamba_cache_size": 100,
    },
}


def measure(flags: dict[str, object]) -> float:
    """Microseconds of CPU for one resolution, the best of some rounds."""
    geometry, profile, gpu = bundled_geometry(), load_profile("0.5.22"), find_gpu("b200")
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(RUNS):
            resolve(flags, geometry=geometry, profile=profile, gpu=gpu)
        best = min(best, (time.process_time() - began) / RUNS)
    return best * 1e6


if __name__ == "__main__":
    for name, flags in LAUNCHES.items():
        print(f"{name:26} {measure(flags):6.1f} us (allowed {ALLOWED_US})")
