"""Runs one target on input after input, keeps the worst it has seen, and every finding."""

import hashlib
import resource
import time
import traceback
from pathlib import Path

import targets

SLOWEST = 1.0  # seconds of CPU for one input
LARGEST_MIB = 200  # growth of the process's peak memory by one input
FINDINGS = Path(__file__).parent / "findings"


class Watch:
    """One target. A finding is printed and its input kept in fuzz/findings/, one a place in the code."""

    def __init__(self, name: str) -> None:
        self.name, self.check = name, targets.TARGETS[name]
        self.slowest = self.largest = 0.0
        self.inputs = 0
        self.places: set[str] = set()
        self.check(b"")  # what is loaded once (tables, pydantic) counts against no input

    def __call__(self, data: bytes) -> None:
        self.inputs += 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        try:
            self.check(data)
            taken = time.process_time() - start
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
            if taken > self.slowest + 0.01 or grown > self.largest + 1:
                self.slowest, self.largest = max(taken, self.slowest), max(grown, self.largest)
                print(self.worst(), flush=True)
            targets.require(taken <= SLOWEST, f"took {taken:.2f} s of CPU")
            targets.require(grown <= LARGEST_MIB, f"took {grown:.0f} MiB")
        except Exception as error:
            self.keep(data, error)

    def worst(self) -> str:
        whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return (
            f"{self.inputs:,} inputs of {self.name}, {len(self.places)} findings; "
            f"slowest {self.slowest * 1000:.0f} ms, most memory {self.largest:.1f} MiB; "
            f"the whole process {whole:.0f} MiB"
        )

    def keep(self, data: bytes, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        inner = next((frame for frame in reversed(frames) if "glm_kvplan" in frame.filename), frames[-1])
        place = f"{type(error).__name__} in {Path(inner.filename).name}:{inner.lineno}"
        if place in self.places:
            return
        self.places.add(place)
        FINDINGS.mkdir(exist_ok=True)
        path = FINDINGS / f"{self.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        print(f"FINDING {path.name}: {place}", *traceback.format_exception(error), sep="\n", flush=True)
