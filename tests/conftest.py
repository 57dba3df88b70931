"""Settings every test shares."""

import gc
import os

from hypothesis import HealthCheck, settings

# Hundreds of processes are started: each that may not keep what it compiles takes twice as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A loaded machine is no failure: what must be fast has a test that measures it.
settings.register_profile("kvplan", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kvplan")


def pytest_collection_finish() -> None:
    """What collecting made lives as long as the tests: no later collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # what tests make is little and short of life
