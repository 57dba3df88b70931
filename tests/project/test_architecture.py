"""The import order that docs/contributing/architecture.md draws, and the rules of names, held against the source."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from paths import ROOT
from sources import parsed

PACKAGE = ROOT / "glm_kvplan"
# From the bottom up: a module imports from its own package and from lower rows.
LEVELS = (
    ("errors",),
    ("units", "certainty", "bisection", "quantile", "kept", "reading"),
    ("contexts", "tensor"),
    ("workload",),
    ("show",),
    ("model",),
    ("launch",),
    ("memory",),
    ("allocate",),
    ("engines",),
    ("answers",),
    ("cli",),
)
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}
HEAVY = {"torch", "numpy", "huggingface_hub", "yaml", "pydantic", "sglang", "pyarrow", "matplotlib"}
PYDANTIC_MODELS = {
    Path("model/config_schema.py"),
    Path("answers/check/file_model.py"),
}  # imported by functions in their turn
FRONT_DOORS = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}  # the package's own names, and `python -m glm_kvplan`
MODULES = sorted(set(PACKAGE.rglob("*.py")) - FRONT_DOORS)


def part(path: Path) -> str:
    """The subpackage (or top module) a file belongs to."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(tree: ast.AST, *, at_start: bool) -> Iterator[str]:
    """Modules imported; `at_start` leaves out what functions and type checking import."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif at_start and (isinstance(node, ast.FunctionDef) or _for_types_only(node)):
            continue
        else:
            yield from imports(node, at_start=at_start)


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    tree = parsed(path)
    own = part(path)
    for name in imports(tree, at_start=False):
        words = name.split(".")
        if words[0] != "glm_kvplan" or len(words) < 2 or words[1] not in LEVEL_OF or words[1] == own:
            continue
        assert LEVEL_OF[words[1]] < LEVEL_OF[own], f"{own} imports {name}"


def test_no_module_needs_itself() -> None:
    graph: dict[str, set[str]] = {}
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    for name, path in names.items():
        tree = parsed(path)
        graph[name] = {used for used in imports(tree, at_start=True) if used in names and used != name}
    TopologicalSorter(graph).prepare()  # raises CycleError with the cycle


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    for path in MODULES:
        found = imports(parsed(path), at_start=True)
        heavy = HEAVY - ({"pydantic"} if path.relative_to(PACKAGE) in PYDANTIC_MODELS else set())
        assert not {name.partition(".")[0] for name in found} & heavy, path


def test_the_drawing_shows_every_part_in_its_row() -> None:
    text = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    drawing = text.partition("<!-- levels -->\n\n```text\n")[2].partition("```")[0]
    rows = [tuple(re.findall(r"[a-z]+", line.partition("#")[0])) for line in drawing.strip().splitlines()]
    assert rows == list(reversed(LEVELS))


def test_every_part_is_drawn() -> None:
    assert {part(path) for path in MODULES} == set(LEVEL_OF)


# Words that are the house's own beside being a flag of an engine: a plan's longest request, an expectation of a
# deployment file, what weights are asked for, a key of a draft model's config.json.
OWN_WORDS = {"context_length", "max_running_requests", "page_size", "block_size"}


def engine_words() -> set[str]:
    from glm_kvplan.engines.by_name import NAMES, engine_named

    engines = [engine_named(name) for name in NAMES]
    flags = {flag.name for engine in engines for flag in engine.flags if "_" in flag.name}
    return (flags | {release for engine in engines for release in engine.releases()} | set(NAMES)) - OWN_WORDS


def named_in(tree: ast.AST, words: set[str]) -> set[str]:
    """Words that a module's code uses as a name, an attribute, a keyword or a whole text; sentences are left alone."""
    found = {
        name for name in imports(tree, at_start=False) if re.match(r"glm_kvplan\.engines\.(?:sglang|vllm)\b", name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=word) | ast.Name(id=word) | ast.arg(arg=word) | ast.keyword(arg=word):
                found |= {word} & words
            case ast.Constant(value=str(word)):
                found |= {word} & words
    return found


def test_no_module_outside_engines_names_an_engine() -> None:
    words = engine_words()
    found = {}
    for path in MODULES:
        relative = path.relative_to(PACKAGE)
        if relative.parts[0] == "engines":
            continue
        if named := named_in(parsed(path), words):
            found[str(relative)] = sorted(named)
    assert not found


# One meaning a word: field terms stand for these (a constant is named for the word that it shows).
BANNED = {"where", "room", "free", "counts", "setup", "worlds", "memo", "changed"}
SPOKEN = {Path("cli/sweep.py"): {"where"}}  # typer calls an option after its parameter


def test_names_are_field_terms() -> None:
    for path in MODULES:
        names: set[str] = {path.stem}
        for node in ast.walk(parsed(path)):
            match node:
                case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.arg(arg=word):
                    names.add(word)
                case ast.Name(id=word, ctx=ast.Store()):
                    names.add(word)
        found = {name.strip("_") for name in names} & BANNED
        assert not found - SPOKEN.get(path.relative_to(PACKAGE), set()), path


def test_no_two_modules_have_one_name() -> None:
    """But the same role inside two engines."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        first, *rest = path.relative_to(PACKAGE).parts
        place = rest[0] if first == "engines" and len(rest) > 1 else "all"
        if path.name != "__init__.py":
            places.setdefault(path.name, []).append(place)
    assert not {name: found for name, found in places.items() if len(found) > len(set(found) - {"all"} or {"all"})}


def test_every_module_says_what_it_holds() -> None:
    for path in MODULES:
        said = ast.get_docstring(parsed(path))
        assert said and said.partition("\n")[0].strip(), path
