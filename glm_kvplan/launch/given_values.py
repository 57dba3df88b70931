"""What a user says of variables that a text leaves open (`--set NAME=VALUE`), and whether the text asked."""

import re
from collections.abc import Iterator, Mapping

from glm_kvplan.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3}")


class GivenValues(Mapping[str, str]):
    """Values by name. `used` are the names that were looked up."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        value = self._values[name]
        self.used.add(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def unused(self, text: str, shown: str) -> list[str]:
        """A line for each value that changed nothing. Raises InputError for a name that does not stand in `text`."""
        notes = []
        for name in sorted(self._values.keys() - self.used):
            if not name.isdigit() and re.search(rf"(?<!\w){name}(?!\w)", text) is None:
                raise InputError(f"--set {name}: {shown} names no such variable")
            notes.append(f"--set {name} changes nothing: the text gives {name} a value itself, or never needs it")
        return notes


def read_given(assignments: list[str] | None) -> GivenValues:
    """The values of `NAME=VALUE` words. Raises InputError for a word that is none; no value is quoted."""
    values = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise InputError("--set: write NAME=VALUE, with the name of a variable that the launch text leaves open")
        values[name] = value
    return GivenValues(values)
