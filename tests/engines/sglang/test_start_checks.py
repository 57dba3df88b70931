"""Start-up checks at their edges: launches of which the engine's own resolution says whether they start, and the lists.

Each line of tests/data/start_checks.jsonl is a launch on eight H200 (`--tp-size 8` and what is written) and what
`prepare_server_args`, the resolution and `check_server_args` of 0.5.23 did with it: nothing, or which function refused.
"""

import json
import re
from functools import cache

import pytest
from paths import DATA, ROOT

from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.engines.sglang.resolve.start_checks import CHECKS
from glm_kvplan.errors import KvplanError


@cache
def launches() -> dict[str, str | None]:
    lines = (DATA / "start_checks.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["words"]: row["refused"] for row in map(json.loads, lines)}


@pytest.mark.parametrize("part", range(8))
def test_a_launch_starts_where_the_engine_starts_it(part: int) -> None:
    for words, refused in list(launches().items())[part::8]:
        command = read_launch_command(["--tp-size", "8", *words.split()], "0.5.23")
        assert not command.unknown, words
        try:
            given(launch=command, engine="0.5.23", gpu="h200").plan()
            ours = False
        except KvplanError:
            ours = True
        assert ours == (refused is not None), f"{words}: {refused or 'the engine starts it'}"


def test_the_launches_are_all_there() -> None:
    assert len(launches()) > 200
    assert 100 < sum(refused is not None for refused in launches().values()) < len(launches()) - 70


@pytest.mark.parametrize("text", ["--1", "-", "x", " ", "9" * 5000])
def test_a_variable_that_is_no_number_is_as_if_not_given(text: str) -> None:
    """The engine reads it with int(), and keeps its default where that does not."""
    name = "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
    flags = {"tp_size": 8, "moe_a2a_backend": "deepep_v2"}

    def end(environment: dict[str, str]) -> str:
        try:
            return repr(given(flags, gpu="b200", engine="0.5.23", environment=environment).plan().deployment)
        except KvplanError as error:
            return str(error)

    assert end({name: text}) == end({})


# -- docs/refusals.md --------------------------------------------------------------------------------------------------

ROW = re.compile(r"\| `(\w+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|")


def test_every_start_up_check_is_listed() -> None:
    """With the releases that make it and where the engine does: a check's name is known there and in the profiles."""
    text = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
    listed = {name: (made.strip(), source.strip()) for name, made, source in ROW.findall(text)}
    expected = {}
    for check in CHECKS:
        made = [release for release in releases() if check.name not in load_profile(release).absent_checks.split()]
        expected[check.name] = ("all" if len(made) == len(releases()) else ", ".join(made), check.source)
    assert listed == expected


def test_every_function_says_whether_it_is_modelled() -> None:
    text = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| `\w+\.", line)]
    assert len(rows) > 100
    for row in rows:
        assert re.search(r"\| (yes|no|in part|not yet)[:,]", row), row
