"""What a user says of a host's memory, held against what can be and what is read."""

from math import isfinite

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.errors import InputError
from glm_kvplan.units import GIB, LARGEST_GIB
from glm_kvplan.workload import HostGiven


def host_given(deployment: Deployment, *, host_gib: float | None, pod_gib: float | None) -> HostGiven:
    """The user's words as bytes. Raises InputError for memory that cannot be, or that nothing would use."""
    found: list[int | None] = []
    for name, gib in (("--host-gib", host_gib), ("--pod-gib", pod_gib)):
        if gib is not None and not (isfinite(gib) and 0 < gib <= LARGEST_GIB):
            raise InputError(f"{name} {gib:g}: give the GiB of one host, more than 0")
        if gib is not None and not deployment.enable_hierarchical_cache:
            raise InputError(f"{name} is checked against HiCache's host pools; add --enable-hierarchical-cache")
        found.append(None if gib is None else int(gib * GIB))
    return HostGiven(found[0], found[1])
