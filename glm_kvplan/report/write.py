"""Where a report goes: in which format, and onto the disk all at once or not at all."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.errors import InputError

if TYPE_CHECKING:
    from glm_kvplan.pictures.picture import Picture
    from glm_kvplan.report.page import Chart, Page

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
    from glm_kvplan.report.charts import NAMES
    from glm_kvplan.report.charts_style import require_charts
    from glm_kvplan.report.words import load_words

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
    if path is not None:
        _check(path)
    if chosen != "md":
        require_charts()
    return Wanted(path, chosen, chart or DEFAULT_CHART, language)


def write_report(seen: "Picture", wanted: Wanted) -> None:
    """Write the report. Raises InputError for a chart that this plan does not have and for a path that cannot be."""
    data = render(seen, wanted)
    if wanted.path is None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    else:
        write_whole(wanted.path, data)


def render(seen: "Picture", wanted: Wanted) -> bytes:
    """The report's bytes; the same for the same plan, whenever and wherever they are made."""
    from glm_kvplan.report.page import page
    from glm_kvplan.report.words import load_words

    words = load_words(wanted.language)
    if wanted.format == "md":
        from glm_kvplan.report.report_md import markdown

        return markdown(page(seen, words)).encode()
    from glm_kvplan.report import charts

    if wanted.format == "html":
        from glm_kvplan.report.html.page_html import html

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


def _check(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"-o {path}: is a directory; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"-o {path}: there is no directory {path.parent}")


def write_whole(path: Path, data: bytes) -> None:
    """Replace `path` by a file with `data`: readers see the old file or the new one, never a part.

    Raises InputError.
    """
    _check(path)
    if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
        path.write_bytes(data)
        return
    target = path.resolve()  # a link stays a link
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as out:
            temporary = Path(out.name)
            out.write(data)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(f"-o {path}: cannot be written ({error.strerror})") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
