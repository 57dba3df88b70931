"""Start-up: `kvplan estimate --json` against what importing its libraries costs. `python benchmarks/startup.py`

Whole processes, taken in turn so that a drifting machine hits both alike; medians of 15 and the peak memory.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15
ALLOWED_MS = 40
ALLOWED_MIB = 60
KVPLAN = str(Path(sys.executable).with_name("kvplan"))
COMMANDS = {
    "import typer, pydantic": [sys.executable, "-c", "import typer, pydantic"],
    "kvplan estimate --json": [KVPLAN, "estimate", "--json"],
    "kvplan solve --json": [KVPLAN, "solve", "--gpu", "h200", "--tp-size", "8", "--json"],
}


def run(command: list[str]) -> tuple[float, float]:
    """Milliseconds of one process and its peak memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (time.perf_counter() - began) * 1000, usage.ru_maxrss / 1024


def measure() -> dict[str, tuple[float, float]]:
    """Median milliseconds and largest peak memory by command."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    peaks = dict.fromkeys(COMMANDS, 0.0)
    for turn in range(RUNS + 1):
        for name, command in COMMANDS.items():
            milliseconds, mebibytes = run(command)
            peaks[name] = max(peaks[name], mebibytes)
            if turn:  # the first warms the caches
                times[name].append(milliseconds)
    return {name: (statistics.median(times[name]), peaks[name]) for name in COMMANDS}


if __name__ == "__main__":
    found = measure()
    for name, (milliseconds, mebibytes) in found.items():
        print(f"{name:24} {milliseconds:7.1f} ms  {mebibytes:5.1f} MiB")
    base, estimate, solve = (found[name][0] for name in COMMANDS)
    print(
        f"estimate is {estimate - base:+.1f} ms over its libraries (allowed +{ALLOWED_MS}), ratio {estimate / base:.2f}"
    )
    print(f"solve is {solve - estimate:+.1f} ms over estimate (allowed +20)")
    print(f"estimate's peak is {found['kvplan estimate --json'][1]:.1f} MiB (allowed {ALLOWED_MIB})")
