"""What `${name#pattern}`, `${name/pattern/other}`, `${name:start:length}`, `${name^}` and their kin make of a value."""

from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.glob_patterns import LONGEST
from glm_kvplan.launch.bash.lists import of_any_length
from glm_kvplan.launch.bash.syntax import Parameter
from glm_kvplan.launch.bash.values import Scalar, Table, elements, known_text, mark_of, missing, plain, uncounted
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.expansion import Expander


def slice_of(expander: "Expander", part: Parameter, values: tuple[Scalar, ...], line: int) -> tuple[Scalar, ...]:
    """`${name[@]:start:length}`."""
    numbers, held = _bounds(expander, part, line), expander.shell.get(part.name)
    if numbers is None or (numbers[1] is not None and numbers[1] < 0) or isinstance(held, Table) or of_any_length(held):
        return (missing(f"${{{part.name}[@]:...}}"),)
    start, length = numbers
    if part.name in ("@", "*"):
        values = (*elements(expander.shell.special("0")), *values)
    start = start + len(values) if start < 0 else start
    if start < 0:
        return ()
    counted = values if length is None else values[: start + length]
    if uncounted(values[:start] if length is None else counted):
        return (missing(f"${{{part.name}[@]:...}}"),)
    return counted[start:]


def _bounds(expander: "Expander", part: Parameter, line: int) -> tuple[int, int | None] | None:
    """`start:length` of `${name:start:length}`."""
    text = known_text(expander.scalar(part.argument, line))
    if text is None:
        return None
    start, colon, length = text.partition(":")
    if not text.strip():
        return None
    first, last = expander.number(start), expander.number(length)
    return None if first is None or last is None else (first, last if colon else None)


def transformed(expander: "Expander", part: Parameter, value: Scalar, line: int) -> Scalar:
    """What the operator of `part` makes of one value."""
    operator, text = part.operator, known_text(value)
    if text is None:
        return (Piece(f"${{{part.name}}}", mark_of(value)),)
    if len(text) > LONGEST:
        return missing(f"${{{part.name}...}}")
    if operator == ":":
        return _part_of(expander, part, text, line)
    if operator[0] in "^,":
        change = str.upper if operator[0] == "^" else str.lower
        return plain(change(text) if len(operator) > 1 else change(text[:1]) + text[1:])
    pattern = expander.pattern(part.argument, line)
    if isinstance(pattern, Mark):
        return (Piece(f"${{{part.name}}}", pattern),)
    expander.shell.grow(len(text) * 8)
    if operator[0] == "#":
        return plain(pattern.without_start(text, operator == "##"))
    if operator[0] == "%":
        return plain(pattern.without_end(text, operator == "%%"))
    other = known_text(expander.scalar(part.other, line))
    # Versions differ: bash 5.2 puts what was matched for `&`, and takes single quotes within double ones away.
    if other is None or pattern.odd_inside or "&" in other or (part.quoted and "'" in other):
        return missing(f"${{{part.name}/...}}")
    return plain(pattern.replaced(text, other, operator))


def _part_of(expander: "Expander", part: Parameter, text: str, line: int) -> Scalar:
    numbers = _bounds(expander, part, line)
    if numbers is None:
        return missing(f"${{{part.name}:...}}")
    start, length = numbers
    start = start + len(text) if start < 0 else start
    if not 0 <= start <= len(text):
        return ()
    end = None if length is None else length + len(text) if length < 0 else start + length
    if end is not None and end < start:
        return missing(f"${{{part.name}:...}}")  # bash complains
    return plain(text[start:end])
