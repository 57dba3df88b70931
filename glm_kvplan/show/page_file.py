"""A page as the bytes of a file: HTML or Markdown, or one of its charts as SVG or PNG."""

from glm_kvplan.errors import InputError
from glm_kvplan.show.page import Page
from glm_kvplan.show.said import Words

FORMATS = {"html": (".html", ".htm"), "md": (".md", ".markdown"), "png": (".png",), "svg": (".svg",)}
CHART_FORMATS = ("png", "svg")


def page_bytes(page: Page, words: Words, format: str, chart: str = "") -> tuple[bytes, str | None]:
    """The bytes, and a note on them where there is one; the same for the same page, whenever and wherever it is made.

    Raises InputError for a `chart` that the page lacks.
    """
    if format == "md":
        from glm_kvplan.show.markdown import markdown

        return markdown(page, words).encode(), None
    from glm_kvplan.show import drawing

    if format == "html":
        from glm_kvplan.show.html import html

        return html(page, words, drawing.for_page(page, words)).encode(), None
    found = next((each for each in page.charts if each.name == chart), None)
    if found is None:
        raise InputError(f"--chart {chart}: {dict(page.missing).get(chart, 'this page has none')}")
    if format == "svg":
        return drawing.svg(page, found, words).encode(), None
    words, note = drawing.png_words(words)
    return drawing.png(page, found, words), note
