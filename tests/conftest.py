"""Settings every test shares."""

from hypothesis import HealthCheck, settings

# A loaded machine is no failure: what must be fast has a test that measures it.
settings.register_profile("kvplan", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kvplan")
