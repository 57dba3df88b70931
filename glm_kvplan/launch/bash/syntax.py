"""What a shell script is made of: words of parts, and statements of words."""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar, dataclass_transform

from glm_kvplan.launch.marked_words import Piece

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def _node(kind: type[_T]) -> type[_T]:
    return dataclass(frozen=True, slots=True)(kind)


@_node
class Text:
    text: str
    quoted: bool


@_node
class Parameter:
    """`$name`, `${name[subscript]operator argument}`, `${#name}`, `${!name}`; its argument may be quoted."""

    name: str
    quoted: bool
    subscript: "tuple[Part, ...] | None" = None
    operator: str = ""
    argument: "tuple[Part, ...]" = ()
    other: "tuple[Part, ...]" = ()  # what `/pattern/other` puts in
    prefix: str = ""  # "#" or "!"


@_node
class Substitution:
    """`$(...)` or backticks."""

    body: "tuple[Statement, ...]"
    quoted: bool


@_node
class Arithmetic:
    """`$((...))`."""

    expression: "tuple[Part, ...]"
    quoted: bool


@_node
class Given:
    """Text that was worked out before, with what is not known of it."""

    piece: Piece
    quoted: bool


Part: TypeAlias = Text | Parameter | Substitution | Arithmetic | Given


@_node
class WordNode:
    parts: tuple[Part, ...]
    line: int


@_node
class Assignment:
    """`name=value`, `name[subscript]+=value`, `name=(values)`; `[subscript]=value` among those has the list's name."""

    name: str
    subscript: tuple[Part, ...] | None
    append: bool
    value: "WordNode | tuple[WordNode | Assignment, ...]"


class Document:
    """A here-document: its text stands in the lines after the statement."""

    def __init__(self) -> None:
        self.parts: tuple[Part, ...] = ()


@_node
class Redirect:
    """`operator target`; a here-document's target is its delimiter."""

    operator: str
    target: WordNode
    number: str
    document: Document | None


@_node
class Simple:
    """Assignments, words and redirections; a word may be an assignment with a list (`declare -A x=(...)`)."""

    assignments: tuple[Assignment, ...]
    words: tuple[WordNode | Assignment, ...]
    redirects: tuple[Redirect, ...]
    line: int


@_node
class Pipeline:
    parts: "tuple[Statement, ...]"
    negated: bool


@_node
class AndOr:
    """A statement, and those joined to it with `&&` or `||`."""

    first: "Statement"
    others: "tuple[tuple[str, Statement], ...]"


@_node
class If:
    """Conditions with their bodies in order; the last may be `()`, which always holds."""

    branches: "tuple[tuple[Body, Body], ...]"


@_node
class Loop:
    """`while` or `until`."""

    condition: "Body"
    body: "Body"
    until: bool


@_node
class For:
    """`for name in words`; words None: the arguments."""

    name: str
    words: tuple[WordNode, ...] | None
    body: "Body"
    line: int


@_node
class CountingFor:
    """`for ((start; test; step))`."""

    start: tuple[Part, ...]
    test: tuple[Part, ...]
    step: tuple[Part, ...]
    body: "Body"
    line: int


@_node
class Case:
    """A word and its alternatives: patterns and body."""

    word: WordNode
    alternatives: "tuple[tuple[tuple[WordNode, ...], Body], ...]"
    line: int


@_node
class Function:
    name: str
    body: "Statement"


@_node
class Group:
    """`{ ...; }`, or `( ... )` whose assignments stay inside; what an `&` follows is one, too."""

    body: "Body"
    inside: bool
    redirects: tuple[Redirect, ...] = ()
    background: bool = False


@_node
class Condition:
    """`[[ ... ]]`: words and operators in order."""

    tokens: tuple[WordNode, ...]
    line: int


@_node
class Calculation:
    """`((...))`."""

    expression: tuple[Part, ...]
    line: int


Statement: TypeAlias = (
    Simple | Pipeline | AndOr | If | Loop | For | CountingFor | Case | Function | Group | Condition | Calculation
)
Body: TypeAlias = tuple[Statement, ...]
