"""How a command prints its answer: its page on the terminal, or the answer itself as JSON."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glm_kvplan.show.page import Page


def print_answer(command: str, answer: Any, page: "Callable[[], Page]", json: bool) -> None:
    """Print an answer. The page is made only where it is shown."""
    if json:
        from glm_kvplan.show.json import document, print_json

        print_json(document(command, answer))
    else:
        from glm_kvplan.cli.language import spoken
        from glm_kvplan.show.text import print_page

        print_page(page(), words=spoken())
