"""docs/json.md names every field that a command's JSON has, and its tables are made from the types."""

import json
import re
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from typing import Any

import pytest
from json_fields import MISSING, rewritten
from paths import ROOT
from running import ended

TEXT = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
B200 = "--gpu b200 --tp-size 4 --pre-gib 177 --available-gib 126"
MIX = "--context 0.8:8k,0.2:128k"
COMMANDS = {
    "estimate": f"estimate --gpu b200 --tp-size 4 --disaggregation-mode decode {MIX}",
    "estimate of vLLM": f"estimate --gpu h200 {MIX} --concurrency 8 -- vllm serve zai-org/GLM-5.3-Flash -tp 4",
    "host": "solve --gpu b200 --tp-size 4 --enable-hierarchical-cache --hicache-size 100 --host-gib 256 --context 8k",
    "solve": f"solve {B200} --prices",
    "solve, refused": "solve --gpu b200 --tp-size 4 --pre-gib 177 --available-gib 33",
    "solve of vLLM": "solve --gpu h200 --context 0.8:8k,0.2:128k --prices -- vllm serve zai-org/GLM-5.3-Flash -tp 4",
    "solve of vLLM, refused": "solve --gpu h200 --available-gib 4 -- vllm serve zai-org/GLM-5.3-Flash -tp 4",
    "advise": "advise --gpu h200 --tp-size 8 --kv-cache-dtype fp8_e4m3 --concurrency 150",
    "validate": "validate --device meta --tp-size 4",
    "pools": "pools --tp-size 4",
    "advise of vLLM": "advise --engine vllm --tensor-parallel-size 4 --available-gib 40 --concurrency 22",
    "pools of vLLM": "pools --engine vllm --tensor-parallel-size 4",
    "validate of vLLM": "validate --device meta --engine vllm --tensor-parallel-size 4",
    "resolve": "resolve",
    "info": "info",
    "info model": "info model",
    "info engines A B": "info engines 0.5.21 0.5.22",
    "info engines": "info engines",
    "info gpus": "info gpus",
    "resolve of vLLM": "resolve --engine vllm",
    "explain": "explain slot",
    "explain of vLLM": "explain block --engine vllm",
    "explain, where": "explain where",
    "check": "check examples",
    "diff": "diff examples/b200-tp4-mtp.kvplan.yaml --engine 0.5.21 --engine 0.5.22",
    "sweep": "sweep --over tp_size=4,8 --over engine=sglang-0.5.23,vllm-0.33.0",
    "reconcile of vLLM": "reconcile tests/data/vllm_logs/h200x4-tp4-mtp3.log",
    "reconcile": "reconcile tests/data/logs/b200x4-mtp4-slots700.log",
}
SECTIONS = {
    "solve, refused": "solve",
    "solve of vLLM, refused": "solve of vLLM",
    "explain, where": "explain",
    "explain of vLLM": "explain",
    "resolve of vLLM": "resolve",
    "explain, topics": "explain",
}
# Inner values that the page speaks of as a whole: a resolved deployment, the solver's own steps, formulas' terms.
WHOLE = {
    "deployment",
    "steps",
    "costs",
    "terms",
    "topics",
    "environment",
    "changes",
    "before",
    "after",
    "flags",
    "engines",
}


@cache
def answers() -> dict[str, dict[str, Any]]:
    def run(words: str) -> dict[str, Any]:
        asked, dashes, launch = words.partition(" -- ")
        with redirect_stdout(StringIO()) as printed, chdir(ROOT):
            assert ended(*asked.split(), "--json", *dashes.split(), *launch.split()) in (0, 1), words
        return json.loads(printed.getvalue())  # type: ignore[no-any-return]

    return {name: run(words) for name, words in COMMANDS.items()}


def section(title: str) -> str:
    found = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


def fields(value: Any) -> set[str]:
    """The names of an object's fields, and of the objects in it."""
    if isinstance(value, list):
        return set().union(*map(fields, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    inner = (fields(below) for name, below in value.items() if name not in WHOLE)
    return set(value).union(*inner)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_field_is_named(name: str) -> None:
    text = TEXT.partition("\n## ")[0] + section("Common head") + section(SECTIONS.get(name, name))
    text += "".join(map(section, ("Values that several answers have", "host", "decode_overrun")))
    text += section("pools") if name.startswith("validate") else ""
    named = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", text))))
    answer = answers()[name]
    assert sorted(fields(answer if name != "host" else answer["host"]) - named) == []


def test_the_schema_is_the_commands_name() -> None:
    for name, words in COMMANDS.items():
        command = words.split()[0]
        expected = name if command == "info" else command
        assert answers()[name]["schema"] == f"glm-kvplan/{expected}"
        assert answers()[name]["schema_version"] == 2


def test_the_tables_are_the_types() -> None:
    """`python tests/show/json_fields.py` brings them up to date; what a field means is written by hand."""
    assert rewritten(TEXT) == TEXT
    assert MISSING not in TEXT


def test_sweeps_columns_are_named() -> None:
    from glm_kvplan.engines.by_name import NAMES, engine_named
    from glm_kvplan.engines.sweep_columns import sweeping

    text = section("sweep")
    for name in NAMES:
        columns = sweeping(engine_named(name)).COLUMNS
        assert [column.name for column in columns if f"| `{column.name}` | {column.kind} |" not in text] == []
