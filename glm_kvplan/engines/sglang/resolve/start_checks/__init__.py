"""The engine's start-up checks that no memory rule makes: a server that fails one does not start."""

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Site
from glm_kvplan.engines.sglang.resolve.start_checks import adapters, experts, kernels, scheduling, serving
from glm_kvplan.engines.sglang.resolve.start_checks.check import Check, Launch, asked_only, refuse

CHECKS: tuple[Check, ...] = (*scheduling.CHECKS, *kernels.CHECKS, *experts.CHECKS, *adapters.CHECKS, *serving.CHECKS)
# Most checks cannot refuse while the start flags they ask first are not given: a launch without those skips them.
_ASKED = tuple(asked_only(check) for check in CHECKS)
_ALWAYS = tuple(check for check, asked in zip(CHECKS, _ASKED, strict=True) if not asked)
_SKIPPED_WITHOUT: frozenset[str] = frozenset().union(*_ASKED)


def start_checks(a: Arguments, site: Site) -> None:
    """Refuse what the engine would refuse of the resolved launch. Raises RefusedError."""
    refuse(_ALWAYS if _SKIPPED_WITHOUT.isdisjoint(a.given) else CHECKS, Launch(a, site))
