"""How long 100,000 solves take on one core, and that the time grows with their number alone.

    python benchmarks/solve.py [solves]

Every solve is of another deployment: sizes, dtypes, speculation and memory vary, and nothing is cached but the
checkpoint's own layer counts.
"""

import sys
import time
from itertools import count, cycle, islice, product

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile, load_profile, releases
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.model.loader import bundled_geometry

SOLVES = 100_000


def deployments() -> list[tuple[Deployment, EngineProfile]]:
    """A few hundred deployments that differ in everything the solver reads."""
    found = []
    for release, tp, dtype, drafts, slots, radix_off in product(
        releases(), (1, 2, 4, 8), ("float32", "bfloat16"), (None, 4, 6), (None, 700), (False, True)
    ):
        found.append(
            (
                Deployment(
                    tp_size=tp,
                    linear_attn_tp_size=tp,
                    kv_layout="fp8_raw",
                    mamba_ssm_dtype=dtype,
                    disable_radix_cache=radix_off,
                    max_mamba_cache_size=slots,
                    max_running_requests=48,
                    speculative_algorithm=None if drafts is None else "EAGLE",
                    speculative_num_draft_tokens=drafts,
                    max_draft_tokens=drafts,
                ),
                load_profile(release),
            )
        )
    return found


def seconds(solves: int) -> float:
    """Seconds that `solves` solves take, deployment to integers."""
    geometry = bundled_geometry()
    layers = range(geometry.num_hidden_layers)
    work = [
        (Rank(geometry, deployment, profile, layers), 100.0 + number % 160)
        for number, (deployment, profile) in zip(count(), islice(cycle(deployments()), solves), strict=False)
    ]
    start = time.perf_counter()
    for rank, gib in work:
        attempt(rank, gib, gib * 0.7)
    return time.perf_counter() - start


def main() -> None:
    solves = int(sys.argv[1]) if len(sys.argv) > 1 else SOLVES
    seconds(1000)  # warm up
    for share in (4, 2, 1):
        number = solves // share
        took = seconds(number)
        print(f"{number:>9,} solves: {took:6.3f} s, {took / number * 1e6:5.2f} us each")


if __name__ == "__main__":
    main()
