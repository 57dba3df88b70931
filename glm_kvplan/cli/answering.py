"""How a command prints its answer: its page on the terminal, or the answer itself as JSON."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glm_kvplan.show.page import Page


def print_answer(command: str, answer: Any, page: "Callable[[], Page]", json: bool) -> None:
    """Print an answer. The page is made only where it is shown."""
    write_answer(command, answer, page, "json" if json else "text")


def write_answer(command: str, answer: Any, page: "Callable[[], Page]", form: str, stream: Any = None) -> None:
    """The whole answer as `text`, `json` or `md`, to standard output or into a file."""
    if form == "json":
        from glm_kvplan.show.json import document, print_json

        print_json(document(command, answer), stream)
        return
    from glm_kvplan.cli.language import spoken

    if form == "md":
        from glm_kvplan.show.markdown import markdown

        print(markdown(page(), spoken()), end="", file=stream)
    else:
        from glm_kvplan.show.text import print_page

        print_page(page(), stream, spoken())
