"""The engine's start-up checks that no memory rule makes: a server that fails one does not start."""

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Site
from glm_kvplan.engines.sglang.resolve.start_checks import adapters, experts, kernels, scheduling, serving
from glm_kvplan.engines.sglang.resolve.start_checks.check import Check, Launch, refuse

CHECKS: tuple[Check, ...] = (*scheduling.CHECKS, *kernels.CHECKS, *experts.CHECKS, *adapters.CHECKS, *serving.CHECKS)


def start_checks(a: Arguments, site: Site) -> None:
    """Refuse what the engine would refuse of the resolved launch. Raises RefusedError."""
    refuse(CHECKS, Launch(a, site))
