"""What a script has defined so far, in layers: a branch that may not be taken writes into one of its own."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from glm_kvplan.launch.bash.syntax import Statement
from glm_kvplan.launch.bash.values import (
    Array,
    Scalar,
    Value,
    elements,
    joined,
    known_text,
    mark_of,
    plain,
    text_of,
)
from glm_kvplan.launch.bash.word_splitting import BLANKS
from glm_kvplan.launch.marked_words import Mark, secret_values
from glm_kvplan.reading.secret_words import key_like

ARGUMENTS = "@"  # not a variable's name: the script's or function's arguments
_ON = plain("on")
_FOLDER = "PWD"
_MOST_PIECES = 64  # of a secret; what a loop puts together is none


class Scope:
    """Variables, what of them is exported, functions, arguments and the working directory."""

    def __init__(self) -> None:
        self.layers: list[dict[str, Value]] = [{}]
        self.functions: dict[str, Statement | None] = {}  # None: another one in each branch
        self.exported: dict[str, bool] = {}
        self.everything = False  # set -a
        self.secrets: set[str] = set()  # values that key-like variables have had

    def get(self, name: str) -> Value:
        for layer in reversed(self.layers):
            if name in layer:
                return layer[name]
        return None

    def set(self, name: str, value: Value) -> None:
        self.layers[-1][name] = value
        if key_like(name):
            self.keep_secret(name, value)
        if self.everything and name.isidentifier():
            self.exported[name] = True

    def keep_secret(self, name: str, value: Value) -> None:
        """Never quote what stands behind this name, a variable's or a key's of a list, where it is key-like."""
        self.secrets |= secret_values((name, text_of(one)) for one in elements(value) if len(one) < _MOST_PIECES)

    def attributes(self, name: str) -> str:
        """The letters that `declare` has given a variable, kept as the value of "name/"; "?" where branches differ."""
        found = self.get(f"{name}/")
        return (known_text(found) or ("?" if mark_of(found) else "")) if isinstance(found, tuple) else ""

    def option(self, name: str) -> bool | None:
        """An option of `set` or `shopt`; None where a branch decides."""
        found = self.get(f"set/{name}")
        if not isinstance(found, tuple):
            return False
        return None if mark_of(found) else found == _ON

    def set_option(self, name: str, value: bool) -> None:
        self.set(f"set/{name}", _ON if value else ())

    @property
    def arguments(self) -> tuple[Scalar, ...]:
        found = self.get(ARGUMENTS)
        return found.values if isinstance(found, Array) else ()

    def set_arguments(self, values: Iterable[Scalar]) -> None:
        self.set(ARGUMENTS, Array(tuple(values)))

    @property
    def folder(self) -> Scalar | None:
        """The working directory; None where the script has not said."""
        found = self.get(_FOLDER)
        return found if isinstance(found, tuple) else None

    @folder.setter
    def folder(self, value: Scalar) -> None:
        self.set(_FOLDER, value)

    def push(self) -> None:
        self.layers.append({})

    def pop(self) -> dict[str, Value]:
        return self.layers.pop()

    def join(self, branches: Sequence[Mapping[str, Value]], mark: Mark, before: Callable[[str], Value]) -> None:
        """What holds after branches of which one was taken: each has written what its mapping says."""
        for name in dict.fromkeys(name for branch in branches for name in branch):
            values = [branch[name] if name in branch else before(name) for branch in branches]
            self.set(name, values[0] if len(values) == 1 else joined(values, name, mark))

    def environment(self) -> dict[str, Scalar]:
        """What a command started now sees of the script's variables."""
        found = {}
        for name in self.exported:
            value = self.get(name)
            if isinstance(value, tuple) and self.exported[name]:
                found[name] = value
        return found

    def begin(self, environment: Mapping[str, Scalar], arguments: Sequence[Scalar]) -> None:
        self.layers[0] |= {"IFS": plain(BLANKS), "OPTIND": plain("1"), **environment}
        self.secrets |= secret_values((name, text_of(value)) for name, value in environment.items())
        self.exported.update(dict.fromkeys(environment, True))
        self.layers[0][ARGUMENTS] = Array(tuple(arguments))
