"""Points a second of a sweep on one core, and that time grows with the points alone and memory not at all.

    python benchmarks/sweep.py [most points]

Every run is a process of its own that writes CSV to nowhere: 10 context lengths times 100 request caps times as many
memory fractions as it takes. No two points are alike, and each is sized, judged and written.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.points import Sweep
from glm_kvplan.engines.planner import given
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.rows import Field, write_csv

MOST = 1_000_000


def sweep(points: int) -> Sweep:
    """A sweep of this many points, a multiple of 1000."""
    last = 7000 + points // 1000 * 2 - 2
    axes = (
        f"mem_fraction_static=0.7000..0.{last}:0.0002",
        "context_length=2k..1m:x2",
        "max_running_requests=1..100",
    )
    start = given({"tp_size": 4, "speculative_algorithm": "EAGLE"}, gpu="b200")
    return Sweep(start, [read_axis(text) for text in axes], MemoryGiven(177.0, 126.0))


def measure(points: int) -> None:
    """Print seconds of processor time and peak MiB of one run."""
    found = sweep(points)
    assert len(found) == points
    start = time.process_time()
    with Path(os.devnull).open("w") as stream:
        write_csv([Field(column.name, column.kind) for column in found.columns], found, stream)
    seconds = time.process_time() - start
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else MOST
    for points in (1000, 10_000, 100_000, 1_000_000):
        if points <= most:
            command = [sys.executable, __file__, "--one", str(points)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seconds, peak = map(float, out.split())
            rate = points / seconds
            print(f"{points:>9,} points: {seconds:7.3f} s of CPU, {rate:8,.0f} points/s, peak {peak:.1f} MiB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
    else:
        main()
