"""What is wrong with a text that should be data, and at which line; and the bounds that all data keeps."""

import re
from typing import Any

DEEPEST = 64  # collections inside collections
LONGEST_NUMBER = 100  # characters of a number, digits and all
LARGEST_NUMBER = 1 << 256  # what may be written in other bases


_QUOTE = re.compile(r"'[^']*'|\"[^\"]*\"|\*\S+")


class UnreadableError(Exception):
    """Not the data it should be. `line` counts from 1, None where none can be named; whoever reads names the file."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line

    @property
    def unquoted(self) -> str:
        """The problem without what stands there: of a file that may hold secrets, and that somebody else named."""
        return _QUOTE.sub("...", self.problem)


def deep(value: Any) -> bool:
    """Whether collections lie in collections more than 64 levels down."""
    for _ in range(DEEPEST):
        if not isinstance(value, dict | list):
            return False
        value = [
            below
            for one in (value.values() if isinstance(value, dict) else value)
            if isinstance(one, dict | list)
            for below in (one.values() if isinstance(one, dict) else one)
        ]
        if not value:
            return False
    return True
