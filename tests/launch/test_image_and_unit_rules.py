"""Dockerfiles, systemd units and files of variables, line by line, by each one's own reference."""

import pytest

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.continued_lines import continued_lines
from glm_kvplan.launch.dockerfile import is_dockerfile, read_dockerfile
from glm_kvplan.launch.environment_file import read_environment
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.launch import Launch
from glm_kvplan.launch.systemd_unit import is_unit, script_of


def launch_of(text: str, image: str = "a") -> Launch:
    (launch,) = read_dockerfile(f"FROM {image}\n{text}\n", SERVERS, Surroundings()).launches
    return launch


def words(launch: Launch) -> str:
    return " ".join(f"?{word.text}" if word.mark else word.text for word in launch.words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM a\n", True), ("from a\n", True), ("ARG V\nFROM a\n", True), ("# c\n\n  # d\nFROM a\n", True),
        ("ARG V\n", False), ("RUN x\nFROM a\n", False), ("FROMAGE a\n", False), ("", False), ("x\nFROM a\n", False),
        ("FROM --platform=x a\n", True), ("arg V\nfrom a", True),
    ],
)  # fmt: skip
def test_is_dockerfile(text: str, expected: bool) -> None:
    assert is_dockerfile(text) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # "comment lines are removed before the instructions are executed", and end none of them
        (["CMD sglang serve m \\", "# --x \\", "", "  # y", " --z"], "m --z"),
        (["# CMD sglang \\", "CMD sglang serve m"], "m"),
        (["CMD sglang serve m --x \\  ", "  --z"], "m --x --z"),
        (["CMD sglang serve m \\", "# end"], "m"),
        (["CMD sglang serve m --x \\"], "m --x"),
        (['CMD [ "sglang", \\', '  "serve", "m", \\', "# no", '  "a b" ]'], "m a b"),
        (['CMD ["sglang", "serve", "$A", "`", "*"]'], "$A ` *"),
        # ENV in both forms
        (["ENV A 1", "CMD sglang serve $A"], "1"), (["ENV A x  y=z", 'CMD sglang serve "$A"'], "x  y=z"),
        (['ENV A "x  y" z', 'CMD sglang serve "$A"'], "x  y z"),
        (["ENV A=x\\ y B=2", 'CMD sglang serve "$A" $B'], "x y 2"),
        (["ENV A='$B \"' B=`x`", 'CMD sglang serve "$A" "$B"'], '$B " `x`'),
        (["ENV A=\"$(x)`\"", 'CMD sglang serve "$A"'], "$(x)`"),
        (['ENV A=x"y z"w', 'CMD sglang serve "$A"'], "xy zw"), (['ENV A="x"y', 'CMD sglang serve "$A"'], "xy"),
        (["ENV A=x'$y'", 'CMD sglang serve "$A"'], "x$y"), (['ENV A="a\\"b\\$c"', 'CMD sglang serve "$A"'], 'a"b$c'),
        (["ENV A=\\$B", 'CMD sglang serve "$A"'], "$B"), (["ENV A é", "CMD sglang serve $A"], "é"),
        (["ENV A= B=2", "CMD sglang serve x$A$B"], "x2"),
        (["ENV A=1 \\", "# no", "  B=2", "CMD sglang serve $A$B"], "12"),
        (['ENV A="x \\', ' y"', 'CMD sglang serve "$A"'], "x   y"), (["env A=1", "cmd sglang serve $A"], "1"),
        (["ENV A=$(x)", 'CMD sglang serve "$A"'], "$(x)"), (["ENV A=1", "ENV A=${A}2", "CMD sglang serve $A"], "12"),
        # "the same value for each variable throughout the entire instruction"
        (["ENV abc=hello", "ENV abc=bye def=$abc", "ENV ghi=$abc", "CMD sglang serve $def $ghi"], "hello bye"),
        # ARG: there for ENV, not for the command; never over ENV
        (["ARG A=1", "ENV B=$A", "CMD sglang serve ${A:-none} $B"], "none 1"),
        (["ARG A B=2", "ENV C=$B", "CMD sglang serve $C"], "2"),
        (["ENV A=1", "ARG A=2", "CMD sglang serve $A"], "1"), (["ARG A=1", "ENV A=2", "CMD sglang serve $A"], "2"),
        (["ARG A=1 B=2", "CMD sglang serve ${A:-x} ${B:-y}"], "x y"),
        (["ARG A=1", "FROM b", "CMD sglang serve ${A:-x}"], "x"),
        (["ENV A=1", "FROM b", "ARG A=2", "ENV B=$A", "CMD sglang serve $B"], "2"),
        (["ARG A 1=2", "CMD sglang serve m"], "m"),
        # the last of each, of the last stage
        (["CMD sglang serve a", "CMD sglang serve b"], "b"),
        (["CMD sglang serve a", "FROM b", "ENV A=1", "CMD sglang serve b"], "b"),
        (["ENTRYPOINT sglang serve a", "FROM b", "CMD sglang serve b"], "b"),
        (['ENTRYPOINT ["sglang", "serve"]', 'CMD ["a"]', 'CMD ["b"]'], "b"),
        (['ENTRYPOINT ["sglang", "serve"]', "CMD a"], "/bin/sh -c a"),
        (["ENTRYPOINT sglang serve m", 'CMD ["a"]'], "m"),
        (['ENTRYPOINT ["sglang", "serve", "m"]'], "m"), (["RUN sglang serve a", "CMD sglang serve m"], "m"),
        (["  CMD   sglang serve m"], "m"), (["HEALTHCHECK CMD sglang serve a", "CMD sglang serve m"], "m"),
    ],
)  # fmt: skip
def test_instructions(rows: list[str], expected: str) -> None:
    assert words(launch_of("\n".join(rows))) == expected


@pytest.mark.parametrize(
    ("image", "command", "engine", "expected"),
    [
        ("vllm/vllm-openai:v1", "CMD m --x", "vllm", "m --x"),
        ("--platform=linux/amd64 vllm/vllm-openai:v1", 'CMD ["m"]', "vllm", "m"),
        ("vllm/vllm-openai:v1", "ENTRYPOINT sglang serve m", "sglang", "m"),
        ("lmsysorg/sglang:v1", "CMD sglang serve m", "sglang", "m"),
    ],
)
def test_the_image_of_a_dockerfile(image: str, command: str, engine: str, expected: str) -> None:
    launch = launch_of(command, image)
    assert (launch.engine, words(launch), launch.image) == (engine, expected, image.split()[-1])


def test_the_last_stage_s_image_counts() -> None:
    assert launch_of("FROM vllm/vllm-openai AS x\nCMD m").image == "vllm/vllm-openai"
    assert not read_dockerfile("FROM vllm/vllm-openai\nFROM b\nCMD m\n", SERVERS, Surroundings()).launches


@pytest.mark.parametrize("command", ['["sglang"', '["sglang", 1]', "[sglang]", "['a']", "[" * 9999])
def test_words_that_are_no_list(command: str) -> None:
    with pytest.raises(InputError, match=r"^line 3: \[.* is no JSON list of words$"):
        launch_of(f"ENV A=1\nCMD {command}")
    with pytest.raises(InputError, match=r"^line 2: \[.* is no JSON list of words$"):
        launch_of(f"ENTRYPOINT {command}")


def test_lines_keep_their_numbers() -> None:
    launch = launch_of("ENV A=1\n\nCMD sglang serve m \\\n# no\n --x")
    assert [word.place for word in launch.words] == ["line 4", "line 6"]
    assert list(continued_lines("a\\\n#x\nb\n\n#c\nx\\\n#\n", ("#", ""))) == [(0, "a\\\n\\\nb"), (5, "x")]
    assert list(continued_lines("a\\\n\nb", ("#",))) == [(0, "a\\\n"), (2, "b")]
    assert list(continued_lines("", ("#",))) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Service]\nExecStart=x\n", True), ("[Unit]\n\n[Service] \nExecStart = x\n", True), ("[Service]\n", False),
        ("ExecStart=x\n", False), ("x [Service]\nExecStart=x\n", False), ("[Service]\n#ExecStart=x\n", False),
        ("[Service]\nExecStartPre=x\n", False), ("[Service]x\nExecStart=x\n", False),
    ],
)  # fmt: skip
def test_is_unit(text: str, expected: bool) -> None:
    assert is_unit(text) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["ExecStart=/x/sglang serve m 'a b' \"c d\""], "m a b c d"),
        # systemd.syntax(7): a comment between ends nothing, and goes on nowhere
        (["ExecStart=/x/sglang serve m \\", "# no \\", "; no", "  --z"], "m --z"),
        (["; ExecStart=x \\", "ExecStart=/x/sglang serve m"], "m"),
        (["ExecStart=/x/sglang serve m \\", "", "--z"], "m"),
        (["ExecStart = /x/sglang serve m"], "m"), ([" ExecStart=/x/sglang serve m"], None),
        (["ExecStop=/x/sglang serve m"], None),
        # systemd.service(5): what stands in front of the command
        *(([f"ExecStart={how}/x/sglang serve m -@:+!"], "m -@:+!") for how in ("-", "@", ":", "+", "!", "!!", "-+")),
        # $X as a word is split, ${X} is not; a dollar is doubled; nothing else is a shell's
        (["Environment='A=x  y'", "ExecStart=/x/sglang serve $A ${A} -$A"], "x y x  y -$A"),
        (["Environment=A=x B='y z' C", "ExecStart=/x/sglang serve $A ${B}"], "x y z"),
        (['Environment="A=x" "B=`$$`\\\\"', 'ExecStart=/x/sglang serve ${A} "${B}"'], "x `$$`\\"),
        (["Environment=A=1", "Environment=A=2", "ExecStart=/x/sglang serve $A"], "2"),
        (["ExecStart=/x/sglang serve a$$A `b` c;d 'e\"f' \"$$\" 'g`${A}'", "Environment=A=9"],
         "a$A `b` c;d e\"f $ g`9"),
        # systemd.unit(5): specifiers
        (["ExecStart=/x/sglang serve 100%% a%ib"], "100% ?a%ib"),
        (["Environment=A=%h/x", "ExecStart=/x/sglang serve $A"], "?%h/x"),
        (["ExecStart=/x/sglang serve %"], "%"),
    ],
)  # fmt: skip
def test_unit(rows: list[str], expected: str | None) -> None:
    found = launches_in("\n".join(["[Service]", *rows, "ExecStart=/bin/true"]), SERVERS).launches
    assert [words(launch) for launch in found] == ([] if expected is None else [expected])


def test_a_unit_s_lines_and_files() -> None:
    """systemd.exec(5): settings from files override those of Environment=."""
    files = {"/e": "A='x y'\n# c\nexport B=2\n", "/f": "B=3\n"}
    text = "[Service]\nEnvironmentFile=-/e\nEnvironmentFile=/none\nEnvironment=B=4 C=5\n"
    text += "ExecStart=/x/sglang serve ${A} ${B}${C}"
    around = Surroundings(beside=files.get)
    (launch,) = launches_in(text, SERVERS, around).launches
    assert (words(launch), [word.place for word in launch.words]) == ("x y 25", ["line 5"] * 2)
    assert {name: word.text for name, word in launch.environment.items()} == {"A": "x y", "B": "2", "C": "5"}
    (launch,) = launches_in(f"{text}\nEnvironmentFile= /f ", SERVERS, around).launches
    assert words(launch) == "x y 35"
    (launch,) = launches_in(text, SERVERS).launches
    assert words(launch) == "?$A 45"
    for key, line in (("ExecStart", 2), ("Environment", 3)):
        with pytest.raises(InputError, match=f"^line {line}: {key}= has a quote that is never closed$"):
            script_of("[Service]\n" + "#\n" * (line - 2) + f"{key}=A='x\n")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"), ("  export A = 1  ", "1"), ("A=", ""), ("A='x $y' # c", "x $y"), ('A="x\\"y" z', 'x"y'),
        ("A=x # c", "x"),
        ("A=x#c", "x#c"), ("A=x #c #d", "x"), ("A='x", "'x"), ('A="a\\\\b"', "a\\b"), ("A=x=y", "x=y"),
        ("A=x\t# c", "x"),
        ("#A=1", None), ("A", None), ("1A=1", None), ("A B=1", None), ("A-b.c=1", None),
    ],
)  # fmt: skip
def test_a_file_of_variables(line: str, value: str | None) -> None:
    assert read_environment(f"Z=0\n{line}\n").get("A") == value
    assert read_environment("A-b.c=1\nA_1=2") == {"A-b.c": "1", "A_1": "2"}
