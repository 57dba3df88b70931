"""An engine, a release, and how an engine answers a command: each found by its name.

An engine is a folder with a module `engine` that holds its `ENGINE`; `find_release` gives the release that a name
such as `0.5.21`, `vllm-0.33.0` or a profile file means.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from glm_kvplan.engines.protocol import Engine, Given, Release
from glm_kvplan.errors import InputError

if TYPE_CHECKING:
    from glm_kvplan.engines.answer_head import Head
    from glm_kvplan.show.page import Page

NAMES = ("sglang", "vllm")  # the folders; the first is meant by a release without a name
_SAID = {"fleet": "advise --gpus"}  # what is typed for an answer that is no command of its own


class Answering(NamedTuple):
    """How an engine answers one command: the whole answer, and the page that shows it."""

    answer: Callable[..., Any]
    page: Callable[..., "Page"]


def check_answers(engine: Engine, command: str) -> None:
    """Raise InputError for a command that this engine does not answer: the assumed one answers all."""
    forms = (f"{_answers(engine)}.{command}_{form}" for form in ("answer", "point"))
    if engine is not assumed_engine() and not any(map(find_spec, forms)):
        said = _SAID.get(command, command)
        raise InputError(f"kvplan {said} does not know {engine.title} yet; see docs/commands/{said.split()[0]}.md")


def _answers(engine: Engine) -> str:
    return f"glm_kvplan.engines.{engine.name}.answers"


def answering(plan: Given, command: str) -> Answering:
    """How the engine of a plan answers `command`. Raises InputError for one that it does not answer."""
    found: Engine = plan.profile.engine
    return engine_answering(found, command)


def head_of(plan: Given) -> "Head":
    """The head of every answer about a plan, in its engine's words."""
    found: Head = import_module(f"{_answers(plan.profile.engine)}.plan_head").head_of(plan)
    return found


def engine_answering(engine: Engine, command: str) -> Answering:
    """How an engine answers `command`: `answer_<command>` and `<command>_page` of its folder `answers`.

    Raises InputError for a command that it does not answer.
    """
    check_answers(engine, command)
    place = f"{_answers(engine)}.{command}"
    make = getattr(import_module(f"{place}_answer"), f"answer_{command}")

    def page(answer: Any, **how: Any) -> "Page":  # imported only where an answer is shown as a page
        made: Page = getattr(import_module(f"{place}_page"), f"{command}_page")(answer, **how)
        return made

    return Answering(make, page)


@cache
def engine_named(name: str) -> Engine:
    """The engine of one folder. Raises KeyError for a name that is none."""
    if name not in NAMES:
        raise KeyError(name)
    found: Engine = import_module(f"glm_kvplan.engines.{name}.engine").ENGINE
    return found


def assumed_engine() -> Engine:
    """The engine that is meant where neither a release nor a launch command names one."""
    return engine_named(NAMES[0])


def told_engine(name: str) -> Engine | None:
    """The engine that a release's name says, as `vllm-0.33.0` does; None where it says none."""
    prefix = name.partition("-")[0]
    return engine_named(prefix) if prefix in NAMES and not Path(name).exists() else None


def find_release(name: str | None = None, engine: Engine | None = None) -> Release:
    """The release that `name` means: `vllm-0.33.0`, `vllm` (its assumed one), `0.5.21`, `installed`, a profile file.

    `engine` is the one a launch command speaks to, for names that do not say. Raises InputError.
    """
    if name is None:
        engine = engine or assumed_engine()
        return engine.load(engine.assumed)
    found = told_engine(name)
    if found is not None:
        if engine is not None and engine.name != found.name:
            raise InputError(f"--engine {name}: the launch command starts {engine.title}, not {found.title}")
        return found.load(name.partition("-")[2] or found.assumed)
    return (engine or assumed_engine()).load(name)
