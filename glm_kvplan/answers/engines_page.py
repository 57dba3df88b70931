"""The page of `kvplan info engines`: a table of releases for each engine."""

from glm_kvplan.answers.engines_answer import EnginesAnswer, EngineShown
from glm_kvplan.show.page import Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Text, say


def engines_page(answer: EnginesAnswer) -> Page:
    """One row a release with what users meet first."""
    sections = [Section((_table(engine),), engine.title) for engine in answer.engines]
    first = answer.engines[0].facts
    more = Line(say("compare two: {command}", command=f"kvplan info engines {' '.join([*first][-2:])}"), "muted")
    return Page("", (), (*sections, Section((more,), say("More"), quiet=True)), answer.warnings)


def _table(engine: EngineShown) -> Table:
    headings = [*next(iter(engine.facts.values()))]
    columns = (Column(say("release")), *(Column(say(heading)) for heading in headings), Column(say("note")))
    return Table(columns, tuple(_row(engine, release, [*facts.values()]) for release, facts in engine.facts.items()))


def _row(engine: EngineShown, release: str, facts: list[Text]) -> Row:
    notes = [say("the default")] if release == engine.assumed else []
    notes += [say("installed here")] if release == engine.installed else []
    return Row((release, *facts, say("{notes}", notes=tuple(notes))))
