"""The shell reader against bash itself: scripts drawn at random, and every word that their commands are given."""

import random
import subprocess
import sys
from collections.abc import Callable

import pytest

from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.surroundings import Surroundings

_DRAWN, _TOGETHER = 320, 16
_TEXTS = (
    *("x", "1", "2", "10", "--tp", "a b", "", "a/b.c", "x=y", "*", "[z]", "--k=v", "é", "#h", "a#b", "~", "{", "}"),
    *("-n", "!", "a,b"),
)


class Script:
    """One script: every variable is set in it, so every word of every command is known."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.text = "A=x; B='a b'; C=; D=--k=v/w.z; N=3; L=(x 'y z')\nset --\n"
        self.text += "\n".join(self.statement(0) for _ in range(self.random.randint(1, 5)))
        self.text += '\nrun END "$A" "$B" "$C" "$D" "$N" "${L[@]}"\n'

    def one(self, *options: str | Callable[[], str]) -> str:
        chosen = self.random.choice(options)
        return chosen if isinstance(chosen, str) else chosen()

    def quoted(self) -> str:
        text = self.one(*_TEXTS)
        plain = "".join(char if char.isalnum() or char in "-=/.,_" else "\\" + char for char in text) or "''"
        return self.one(f"'{text}'", f'"{text}"', plain)

    def parameter(self, depth: int) -> str:
        name = self.one(*"ABCD")
        other: Callable[[], str] = lambda: self.word(depth + 1) if depth < 2 else self.one("w", "w z", "1")  # noqa: E731
        number = self.one("1+2", "N*3", "N<4", "(N+1)*2", "7/2", "N%2", "0x10", "N==3?5:6", "2**3", "-N", "!N")
        return self.one(
            *(f"${{{name}}}", f"${{#{name}}}", f"${{{name}:1}}", f"${{{name}:0:2}}"),
            *(lambda mark=mark: f"${{{name}{mark}{other()}}}" for mark in (":-", "-", ":+", "+")),
            *(f"${{{name}:={self.one('w', 'w z')}}}", f"${{{name}^^}}", f"${{{name},,}}"),
            *(f"${{{name}{mark}{self.one(*'/-x=')}}}" for mark in ("#*", "##*")),
            *(f"${{{name}{mark}{self.one(*'/.-=')}*}}" for mark in ("%", "%%")),
            *(f"${{{name}{m}{self.one('a', 'x', '-', '?', '[a-z]', '*b')}/{self.one('', 'Q')}}}" for m in ("/", "//")),
            *(f"$(({number}))", lambda: f"$(echo {other()})", "${L[@]}", f"${{L[{self.one(*'012')}]}}"),
        )

    def word(self, depth: int = 0) -> str:
        found = ""
        for _ in range(self.random.randint(1, 3)):
            found += self.one(
                self.quoted,
                lambda: self.parameter(depth),
                (lambda: self.in_quotes(depth)) if depth < 2 else self.quoted,
            )
        return found

    def in_quotes(self, depth: int) -> str:
        inner = self.parameter(depth + 1) if self.random.random() < 0.7 else self.one("l", "m n")
        return f'"{self.one("", "p ", "q")}{inner}{self.one("", " r")}"'

    def words(self) -> str:
        return self.one(
            *('"${L[@]}"', "${L[@]}", '"${L[*]}"', "${#L[@]}", '"${L[@]:1}"', '"${L[@]:-none}"', '"pre${L[@]}post"'),
            *('"$@"', "$*", "$#", '"$1"', '${L[@]+"${L[@]}"}', '"${L[@]/x/Y}"'),
        )

    def test(self) -> str:
        name = self.one(*"ABCD")
        return self.one(
            *(f'[ -n "${name}" ]', f'[ -z "${name}" ]', f"[[ ${name} == *{self.one(*'xa1-')}* ]]", "true", "! true"),
            *(f"[[ -n ${name} && $N -gt 2 ]]", f'[ "$N" -lt {self.one(*"024")} ]', f"((N>{self.one(*'024')}))"),
            *(f'[ "${name}" = "{self.one("x", "", "1")}" ]', f"[[ ${name} != x || 1 -eq 2 ]]", "false"),
            f"[[ ${name} =~ ^[a-z]+$ ]]",
        )

    def assignment(self) -> str:
        name = self.one(*"ABCD")
        return self.one(
            *(f"{name}=", f"unset {name}", "L=()", "((N++))", "N=$((N+1))", f"let N={self.one(*'123')}+N"),
            *(
                lambda mark=mark: f"{mark}{self.word()}"
                for mark in (f"{name}=", f"{name}+=", f"export {name}=", "L[1]=")
            ),
            *(lambda: f"L=({self.word()} {self.words()})", lambda: f"L+=({self.word()})"),
            lambda: f"set -- {self.word()} {self.word()}",
        )

    def statement(self, depth: int) -> str:
        run: Callable[[], str] = lambda: f"run {self.word()} {self.one(self.words, self.word)}"  # noqa: E731
        if depth > 2:
            return run()
        body: Callable[[], str] = lambda: "\n".join(  # noqa: E731
            self.statement(depth + 1) for _ in range(self.random.randint(1, 2))
        )
        kind = self.random.randrange(14)
        if kind < 4:
            return self.assignment()
        if kind < 7:
            return run()
        return (
            lambda: f"if {self.test()}; then\n{body()}\nelif {self.test()}; then\n{body()}\nelse\n{body()}\nfi",
            lambda: f'for i in {self.word()} {self.words()}; do\n{body()}\nrun "$i"\ndone',
            lambda: f"case {self.word()} in\n{self.one('x|a*', '*b*', '[0-9]*')}) {body()};;\n*) {body()};;\nesac",
            lambda: f"{self.test()} {self.one('&&', '||')} {{ {body()}\n}}",
            lambda: f"({body()}\n)",
            lambda: f'f() {{ local A={self.word()}; {body()}\nrun "$#" "$A"; return; run no; }}\nf {self.word()}',
            lambda: f"{self.test()} {self.one('&&', '||')} {self.assignment()} || {self.assignment()}",
        )[kind - 7]()


def ours(script: str) -> list[str]:
    found: list[str] = []
    shell = Interpreter(Surroundings(), lambda command, _: found.extend(["[", *[w.text for w in command.words[1:]]]))
    shell.run(script)
    return found


def bash_gives(script: str) -> list[str] | None:
    """The words as bash gives them to `run`; None where it complains, or does not end."""
    told = 'set -f\nrun() { printf "%s\\0" "[" "$@"; }\nulimit -t 2\n' + script
    try:
        done = subprocess.run(["bash", "-c", told], capture_output=True, timeout=20)
    except FileNotFoundError:
        pytest.skip("bash is not installed")
    except subprocess.TimeoutExpired:
        return None  # a list that doubles in a loop
    return None if done.stderr or done.returncode else done.stdout.decode().split("\0")[:-1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize("first", range(0, _DRAWN, _TOGETHER))
def test_drawn_scripts_give_commands_what_bash_gives_them(first: int) -> None:
    for seed in range(first, first + _TOGETHER):
        script = Script(seed).text
        expected = bash_gives(script)
        if expected is not None and max(map(len, expected)) < 1000:  # longer ones are not matched
            assert ours(script) == expected, script


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    "word",
    [
        *("${A^}", "${A^^}", "${B,}", "${B,,}", "${A/#a/Q}", "${A/#b/Q}", "${A/%c/Q}", "${A/%b/Q}", "${A/%/Q}"),
        *("${A/#/Q}", "${A//*/Q}", "${A/''/Q}", "${A//''/Q}", "${E/*/Q}", "${E//?/Q}", "${E/#/Q}", "${E/%/Q}"),
        *("${E/#*/Q}", "${E/''/Q}", "${L[@]/#/--}", "${L[@]/%/=1}", "${L[@]/#x/--}", "${A/%*/Q}"),
        *("${A/b/Q}", "${A//[a-c]/Q}", "${A/#*b/Q}", "${A/%b*/Q}", "${A#a}", "${A##*b}", "${A%c}", "${A%%b*}"),
        *("$((2**5))", "$((2**3**2))", "$((-2**2))", "$((2*3**2))", "$((7%4**1))", "${A:1:1}", "${A: -2}", "${A:0:-1}"),
    ],
)
def test_a_word_that_few_scripts_draw(word: str) -> None:
    script = f'A=abcabc; B=ABC; E=; L=(x "y z"); run {word} "{word}"\n'
    assert ours(script) == bash_gives(script)


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_patterns_match_as_bash_s_do() -> None:
    drawn = random.Random(5)
    steps = ("*", "?", "a", "b", "[ab]", "[!a]", "[b-c]", "*", "-", "[[:alpha:]]")
    texts = ["".join(drawn.choices("abc-", k=drawn.randint(0, 9))) for _ in range(400)]
    patterns = ["".join(drawn.choices(steps, k=drawn.randint(1, 6))) for _ in texts]
    changes = "${T#$P} ${T##$P} ${T%$P} ${T%%$P} ${T/$P/Q} ${T//$P/Q} ${T/#$P/Q} ${T/%$P/Q}"
    script = "\n".join(
        f"T='{text}'; P='{one}'; run {changes}; case $T in $P) run yes;; esac"
        for text, one in zip(texts, patterns, strict=True)
    )
    assert ours(script) == bash_gives(script)


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    "then",
    [
        *("L+=(w)", "L+=(w); L+=(x 'y z')", "L[-1]=w", "L+=([-1]=w [1]=x y)", "L[3]+=w; L+=(x)", "L+=()", "L=(w)"),
        *("unset 'L[-1]'", "unset 'L[3]'; L+=(w)", "L[0]=a; L[1]=b; L[2]=c; L+=(d)", "L[-4]=w; L+=x"),
    ],
)
def test_a_list_with_gaps_is_asked_about(then: str) -> None:
    """Every word is bash's or marked, until the list is written anew."""
    script = f'L=(); L[3]=v; L[6]=u; {then}; run "${{L[@]}}" "${{#L[@]}}" "${{!L[@]}}"\n'
    script += 'run "${L[@]:1}" "${L[@]:4:2}" "${L[@]: -3}" "${L[@]: -20}" "${L[-1]}" "${L[5]}" "${L[03]}"\n'
    marked: list[bool] = []
    Interpreter(Surroundings(), lambda command, _: marked.extend(word.mark is not None for word in command.words)).run(
        script
    )
    assert any(marked) or ours(script) == bash_gives(script)
    assert any(marked) == (then != "L=(w)")


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize("command", ["mapfile -t L", "readarray -t L", "mapfile L", "mapfile -t"])
@pytest.mark.parametrize("text", ["--tp 4\n--dp 2\n", "--tp 4\n\n--dp 2", "", "one"])
def test_lines_become_a_list(command: str, text: str) -> None:
    script = f'L=(); MAPFILE=(); {command} <<\'E\'\n{text}\nE\nrun "${{L[@]}}" "${{#L[@]}}" "${{MAPFILE[@]}}"\n'
    assert ours(script) == bash_gives(script)
