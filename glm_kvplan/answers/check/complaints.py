"""What the strict reading of a deployment file complains of, said in one line that points into the file."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from glm_kvplan.answers.check.positions import PlacedError, line_of
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.engines.twins import twin_of
from glm_kvplan.reading.secret_words import quoted
from glm_kvplan.reading.yaml_text import KeyPath

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_WORDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list of whole numbers",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "text that is not empty",
    "string_too_long": "shorter text",
}


def complaint(
    errors: "list[ErrorDetails]",
    data: Any,
    name: str,
    lines: Mapping[KeyPath, int],
    model: "type[BaseModel]",
    engine: Engine,
) -> PlacedError:
    """The first complaint of the file by its line; what several types would accept is told together."""
    found: dict[KeyPath, tuple[object, list[ErrorDetails]]] = {}
    for error in errors:
        if error["type"] == "none_required":  # what a key left out would be
            continue
        path, value = _inside(error["loc"], data)
        found.setdefault(path, (value, []))[1].append(error)
    path = min(found, key=lambda path: line_of(lines, *path))
    value, complaints = found[path]
    line, dotted = line_of(lines, *path), ".".join(path)
    if complaints[0]["type"] == "extra_forbidden":
        return PlacedError(name, line, f"unknown key {dotted[:80]!r}{_nearest(path, model, engine)}")
    if complaints[0]["type"] == "string_pattern_mismatch":  # of `set`: it is the key that has no value of its own
        return PlacedError(name, line, f"{dotted[:80]!r}: a variable's name has letters, digits and _")
    if value is None:
        return PlacedError(name, line, f"{dotted} has no value; give one or leave the key out")
    expected = " or ".join(dict.fromkeys(_expected(error) for error in complaints))
    return PlacedError(name, line, f"{dotted}: {quoted(value, dotted)} is not accepted; it takes {expected}")


def _inside(place: tuple[int | str, ...], data: Any) -> tuple[KeyPath, object]:
    """The keys of `place` that are in the data (pydantic adds the names of types), and the value there."""
    path: list[str] = []
    for key in place:
        if not isinstance(data, dict) or key not in data:
            break
        path.append(str(key))
        data = data[key]
    return tuple(path), data


def _expected(error: "ErrorDetails") -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "literal_error":
            return f"one of {context['expected']}" if "," in context["expected"] else str(context["expected"])
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"at most {context['le']:,}"
        case kind:
            return _WORDS.get(kind, error["msg"])


def _nearest(path: KeyPath, model: "type[BaseModel]", engine: Engine) -> str:
    """What was probably meant by an unknown key, or what there is."""
    import difflib

    part: Any = model
    for key in path[:-1]:
        part = part.model_fields[key].annotation
    known = {name: name for name in part.model_fields}
    flags = path[:-1] == ("flags",)
    if flags:
        known.update({option.lstrip("-"): flag.name for flag in engine.flags for option in flag.options})
    wanted = path[-1].strip().lstrip("-")[:80]
    near = known.get(wanted)
    if near is None and flags:
        twin = twin_of(f"--{wanted.replace('_', '-')}", engine.name)
        near = None if twin is None else known.get(twin.lstrip("-"), twin)
    if near is None:
        near = next((known[match] for match in difflib.get_close_matches(wanted, known)), None)
    if near is not None:
        return f"; did you mean {near}?"
    if flags:
        return f"; flags are {engine.title}'s launch flags that touch memory (`kvplan resolve --help`)"
    return f"; known: {', '.join(part.model_fields)}"
