"""The library's speed: 100,000 estimates on one core. `python benchmarks/estimate.py`"""

import time

import glm_kvplan as kv

COUNT = 100_000

if __name__ == "__main__":
    plan = kv.plan({"tp_size": 8, "speculative_algorithm": "EAGLE"}, gpu="b200")
    began = time.perf_counter()
    for number in range(COUNT):
        kv.estimate(plan, kv.Workload(1024 + number, 1 + number % 256))
    seconds = time.perf_counter() - began
    print(f"{COUNT:,} estimates in {seconds:.2f} s, {seconds / COUNT * 1e6:.1f} us each")
