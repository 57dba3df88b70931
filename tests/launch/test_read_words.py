"""Words, statements and values of small scripts: as bash gives them, refused with one line, or asked about by name.

`run` and `unknown` are test_bash_constructs' own: words that are known, and words of which one is not.
"""

import sys
from pathlib import Path

import pytest
from test_bash_constructs import bash_gives, ours

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash import interpreter, text_reader
from glm_kvplan.launch.bash.interpolation import interpolated
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.started_commands import Command
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.marked_words import Mark

_BEFORE = "A=x; B='a b'; E=; N=3; L=(p 'q r' s)\n"
_TOGETHER = 24
_DEEPEST = 40

SCRIPTS = (Path(__file__).parent / "read_words.txt").read_text("utf-8").strip("\n").split("\n\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize("first", range(0, len(SCRIPTS), _TOGETHER))
def test_small_scripts_give_what_bash_gives(first: int) -> None:
    scripts = [f"{_BEFORE}{one}\nrun END\n" for one in SCRIPTS[first : first + _TOGETHER]]
    for script, theirs in zip(scripts, bash_gives(scripts), strict=True):
        mine = ours(script)
        assert [one for one in mine if one.name != "unknown"] == [one for one in theirs if one.name == "run"], script
        unknown = [one.marked for one in mine if one.name == "unknown"]
        assert all(unknown) and len(unknown) >= sum(one.name == "unknown" for one in theirs), script


@pytest.mark.parametrize(
    ("script", "says"),
    [
        # bash's own parser refuses each of these
        *((f"run a\n{word} b", f"line 2: {word} is not expected here") for word in ("then", "elif", "else", "fi")),
        *((f"run a; {word} b", f"line 1: {word} is not expected here") for word in ("do", "done", "esac", "}")),
        *((script, "line 1: ';' is not expected here") for script in ("; run a", "run a; ; b", "run a & ; b", "a;;")),
        *((script, "line 1: '(' is not expected here") for script in ("run a (b)", 'run "@"(a)', "run +(a\n)")),
        ("{ run a; } x", "line 1: 'x' is not expected here"),
        ("run a | ; b", "line 1: ';' is not expected here"),
        ("run a\nrun b)", "line 2: ')' is not expected here"),
        ("(run a;;)", "line 1: ';' is not expected here"),
        ("case a in a) run b;& esac", "line 1: `;&` is not read here; give the launch command alone"),
        ("\n(run a\n", "line 2: ( is never closed with )"),
        ("run $(a\n\n", "line 1: $( is never closed with )"),
        ("run <(a", "line 1: <( is never closed with )"),
        ("\n\nrun `a )`", "line 3: ')' is not expected here"),
        ("a <\nrun", "line 1: < needs a file"),
        ("\nrun 'a", "line 2: the quote ' is never closed"),
        ('\nrun "a\n\n', 'line 2: the quote " is never closed'),
        ("cat <<E\nx\n`\nE\n", "line 3: the quote ` is never closed"),
        ("eval $'\\n\\nrun `a )`'", "line 3: ')' is not expected here"),
        ("eval $'cat <<E\\n\\n`\\nE'", "line 3: the quote ` is never closed"),
        # limits of ours
        ("{ :; }; (:); " + "{ " * (_DEEPEST + 1) + "run a;" + " }" * (_DEEPEST + 1), "line 1: more than 40 constructs"),
        ("f() { [ $1 = 0 ] || f $(($1 - 1)); }; f 20", "line 1: functions call one another more than 20 deep"),
    ],
)
def test_what_bash_cannot_read_is_refused_with_one_line(script: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Interpreter(Surroundings(), lambda command, _: None).run(script)
    assert str(caught.value).startswith(says) and (says.endswith("constructs") or str(caught.value) == says)


def last(script: str) -> tuple[Command, Interpreter]:
    """The last command that a script starts."""
    found: list[tuple[Command, Interpreter]] = []
    Interpreter(Surroundings(), lambda command, shell: found.append((command, shell))).run(script)
    return found[-1]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        # text that is put into a script, and what is not known of it
        ("eval \"run 'a $U b' c\"", "a_$U_b~ c"),
        ("eval \"run '\ufdd07\ufdd0' $U b\"", "\ufdd07\ufdd0 $U~ b"),
        ("eval \"read -r -d '' X <<'E'\na $U b\nE\nrun \\$X\"", "a $U~ b"),
        ("run a<(true) >(true)<(true) b", "a<(...)~ >(...)<(...)~ b"),
        ("run @(a) *(a|b)c +(a) ?(a) !(a) d", "@(...|...)~ *(...|...)c~ +(...|...)~ ?(...|...)~ !(...|...)~ d"),
        ("run ~nobody X=~/a:~/b ~+/a ~ ~/m b~", "~nobody~ X=~~ ~+/a~ ~~ ~/m b~"),
        ("read -r -d '' X <<E\n--tp 8\n--m $U\nE\nrun $X", "--tp 8 --m $U~"),
        # values of branches: what they share is known
        ("X='--a 1'; [ -n \"$U\" ] && X='--a 1 --b 2'; run $X", "--a 1 --b~ 2~"),
        ("X='--tp 4'; [ -n \"$U\" ] && X='--tp 48'; run $X", "--tp 48~"),
        ("X='ab cd'; [ -n \"$U\" ] && X='ab ce f'; run $X", "ab ce~ f~ cd~"),
        ("X=' a'; [ -n \"$U\" ] && X=' b'; run x$X", "x b~"),
        ('X="$V b"; [ -n "$U" ] && X="$V c"; run $X', "$V~ c~"),
        ('X="a b$V"; [ -n "$U" ] && X="a c$V"; run $X', "a c$V~"),
        ('X="$V b $W"; [ -n "$U" ] && X="$V c $W"; run $X', "$V~ c~ $W~ b~ $W~"),
        ('X=4; [ -n "$U" ] && X=--b; run $X', "--b~ 4~"),
        ('X=; [ -n "$U" ] && X=8; run a $X', "a 8~"),
        ('L=(a); [ -n "$U" ] && L=(--b); run "${L[@]}"', "--b~ a~"),
        ('L=(a b); [ -n "$U" ] && L=(c b); run "${L[@]}"', "c~ b~ a~ b~"),
        ('L=(a b); [ -n "$U" ] && L=(a c); run "${L[@]}"', "a c~"),
        ('L=(a b); [ -n "$U" ] && L=(a b c); run "${L[@]}"', "a b c~"),
    ],
)
def test_of_a_word_that_is_partly_known_the_rest_is_asked_about(script: str, words: str) -> None:
    found = last(script)[0].words[1:]
    assert " ".join(one.text.replace(" ", "_") + "~" * (one.mark is not None) for one in found) == words


@pytest.mark.parametrize(
    ("script", "name", "place"),
    [
        *((f"[ a {test} b ] && run a", f"a file that `{test}` looks for", "line 1") for test in ("-nt", "-ot", "-ef")),
        ("\n[ -f a ] && run a", "a file that `-f` looks for", "line 2"),
        *((f"[[ {test} a ]] && run a", "a test", "line 1") for test in ("-o", "-R")),
        *((f"[ x = x {test} ] || run a", "a test", "line 1") for test in ("-o", "y")),
        ("[[ " + "! " * _DEEPEST + "x ]] && run a", "a test", "line 1"),
        ("[[ a == a && " + "! " * _DEEPEST + "x ]] && run a", "a test", "line 1"),
        ('[[ $U =~ a ]]; run "${BASH_REMATCH[0]}"', "${BASH_REMATCH}", ""),
        ("X=$(pwd); run $X", "$PWD", ""),
        ("IFS=$U; X='a b'; run $X", "$U", ""),
        ("IFS=$U; X=$V; run $X", "$V", ""),
        ("run ~", "$HOME", ""),
        ("run X=~/a:~/b", "$HOME", ""),
        ("run ~nobody", "~nobody", ""),
        ("X=$(dirname $U/a); run $X", "$U", ""),
        ("X=$(realpath a); run $X", "$(...)", ""),
        ("X=$(seq a); run $X", "$(...)", ""),
        (r"run $(echo -e '\x80')", "$(...)", ""),
        ("X=$(nosuch); run $X", "$(...)", ""),
        ("realpath a && run a", "`realpath`", "line 1"),
        ("read X && run a", "`read`", "line 1"),
        ("read X; run $X", "$X", ""),
        ("read -u 3 X; run $X", "${X}", ""),
        ("read X <<< $U; run $X", "$U", ""),
        ("kill -0 1 && run a", "`kill`", "line 1"),
        ("/bin/nosuch a && run a", "`nosuch`", "line 1"),
    ],
)
def test_what_decides_is_named(script: str, name: str, place: str) -> None:
    command, _ = last(script)
    mark = next((one.mark for one in command.words if one.mark is not None), command.deciding)
    assert mark is not None and (mark.name, mark.place) == (name, place)


def test_what_branches_give_is_told_where_it_is_short() -> None:
    mark = last('X=; [ -n "$U" ] && X=8; run "$X"')[0].words[1].mark
    assert mark is not None and mark.answers == ("8", "nothing")
    mark = last(f'X={"a" * 24}; [ -n "$U" ] && X={"b" * 25}; run $X')[0].words[1].mark
    assert mark is not None and mark.answers == ()


def test_depth_is_counted_for_each_construct_by_itself() -> None:
    deep = "{ " * _DEEPEST + "run a;" + " }" * _DEEPEST
    assert [one.text for one in last("{ :; }\n" * 50 + deep)[0].words] == ["run", "a"]
    assert last("[[ " + "! " * (_DEEPEST - 1) + "$E ]] || run a")[0].deciding == Mark("$E", "line 1", empty=True)
    nots = " && ".join(["! ! x"] * _DEEPEST)
    assert last(f"[[ {nots} ]] && run a")[0].deciding is None


def test_commands_that_do_their_work_in_any_script_that_goes_on_are_not_asked_about() -> None:
    names = "mkdir rm touch chmod cp mv ln sleep pkill killall logger module nohup sync renice conda pip pip3 uv kill"
    assert last(" && ".join(f"{name} a" for name in names.split()) + " && run a")[0].deciding is None


def test_what_stands_before_a_command_is_exported_to_it_alone() -> None:
    seen: list[dict[str, str]] = []
    Interpreter(
        Surroundings(),
        lambda _, shell: seen.append({name: word.text for name, word in shell.environment("line 1").items()}),
    ).run("X=5; Y=6; export Y; X=7 Y=8 eval run a; run a")
    assert seen == [{"X": "7", "Y": "8"}, {"Y": "6"}]
    assert [word.text for word in last("X='a b' Y=c run d")[0].words] == ["X=a b", "Y=c", "run", "d"]


def test_a_text_is_read_up_to_so_many_words_and_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "_MOST_PARTS", 6)
    assert len(last('run a""')[0].words) == 2  # a word of one part, one of two, and the end
    with pytest.raises(InputError, match="line 2: more than 6 words"):
        last('run a""\nb')
    with pytest.raises(InputError, match="line 3: more than 6 words"):
        last("a <<E\n$A$A$A$A$A$A$A\nE\n")
    monkeypatch.undo()
    monkeypatch.setattr(interpreter, "_MOST_COMMANDS", 2)
    assert len(last("X=1; run a")[0].words) == 2
    with pytest.raises(InputError, match="more than 2 commands"):
        last("X=1; run a; run b")


def test_a_text_that_no_shell_runs_is_read_like_a_here_document() -> None:
    around = Surroundings(environment={"X": last("run 'a b'")[0].values[1]})
    found = interpolated("'$X' \"${Y:-c}\" \\$X\n", around)
    assert "".join(piece.text for piece in found) == "'a b' \"c\" $X\n"
    for before in ("", "a\n"):
        with pytest.raises(InputError, match=r"^\$\{ is never closed with \}$"):
            interpolated(before + "${X", around)
