"""The engine's start-up checks that no memory rule makes: a server that fails one does not start."""

from functools import lru_cache
from operator import itemgetter, ne

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Site
from glm_kvplan.engines.sglang.resolve.start_checks import (
    adapters,
    elastic,
    exchange_tokens,
    experts,
    kernels,
    scheduling,
    serving,
    unified_memory,
)
from glm_kvplan.engines.sglang.resolve.start_checks.start_check import (
    ENVIRONMENT,
    USUAL,
    Check,
    Launch,
    asked_only,
    refuse,
)

_FILES = (scheduling, kernels, experts, exchange_tokens, elastic, adapters, serving, unified_memory)
CHECKS: tuple[Check, ...] = tuple(check for file in _FILES for check in file.CHECKS)
# Most checks cannot refuse while what they ask first is as usual: a launch skips those.
_ASKED = tuple(asked_only(check) for check in CHECKS)
_ASKED_BY_ANY: frozenset[str] = frozenset().union(*_ASKED)
_DECIDED = tuple(sorted(_ASKED_BY_ANY & USUAL.keys()))
_decided = itemgetter(*_DECIDED)
_USUALLY = _decided(USUAL)
_GIVEN = _ASKED_BY_ANY.difference(USUAL)


def start_checks(a: Arguments, site: Site) -> None:
    """Refuse what the engine would refuse of the resolved launch. Raises RefusedError."""
    refuse(due(a, site), Launch(a, site))


def due(a: Arguments, site: Site) -> tuple[Check, ...]:
    """The checks that may refuse this launch, in their order."""
    return _due(tuple(map(ne, _decided(a.__dict__), _USUALLY)), _GIVEN.intersection(a.given), bool(site.environment))


@lru_cache(maxsize=256)
def _due(decided: tuple[bool, ...], given: frozenset[str], environment: bool) -> tuple[Check, ...]:
    """`decided` says of each flag in _DECIDED whether it is turned."""
    turned = {name for name, is_turned in zip(_DECIDED, decided, strict=True) if is_turned} | given
    if environment:
        turned.add(ENVIRONMENT)
    return tuple(check for check, asked in zip(CHECKS, _ASKED, strict=True) if not asked or asked & turned)
