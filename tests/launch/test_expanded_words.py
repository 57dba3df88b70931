"""Words after expansion: each list of words is bash's own; where it cannot be known, the variable or command that
decides is named, and what cannot be read is refused with one line.
"""

import sys
from pathlib import Path

import pytest
from test_bash_constructs import _AFTER, _BEFORE, bash_gives, fits, ours

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash import interpreter, text_reader
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import plain
from glm_kvplan.launch.marked_words import Word
from glm_kvplan.reading.secret_words import Concealed

_BY_U, _AS_U = "what $U of line 1 decides", ", as $U of line 1 decides"
# Read to the very end of the text, with nothing set before.
_ALONE = ("run a$", "run $OPTIND", "run $?", "run $", 'run "$"', "run a \\", "run a#b # c")


def scripts() -> list[str]:
    paragraphs = (Path(__file__).parent / "expanded_words.txt").read_text().strip("\n").split("\n\n")
    return [*(_BEFORE + one + _AFTER for one in paragraphs if not one.startswith("# ")), *_ALONE]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_words_are_bashs() -> None:
    wrong = [
        (script.removeprefix(_BEFORE).removesuffix(_AFTER), theirs, mine)
        for script, theirs in zip(scripts(), bash_gives(scripts()), strict=True)
        if not fits(mine := ours(script), theirs)
    ]
    assert not wrong


def commands(script: str, around: Surroundings | None = None) -> tuple[list[list[Word]], Interpreter]:
    """The words of each command that starts, without its name."""
    found: list[list[Word]] = []
    shell = Interpreter(around or Surroundings(), lambda command, _: found.append([*command.words[1:]]))
    shell.run(script)
    return found, shell


def asked(word: Word) -> str:
    """What would have to be known for the word, as a message names it; "..." behind what may be several words."""
    if word.mark is None:
        return ""
    return word.mark.given.partition(", which ")[0] + " ..." * word.mark.several


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        # parameters
        ('run $U "$U" x$U "${U}"', ["$U ...", "$U", "$U ...", "$U"]),
        ('run ${U[@]} "${U[@]}" "${U[*]}"', ["$U ...", "$U", "$U"]),
        ('run "${#U}" ${#U[@]} "${#U[@]}"; X=$U; run "${#X}" ${#X}', ["${#X}", "${#X} ..."]),
        ('run "${#U}" ${#U[@]} "${#U[@]}"', ["${#U}", "${#U[@]} ...", "${#U[@]}"]),
        ('X=$U; run "${!X}" ${!X}', ["${!X}", "${!X} ..."]),
        ("X='a b'; run \"${!X}\" ${!X}", ["${!X}", "${!X} ..."]),
        ("X='L[@]'; L=(a b); run \"${!X}\"", ["${!X}"]),
        ('run "$!" "$$" "$-" "$0" "$RANDOM" "$HOSTNAME"', ["$!", "$$", "$-", "$0", "$RANDOM", "$HOSTNAME"]),
        ('run $x{1,2} "${A@Q}" ${A@Q} "${A!b}" "${}" "${[0]}"',
         ["$x{...} ...", "$x{...} ...", "${A...}", "${A...} ...", "${A...}", "${...}", "${...}"]),
        ('A=x; run "${A^x}" "${A,x}" "${A~}" "${A/x/&}"', ["${A...}", "${A...}", "${A...}", "${A/...}"]),
        ("run $'\\xff' $'\\xff'a", ["$'...'", "$'...'"]),
        ('run "${U:-d}" "${U-d}" ${U:-d e}', ["", "", "", ""]),
        ('run "${U:+x}" ${U:+x y} "${U+x}"', [_BY_U, f"{_BY_U} ...", f"{_BY_U} ...", _BY_U]),
        ('X=$U$V; run "$X" "${X:-d}" "${X:+d}"', ["$U", "", _BY_U]),
        ('X="${U}a"; run "${X:+d}" "${X:-d}"', ["", "$U"]),
        ('X="$U$(c)"; run "${X:-d}" "$X"', ["$U", "$U"]),
        ('X=$(c); run "${X:-d}" "$X" "${X-d}"', ["$(...)", "$(...)", "$(...)"]),
        ('set -u; run "$1" "${U}"', ["$1", "$U"]),
        ('set -u; set -- a; run "$1" "$2"', ["", "$2"]),
        ('set -- $U; run "$1" "$2" "$#" "$@"', ["$U ...", "${2}", "$#", "$U ..."]),
        ('set -- a $U b; run "$1" "$2" "$3" "$4"', ["", "$U ...", "${3}", "${4}"]),
        ('run "$?"', [""]),
        ('false; run "$?"', ["$?"]),
        ('c; run "$?"', ["what `c` of line 1 decides"]),
        ('X=$(<f); run "$X"', ["$(...)"]),
        # several values, as a branch decides
        ('[ -n "$U" ] && X=4 || X=5\nrun "$X" "${X:+8}" "${X:-8}"', [f"4 or 5{_AS_U}", _BY_U, f"4 or 5{_AS_U}"]),
        ('X=; [ -n "$U" ] && X=4\nrun "$X" "${X:+8}" "${X:-8}"',
         [f"4 or nothing{_AS_U}", _BY_U, f"4 or 8{_AS_U}"]),
        ('X=; [ -n "$U" ] && X=4\nY=${X:+8}; run "$Y"; run "${Y:-9}"', [_BY_U]),
        # changes
        ('run "${U#x}" "${U^^}" "${U:1}" "${U/a/b}"', ["$U", "$U", "$U", "$U"]),
        ('A=x; run "${A#$U}" "${A/$U/x}" "${A/x/$U}" "${A:U}" "${A:0:U}"',
         ["$U", "$U", "${A/...}", "${A:...}", "${A:...}"]),
        ('T=abcabc; run "${T:6:-1}" "${T:2:-5}" "${T:}" "${T: }" "${T:N?1:2}" "${T:1/0}" "${T:0:1/0}"',
         ["${T:...}"] * 7),
        ("A=x; shopt -s nocasematch; run \"${A#x}\" \"${A/x/y}\"", ["`shopt -s nocasematch`"] * 2),
        ("A=x; run \"${A#@(x)}\"; P='@(x)'; run \"${A#$P}\" \"${A/$P/y}\" \"${A%+(x)}\"", ["a pattern"] * 3),
        ('A=x; run "${A/[!]]/Q}" "${A/[^]a]/Q}" "${A#[!]]}"', ["${A/...}", "${A/...}", ""]),
        # lists
        ('L=(a b); run "${L[@]:0:-1}" "${L[@]:U}" "${L[@]:0:U}"', ["${L[@]:...}"] * 3),
        ('L=(a $U b); run "${L[@]:0:2}"', ["${L[@]:...}"]),
        ('L=(a $U b); run "${L[@]:1}"', ["$U ...", ""]),
        ('L=(a $U b); run "${L[@]:2}" "${L[@]:0:1}" "${L[@]: -1}"', ["${L[@]:...}", "", "${L[@]:...}"]),
        ('L=(a $U b); run "${L[0]}" "${L[1]}" "${L[2]}" "${L[-1]}"', ["", "$U ...", "${L[...]}", "${L[...]}"]),
        ('L=(a $U); run "${!L[@]}" "${#L[@]}"; L=(a b); run "${!L[@]}" "${#L[@]}"', ["", "", ""]),
        ('L=(a $U); run "${!L[@]}" "${#L[@]}"', ["${!L[@]}", "${#L[@]}"]),
        ('run "${@:0:1}"', ["$0"]),
        ('set -- a; run "${@:0}" "${@:0:1}" "${@:1}"', ["$0", "", "$0", ""]),
        ('L=(); L[3]=v; run "${L[@]}" "${L[1]}" "${#L[@]}" "${!L[@]}" "${L[0]}" "$L" ${L[@]:1}',
         ["${L} ...", "${L[...]}", "${#L[@]}", "${!L[@]}", "${L} ...", "${L} ...", "${L[@]:...} ..."]),
        ('L=(a b); unset "L[0]"; set -- "${L[@]}" w; run "$1" "$2"', ["${L} ...", "${2}"]),
        ('declare -A P=([a]=1 [b]=2); run "${P[@]}"', ["the order of ${P[@]}"] * 2),
        ('declare -A P=([a]=1 [b]=2); run "${!P[@]}" "${P[@]:0:1}"', ["the order of ${P[@]}"] * 2 + ["${P[@]:...}"]),
        ('declare -A P=([a]=1); run "${P[@]}" "${!P[@]}" "${P[$U]}"', ["", "", "${P[...]}"]),
        ('declare -A P=([a]=1); P[$U]=1; run "${P[a]}" "${P[@]}"', ["${P[...]}", "${P} ..."]),
        ("IFS=:; run *:b", ["`*:b` ..."]),
        ("run *.txt '*' x?; ", ["`*.txt` ...", "", "`x?` ..."]),
        ('set -- *.json w; run "$1" "$2"', ["`*.json` ...", "${2}"]),
        ("run *abcdefghijklmnopqrstuvwxyz", ["`*abcdefghijklmnopqrst...` ..."]),
        ('IFS=$U; set -- a b; X="a b"; run "$*" $X', ["$U", "$U"]),
        ('for i in $U; do L=("$i" b); run "$i" "${L[0]}" "${L[1]}"; done', ["$U", "$U", ""]),
        # expressions
        ('run $((U)) "$((U+V))" "$((V[0]))" "$((1/0))" $((08))', ["$U ...", "$U", "$V", "$((...))", "$((...)) ..."]),
        ('((X = U)); run "$X"; ((0 && (Y = U), Z = 1)); run "$Y" "$Z"; ((U && (Z = 2))); run "$Z"', ["$U"]),
        ('((0 && (Y = U), Z = 1)); run "$Y" "$Z"', ["$Y", ""]),
        ('A=A; run "$((A))" "$((A+A))"', ["$((...))", "$((...))"]),
        ("A='L[A]+L[A]+L[A]'; L=(1); run \"$((A))\" \"$((L[A]))\" \"$((L[0]))\" \"${L[A]}\"",
         ["$((...))", "$((...))", "", "${L[...]}"]),
        # printf
        ('X=$(printf "$U"); run "$X"; printf -v X %z a; run "$X"', ["$(...)"]),
        ('printf -v X %5s "$U"; printf -v Y %s "a$U"; run "$X" "${Y:+y}" "$Y"', ["$U", "", "$U"]),
        ('printf -v X "%s %s" "$U"; run "$X"', ["$U"]),
    ],
)  # fmt: skip
def test_what_decides_a_word_is_named(script: str, expected: list[str]) -> None:
    found, _ = commands(script)
    assert [asked(word) for word in found[-1]] == expected


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("run $'a", "line 1: the quote ' is never closed"),
        ("run a\nrun `a", "line 2: the quote ` is never closed"),
        ("run $(a", "line 1: $( is never closed with )"),
        ('run a\nrun "${A:-x\n', "line 2: ${ is never closed with }"),
        ("run ${A", "line 1: ${ is never closed with }"),
        ("run $((1", "line 1: (( is never closed with ))"),
        ("run ${A[1", "line 1: [ is never closed with ]"),
        ("run ${A:-'x", "line 1: the quote ' is never closed"),
        ("run " + "${E:-" * 41 + "}" * 41, "line 1: more than 40 constructs inside one another"),
        ("run " + "${E}" * 3 + "${E:-" * 41 + "}" * 41, "line 1: more than 40 constructs inside one another"),
        ("run " + "$((1+" * 41 + "1" + "))" * 41, "line 1: more than 40 constructs inside one another"),
        ("run " + "$((1))" * 3 + "$((1+" * 41 + "1" + "))" * 41, "line 1: more than 40 constructs inside one another"),
        ("f() { :; }; if $U; then f() { c; }; fi; f",
         "line 1: the function f is another one in each of several branches"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(script: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        commands(script)
    assert str(caught.value) == says
    with pytest.raises(InputError) as caught:
        commands(script, Surroundings(place="word 3"))
    assert str(caught.value) == says.replace("line 1", "word 3").replace("line 2", "word 3")


def test_constructs_may_stand_inside_one_another() -> None:
    for script in ("${E:-" * 39 + "a" + "}" * 39, "$((1+" * 39 + "1" + "))" * 39):
        assert commands(f"E=; run {script}")[0]


@pytest.mark.parametrize(
    ("script", "places"),
    [
        ('\nA=(\n --tp 8\n)\nrun "${A[@]}" x', ["line 3", "line 3", "line 5"]),
        ("\nA=a; B='b c'\n\nrun $A $B ${U:-d}\\\n $((1))", ["line 2", "line 2", "line 2", "line 4", "line 5"]),
        ("\n\neval 'run a'", ["line 3"]),
        ("\n\neval ':\nrun a'", ["line 3"]),
        ("\neval 'eval \"\nrun a\"'", ["line 2"]),
        ("eval 'eval :'\nrun a", ["line 2"]),
        ("f() {\neval 'run a'\n}\n\nf", ["line 2"]),
    ],
)
def test_words_stand_where_they_are_written(script: str, places: list[str]) -> None:
    assert [word.place for word in commands(script)[0][-1]] == places
    assert {word.place for word in commands(script, Surroundings(place="word 3"))[0][-1]} == {"word 3"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('run "$TP" "${TP:-4}" "${TP+s}"', ["8", "8", "s"]),
        ('TP=4; run "$TP"', ["4"]),
        ('TP=$U; run "$TP"', ["8"]),
        ('TP=$(c); run "${TP:-4}"', ["8"]),
        ('TP=(a b); run "$TP" "${TP[1]}"', ["a", "b"]),
        ('unset TP; run "${TP-u}"', ["u"]),
        ('run "$RANDOM" "$1" "$2"', ["5", "x", ""]),
        ('f() { run "$1" "${2-u}"; }; f y', ["y", "u"]),
        ('f() { run "${1-u}"; }; f', ["u"]),
        ('run "$0" "$BASH_SOURCE" "${BASH_SOURCE[0]}"', ["/w/s.sh"] * 3),
        ('BASH_SOURCE=q; run "$BASH_SOURCE"', ["q"]),
        ('run "${@:0:1}"', ["/w/s.sh"]),
        ('run "$PWD"; cd /x; run "$PWD"', ["/x"]),
    ],
)
def test_what_is_given_counts_where_the_script_leaves_it_open(script: str, expected: list[str]) -> None:
    around = Surroundings(given={"TP": "8", "RANDOM": "5", "1": "x"}, file=Path("/w/s.sh"))
    found, _ = commands(script, around)
    assert [word.text for word in found[-1]] == expected and all(word.mark is None for word in found[-1])
    assert [asked(word) for word in commands('run "$U" "$0"')[0][0]] == ["$U", "$0"]
    assert [asked(word) for word in commands('run "$U" "$0"', around)[0][0]] == ["$U", ""]


def test_a_script_sees_its_name_its_environment_and_its_arguments() -> None:
    around = Surroundings(environment={"A": plain("1"), "HF_TOKEN": plain("hf_abcde")}, called=plain("go.sh"))
    found, shell = commands('run "$0" "$A" "$HF_TOKEN" hf_abcde', around)
    assert [word.text for word in found[0]] == ["go.sh", "1", "hf_abcde", "hf_abcde"]
    assert [isinstance(word.text, Concealed) for word in found[0]] == [False, False, True, True]
    environment = shell.environment("here")
    assert {name: word.text for name, word in environment.items()} == {"A": "1", "HF_TOKEN": "hf_abcde"}
    assert {word.place for word in environment.values()} == {"here"}
    _, shell = commands(
        "B=2; export C=$U; export D=4 E=5; export -n E; export L=(a b); set -a; F=6; declare -i G=7; set -- x; set +a"
        "; H=8; unset A; (export I=9); J=10 c",
        around,
    )
    exported = shell.environment("here")
    assert sorted(exported) == ["C", "D", "F", "G", "HF_TOKEN"]
    assert asked(exported["C"]) == "$U" and exported["G"].text == "7"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ('run "$@" $1 "$@"', True),
        ('run "$#"', True),
        ("for i; do run; done", True),
        ('f() { run "$@" "$1"; }; f', False),
        ('set -- a; run "$@"', False),
        ("run $0 $?", False),
    ],
)
def test_a_script_without_arguments_is_noted_once(script: str, told: bool) -> None:
    assert len(commands(script)[1].notes) == told
    assert not commands(f"{script}; shift; shift; run $1", Surroundings(arguments=(plain("a"),)))[1].notes


@pytest.mark.parametrize(
    ("script", "hidden"),
    [
        ("API_KEY=abcdefgh; run --x abcdefgh abcdefg zzzzz", [False, True, True, False]),
        ("declare -A M; M[API_KEY]=abcdefgh; run abcdefgh", [True]),
        ("M[API_KEY]=abcdefgh; run abcdefgh", [True]),
        ("declare -A M=([API_KEY]=abcdefgh); run abcdefgh", [True]),
        ("read API_KEY <<< abcdefgh; run abcdefgh", [True]),
        ("NAME=abcdefgh; run abcdefgh", [False]),
        # what a loop puts together is no secret, so that not every word is one
        ("SECRETS=; for i in {100..199}; do SECRETS+=w$i,; done; API_KEY=abcdefgh; run zzzzz abcdefgh", [False, True]),
    ],
)
def test_secrets_are_not_quoted(script: str, hidden: list[bool]) -> None:
    found, shell = commands(script)
    assert [isinstance(word.text, Concealed) for word in found[-1]] == hidden
    assert bool(shell.within().secrets) == any(hidden)


def test_secrets_given_from_outside_are_not_quoted() -> None:
    for around in (Surroundings(given={"API_KEY": "abcdefgh"}), Surroundings(secrets=frozenset(("abcdefgh",)))):
        found, _ = commands("run abcdefgh zzzzz", around)
        assert [isinstance(word.text, Concealed) for word in found[0]] == [True, False]
    assert not isinstance(commands("run abcdefgh", Surroundings(given={"NAME": "abcdefgh"}))[0][0][0].text, Concealed)


def known(script: str) -> bool:
    return all(word.mark is None for word in commands(script)[0][-1])


@pytest.mark.parametrize(
    ("script", "most"),
    [
        ("T={text}; run ${{T#a}}", 2048),
        ("T=b; P={text}; run ${{T#$P}}", 2048),
        ("T={text}; [[ $T =~ a+$ ]] && X=1; run $X", 1000),
        ("T={text}; [[ $T =~ a+a* ]] && X=1; run $X", 200),
        ("T={text}; [[ $T =~ a*a*a*$ ]] && X=1; run $X", 200),
    ],
)
def test_patterns_are_matched_up_to_a_length(script: str, most: int) -> None:
    assert known(script.format(text="a" * most))
    assert not known(script.format(text="a" * (most + 1)))


def test_expressions_with_many_repeats_are_not_matched() -> None:
    assert known("[[ aaa =~ a+a+a+ ]] && X=1; run $X")
    assert not known("[[ aaaa =~ a+a+a+a+ ]] && X=1; run $X")


def test_what_printf_repeats_without_end_is_not_known() -> None:
    assert known(f"X=$(printf {'%%' * 99}%s {{1..100}}); run $X")  # 10,000 pieces
    assert not known(f"X=$(printf {'%%' * 136}%s {{1..73}}); run $X")


def test_commands_and_rounds_are_counted() -> None:
    shell = Interpreter(Surroundings(), lambda command, _: None)
    for _ in range(20_000):
        shell.count()
    with pytest.raises(InputError, match="more than 20,000 commands"):
        shell.count()
    shell.grow(32 << 20)
    with pytest.raises(InputError, match="grow beyond 32 MiB"):
        shell.grow(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_MOST_COMMANDS", 50)
        commands(";".join(["run"] * 50))
        for script in ("while ((1)); do ((1)); done", "for i in {1..60}; do ((1)); done", "for ((;;)); do ((1)); done"):
            with pytest.raises(InputError, match="more than 50 commands"):
                commands(script)


def test_every_word_counts_its_length_and_64_bytes() -> None:
    def size(script: str) -> int:
        return commands(script)[1].size

    assert size("run a bc") == 3 * 64 + len("runabc")
    assert size("X=abc") == 64 + len("abc")
    assert size("X=abc; Y=$X$X") == 2 * 64 + 9
    text = "a" * 1000
    assert size(f"X={text}; Y=${{X#a}}") - size(f"X={text}; Y=$X") == 8 * 1000 - len("a")


@pytest.mark.parametrize("script", ["run $((%s))", 'run "${A:-%s}"', "run ${A/x/%s}", "run ${A/%s}", "run x%s"])
def test_parts_of_words_are_counted(script: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "_MOST_PARTS", 30)
        commands(script % ("$N" * 20))
        with pytest.raises(InputError, match="more than 30 words"):
            commands(script % ("$N" * 40))


def test_rounds_that_may_come_inside_one_another_are_few() -> None:
    script = "".join(f"while $U{depth}; do " for depth in range(8)) + "run x" + "; done" * 8
    assert sum(found == ["x"] for found in ([word.text for word in one] for one in commands(script)[0])) == 9


def test_values_that_name_each_other_end() -> None:
    """Each level doubles what is looked up: bash takes hours, and here the number is not known."""
    levels = "; ".join(f"V{level}='V{level + 1}+V{level + 1}'" for level in range(40))
    (told,) = ours(f"{levels}; V40=1; run $((V0))")
    assert told.marked


@pytest.mark.parametrize("script", ['x=\'eval "$x"\'; eval "$x"', "f() { f; }; f"])
def test_a_script_that_starts_itself_again_ends(script: str) -> None:
    with pytest.raises(InputError, match=r"starts itself again|functions"):
        Interpreter(Surroundings(), lambda *_: None).run(script)


def test_a_repeat_of_alternatives_is_not_tried() -> None:
    """Python's expressions take 2 ** 60 steps for it."""
    told = ours(f"X={'a' * 60}; if [[ $X =~ ^(a|a)*b$ ]]; then run a; else run b; fi")
    assert [one.words for one in told] == [["a"], ["b"]] and all(one.marked for one in told)
