"""What a script sees before its first line: environment, arguments, files beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glm_kvplan.launch.bash.values import Scalar


@dataclass(frozen=True)
class Surroundings:
    """What a script sees before its first line.

    `environment` is exported to it, `given` is what the user says of variables that it leaves open, `file` is where it
    lies, or `called` what it is called by (`$0`), `beside` reads files that it sources. `stdin` is what its commands
    find on their standard input. `place` is the whole text's place in messages, "" for lines of its own.
    """

    environment: Mapping[str, Scalar] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[Scalar, ...] = ()
    file: Path | None = None
    called: Scalar | None = None
    stdin: Scalar | None = None
    beside: Callable[[str], str | None] = lambda _: None
    place: str = ""
    secrets: frozenset[str] = frozenset()  # values of key-like variables outside
