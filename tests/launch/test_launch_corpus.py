"""Launch files in the shapes that people have, each with what was worked out from it by hand (tests/data/launches)."""

import json
from pathlib import Path
from typing import Any

import pytest
from paths import DATA

from glm_kvplan.engines.planner import plan, read_launch
from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.given_values import GivenValues
from glm_kvplan.launch.launch_file import read_launch_file
from glm_kvplan.units import GIB

FOLDER = DATA / "launches"
EXPECTED = sorted(FOLDER.rglob("*.expected.json"))
NAMES = [str(path.relative_to(FOLDER)).removesuffix(".expected.json") for path in EXPECTED]


@pytest.mark.parametrize("path", EXPECTED, ids=NAMES)
def test_a_launch_file_is_read_as_by_hand(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    file = Path(str(path).removesuffix(".expected.json"))
    if expected.get("folder"):  # its --config is named from where it is started
        monkeypatch.chdir(file.parent)
    given = GivenValues(expected.get("set", {}))
    if "refused" in expected:
        with pytest.raises(InputError) as refused:
            read_launch(read_launch_file(file, SERVERS, given), None, expected.get("container"))
        assert expected["refused"] in str(refused.value)
        assert "\n" not in str(refused.value)
        return
    one = read_launch(read_launch_file(file, SERVERS, given), None, expected.get("container"))
    assert one.release.engine.name == expected["engine"]
    assert dict(one.command.flags) == expected["flags"]
    assert dict(one.command.environment) == expected.get("environment", {})
    assert one.command.model == expected["model"]
    if "not_planned" in expected:
        with pytest.raises(InputError, match=expected["not_planned"]):
            plan(launch=one.command)
    around = one.container
    for key in ("gpu", "gpus"):
        if key in expected:
            assert around is not None and getattr(around, key) == expected[key]
    if "memory_gib" in expected:
        assert around is not None and around.memory_bytes == expected["memory_gib"] * GIB
    if "container_is" in expected:
        assert around is not None and around.label == expected["container_is"]


def test_the_corpus_is_large_and_of_both_engines() -> None:
    engines = [json.loads(path.read_text(encoding="utf-8")).get("engine") for path in EXPECTED]
    assert len(EXPECTED) >= 60
    assert engines.count("vllm") >= 10 and engines.count("sglang") >= 30
