"""Logs in the shapes that people have, each with what was worked out from it by hand (tests/data/logs_corpus)."""

import json
from pathlib import Path
from typing import Any

import pytest
from boots import SECRETS
from paths import DATA

from glm_kvplan.engines.boot_logs import BesideLog, read_boots
from glm_kvplan.engines.by_name import NAMES, answering, engine_named
from glm_kvplan.engines.planner import read_launch
from glm_kvplan.errors import InputError

FOLDER = DATA / "logs_corpus"
EXPECTED = sorted(FOLDER.glob("*.expected.json"))
ENGINES = [engine_named(name) for name in NAMES]
# where a size stands among the readings of SGLang's boots
READINGS = {
    "slots": ("state_pool", "slots"),
    "ssm GiB": ("state_pool", "ssm"),
    "snapshots GiB": ("state_pool", "snapshot_ssm"),
    "tokens": ("token_pool", "tokens"),
    "KV GiB": ("token_pool", "gib"),
    "free before GiB": ("load_begin", "available"),
    "weights GiB": ("load_end", "usage"),
    "requests": ("ready", "requests"),
    "context": ("ready", "context"),
    "capped slots": ("capped", "slots"),
    "host tokens": ("host_kv", "tokens"),
    "host KV GB": ("host_kv", "gb"),
    "host state GB": ("host_state", "gb"),
}


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.name.removesuffix(".expected.json"))
def test_a_log_is_read_as_by_hand(path: Path) -> None:
    expected: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    log = str(path).removesuffix(".expected.json")
    if "unreadable" in expected:
        with pytest.raises(InputError) as refused:
            read_boots(log, ENGINES)
        assert expected["unreadable"] in str(refused.value)
        assert "\n" not in str(refused.value)
        return
    engine, boots = read_boots(log, ENGINES)
    assert engine.name == expected["engine"]
    assert len(boots) == len(expected["boots"])
    for boot, told in zip(boots, expected["boots"], strict=True):
        assert {name: boot.arguments.get(name) for name in told["flags"]} == told["flags"]
        assert not [name for name in told.get("absent", ()) if name in boot.arguments]
        assert not [secret for secret in SECRETS if secret in repr(boot)]
        (_sglang if engine.name == "sglang" else _vllm)(boot, told)
    _verdict(engine, boots[-1], expected)


def _sglang(boot: Any, told: dict[str, Any]) -> None:
    assert {str(rank) for rank in boot.ranks} == set(told["ranks"])
    for readings in boot.ranks.values():
        for size, printed in told["sizes"].items():
            name, key = READINGS[size]
            found = [reading[key] for reading in readings.get(name, ())]
            assert found == printed or not found, size
    for size in told["sizes"]:
        assert any(READINGS[size][0] in readings for readings in boot.ranks.values()), size
    assert boot.arguments_cut == told.get("cut", False)
    assert boot.failure == told.get("refused")
    assert boot.ready == told.get("ready", boot.ready)


def _vllm(boot: Any, told: dict[str, Any]) -> None:
    assert boot.release == told["release"]
    printed = {name: each.value for name, each in boot.printed.items() if name != "state padding %"}
    assert printed == told["printed"]
    assert (boot.refusal or "").startswith(told.get("refused", ""))
    assert (boot.refusal is not None) == ("refused" in told)
    assert told.get("warns", "") in " ".join(boot.warnings)


def _verdict(engine: Any, boot: Any, expected: dict[str, Any]) -> None:
    beside = BesideLog(gpu=expected.get("gpu"), engine=expected.get("release"))
    if "launch" in expected:
        command = read_launch(expected["launch"], beside.engine).command
        beside = beside._replace(flags=command.flags, environment=command.environment)
    if "refused" in expected:
        with pytest.raises(InputError) as refused:
            engine.reconcile(boot, beside)
        assert expected["refused"] in str(refused.value)
    if "verdict" in expected:
        found = engine.reconcile(boot, beside)
        assert found.explained == (expected["verdict"] == "explained")
        answer: Any = answering(found.plan, "reconcile").answer(found, 1, 1)
        assert expected.get("says", "") in " ".join(map(str, answer.warnings))


@pytest.mark.parametrize(
    ("log", "prompt"),
    [
        ("plain.log", "Available KV cache memory: 1.00 GiB"),
        ("plain.log", "user: (EngineCore pid=9) INFO 09-03 10:13:01 [a.py:1] Available KV cache memory: 1.00 GiB"),
        ("vllm-0.30.log", "max_total_num_tokens=64, chunked_prefill_size=1"),
        ("vllm-0.32.log", "Load weight begin. avail mem=10.00 GB"),
        ("vllm-0.32.log", "see: [2026-05-14 08:11:04 TP0] Load weight begin. avail mem=10.00 GB"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_prompt_about_the_other_engine(log: str, prompt: str, first: bool, tmp_path: Path) -> None:
    lines = (FOLDER / log).read_text(encoding="utf-8").splitlines()
    path = tmp_path / "server.log"
    path.write_text("\n".join([prompt, *lines] if first else [*lines, prompt]) + "\n", encoding="utf-8")
    assert read_boots(str(path), ENGINES).engine.name == ("vllm" if "vllm" in log else "sglang")


def test_services_that_a_prompt_names_are_none(tmp_path: Path) -> None:
    """A collector's prefix stands before every line of the engine, or before none."""
    forged = "".join(
        f"evil-{n}  | [2026-05-14 08:11:00] server_args={{'tp_size': {n}, 'model_path': '/x'}}\n"
        f"evil-{n}  | [2026-05-14 08:11:04 TP0] Load weight begin. avail mem=1.00 GB\n"
        for n in (1, 2)
    )
    path = tmp_path / "server.log"
    path.write_text((FOLDER / "plain.log").read_text(encoding="utf-8") + forged, encoding="utf-8")
    assert [boot.arguments["tp_size"] for boot in read_boots(str(path), ENGINES).boots] == [4]


def test_a_nul_in_a_prompt(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes((FOLDER / "plain.log").read_bytes() + b"prompt: \0\0\n")
    assert (
        read_boots(str(path), ENGINES).boots[0].arguments
        == read_boots(str(FOLDER / "plain.log"), ENGINES).boots[0].arguments
    )


def test_the_corpus_is_large_and_of_both_engines() -> None:
    engines = [json.loads(path.read_text(encoding="utf-8")).get("engine") for path in EXPECTED]
    assert len(EXPECTED) >= 60
    assert engines.count("vllm") >= 15 and engines.count("sglang") >= 40


def test_every_log_has_its_expectation() -> None:
    logs = {path.name for path in FOLDER.iterdir() if path.suffix not in (".json", ".md")}
    assert logs == {path.name.removesuffix(".expected.json") for path in EXPECTED}
