"""Launches in Python programs: lists of words such as `[sys.executable, "-m", MODULE, "--tp", "8"]`."""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import Scalar, mark_of, missing, plain, text_of
from glm_kvplan.launch.launch import Found, Launch, Server
from glm_kvplan.launch.marked_words import Mark, Piece, Word, concealed, secret_values
from glm_kvplan.launch.server_commands import launches_of_text, launches_of_words

_STARTS = {"run", "Popen", "call", "check_call", "check_output", "create_subprocess_exec"}
_CHANGES = {"remove", "pop", "clear", "sort", "reverse"}  # of a list, which are not followed
_LARGEST = 1 << 20  # characters of a program
_LOOKS = re.compile(r"(?m)^(?:import |from \w[\w.]* import )|[\[(]\s*(?:sys\.executable|['\"])")


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
    for listed in reader.started.values():
        words = [concealed(word, secrets) for word in listed]
        if not any(server.named_in(word.text) for server in servers for word in words):
            continue
        environment = {key: _word(value, 0) for key, value in reader.environment.items()}
        if len(words) == 1 and words[0].mark is None:  # a line for the shell
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
        # Lists by their id and lines by their text, in the order they stand; no list of which another is made.
        self.started: dict[int | str, list[Word]] = {}
        self.called: set[int] = set()  # ids of the lists that were given to what starts them
        self.environment: dict[str, Scalar] = {}
        self.deciding: list[Mark] = []

    def body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.body(node.body)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.expression(item.context_expr)
                self.body(node.body)
            case ast.Try():
                self.body([*node.body, *node.orelse, *node.finalbody])
            case ast.If(test, body, orelse) if not _is_main(test):
                self.perhaps(f"`{ast.unparse(test)[:60]}`", node, [*body, *orelse])
            case ast.If():
                self.body(node.body)
            case ast.For() | ast.While():
                self.perhaps("the loop", node, node.body)
            case ast.Assign(targets, value):
                for target in targets:
                    self.assign(target, value)
            case ast.AnnAssign(target, _, value) if value is not None:
                self.assign(target, value)
            case ast.AugAssign(ast.Name(name), ast.Add(), value) if name in self.lists:
                self.lists[name] += self.marked(self.items(value))
            case ast.AugAssign(ast.Name(name), operator, value) if name in self.values:
                self.values[name] = self.either(
                    None, ast.copy_location(ast.BinOp(ast.Name(name), operator, value), node)
                )
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [value])) if name in self.lists:
                self.lists[name] += self.marked([self.item(value)])
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "extend"), [value])) if name in self.lists:
                self.lists[name] += self.marked(self.items(value))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "insert"), [at, value])) if name in self.lists:
                self.insert(name, at, self.marked([self.item(value)]))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), change), _)) if (
                name in self.lists and change in _CHANGES
            ):
                self.unknown(name, node)
            case ast.Delete([ast.Subscript(ast.Name(name))]) if name in self.lists:
                self.unknown(name, node)
            case ast.Expr(value) | ast.Return(value) if value is not None:
                self.expression(value)
            case _:
                pass

    def insert(self, name: str, at: ast.expr, words: list[Word]) -> None:
        """Words before the place `at` of a list; at its end, and marked, where that is not known."""
        listed, place = self.lists[name], ast.unparse(at)
        if re.fullmatch(r"-?\d+", place):
            listed[int(place) : int(place)] = words
        elif place == f"len({name})":
            listed += words
        else:
            mark = Mark(f"`{place[:60]}`", f"line {at.lineno}")
            listed += [word._replace(mark=word.mark or mark) for word in words]

    def unknown(self, name: str, node: ast.stmt | ast.expr) -> None:
        """A list is changed in a way that is not followed."""
        mark = Mark(f"`{ast.unparse(node)[:60]}`", f"line {node.lineno}")
        self.lists[name][:] = [word._replace(mark=word.mark or mark) for word in self.lists[name]]

    def perhaps(self, decides: str, node: ast.stmt, statements: Iterable[ast.stmt]) -> None:
        self.deciding.append(Mark(decides, f"line {node.lineno}"))
        self.body(statements)
        self.deciding.pop()

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                words = self.words(value)
                if words is not None:
                    if name in self.lists:
                        words = self.marked(words)
                    self.lists[name] = self.started[id(words)] = words
                elif isinstance(value, ast.Dict):
                    self.variables(value)
                else:
                    self.values[name] = self.either(self.values.get(name), value)
                    self.expression(value)
            case ast.Subscript(ast.Name(name)) if name in self.lists:
                self.unknown(name, target)
            case ast.Subscript(ast.Attribute(_, "environ") | ast.Name(), ast.Constant(str(key))):
                self.environment[key] = self.either(self.environment.get(key), value)
            case _:
                self.expression(value)

    def either(self, before: Scalar | None, value: ast.expr) -> Scalar:
        """A value that is assigned, perhaps under a condition."""
        found = self.scalar(value)
        if not self.deciding or before == found:
            return found
        return tuple(piece._replace(mark=piece.mark or self.deciding[-1]) for piece in found)

    def expression(self, node: ast.expr) -> None:
        """Lists and texts that are given to a call, and its `env=`."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and ast.unparse(inner.func) != "print" and self.words(inner) is None:
                for keyword in inner.keywords:
                    if keyword.arg == "env" and isinstance(keyword.value, ast.Dict):
                        self.variables(keyword.value)
                for argument in inner.args[:1]:
                    words = self.lists.get(argument.id) if isinstance(argument, ast.Name) else self.words(argument)
                    if words is None:
                        line = self.item(argument)
                        self.started.setdefault(line.text, [line])
                    else:
                        self.started[id(words)] = words
                        if ast.unparse(inner.func).rpartition(".")[2] in _STARTS:
                            self.called.add(id(words))

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
                first = self.items(left) if isinstance(left, ast.Name) and left.id in self.lists else self.words(left)
                return None if first is None else [*first, *self.items(right)]
            case (
                ast.Call(ast.Name("list"), [ast.Name(name) as copied])
                | ast.Call(ast.Attribute(ast.Name(name) as copied, "copy"), [])
                | ast.Subscript(ast.Name(name) as copied, ast.Slice(None, None, None))
            ) if name in self.lists:
                return self.items(copied)
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
                if id(self.lists[name]) not in self.called:
                    self.started.pop(id(self.lists[name]), None)
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
            case ast.Name(name) | ast.Subscript(ast.Attribute(_, "environ"), ast.Constant(str(name))):
                return self.variable(name)
            case ast.JoinedStr(parts):
                return tuple(piece for part in parts for piece in self.scalar(part))
            case ast.FormattedValue(value, -1, None):
                return self.scalar(value)
            case ast.Call(ast.Name("str" | "int" | "float"), [argument]):
                return self.scalar(argument)
            case ast.Call(ast.Attribute(of, "getenv" | "get" as called), [ast.Constant(str(name)), *default]) if (
                called == "getenv" or ast.unparse(of).endswith("environ")
            ):
                return self.scalar(default[0]) if default and name not in self.around.given else self.variable(name)
            case ast.BinOp(left, ast.Add(), right) if any(map(_is_text, ast.walk(node))):
                return (*self.scalar(left), *self.scalar(right))
        return (Piece("?", Mark(f"`{ast.unparse(node)[:60]}`")),)

    def variable(self, name: str) -> Scalar:
        given = self.around.given
        return plain(given[name]) if name in given else missing(f"${name}")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _word(value: Scalar, line: int) -> Word:
    return Word(text_of(value), f"line {line}" if line else "the program", mark_of(value))
