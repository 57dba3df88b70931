"""Start-up: `kvplan estimate --json` against what importing its libraries costs. `python benchmarks/startup.py`

Processor time of whole processes, taken in turn so that a drifting machine hits all alike: the least of 25 each, which
a busy machine disturbs least, and the peak memory. All keep what they compile, as an installed package does.
"""

import os
import subprocess
import sys
from pathlib import Path

RUNS = 25
ALLOWED = 1.25
ALLOWED_SOLVE_MS = 20
ALLOWED_MIB = 60
KVPLAN = str(Path(sys.executable).with_name("kvplan"))
COMMANDS = {
    "import typer, pydantic": [sys.executable, "-c", "import typer, pydantic"],
    "kvplan estimate --json": [KVPLAN, "estimate", "--json"],
    "kvplan solve --json": [KVPLAN, "solve", "--gpu", "h200", "--tp-size", "8", "--json"],
}


def run(command: list[str]) -> tuple[float, float]:
    """Milliseconds of the processor for one process, and its peak memory in MiB."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024


def measure() -> dict[str, tuple[float, float]]:
    """Least milliseconds and largest peak memory by command."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    peaks = dict.fromkeys(COMMANDS, 0.0)
    for turn in range(RUNS + 1):
        for name, command in COMMANDS.items():
            milliseconds, mebibytes = run(command)
            peaks[name] = max(peaks[name], mebibytes)
            if turn:  # the first warms the caches
                times[name].append(milliseconds)
    return {name: (min(times[name]), peaks[name]) for name in COMMANDS}


if __name__ == "__main__":
    found = measure()
    for name, (milliseconds, mebibytes) in found.items():
        print(f"{name:24} {milliseconds:7.1f} ms  {mebibytes:5.1f} MiB")
    base, estimate, solve = (found[name][0] for name in COMMANDS)
    print(f"estimate takes {estimate / base:.2f} of its libraries' time (allowed {ALLOWED})")
    print(f"solve is {solve - estimate:+.1f} ms over estimate (allowed +{ALLOWED_SOLVE_MS})")
    print(f"estimate's peak is {found['kvplan estimate --json'][1]:.1f} MiB (allowed {ALLOWED_MIB})")
