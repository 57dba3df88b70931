"""Launches in Python programs: lists of words such as `[sys.executable, "-m", MODULE, "--tp", "8"]`."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import Scalar, mark_of, plain, text_of
from glm_kvplan.launch.launch import Found, Launch, Server
from glm_kvplan.launch.marked_words import Mark, Piece, Word, concealed, secret_values
from glm_kvplan.launch.server_commands import launches_of_text, launches_of_words

_LARGEST = 1 << 20  # characters of a program
_LOOKS = re.compile(r"(?m)^(?:import |from \w[\w.]* import )|[\[(]\s*(?:sys\.executable|['\"])")
_LISTS = ("append", "extend", "insert")


def program_of(text: str) -> ast.Module | None:
    """The text as a Python program; None where it is none, or looks like none."""
    if len(text) > _LARGEST or _LOOKS.search(text) is None:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_program(program: ast.Module, servers: Sequence[Server], around: Surroundings) -> Found:
    """The launches of the lists and texts that start a server, each with what is added to its list afterwards.

    Names of constants are followed; what is not known keeps its name, and what stands under a condition is marked.
    """
    reader = _Reader(around)
    try:
        reader.body(program.body)
    except RecursionError:
        raise InputError("the program is nested too deeply") from None
    launches: list[Launch] = []
    notes: list[str] = []
    named = (reader.values | reader.environment).items()
    secrets = frozenset(secret_values((name, text_of(value)) for name, value in named))
    around = replace(around, secrets=secrets)
    for listed in reader.commands():
        words = [concealed(word, secrets) for word in listed]
        if not any(server.named_in(word.text) for server in servers for word in words):
            continue
        environment = {key: _word(value, 0) for key, value in reader.environment.items()}
        if len(words) == 1 and " " in words[0].text and words[0].mark is None:  # a line for the shell
            inner = Surroundings(reader.environment, around.given, place=words[0].place, secrets=secrets)
            found = launches_of_text(words[0].text, servers, inner)
        else:
            found = launches_of_words(tuple(words), servers, environment, around)
        launches += found.launches
        notes += found.notes
    return Found(launches, tuple(notes))


class _Reader:
    """Statements in their order; of functions, those of their bodies."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.values: dict[str, Scalar] = {}
        self.lists: dict[str, list[Word]] = {}
        self.started: list[list[Word]] = []  # lists and texts in the order they stand
        self.environment: dict[str, Scalar] = {}
        self.deciding: list[Mark] = []

    def commands(self) -> Iterator[list[Word]]:
        seen: set[int] = set()
        for words in self.started:
            if id(words) not in seen and words:
                seen.add(id(words))
                yield words

    def body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.With() | ast.AsyncWith():
                self.body(node.body)
            case ast.Try():
                self.body([*node.body, *node.orelse, *node.finalbody])
            case ast.If(test, body, orelse) if not _is_main(test):
                mark = Mark(f"`{ast.unparse(test)[:60]}`", f"line {node.lineno}")
                for part in (body, orelse):
                    self.deciding.append(mark)
                    self.body(part)
                    self.deciding.pop()
            case ast.If():
                self.body(node.body)
            case ast.For() | ast.While():
                mark = Mark("the loop", f"line {node.lineno}")
                self.deciding.append(mark)
                self.body(node.body)
                self.deciding.pop()
            case ast.Assign(targets, value):
                for target in targets:
                    self.assign(target, value)
            case ast.AnnAssign(target, _, value) if value is not None:
                self.assign(target, value)
            case ast.AugAssign(ast.Name(name), ast.Add(), value) if name in self.lists:
                self.lists[name] += self.marked(self.items(value))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), method), arguments)) if (
                name in self.lists and method in _LISTS and arguments
            ):
                added = self.items(arguments[0]) if method == "extend" else [self.item(arguments[-1])]
                self.lists[name] += self.marked(added)
            case ast.Expr(value) | ast.Return(value) if value is not None:
                self.expression(value)
            case _:
                pass

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                words = self.words(value)
                if words is not None:
                    if name in self.lists and self.deciding:
                        words = self.marked(words)
                    self.lists[name] = words
                    self.started.append(words)
                elif isinstance(value, ast.Dict):
                    self.variables(value)
                else:
                    self.values[name] = self.scalar(value) if not self.deciding else self.either(name, value)
                    self.expression(value)
            case ast.Subscript(ast.Attribute(_, "environ") | ast.Name(), ast.Constant(str(key))):
                self.environment[key] = self.scalar(value)
            case _:
                self.expression(value)

    def either(self, name: str, value: ast.expr) -> Scalar:
        """A value assigned under a condition."""
        found = self.scalar(value)
        if self.values.get(name) == found:
            return found
        return tuple(piece._replace(mark=piece.mark or self.deciding[-1]) for piece in found)

    def expression(self, node: ast.expr) -> None:
        """Lists and texts that are given to a call, and its `env=`."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and self.words(inner) is None:
                for keyword in inner.keywords:
                    if keyword.arg == "env" and isinstance(keyword.value, ast.Dict):
                        self.variables(keyword.value)
                for argument in inner.args[:1]:
                    words = self.words(argument)
                    if words is not None:
                        self.started.append(words)
                    elif isinstance(argument, ast.Constant | ast.JoinedStr):
                        self.started.append([_word(self.scalar(argument), argument.lineno)])

    def variables(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self.environment[key.value] = self.scalar(value)

    def words(self, node: ast.expr) -> list[Word] | None:
        """The words of a list; None for what is none."""
        match node:
            case ast.List() | ast.Tuple():
                return self.items(node)
            case ast.BinOp(left, ast.Add(), right):
                first = self.words(left)
                return None if first is None else [*first, *self.items(right)]
            case ast.Call(ast.Attribute(ast.Constant(str(text)), "split"), []):
                return [Word(word, f"line {node.lineno}") for word in text.split()]
            case ast.Call(ast.Attribute(ast.Name("shlex"), "split"), [argument]):
                import shlex

                value = self.scalar(argument)
                if mark_of(value) is None:
                    try:
                        return [Word(word, f"line {node.lineno}") for word in shlex.split(text_of(value))]
                    except ValueError:
                        return None
        return None

    def items(self, node: ast.expr) -> list[Word]:
        match node:
            case ast.List(elements) | ast.Tuple(elements):
                found: list[Word] = []
                for element in elements:
                    found += self.items(element.value) if isinstance(element, ast.Starred) else [self.item(element)]
                return found
            case ast.Name(name) if name in self.lists:
                return list(self.lists[name])
            case _:
                found_words = self.words(node)
                return [self.item(node)] if found_words is None else found_words

    def item(self, node: ast.expr) -> Word:
        return _word(self.scalar(node), node.lineno)

    def marked(self, words: Sequence[Word]) -> list[Word]:
        """Words that stand there or not, where a condition is open."""
        if not self.deciding:
            return list(words)
        return [word._replace(mark=word.mark or self.deciding[-1]) for word in words]

    def scalar(self, node: ast.expr) -> Scalar:
        """The text of an expression, as far as it is known."""
        match node:
            case ast.Constant(str(text)):
                return plain(text)
            case ast.Constant(bool() | int() | float() as value):
                return plain(str(value))
            case ast.Attribute(ast.Name("sys"), "executable"):
                return plain("python")
            case ast.Name(name) if name in self.values:
                return self.values[name]
            case ast.Name(name) if name in self.around.given:
                return plain(self.around.given[name])
            case ast.Name(name):
                return (Piece(name, Mark(f"${name}")),)
            case ast.JoinedStr(parts):
                return tuple(piece for part in parts for piece in self.scalar(part))
            case ast.FormattedValue(value, -1, None):
                return self.scalar(value)
            case ast.Call(ast.Name("str" | "int" | "float"), [argument]):
                return self.scalar(argument)
            case ast.Call(ast.Attribute(_, "getenv" | "get"), [ast.Constant(str(name)), *default]):
                if name in self.around.given:
                    return plain(self.around.given[name])
                return self.scalar(default[0]) if default else (Piece(name, Mark(f"${name}")),)
            case ast.Subscript(ast.Attribute(_, "environ"), ast.Constant(str(name))):
                if name in self.around.given:
                    return plain(self.around.given[name])
                return (Piece(name, Mark(f"${name}")),)
            case ast.BinOp(left, ast.Add(), right):
                return (*self.scalar(left), *self.scalar(right))
        return (Piece("?", Mark(f"`{ast.unparse(node)[:60]}`")),)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _word(value: Scalar, line: int) -> Word:
    return Word(text_of(value), f"line {line}" if line else "the program", mark_of(value))
