"""Logs that were copied from a terminal: lines broken at its width read as the unbroken log does."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import DATA

from glm_kvplan.engines.boot_logs import read_boots
from glm_kvplan.engines.by_name import NAMES, engine_named

ENGINES = [engine_named(name) for name in NAMES]
# not the records of Docker and Kubernetes: nobody copies those from a terminal
LOGS = [
    path
    for folder in ("logs", "vllm_logs")
    for path in sorted((DATA / folder).glob("*.log"))
    if path.stem not in ("mi355x-nospec", "b200x4-mtp6-conc128")
]


def hard(line: str, width: int) -> list[str]:
    """As a terminal breaks it."""
    return [line[at : at + width] for at in range(0, max(len(line), 1), width)]


def trimmed(line: str, width: int) -> list[str]:
    """As a copy out of it has it: without the spaces at the end of a row."""
    return [row.rstrip() for row in hard(line, width)]


def at_words(line: str, width: int) -> list[str]:
    """As a mail program or a chat breaks it."""
    rows = [""]
    for word in line.split(" "):
        if rows[-1] and len(rows[-1]) + 1 + len(word) > width:
            rows.append(word)
        else:
            rows[-1] = f"{rows[-1]} {word}" if rows[-1] else word
    return rows


# Arguments of two rows, as vLLM prints them, do not tell a chat from a terminal.
CASES = [
    (log, how) for log in LOGS for how in (hard, trimmed, at_words) if how is not at_words or log.parent.name == "logs"
]


def told(path: Path) -> list[object]:
    found = read_boots(str(path), ENGINES)
    if found.engine.name == "vllm":
        return [
            (boot.release, boot.model, boot.flags, {name: each.value for name, each in boot.printed.items()})
            for boot in found.boots
        ]
    return [(boot.arguments, boot.argument_names, boot.arguments_cut, boot.ranks) for boot in found.boots]


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize(("log", "break_line"), CASES, ids=[f"{log.stem}-{how.__name__}" for log, how in CASES])
def test_a_broken_log_reads_as_the_whole_one(
    log: Path, break_line: Callable[[str, int], list[str]], width: int, tmp_path: Path
) -> None:
    text = re.sub(r"\x1b\[\d+m", "", log.read_text(encoding="utf-8"))
    path = tmp_path / "copied.log"
    path.write_text("\n".join(row for line in text.splitlines() for row in break_line(line, width)) + "\n")
    assert told(path) == told(log)


def test_a_line_behind_whole_arguments_is_no_part_of_them(tmp_path: Path) -> None:
    lines = (DATA / "logs" / "example-b-0.5.23.log").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "server.log"
    path.write_text("\n".join([lines[0], "'tp_size': 2}", *lines[1:]]) + "\n", encoding="utf-8")
    (boot,) = read_boots(str(path), ENGINES).boots
    assert boot.arguments["tp_size"] == 4
    assert not boot.arguments_cut


def test_a_line_with_place_left_does_not_go_on(tmp_path: Path) -> None:
    """Of the rows of one terminal none is so short that the next one's first word fits on it."""
    path = tmp_path / "cut.log"
    path.write_text(
        "[2026-05-14 08:11:00] server_args={'model_path': 'zai-org/GLM-5.3-Flash', 'tp_size': 4, 'context_len\n"
        "some other program's words in a line that is longer than the one before it, so it was not broken for want of "
        "columns: 'page_size': 64}\n"
        "[2026-05-14 08:11:21 TP0] Load weight begin. avail mem=177.00 GB\n",
        encoding="utf-8",
    )
    (boot,) = read_boots(str(path), ENGINES).boots
    assert boot.arguments == {"model_path": "zai-org/GLM-5.3-Flash", "tp_size": 4}


def test_a_traceback_after_cut_arguments_is_read(tmp_path: Path) -> None:
    path = tmp_path / "refused.log"
    path.write_text(
        "[2026-05-14 08:11:00] server_args={'model_path': 'zai-org/GLM-5.3-Flash', 'tp_size': 4, 'context_len\n"
        "Traceback (most recent call last):\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n",
        encoding="utf-8",
    )
    (boot,) = read_boots(str(path), ENGINES).boots
    assert boot.arguments == {"model_path": "zai-org/GLM-5.3-Flash", "tp_size": 4}
    assert boot.arguments_cut


def test_arguments_of_vllm_that_are_cut_give_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "cut.log"
    path.write_text(
        "(APIServer pid=1) INFO 09-03 10:11:10 [startup.py:96] non-default args: {'model': 'zai-org/GLM-5.3-Flash', "
        "'tensor_parallel_size': 4, 'speculative_config': {'method': 'mtp', 'num_spec\n"
        "(Worker_TP0 pid=20) INFO 09-03 10:13:00 [gpu_worker.py:773] Available KV cache memory: 45.07 GiB\n",
        encoding="utf-8",
    )
    (boot,) = read_boots(str(path), ENGINES).boots
    assert boot.flags == {"tensor_parallel_size": 4}
    assert "is cut" in boot.warnings[0]
