"""A report as plain data: sections of sentences, tables and charts. HTML and Markdown are two ways to print it."""

from typing import NamedTuple

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.show.words import Words


class Cell(NamedTuple):
    """What a table shows, and the number behind it where there is one."""

    text: str
    value: int | float | None = None


class Table(NamedTuple):
    """`numeric` names the columns that are set flush right."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()
    title: str = ""


class Chart(NamedTuple):
    """`name` is the chart's (see report.charts); `alt` says in a sentence what it shows."""

    name: str
    title: str
    alt: str


class Section(NamedTuple):
    """`folded`: tables are shown on demand, under `summary`. `code` is text to copy, each with its introduction."""

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    chart: Chart | None = None
    tables: tuple[Table, ...] = ()
    folded: bool = False
    summary: str = ""
    code: tuple[tuple[str, str], ...] = ()


class Page(NamedTuple):
    """`verdict` is the answer in a sentence, `mood` how good it is: "yes", "tight" or "no"."""

    language: str
    title: str
    subtitle: str
    wanted: str
    verdict: str
    mood: str
    remarks: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: tuple[str, ...]

    @property
    def charts(self) -> tuple[Chart, ...]:
        return tuple(section.chart for section in self.sections if section.chart is not None)


def page(seen: Picture, words: Words) -> Page:
    """The whole report of a picture, in the words of one language."""
    from glm_kvplan import __version__
    from glm_kvplan.show import page_charts, page_tables, page_verdict

    plan = seen.plan
    found: list[Section | None] = [page_tables.sizes(seen, words)]
    if seen.boot.failure is None:
        found += [
            page_charts.memory_map(seen, words),
            page_charts.frontier(seen, words),
            page_charts.price_list(seen, words),
            page_charts.split(seen, words),
            page_charts.host(seen, words),
        ]
    found += [
        page_tables.flags(seen, words),
        page_tables.formulas(seen, words),
        page_tables.paste(seen, words),
        page_tables.notes(seen, words),
    ]
    verdict, mood, remarks = page_verdict.verdict(seen, words)
    return Page(
        language=words.language,
        title=words("title", model=plan.model.name),
        subtitle=page_verdict.subtitle(seen, words),
        wanted=page_verdict.wanted(seen, words),
        verdict=verdict,
        mood=mood,
        remarks=remarks,
        sections=tuple(section for section in found if section is not None),
        footer=(words("units"), words("made_by", version=__version__)),
    )
