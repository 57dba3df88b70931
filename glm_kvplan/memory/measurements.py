"""The public boots that the estimates of memory are fitted on and judged by, as data."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

MEASUREMENTS = Path(__file__).parent / "measurements.toml"


class Measurement(NamedTuple):
    """One public boot. Printed values that the operator did not give are None; sizes are one rank's."""

    id: str
    source: str
    server: str  # one machine of one operator: its boots are one measurement
    gpu: str
    engine: str
    checkpoint: str | None
    flags: dict[str, Any]
    environment: dict[str, str]
    pre_gib: float | None
    target_gib: float | None
    draft_gib: float | None
    slots: int | None
    tokens: int | None
    tokens_step: int  # of a rounded figure; 1 where the number is whole

    @property
    def sized(self) -> bool:
        """It printed sizes that memory decided."""
        return self.tokens is not None


@lru_cache(maxsize=1)
def measurements() -> tuple[Measurement, ...]:
    """Every boot of the data file, in its order."""
    found = []
    for entry in tomllib.loads(MEASUREMENTS.read_text(encoding="utf-8"))["boot"]:
        printed = entry["printed"]
        found.append(
            Measurement(
                **{name: entry[name] for name in ("id", "source", "server", "gpu", "engine", "flags")},
                checkpoint=entry.get("checkpoint"),
                environment=entry.get("environment", {}),
                **{name: printed.get(name) for name in ("pre_gib", "target_gib", "draft_gib", "slots", "tokens")},
                tokens_step=printed.get("tokens_step", 1),
            )
        )
    return tuple(found)
