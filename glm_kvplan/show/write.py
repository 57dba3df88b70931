"""What `kvplan report` writes: the format and chart asked for, the file, and its bytes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.show.whole_file import destination

if TYPE_CHECKING:
    from glm_kvplan.answers.pictures.picture import Picture
    from glm_kvplan.show.report_page import Chart, Page

FORMATS = ("html", "md", "png", "svg")
_SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".png": "png", ".svg": "svg"}
DEFAULT_CHART = "map"


class Wanted(NamedTuple):
    """What to write: `path` None is standard output, `chart` counts for png and svg."""

    path: Path | None
    format: str
    chart: str
    language: str


def read_format(output: str, format: str | None, chart: str | None, language: str) -> Wanted:
    """The user's words, checked before anything is computed. Raises InputError."""
    from glm_kvplan.show.charts import NAMES
    from glm_kvplan.show.charts_style import require_charts
    from glm_kvplan.show.words import load_words

    load_words(language)
    path = None if output == "-" else Path(output)
    chosen = format or (_SUFFIXES.get(path.suffix.lower(), "html") if path is not None else "html")
    if chosen not in FORMATS:
        raise InputError(f"--format {chosen!r}: one of {', '.join(FORMATS)}")
    if chart is not None and chosen not in ("png", "svg"):
        raise InputError(f"--chart {chart}: a single chart is written as png or svg; a {chosen} report has them all")
    if chart is not None and chart not in NAMES:
        raise InputError(f"--chart {chart!r}: one of {', '.join(NAMES)}")
    if path is None and chosen == "png":
        raise InputError("-o -: a png is not text; name a file")
    if path is not None and path.is_dir():
        raise InputError(f"-o {path}: is a directory; name a file in it")
    if path is not None and not path.parent.is_dir():
        raise InputError(f"-o {path}: there is no directory {path.parent}")
    if chosen != "md":
        require_charts()
    return Wanted(path, chosen, chart or DEFAULT_CHART, language)


def write_report(seen: "Picture", wanted: Wanted) -> None:
    """Write the report. Raises InputError for a chart that this plan does not have and for a path that cannot be."""
    data = render(seen, wanted)
    with destination(None if wanted.path is None else str(wanted.path), binary=True) as stream:
        stream.write(data)


def render(seen: "Picture", wanted: Wanted) -> bytes:
    """The report's bytes; the same for the same plan, whenever and wherever they are made."""
    from glm_kvplan.show.report_page import page
    from glm_kvplan.show.words import load_words

    words = load_words(wanted.language)
    if wanted.format == "md":
        from glm_kvplan.show.page_md import markdown

        return markdown(page(seen, words)).encode()
    from glm_kvplan.show import charts

    if wanted.format == "html":
        from glm_kvplan.show.page_html import html

        made = page(seen, words)
        return html(made, charts.for_page(seen, words, made.charts)).encode()
    charts.require_chart(seen, wanted.chart)
    if wanted.format == "svg":
        return charts.svg(seen, words, _chart(page(seen, words), wanted.chart)).encode()
    words, note = charts.png_words(words)
    if note is not None:
        print(f"kvplan: note: {note}", file=sys.stderr)
    return charts.png(seen, words, _chart(page(seen, words), wanted.chart))


def _chart(made: "Page", name: str) -> "Chart":
    return next(chart for chart in made.charts if chart.name == name)
