"""Launches in Python programs, recipes and documents, and which form a text has."""

import io
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.fenced_blocks import blocks, is_document
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.given_values import GivenValues, read_given
from glm_kvplan.launch.launch import Container, Launch
from glm_kvplan.launch.launch_file import read_launch_file
from glm_kvplan.launch.marked_words import (
    Mark,
    Piece,
    Word,
    concealed,
    defined,
    printable,
    secret_values,
    split_assignment,
)
from glm_kvplan.launch.model_name import base_name, refuse_other_model
from glm_kvplan.launch.python_lists import program_of
from glm_kvplan.launch.recipes import is_mapping, read_recipe

LARGEST = 10 << 20  # of a launch text, as its message says


def words(launch: Launch) -> str:
    return " ".join(f"{word.text}?{word.mark.name}" if word.mark else word.text for word in launch.words)


def found_in(text: str, **given: str) -> list[str]:
    return [words(one) for one in launches_in(text, SERVERS, Surroundings(given=given)).launches]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('run(["sglang", "serve", "m"])', ["m"]),
        ('run(("sglang", "serve", "m", 8, True, 0.5))', ["m 8 True 0.5"]),
        ('run([sys.executable, "-m", "sglang.launch_server", sys.executable])', ["python"]),
        ('c = ["sglang", "serve", "m"]\nrun(c)\nrun(c)', ["m"]),
        ('c = ["sglang", "serve", "m"]', ["m"]),
        ('c: list[str] = ["sglang", "serve", "m"]', ["m"]),
        ("c: list[str]\nrun([\"sglang\", \"serve\", \"m\"])", ["m"]),
        ('a = b = ["sglang", "serve", "m"]', ["m", "m"]),
        # copies of lists, and changes that are not followed
        ('c = ["sglang", "serve", "m"]\nd = list(c)\nd += ["a"]\nrun(d)', ["m a"]),
        ('c = ["sglang", "serve", "m"]\nd = c.copy()\nd += ["a"]\nrun(d)', ["m a"]),
        ('c = ["sglang", "serve", "m"]\nd = c[:]\nd += ["a"]\nrun(d)', ["m a"]),
        ('c = ["sglang", "serve", "m"]\nn = len(c)\nlog(c)\nrun(c + ["a"])', ["m a"]),
        ('T = 4\nrun(["sglang", "serve", str(T + 4), str(4 + 4), "a" + str(T)])', ["??`T + 4` ??`4 + 4` a4"]),
        ('T = 4\nT *= 2\nrun(["sglang", "serve", str(T)])', ["??`T * 2`"]),
        ('T = "sglang serve m"\nT += " --a 1"\nos.system(T)', ["m --a 1"]),
        # what is added to a list, at its place
        ('c = ["sglang", "serve", "m"]\nc += ["a", "b"]\nc.append("c")\nc.extend(["d"])\nrun(c)', ["m a b c d"]),
        ('c = ["sglang", "serve", "m"]\nc.insert(0, "numactl")\nc.insert(3, "n")', ["n m"]),
        ('c = ["sglang", "serve", "m"]\nc.clear()\nc.append()\nd += ["x"]\nd.append("x")', ["m?`c.clear()`"]),
        ('c = ["sglang", "serve", "m"]\nc.insert(len(c), "a")\nc.insert(-1, "b")', ["m b a"]),
        ('c = ["sglang", "serve", "m"]\nc.insert(n, "a")', ["m a?`n`"]),
        # a list that another is made of starts nothing itself, but where it was given to a call
        ('c = ["sglang", "serve", "m"]\nrun(c)\nrun(c + ["--a"])', ["m", "m --a"]),
        ('c = ["sglang", "serve", "m"]\nrun(c + ["--a"])', ["m --a"]),
        ('c = ["sglang", "serve", "m"]\nrun([*c, "--a"])', ["m --a"]),
        ('c = ["sglang", "serve", "m"]\nd = c + ["--a"]\nd += ["--b"]\nrun(d)', ["m --a --b"]),
        ('c = ["sglang", "serve", "m"]\nc = c + ["--a"]\nrun(c)', ["m --a"]),
        ('c = ["sglang", "serve", "m"]\nrun(c + ["--a"])\nrun(c)', ["m --a", "m"]),
        ('x = ["--a"]\nrun(["sglang", "serve", "m"] + x)\nrun(["sglang", "serve", "n", *x])', ["m --a", "n --a"]),
        ('run(["sglang", "serve", "m"] + "--a b".split() + shlex.split("--c \'d e\'"))', ["m --a b --c d e"]),
        ('run(["sglang", "serve"] + shlex.split("\'a"))', ["??`shlex.split(\"'a\")`"]),
        ('run(["sglang", "serve"] + shlex.split(X))', ["??`shlex.split(X)`"]),
        ('run("sglang serve m".split())', ["m"]), ('run("sglang serve m".split("e"))', []),
        # texts for a shell
        ('os.system("cd x; sglang serve m")', ["m"]), ('run("sglang", shell=True)', []),
        ('run("x", "sglang serve m")', []),
        ('os.system(f"sglang serve {M}")', []), ('C = "sglang serve " + "m"\nprint(C)\nlog(C)\nos.system(C)', ["m"]),
        ('print("sglang serve m")', []), ('os.system("sglang serve m" + " x")', ["m x"]),
        ('M = "m"\nos.system(f"sglang serve {M}")', ["m"]), ('X = run("sglang serve m")', ["m"]),
        ('def f():\n    return run(["sglang", "serve", "m"])', ["m"]),
        # statements
        ('async def f():\n    await run(["sglang", "serve", "m"])', ["m"]),
        ('class A:\n    c = ["sglang", "serve", "m"]', ["m"]),
        ('with Popen(["sglang", "serve", "m"]) as p:\n    run(["vllm", "serve", "n"])', ["m", "n"]),
        ('try:\n    run(["sglang", "serve", "a"])\nexcept X:\n    run(["sglang", "serve", "x"])\nelse:\n'
         '    run(["sglang", "serve", "b"])\nfinally:\n    run(["sglang", "serve", "c"])', ["a", "b", "c"]),
        ('if __name__ == "__main__":\n    c = ["sglang", "serve", "m"]\n    c.append("x")', ["m x"]),
        # what a condition decides is marked, from both ways
        ('c = ["sglang", "serve", "m"]\nif X:\n    c.append("a")\nelse:\n    c += ["b"]\nc.append("c")',
         ["m a?`X` b?`X` c"]),
        ('c = ["sglang", "serve", "m"]\nfor x in y:\n    c.extend(["a"])\nc.append("c")', ["m a?the loop c"]),
        ('c = ["sglang", "serve", "m"]\nwhile x:\n    c.insert(2, "a")\nc.append("c")', ["a?the loop m c"]),
        ('T = 1\nif X:\n    T = 2\nrun(["sglang", "serve", T])', ["2?`X`"]),
        ('T = 2\nif X:\n    T = 2\nrun(["sglang", "serve", T])', ["2"]),
        ('if X:\n    c = ["sglang", "serve", "m"]\n    run(c)', ["m"]),
        ('c = ["x"]\nif X:\n    c = ["sglang", "serve", "m"]', ["m?`X`"]),
        # expressions
        ('T = 4\nrun(["sglang", "serve", f"a{T}b", str(T), int("8"), float("2"), "x" + "y", -1])',
         ["a4b 4 8 2 xy ??`-1`"]),
        ('run(["sglang", "serve", f"{T}", X.y, str(4, 5), None])', ["$T?$T ??`X.y` ??`str(4, 5)` ??`None`"]),
        ('run(["sglang", "serve", os.environ["T"], os.getenv("T"), os.environ.get("T", "8"), args.get("T", 9)])',
         ["$T?$T $T?$T 8 ??`args.get('T', 9)`"]),
        ('run(["sglang", "serve", f"{G}", os.environ["G"], os.getenv("G"), os.environ.get("G", "8")])', ["5 5 5 5"]),
        ('G = 4\nrun(["sglang", "serve", G])', ["4"]),
        ('run(["sglang", "serve", x.sys.executable])', ["??`x.sys.executable`"]),
        ('d = {"sglang": 1}\nrun([])\nrun(["ls", "x"])', []), ('run(["sglang", "serve", d["x"]])', ["??`d['x']`"]),
    ],
)  # fmt: skip
def test_program(program: str, expected: list[str]) -> None:
    assert found_in(f"import os\n{program}\n", G="5") == expected


def environment(text: str) -> str:
    (launch,) = launches_in(f"import os\n{text}\n", SERVERS).launches
    return " ".join(
        f"{name}={word.text}{'?' if word.mark else ''}" for name, word in sorted(launch.environment.items())
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('os.environ["A"] = "1"\nrun(["sglang", "serve", "m"])', "A=1"),
        ('env = os.environ.copy()\nenv["A"] = "1"\nrun(["sglang", "serve", "m"], env=env)', "A=1"),
        ('env = {"A": "1", **os.environ, B: "2"}\nrun(["sglang", "serve", "m"])', "A=1"),
        ('run(["sglang", "serve", "m"], env={"A": "1", 3: "x"})', "A=1"),
        ('run(["sglang", "serve", "m"], cwd={"A": "1"})', ""),
        ('run(["sglang", "serve", "m"], env=other)', ""),
        ('os.environ["A"] = "1"\nos.system("B=2 sglang serve m")', "A=1 B=2"),
        ('if X:\n    os.environ["A"] = "1"\nrun(["sglang", "serve", "m"])', "A=1?"),
        ('os.environ["A"] = "1"\nif X:\n    os.environ["A"] = "1"\nrun(["sglang", "serve", "m"])', "A=1"),
        ('x[3] = run(["sglang", "serve", "m"])', ""),
        ('x.y = run(["sglang", "serve", "m"])', ""),
    ],
)
def test_the_environment_of_a_program(program: str, expected: str) -> None:
    assert environment(program) == expected


def test_places_and_secrets_of_a_program() -> None:
    text = 'import os\nAPI_KEY = "topsecret99"\nos.environ["A"] = "1"\nrun(["sglang", "serve",\n "m", API_KEY])\n'
    (launch,) = launches_in(text, SERVERS).launches
    assert [word.place for word in launch.words] == ["line 5", "line 5"]
    assert launch.environment["A"].place == "the program"
    assert "topsecret99" not in repr(launch.words[1].text) and "m" in repr(launch.words[0].text)
    (launch,) = launches_in('import os\n\nos.system("sglang serve m")\n', SERVERS).launches
    assert launch.words[0].place == "line 3"
    found = launches_in('import os\nos.system("sglang serve m\\n--x")\n', SERVERS)
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("text", "is_program"),
    [
        ("import os", True), ("from os import path", True), ("from a.b import c", True), ('x = ["a"]', True),
        ("x = ('a')", True),
        ("run([sys.executable])", True), ("x = 1", False), ("sglang serve m", False), ("import -window root", False),
        ("import os\n#" + "x" * ((1 << 20) - 11), True), ("import os\n#" + "x" * ((1 << 20) - 10), False),
        ("import os\n" + "(" * 300, False), ("import os\nx = '\0'", False),
    ],
)  # fmt: skip
def test_what_looks_like_a_program(text: str, is_program: bool) -> None:
    assert (program_of(text) is not None) is is_program


def test_a_program_that_is_nested_too_deeply() -> None:
    with pytest.raises(InputError, match=r"^the program is nested too deeply$"):
        found_in("import os\nif x: pass\n" + "elif x: pass\n" * 400)


# Recipes: mappings whose keys are flags.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n", True), ("a:\n  b: 1\n", True), ("'a': 1\n", True), ('"a-b_c": 1\n', True), ("# c\n\na: 1\n", True),
        ("---\na: 1\n...\n", True), ("a:\n- 1\n", True), ("a: {\n}\n", True), ("a: [\n]\n", True),
        ("a: {\n\tb: 1\n}", True),
        ("", False), ("# c\n", False), ("a:1\n", False), ("a b: 1\n", False), ("a: 1\nsglang serve\n", False),
        ("1a: 1", False),
        ("export A=1", False), ("a = 1", False),
    ],
)  # fmt: skip
def test_is_mapping(text: str, expected: bool) -> None:
    assert is_mapping(text) is expected


def recipe(*documents: Any) -> list[Launch]:
    return list(read_recipe(documents, "r.yaml", SERVERS).launches)


SGLANG = {"model-path": "m", "tp_size": 4}


@pytest.mark.parametrize(
    ("document", "engine", "names"),
    [
        (SGLANG, "sglang", None),
        ({"max-num-seqs": 8, "max_model_len": 9}, "vllm", None),
        ({"x": SGLANG}, "sglang", ("x",)),
        ({"name": "r", "x": {"y": SGLANG}}, "sglang", ("r", "x", "y")),
        ({"name": 5, "x": SGLANG}, "sglang", ("x",)),
        ({"name": "r", **SGLANG}, "sglang", None),
        ({"tensor-parallel-size": 8, "kv-cache-dtype": "x"}, "", None),  # both have them
        # a key that names the server tells, and then one flag is enough
        ({"sglang_config": {"tp-size": 8}}, "sglang", ("sglang_config",)),
        ({"VLLM": {"x": {"tensor-parallel-size": 8}}}, "vllm", ("VLLM", "x")),
        ({"other": {"tp-size": 8}}, None, None),
        ({"sglang": {"port": 8}}, None, None),
        ({"tp-size": 8}, None, None),
        ({1: 2, "x": [SGLANG]}, None, None),
        ({"a": {"b": {"c": {"d": {"e": {"f": SGLANG}}}}}}, "sglang", ("a", "b", "c", "d", "e", "f")),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": SGLANG}}}}}}}, None, None),
    ],
)
def test_which_mapping_is_a_launch(document: Any, engine: str | None, names: tuple[str, ...] | None) -> None:
    found = recipe(["x"], document)
    if engine is None:
        assert found == []
        return
    (launch,) = found
    whole = names is None
    assert (launch.engine, launch.words, launch.serve, launch.wrapped) == (engine, (), False, not whole)
    assert (launch.container is None, launch.within) == (whole, "" if whole else "r.yaml")
    assert launch.settings is not None
    assert (launch.settings.own, launch.settings.hidden) == (whole, False)
    assert launch.settings.place == ("r.yaml" if names is None else "/".join(names))
    assert names is None or (launch.container is not None and launch.container.names == names)


def test_roles_of_a_recipe() -> None:
    """Environments and hosts as recipes of srt-slurm and Dynamo's tools write them."""
    document = {
        "name": "r",
        "resources": {"gpu_type": "gb200", "gpus_per_node": 4},
        "backend": {
            "environment": {"A": 1, "B": True},
            "prefill_environment": {"B": "2", "C": 3},
            "decode_environment": "x",
            "sglang_config": {
                "prefill": {**SGLANG, "common-configs": 1, "ServiceArgs": {"resources": {"gpu": "8"}}},
                "decode": {**SGLANG, "ServiceArgs": 1},
                "other": 5,
            },
            "resources": {"gpu_type": "", "gpus_per_node": "many"},
        },
    }
    prefill, decode = recipe(document)
    above = "r/backend/sglang_config"
    assert [launch.label for launch in (prefill, decode)] == [f"{above}/prefill", f"{above}/decode"]
    given = [{name: word.text for name, word in launch.environment.items()} for launch in (prefill, decode)]
    assert given == [{"A": "1", "B": "2", "C": "3"}, {"A": "1", "B": "true"}]
    assert prefill.environment["C"].place == "prefill_environment"
    assert prefill.settings is not None and prefill.settings.data == SGLANG
    assert prefill.container is not None and (prefill.container.gpu, prefill.container.gpus) == ("gb200", 8)
    assert decode.container is not None and (decode.container.gpu, decode.container.gpus) == ("gb200", 4)


def test_a_recipe_s_hosts() -> None:
    def hosts(document: Any) -> tuple[str, int | None]:
        (launch,) = recipe(document)
        assert launch.container is not None
        return launch.container.gpu, launch.container.gpus

    assert hosts({"x": SGLANG}) == ("", None)
    assert hosts({"x": SGLANG, "resources": "x"}) == ("", None)
    assert hosts({"x": {"y": SGLANG, "resources": {"gpu_type": "a", "gpus_per_node": 99999}}}) == ("a", 99999)
    assert hosts({"x": SGLANG, "resources": {"gpus_per_node": 123456}}) == ("", None)
    assert hosts({"x": SGLANG, "resources": {"gpus_per_node": 4, "gpu": 8}}) == ("", 4)
    assert hosts({"resources": {"gpu_type": "a"}, "x": {"resources": {"gpu_type": "b"}, "y": SGLANG}}) == ("b", None)


def test_a_long_title_is_told_in_part() -> None:
    (launch,) = recipe({"x" * 300: SGLANG})
    assert launch.settings is not None and launch.settings.place == "x" * 197 + "..."


# Documents: CommonMark's fenced blocks.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\na\n```\n", ["\na"]),
        ("x\n~~~sh\na\nb\n~~~\n", ["\n\na\nb"]),
        ("   ```\na\n  ```\n", ["\na"]),
        ("````\n```\na\n````\n```\n```", ["\n```\na", "\n\n\n\n\n"[:-1] + "\n"]),
        ("```\na\n~~~\nb\n```", ["\na\n~~~\nb"]),
        ("```\na\n``` sh\nb\n```", ["\na\n``` sh\nb"]),
        ("```bash {x}\n$ a\n  > b\n# c\n$d\n```", ["\na\nb\n# c\n$d"]),
        ("```\na\n`````\n", ["\na"]),
        ("```\na\n", []),
    ],
)
def test_blocks(text: str, expected: list[str]) -> None:
    assert [block.rstrip("\n") for block in blocks(text)] == [block.rstrip("\n") for block in expected]


def test_is_document() -> None:
    assert is_document("```\n```") and is_document("a\n```sh\nb\n```\n")
    assert not is_document("```\n") and not is_document("    ```\n    ```\n") and not is_document("``a``\n``b``")


def test_blocks_of_a_document() -> None:
    fence = "```"
    assert found_in(f"# x\n{fence}\nsglang serve m\n{fence}\n{fence}\nls\n{fence}\n") == ["m"]
    assert found_in(f"{fence}\nsglang serve 'm\n{fence}\n{fence}\nsglang serve n\n{fence}\n") == ["n"]
    with pytest.raises(InputError, match="line 2: the quote"):
        found_in(f"{fence}\nsglang serve 'm\n{fence}\n")
    found = launches_in(f"{fence}\nsglang serve m\n--x\n{fence}\n", SERVERS, name="d.md")
    assert (len(found.notes), found.name) == (1, "d.md")


# Forms.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ufeffsglang serve m\r\n", ["m"]),
        ("\ufeffFROM a\r\nCMD sglang serve \\\r\n m\r\n", ["m"]),
        ("sglang_config:\r\n  tp-size: 8\r\n", [""]),
        ("server:\n  command: [sglang, serve, m]\n", ["m"]),
        ("#!/bin/sh\nsglang serve m\nflags=1\n", ["m"]),
    ],
)
def test_forms(text: str, expected: list[str]) -> None:
    assert found_in(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x" * (LARGEST + 1), "the launch text is larger than 10 MiB; give the launch command alone"),
        ("\0" * LARGEST, "the launch text holds NUL bytes: it is binary, not a shell script"),
        (" \n", "the launch text is empty"),
        ([], "the launch command is empty; put it after -- or in a file"),
        *(
            (text, "the launch text: is a deployment file; `kvplan check` reads it, --launch takes a launch's own file")
            for text in (
                *("launch: x\n", "launch_file: a.sh\n", "flags:\n  tp: 8\n", 'launch = "x"\n', "[flags]\ntp = 8\n"),
                *("x: 1\nlaunch: |\n  sglang serve m\n", 'launch_file = "a"\n', "flags = 1"),
            )
        ),
        ("services:\n  a: {}\n", "the launch text: no service's entrypoint or command starts sglang or vllm"),
        ("a: 1\n", "the launch text: no container's command or args start sglang or vllm"),
        ("apiVersion: v1\nkind: Pod\n", "the launch text: no container's command or args start sglang or vllm"),
        ("services:\n  [", "the launch text:3: not YAML: "),
    ],
)
def test_texts_that_hold_no_launch(text: str | list[str], says: str) -> None:
    with pytest.raises(InputError) as error:
        launches_in(text, SERVERS)
    assert str(error.value).startswith(says)


def test_the_name_of_a_text_stands_in_messages() -> None:
    for text in ("services:\n  a: {}\n", "launch: x\n", "a: 1\n", "kind: x\napiVersion: y\n"):
        with pytest.raises(InputError, match=r"^there: "):
            launches_in(text, SERVERS, name="there")


def test_words_are_counted_from_one() -> None:
    (launch,) = launches_in(["sglang", "serve", "m"], SERVERS).launches
    assert [word.place for word in launch.words] == ["word 3"]


# What a user gives.


def given(text: str | list[str], name: str = "", **values: str) -> tuple[str, ...]:
    return launches_in(text, SERVERS, Surroundings(given=GivenValues(values)), name).notes


def test_values_that_a_user_gives() -> None:
    assert given("sglang serve $M", M="m") == ()
    assert given("sglang serve m") == ()
    unused = "--set M changes nothing: the text gives M a value itself, or never needs it"
    assert given("M=1; sglang serve $M", M="m") == (unused,)
    assert given("sglang serve m\n--x", **{"1": "m"})[1:] == (unused.replace("M", "1"),)
    for text in ("sglang serve $MM", "sglang serve $XM", "sglang serve m"):
        with pytest.raises(InputError, match=r"^--set M: the launch text names no such variable$"):
            given(text, M="m")
        with pytest.raises(InputError, match=r"^--set M: a\.sh names no such variable$"):
            given(text, "a.sh", M="m")
    with pytest.raises(InputError, match=r"^--set gives no value to words after --: .* --launch$"):
        given(["sglang", "serve", "$M"], M="m")
    assert given(["bash", "-c", "sglang serve $M"], M="m") == ()
    assert given(["sglang", "serve"]) == ()
    plain_values = Surroundings(given={"M": "m"})
    assert launches_in("sglang serve n", SERVERS, plain_values).notes == ()


def test_given_values_are_a_mapping() -> None:
    values = read_given(["A=1", "B=x=y", "3=", "A=2", "_x9=5"])
    assert dict(values.items()) == {"A": "2", "B": "x=y", "3": "", "_x9": "5"} and len(values) == 4
    fresh = read_given(["A=1", "B=2"])
    assert "A" in fresh and "C" not in fresh and fresh.used == set()
    assert (fresh["A"], fresh.get("C"), fresh.used) == ("1", None, {"A"})
    assert len(read_given(None)) == 0
    for wrong in ("A", "=1", "A-B=1", "1A=1", "1234=1", "A =1"):
        with pytest.raises(InputError, match=r"^--set: write NAME=VALUE"):
            read_given([wrong])


# Launches and their files.


@pytest.mark.parametrize(
    ("image", "engine", "told"),
    [
        ("lmsysorg/sglang:v0.5.22", "sglang", "0.5.22"), ("lmsysorg/sglang:0.5.22-cu129", "sglang", "0.5.22"),
        ("lmsysorg/sglang:v0.5.23", "sglang", None), ("lmsysorg/sglang:latest", "sglang", None),
        ("x:v0.5.22", "sglang", None),
        ("lmsysorg/sglang:v0.5.22", "", None), ("lmsysorg/sglang:v0.5.22", "vllm", None), ("", "sglang", None),
        ("h:5000/sglang", "sglang", None), ("sglang:v0.5.22.1", "sglang", None), ("h:0.5.22/sglang", "sglang", None),
        ("sglang:v0.5.22@sha256:0", "sglang", "0.5.22"), ("sglang:v0.5.22222", "sglang", None),
    ],
)  # fmt: skip
def test_images_of_other_releases(image: str, engine: str, told: str | None) -> None:
    inside = Launch((), True, {}, engine, container=Container((), image))
    for launch in (inside, Launch((), True, {}, engine, image=image)):
        notes = launch.image_notes("0.5.23")
        line = f"the image of the launch is tagged {told}, and this is planned as 0.5.23; --engine says which"
        assert notes == ([] if told is None else [line])


def test_what_a_launch_is_called() -> None:
    assert Launch((), True, {}).label == "no flags"
    launch = Launch((Word("x", "line 3"),), True, {})
    assert launch.label == "line 3" and launch.called("line 3") and not launch.called("x")


def test_a_file_s_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.env").write_text("TP=8\n")
    script = tmp_path / "run.sh"
    script.write_text(". ./a.env\n. /etc/none\nsglang serve $0 --tp $TP $G\n")
    found = read_launch_file(script, SERVERS, {"G": "9"})
    (launch,) = found.launches
    assert words(launch).startswith(str(script)) and words(launch).endswith(" --tp 8 9")
    assert launch.words[0].text == str(script)
    longest = str(tmp_path / "a").ljust(200, "a")
    for path, name, says in (
        (longest, None, f"--launch {longest}: "),
        (f"{longest}a", None, f"--launch {longest[:197]}...: "),
        (longest, "mine", "mine: "),
    ):
        with pytest.raises(InputError) as error:
            read_launch_file(path, SERVERS, name=name)
        assert str(error.value).startswith(says)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"sglang serve $G $0 $H")))
    (launch,) = read_launch_file("-", SERVERS, {"G": "9"}).launches
    assert words(launch) == "9 $0?$0 $H?$H"


# Words.


def test_marks_say_how_to_give_the_value() -> None:
    asked = "give --set TP=VALUE or write its value"
    for name, missing in (
        ("$TP", f"which is not defined here; {asked}"),
        ("$1", "which is not defined here; give --set 1=VALUE or write its value"),
        ("$@", "which is not defined here; give --set @=VALUE or write its value"),
        ("$(nproc)", "which is not run here; write out what it gives"),
        ("%i", "which systemd fills in; write its value"),
    ):
        mark = Mark(name)
        assert mark.given == mark.asked == f"{name}, {missing}"
        assert mark.complaint == f"{name} {missing.removeprefix('which ')}"
    assert (Mark("$TP").several, Mark("$TP").empty, Piece("x").line) == (
        False,
        False,
        0,
    )  # one word, and where the word at hand stands
    mark = Mark("$TP", "line 2", ("4", "8"))
    assert mark.given == f"4 or 8, as $TP of line 2 decides, which is not defined here; {asked}"
    assert mark.asked == f"$TP of line 2, which is not defined here; {asked}"
    assert mark.complaint == f"whether more words stand here depends on {mark.asked}"
    assert Mark("$TP", "line 2").given == f"what $TP of line 2 decides, which is not defined here; {asked}"
    word = Word("x", "line 1", Mark("$TP"))
    assert (word.undefined, Word("x", "line 1").undefined) == ("$TP", "")
    with pytest.raises(InputError, match=rf"^line 1: --tp is given \$TP, which is not defined here; {asked}$"):
        defined(word, "--tp")
    assert defined(Word("x", "line 1"), "--tp") == "x"


@pytest.mark.parametrize(
    ("word", "secrets", "hidden"),
    [
        ("secret", ["secret"], True), ("xSECRETx", ["secret"], True), ("other", ["secret"], False),
        ("secre", ["xsecretx"], True),
        ("secr", ["secret"], False), ("--a=secret", ["secret"], True), ("--a=ecret", ["secret"], True),
        ("--a=cret", ["secret"], False),
        ("--secret=1", ["secret"], True), ("--secre", ["secret"], False), ("secret", [], False),
        ("other", [f"s{at:04d}" for at in range(64)], False), ("other", [f"s{at:04d}" for at in range(65)], True),
        ("--ot=x", [f"s{at:04d}" for at in range(65)], True), ("b" * 6, ["a" * 4096 + "b" * 6], False),
        ("a" * 6, ["a" * 4100], True),
        ("b" * 5, ["a" * 4091 + "b" * 5], True), ("b" * 5, ["a" * 4092 + "b" * 5], False), ("", ["secret"], False),
    ],
)  # fmt: skip
def test_words_that_hold_a_secret_are_not_quoted(word: str, secrets: list[str], hidden: bool) -> None:
    found = concealed(Word(word, ""), frozenset(secrets))
    assert found.text == word
    assert (repr(found.text) != repr(word)) is hidden


def test_the_name_of_an_option_may_be_a_secret() -> None:
    for word, named in (("--secret=1", False), ("--a=secret", True), ("-secret", False), ("secret=1", True)):
        found = concealed(Word(word, ""), {"secret"})
        assert (type(found.text).__name__ == "ConcealedName") is not named


def test_values_of_key_like_names_are_secrets() -> None:
    pairs = [("API_KEY", "Abcde"), ("API_KEY", "abcd"), ("HF_TOKEN", "xyzzy1"), ("TP", "12345678")]
    assert secret_values(pairs) == {"abcde", "xyzzy1"}


def test_words_and_quotes() -> None:
    for text, parts in (("A=1", ("A", "1")), ("A=", ("A", "")), ("A=b=c", ("A", "b=c")), ("_a9=x", ("_a9", "x"))):
        assert split_assignment(text) == parts
    for text in ("A", "A+=1", "1=2", "-A=1", "A-B=1", ""):
        assert split_assignment(text) is None
    assert printable("a\nb\x1b") == "a?b?"
    assert [printable("x" * size, 10) for size in (10, 11)] == ["x" * 10, "x" * 7 + "..."]
    assert printable("x" * 10 + "\n", 10) == "x" * 7 + "..."


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("org/Name", "name"), ("/a/b/", "b"), ("Name", "name"), ("C:\\\\m\\Name", "name"), ("", ""), ("/", ""),
        ("/hub/models--org--Name/snapshots/0", "name"), ("models--Name", "name"), ("a--b", "b"),
    ],
)  # fmt: skip
def test_base_name(model: str, name: str) -> None:
    assert base_name(model) == name


FAMILIES = (
    *("qwen", "qwq", "deepseek", "llama", "codellama", "mistral", "mixtral", "ministral", "pixtral", "gemma", "kimi"),
    *("minimax", "nemotron", "hunyuan", "ernie", "internlm", "internvl", "baichuan", "olmo", "exaone", "granite"),
    *("chatglm", "gpt-oss"),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_names_of_other_families(family: str) -> None:
    own = (f"/data/{family}-3b", f"./{family}3", f"~/{family}_v3", f"/x/{family}a3")
    for model in (f"org/{family.title()}-3B", family, *own):
        with pytest.raises(InputError, match="another model"):
            refuse_other_model(model)
    own = (f"/data/{family}-tuning", f"./{family}", f"~/{family}-x")
    for model in (*own, f"org/{family}-GLM-5.3-Flash", f"org/x{family}x"):
        refuse_other_model(model)


@pytest.mark.parametrize("model", ["org/GLM-4.6", "/m/glm5", "glm_4", "glm 4", "/x/models--org--Qwen-x/snapshots/0"])
def test_other_models(model: str) -> None:
    with pytest.raises(InputError, match="another model"):
        refuse_other_model(model)


@pytest.mark.parametrize(
    "model", ["org/GLM-5.3-Flash", "glm5next-qwen", "/qwen3/GLM53Flash", "glm", "glmx4", "org/tool"]
)
def test_models_that_may_be_it(model: str) -> None:
    refuse_other_model(model)


# The engine's own reading of a launch's words.


def test_what_the_engine_reads() -> None:
    command = read_launch_command("sglang serve --model-type llm --tp 8 --model-path m", "0.5.23")
    assert (command.model, command.flags, command.revision, command.role) == ("m", {"tp_size": 8}, None, None)
    command = read_launch_command("sglang serve m --revision r --disaggregation-mode prefill", "0.5.23")
    assert (command.model, command.revision, command.role) == ("m", "r", "prefill")
    assert read_launch_command("sglang serve m --disaggregation-mode null", "0.5.23").role is None
    assert read_launch_command("sglang serve m --model-path n", "0.5.23").model == "n"
    assert read_launch_command("sglang serve", "0.5.23").model is None
    command = read_launch_command("sglang serve m --model-type=llm --model-type x --tp 2", "0.5.23")
    assert command.flags == {"tp_size": 2}
    with pytest.raises(InputError, match="--model-type"):
        read_launch_command("python -m sglang.launch_server --model-type llm", "0.5.23")
    with pytest.raises(InputError, match="'m' belongs to no flag"):
        read_launch_command("python -m sglang.launch_server m", "0.5.23")
    with pytest.raises(InputError, match=r"the model is given \$M"):
        read_launch_command("sglang serve $M", "0.5.23")
    with pytest.raises(InputError, match=r"--revision is given \$R"):
        read_launch_command("sglang serve m --revision $R", "0.5.23")
    text = "export SGLANG_MAMBA_CONV_DTYPE=float32 X=1; sglang serve m"
    assert read_launch_command(text, "0.5.23").environment == {"SGLANG_MAMBA_CONV_DTYPE": "float32"}
    (line,) = read_launch_command("docker run lmsysorg/sglang:v0.5.22 sglang serve m", "0.5.23").warnings
    assert "tagged 0.5.22" in line


@pytest.mark.parametrize("change", ['c[-1] = "8"', "del c[1]", "c.pop()", "c.clear()", 'c[2:] = ["n"]'])
def test_a_change_of_a_list_that_is_not_followed_is_asked_about(change: str) -> None:
    text = f'import os\nc = ["sglang", "serve", "m", "--tp", "4"]\n{change}\nrun(c)\n'
    with pytest.raises(InputError, match=r"which is not run here"):
        read_launch_command(text)
