"""The releases kvplan knows, of every engine: the answer of `kvplan info engines`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from glm_kvplan.engines.by_name import NAMES, engine_named
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.show.said import Text, say


class EngineShown(NamedTuple):
    """One engine: the release that is assumed where nobody names one, the one found here, every one with its fields.

    `facts` says of each release what users meet first, a text under each heading.
    """

    name: str
    title: str
    assumed: str
    installed: str | None
    releases: tuple[Any, ...]  # profiles
    facts: Mapping[str, Mapping[str, Text]]


class EnginesAnswer(NamedTuple):
    engines: tuple[EngineShown, ...]
    warnings: tuple[Text, ...]


def answer_engines() -> EnginesAnswer:
    engines = tuple(map(engine_named, NAMES))
    return EnginesAnswer(tuple(map(_shown, engines)), tuple(text for engine in engines for text in _unknown(engine)))


def _shown(engine: Engine) -> EngineShown:
    profiles = tuple(map(engine.load, engine.releases()))
    facts = {profile.base_release: engine.facts(profile) for profile in profiles}
    return EngineShown(engine.name, engine.title, engine.assumed, engine.installed(), profiles, facts)


def _unknown(engine: Engine) -> tuple[Text, ...]:
    """The warning that a release is installed here which is not known."""
    installed = engine.installed()
    if installed is None or installed in engine.releases():
        return ()
    template = "{engine} {release} is installed here; kvplan has no profile of it"
    return (say(template, engine=engine.name, release=installed),)
