"""The shell reader against quoting rules and bash itself."""

import shlex
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.surroundings import Surroundings

_PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)


def commands(text: str) -> list[list[str]]:
    """The words of every command that a script starts."""
    found: list[list[str]] = []
    Interpreter(Surroundings(), lambda command, _: found.append([word.text for word in command.words])).run(text)
    return found


@settings(max_examples=300, deadline=2000)
@given(st.lists(_PLAIN, max_size=8))
def test_quoted_words_come_back_as_a_shell_would_give_them(words: list[str]) -> None:
    assert commands(shlex.join(["run", *words])) == [["run", *words]]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    "text",
    [
        """a 'b c' "d e" f\\ g""",
        """A='1 2'; B="$A"; run $A "$A" x$A "${C:-d e}" ${C:-d e}""",
        """A=(1 "2 3"); A+=(4); run "${A[@]}" ${A[@]} $A""",
        """run "a\\"b" 'c"d' e\\\\f "g\\nh" # no""",
        """A=x; A+=y; run $A "${A:+set}" "${B:+set}"; """,
        """run a \\\n  b\\\nc""",
        """A=$B; A=${A:-z}; run --x=$A "--y=${A}" """,
    ],
)
def test_words_are_bashs(text: str) -> None:
    shown = f'run() {{ printf "%s\\0" "$@"; }}; a() {{ run "$@"; }}; {text}'
    try:
        done = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("bash is not installed")
    assert commands(text)[-1][1:] == done.stdout.split("\0")[:-1]
