"""`solve` and `estimate` of a file that starts a prefill and a decode server: both plans, one after the other."""

import os
from pathlib import Path

import pytest

from glm_kvplan.cli import main

FILE = str(Path(__file__).parents[2] / "examples" / "launch" / "prefill-decode.yaml")
HEADS = ["glm-prefill/main: the prefill server", "glm-decode/main: the decode server"]


def run(*words: str) -> int:
    try:
        return main([*words]) or 0
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("command", ["solve", "estimate"])
def test_both_plans_are_those_of_each_alone(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    alone = []
    for name in ("glm-prefill", "glm-decode"):
        run(command, "--launch", FILE, "--container", name)
        alone.append(capsys.readouterr().out)
    run(command, "--launch", FILE)
    out = capsys.readouterr().out
    assert out.startswith("\n\n".join([HEADS[0], alone[0] + "\n" + HEADS[1], alone[1]]))
    assert out.endswith("pass from glm-prefill/main to glm-decode/main.\n")


def test_a_stream_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    os.write(write, Path(FILE).read_bytes())
    os.close(write)
    assert run("estimate", "--launch", f"/dev/fd/{read}") == 1  # four host pools of 100 GB in a pod of 256 GiB
    os.close(read)
    out = capsys.readouterr().out.splitlines()
    assert all(head in out for head in HEADS)


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "--json"),
        ("estimate", "--json"),
        ("solve", "--pre-gib", "177", "--available-gib", "126"),
        ("resolve",),
    ],
)
def test_one_answer_is_about_one_server(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words, "--launch", FILE) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--container NAME takes one" in printed.err


@pytest.mark.parametrize(("other", "is_pair"), [("decode", True), ("prefill", False), ("null", False)])
def test_only_a_prefill_and_a_decode_server_are_a_pair(
    other: str, is_pair: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "compose.yaml"
    start = "sglang serve zai-org/GLM-5.3-Flash --tp {} --disaggregation-mode {}"
    services = {"second": start.format(8, other), "first": start.format(4, "prefill")}
    lines = [f"  {name}:\n    image: lmsysorg/sglang:v0.5.21\n    command: {text}" for name, text in services.items()]
    path.write_text("\n".join(["services:", *lines]) + "\n", encoding="utf-8")
    code = run("estimate", "--launch", str(path))
    out = capsys.readouterr().out
    assert (code != 2) == is_pair
    heads = [line for line in out.splitlines() if "the prefill server" in line or "the decode server" in line]
    assert heads == (["first: the prefill server", "second: the decode server"] if is_pair else [])
