"""Rules of the shell reader that few scripts touch, against bash itself: arithmetic, declarations, options and more.

`run` is given words that we know, `unknown` at least one that we mark: see test_bash_constructs.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from test_bash_constructs import bash_gives, fits, ours

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.started_commands import Command
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import text_of

needs_bash = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")


def _groups() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in (Path(__file__).parent / "bash_rules.txt").read_text().strip("\n").split("\n\n"):
        if one.startswith("# "):
            scripts = found[one[2:]] = []
        else:
            scripts.append(f"{one}\nrun END\n")
    return found


GROUPS = _groups()


@needs_bash
@pytest.mark.parametrize("scripts", GROUPS.values(), ids=GROUPS)
def test_commands_are_given_what_bash_gives_them(scripts: list[str]) -> None:
    for script, theirs in zip(scripts, bash_gives(scripts), strict=True):
        found = ours(script)
        assert fits(found, theirs), (script, theirs, found)
        assert sum(one.name == "unknown" for one in found) >= sum(one.name == "unknown" for one in theirs), script


def seen_by_bash(scripts: list[str]) -> list[dict[str, str]]:
    """The variables of one capital letter that a command sees after each script."""
    told = 'for script; do (eval "$script"; env) 2>/dev/null; echo ---; done'
    done = subprocess.run(["bash", "-c", told, "bash", *scripts], capture_output=True, env={"PATH": "/usr/bin:/bin"})
    pairs = [[line.split("=", 1) for line in one.splitlines()] for one in done.stdout.decode().split("---\n")[:-1]]
    return [{pair[0]: pair[1] for pair in one if len(pair[0]) == 1 and pair[0].isupper()} for one in pairs]


EXPORTS = [
    "export A=1 B; C=2; export C; D=3; declare -x D; E=4; typeset -x F=5; B=6; readonly G=7",
    "A=1; export A; export -n A; B=2; export B; declare +x B; export -n C=3; export D=4; declare +i D",
    "set -a; A=1; set +a; B=2; set -o allexport; C=3; set +o allexport; D=4; set -ea; E=5; set +e; F=6",
    "f() { local -x A=1; export B=2; declare -gx C=3; local D=4; export D; }; f; export E; E=2",
    "export A=1; unset A; A=2; B=1; export B; B=3; C=; export C+=4; C+=5; export -- D=6; A=1 B=2 true",
    "A=1; declare -a A; export A; declare -x B=(1 2); export C=1; C=(2); declare -A D; export D; declare -rx E=5",
    "f() { :; }; f=1; A=1; export -f f; B() { :; }; B=2; export -f B; C=3; (export C); readonly D=4; export D",
]


@needs_bash
def test_a_command_sees_what_is_exported() -> None:
    for script, expected in zip(EXPORTS, seen_by_bash(EXPORTS), strict=True):
        seen = Script(script).shell.scope.environment()
        assert {name: text_of(value) for name, value in seen.items() if len(name) == 1} == expected, script


class Script:
    """What a script has started and noted."""

    def __init__(self, script: str, around: Surroundings | None = None) -> None:
        self.doubts: list[str] = []
        self.words: list[list[str]] = []
        self.shell = Interpreter(around or Surroundings(), self.told)
        self.shell.run(script)

    def told(self, command: Command, _: Interpreter) -> None:
        self.words.append([word.text for word in command.words])
        for mark in (*(word.mark for word in command.words), command.deciding):
            self.doubts += [] if mark is None else [f"{mark.name} of {mark.place}" if mark.place else mark.name]


@pytest.mark.parametrize(
    ("script", "doubts"),
    [
        ("set -- a; shift x || run", ["`shift` of line 1"]),
        ("set -- $U; shift\nshift && run", ["`shift` of line 2"]),
        ("set -- $U; shift; run $1 $#", ["${@}", "$#"]),
        ("\ngetopts $U o -a || run $o $OPTARG $OPTIND", ["${o}", "${OPTARG}", "${OPTIND}", "`getopts` of line 2"]),
        ("cd $U; run $PWD", ["$PWD"]),
        ("run {a..c} {1..99999999}", ["{...}", "{...}"]),
        ("run $(echo a | cat)", ["$(...)"]),
        ('[ -n "$U" ] && set -o pipefail; false | true && run', ["`set -o pipefail`"]),
        ("if [ $U ]; then if [ $V ]; then exit 1; else exit 2; fi; else X=2; run $X; fi", ["$U of line 1"]),
        ("f() { if [ $U ]; then if [ $V ]; then return; else return; fi; else X=2; run $X; fi; }; f", ["$U of line 1"]),
        ("case $U in $V) run;; esac", ["$U of line 1"]),
        ("\ncase a in $V) run;; esac", ["$V of line 2"]),
        ("wait 1 || run", ["`wait` of line 1"]),
        ("\nshopt -q x || run", ["`shopt` of line 2"]),
        ("run $(declare -p) $(export -p) $(set) $(alias) $(shopt) $(pushd /) $(command -v a)", ["$(...)"] * 7),
    ],
)
def test_what_is_not_known_has_a_name(script: str, doubts: list[str]) -> None:
    assert Script(script).doubts == doubts


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("export $U", "line 1: what `export` is given is not known here, nor what it sets"),
        ('\ndeclare "$U=1"', "line 2: what `declare` is given is not known here, nor what it sets"),
        (
            '[ -n "$U" ] && k=P || k=Q; export "$k=5"',
            "line 1: what `export` is given is not known here, nor what it sets",
        ),
        ("eval $U", "line 1: what `eval` is given is not known here, nor what it sets"),
        (f"source ./{'a' * 41}", f"line 1: ./{'a' * 35}... is not read here; what it sets is not known"),
        (f". {'a' * 40}", f"line 1: {'a' * 40} is not read here; what it sets is not known"),
        ("source", "line 1:  is not read here; what it sets is not known"),
        *((f"source {name}", None) for name in ("bin/activate", "conda.sh", ".bashrc", "/etc/profile", "x/setvars.sh")),
        *((text, None) for text in ("eval echo $U", "export A=$U", "export -x", "declare -- A", "readonly A")),
    ],
)
def test_what_is_passed_over_is_noted(script: str, note: str | None) -> None:
    assert Script(script).shell.notes == ([] if note is None else [note])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("\ndeclare -n X=Y", "line 2: `declare -n` is not read here; give the launch command alone"),
        ("if true; then run a; done", "line 1: done is not expected here"),
        ("for i in a\nrun b", "line 2: do is expected here"),
        ("if a; then b; else c; else d; fi", "line 1: else is not expected here"),
        ("for $x in a; do :; done", "line 1: a name is expected here"),
        ("for ;", "line 1: a name is expected here"),
        ("\nfor ((i=0;\ni<2)); do :; done", "line 2: for (( needs three expressions"),
        ("for ((;;;)); do :; done", "line 1: for (( needs three expressions"),
        ("case ; in", "line 1: case needs a word"),
        ("case a of a) ;; esac", "line 1: in is expected here"),
        ("case a inx a) ;; esac", "line 1: in is expected here"),
        ("case a in\n;; esac", "line 2: a pattern is expected here"),
        ("case a in a b) ;; esac", "line 1: ) is expected here"),
        ("case a in a) :;& b) ;; esac", "line 1: `;&` is not read here; give the launch command alone"),
        ("case a in a) :;;& b) ;; esac", "line 1: `;&` is not read here; give the launch command alone"),
        ("\n[[ a == a\n\n", "line 2: [[ is never closed with ]]"),
        ("[[ a == a\n; ]]", "line 2: ';' is not expected here"),
        ("[[ a =~ a; ]]", "line 1: ';' is not expected here"),
        ("run >", "line 1: > needs a file"),
        ("run 2>>\n", "line 1: >> needs a file"),
        ("A=(a\n;b)", "line 2: ';' is not expected in the list A=("),
        ("\nA=(a\n", "line 2: the list A=( is never closed with )"),
        ("true && &", "line 1: '&' is not expected here"),
        ("true &&\n", "line 2: the text ends in a command"),
    ],
)
def test_what_bash_cannot_read_is_refused(script: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Script(script)
    assert str(caught.value) == message


def test_a_file_that_is_sourced_has_arguments_of_its_own() -> None:
    files = {"a.sh": 'run "$@"; A=$1; return 3; run no', "b.sh": "run $#; set -- x y"}
    files |= {"": "run no", "$U.sh": "run no", "one.sh": "run $#$1"}
    assert Script(
        "set -- p q; . one.sh 8; run $#; source; . $U.sh; exec srv x; run no", Surroundings(beside=files.get)
    ).words == [*(["run", "18"], ["run", "2"], ["exec", "srv", "x"])]
    script = Script(
        "set -- p; . a.sh 1 '2 3' || run $A $1; source b.sh; run $1; . none.sh && run s", Surroundings(beside=files.get)
    )
    assert script.words == [["run", "1", "2 3"], ["run", "1", "p"], ["run", "1"], ["run", "x"], ["run", "s"]]
    assert script.doubts == ["`source` of none.sh of line 1"]
    name = "b" * 25
    assert Script(f". x/{name} && run").doubts == [f"`source` of {'b' * 21}... of line 1"]
    assert Script(f"command -V {name} && run").doubts == [f"`{'b' * 21}...` of line 1"]


def test_what_a_list_holds_under_a_secret_s_name_is_a_secret() -> None:
    assert "12345678" in Script("declare -A M=([API_KEY]=12345678 [port]=87654321)").shell.scope.secrets
    assert not Script("declare -A M=([port]=87654321)").shell.scope.secrets


def test_branches_that_copy_lists_for_ever_are_refused() -> None:
    """Each copy of a list's 1,024 values counts for 256 KiB of the 32 MiB that variables may take."""
    script = "L=({1..1024})\n" + '[ -n "$U" ] && L=1 true\n' * 127
    assert Script(script + "run").words == [["run"]]
    with pytest.raises(InputError, match="grow beyond 32 MiB"):
        Script(script + '[ -n "$U" ] && L=1 true\n')


_NESTED = f"{'(' * 24}1{')' * 24}"


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        *((f"-1{'+1' * 249}", True), (f"1{'+1' * 250}", False)),
        *((_NESTED, True), (f"-{_NESTED}", False), (f"({_NESTED})", False)),
        *((f"1{'+(1)' * 60}+{_NESTED}", True), (f"1{'+(1)' * 60}+-{_NESTED}", False)),
    ],
)
def test_an_expression_is_read_up_to_a_length_and_a_depth(expression: str, read: bool) -> None:
    assert Script(f"run $(({expression}))").doubts == ([] if read else ["$((...))"])
