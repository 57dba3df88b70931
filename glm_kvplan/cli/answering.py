"""How a command prints its answer: its page on the terminal, or the answer itself as JSON; and its notes after it."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from glm_kvplan.cli.language import spoken
from glm_kvplan.show.printable import aside
from glm_kvplan.show.said import Text, say

if TYPE_CHECKING:
    import typer

    from glm_kvplan.show.page import Page


def print_answer(command: str, answer: Any, page: "Callable[[], Page]", json: bool, *, brief: bool = False) -> None:
    """Print an answer. The page is made only where it is shown; `brief`: what one screen holds of it."""
    write_answer(command, answer, page, "json" if json else "text", brief=brief)


def write_answer(
    command: str, answer: Any, page: "Callable[[], Page]", form: str, stream: Any = None, *, brief: bool = False
) -> None:
    """The answer as `text`, `json` or `md`, to standard output or into a file; `brief` holds for text alone."""
    if form == "json":
        from glm_kvplan.show.json import document, print_json

        print_json(document(command, answer), stream)
        return
    if form == "md":
        from glm_kvplan.show.markdown import markdown

        print(markdown(page(), spoken()), end="", file=stream)
    else:
        from glm_kvplan.show.text import print_page

        print_page(page(), stream, spoken(), brief=brief)


def note(ctx: "typer.Context", text: Text) -> None:
    """A remark about how the input was read: printed after the answer, and not where an error takes its place."""
    ctx.obj["notes"].append(text)


def print_notes(notes: list[Text]) -> None:
    """The remarks so far, each once, to standard error; none is left."""
    words = spoken()
    for text in dict.fromkeys(notes):
        print(aside(words(say("note: {note}", note=text))), file=sys.stderr)
    notes.clear()
