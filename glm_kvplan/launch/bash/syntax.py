"""What a shell script is made of: words of parts, and statements of words."""

from typing import NamedTuple, TypeAlias

from glm_kvplan.launch.words import Piece


class Text(NamedTuple):
    text: str
    quoted: bool


class Parameter(NamedTuple):
    """`$name`, `${name[index]operator argument}`, `${#name}`, `${!name}`. Inside its argument words may be quoted."""

    name: str
    quoted: bool
    index: "tuple[Part, ...] | None" = None
    operator: str = ""
    argument: "tuple[Part, ...]" = ()
    other: "tuple[Part, ...]" = ()  # what `/pattern/other` puts in, the length of `:start:length`
    prefix: str = ""  # "#" or "!"


class Substitution(NamedTuple):
    """`$(...)` or backticks."""

    body: "tuple[Statement, ...]"
    quoted: bool


class Arithmetic(NamedTuple):
    """`$((...))`."""

    expression: "tuple[Part, ...]"
    quoted: bool


class Given(NamedTuple):
    """Text that was worked out before, with what is not known of it."""

    piece: Piece
    quoted: bool


Part: TypeAlias = Text | Parameter | Substitution | Arithmetic | Given


class WordNode(NamedTuple):
    parts: tuple[Part, ...]
    line: int


class Assignment(NamedTuple):
    """`name=value`, `name[index]+=value`, `name=(values)`."""

    name: str
    index: str | None
    append: bool
    value: WordNode | tuple[WordNode, ...]


class Document:
    """A here-document: its text stands in the lines after the statement."""

    def __init__(self) -> None:
        self.parts: tuple[Part, ...] = ()


class Redirect(NamedTuple):
    """`operator target`; a here-document's target is its delimiter."""

    operator: str
    target: WordNode
    number: str
    document: Document | None


class Simple(NamedTuple):
    """Assignments, words and redirections; a word may be an assignment with a list (`declare -A x=(...)`)."""

    assignments: tuple[Assignment, ...]
    words: tuple[WordNode | Assignment, ...]
    redirects: tuple[Redirect, ...]
    line: int


class Pipeline(NamedTuple):
    parts: "tuple[Statement, ...]"
    negated: bool


class AndOr(NamedTuple):
    """A statement, and those joined to it with `&&` or `||`."""

    first: "Statement"
    others: "tuple[tuple[str, Statement], ...]"
    line: int


class If(NamedTuple):
    """Conditions with their bodies in order; the last may be `()`, which always holds."""

    branches: "tuple[tuple[Body, Body], ...]"
    line: int


class Loop(NamedTuple):
    """`while` or `until`."""

    condition: "Body"
    body: "Body"
    until: bool
    line: int


class For(NamedTuple):
    """`for name in words`; words None: the arguments. `for ((...))` has no name."""

    name: str
    words: tuple[WordNode, ...] | None
    body: "Body"
    line: int


class Case(NamedTuple):
    """A word and its alternatives: patterns, body, how it ends (`;;`, `;&`, `;;&`)."""

    word: WordNode
    alternatives: "tuple[tuple[tuple[WordNode, ...], Body, str], ...]"
    line: int


class Function(NamedTuple):
    name: str
    body: "Statement"


class Group(NamedTuple):
    """`{ ...; }`, or `( ... )` whose assignments stay inside; what follows an `&` is one, too."""

    body: "Body"
    inside: bool
    redirects: tuple[Redirect, ...] = ()


class Condition(NamedTuple):
    """`[[ ... ]]`: words and operators in order."""

    tokens: tuple[WordNode, ...]
    line: int


class Calculation(NamedTuple):
    """`((...))`."""

    expression: tuple[Part, ...]
    line: int


Statement: TypeAlias = Simple | Pipeline | AndOr | If | Loop | For | Case | Function | Group | Condition | Calculation
Body: TypeAlias = tuple[Statement, ...]
