"""Readers' time grows with what they read: eight times the text takes about eight times as long, whatever the text."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from glm_kvplan.answers.check.file_text import parse_toml
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.reading.json_text import read_json
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml

SMALL, LARGE = 4_000, 32_000  # characters


def repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit)) + after


def rows(line: str) -> Callable[[int], str]:
    return lambda size: "".join(line.format(n) for n in range(size // len(line)))


def seconds(reader: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    with suppress(UnreadableError, InputError):
        reader(text)
    return time.process_time() - started


def holds(reader: Callable[[str], object], made: Callable[[int], str]) -> None:
    """A square would be 64 times as long. A machine that is busy once is asked again: a square stays one."""
    for _ in range(3):
        small, large = seconds(reader, made(SMALL)), seconds(reader, made(LARGE))
        if large < 24 * small + 0.05:
            return
    pytest.fail(f"{small:.3f} s for {SMALL}, {large:.3f} s for {LARGE} characters")


def toml(text: str) -> object:
    return parse_toml(text, "plan.toml")


NESTING = [repeated(mark) for mark in ("[", "{", "(", "- ", "? ", '{"a":', "{a: ", "a={", "a=[", "<", "'", '"', "`")]
TOKENS = [repeated(mark) for mark in ("x", "9", " ", "\n", "\\", ":", "-", ".", "!", "&", "*", "#", "#\n", "=", "\t")]
LONG = [
    repeated("x", "a: '", "'"),
    repeated("\\x41", 'a: "', '"'),
    repeated("  x\n", "a: |\n"),
    repeated("x\n", 'a = """\n', '"""'),
    repeated("9", "a: "),
    repeated(":30", "a: 1"),
    repeated("f", "a = 0x"),
    repeated('"""x""",', "a = [", "]"),
    repeated("a.", "", "a = 1"),
    repeated('"a".', "", "a = 1"),
]
ROWS = [
    rows("k{0}: v\n"),
    rows("- &a{0} x\n- *a{0}\n"),
    rows("k{0} = 1\n"),
    rows("[t{0}]\nk = 1\n"),
    rows("[a.b.c.d.e.f.t{0}]\n"),
    repeated("a: 1\n"),
    repeated("- 1\n"),
    repeated('"k":1,', "{", '"k":1}'),
    repeated("1,", "[", "1]"),
    repeated("---\n"),
    repeated("*a,", "a: &a x\nb: [", "]"),
]


@pytest.mark.parametrize("made", [*NESTING, *TOKENS, *LONG, *ROWS])
@pytest.mark.parametrize("reader", [read_yaml, read_json, toml])
def test_data_in_linear_time(reader: Callable[[str], object], made: Callable[[int], str]) -> None:
    holds(reader, made)


SHELL = [
    *("A=(", "[[ ", "case a in ", "$(( ", "${A:-", "$(", "`", "f() {\n", "if a; then\n", "cat <<A <<B\n", '"$(', "(("),
    *(
        "a\\\n",
        "a && ",
        "a |",
        "x; ",
        "x & ",
        "x >f ",
        "A=1\n",
        "A+=x\n",
        "KEY+=x\n",
        "KEY=long$X\nx $KEY\n",
        "A+=(x)\n",
        "A[1]=x\n",
        "A=$A$A\n",
        "<(x) ",
    ),
    *("export A=1\n", "unset A\n", "set -- a b\n", "eval 'A=1'\n", "read A <<< 'x y'\n", "let A=A+1\n", "$'\\x41'"),
    *("f() { x; }; f\n", "for i in a b; do x; done\n", "while x; do y; done\n", "cat <<E\nx\nE\n", "$A", "$((1+1))"),
    *("[ $X ] && A=1\n", "[ $X ] && A+=' x'\n", "[ $X ] && A+=(x)\n", "if $X; then\nA=1\nfi\n", "A=${A%x*}x\n"),
    *("f() { [ $X ] && return; A=1; }; f\n", "if [ $X ]; then A=1; else A=2; fi\n", "$(x)", "{a,b}", "@("),
    *("case $X in a) A=1;; *) A=2;; esac\n", "KEY+=x\n", "KEY=long$X\nx $KEY\n"),
]


@pytest.mark.parametrize("made", [*map(repeated, SHELL), *NESTING[:4], *TOKENS])
def test_scripts_in_linear_time(made: Callable[[int], str]) -> None:
    holds(lambda text: Interpreter(Surroundings(), lambda *_: None).run(text), made)
