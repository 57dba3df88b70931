"""`kvplan sweep` as a command: its forms, files, pipes, and memory that does not grow."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.points import Sweep
from glm_kvplan.cli import main
from glm_kvplan.engines.by_name import NAMES, engine_named
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sweep_columns import sweeping
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.rows import Field, write_csv, write_jsonl

B = ["--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "EAGLE", "--pre-gib", "177"]
B += ["--available-gib", "126"]
PROGRAM = [sys.executable, "-c", "from glm_kvplan.cli import main; main()", "sweep", *B]


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", *B, *words])
    return int(stopped.value.code or 0)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def sweep() -> Sweep:
    axes = [read_axis(text) for text in ("disable_radix_cache=on,off", "mem_fraction_static=0.1,0.7..0.9:0.1,none")]
    return Sweep(given({"tp_size": 4}, gpu="b200"), axes, MemoryGiven(177.0, 126.0))


def fields(points: Sweep) -> list[Field]:
    return [Field(column.name, column.kind) for column in points.columns]


def test_csv_round_trip() -> None:
    """Read back by kind, every row is the row that was written."""
    stream, points = io.StringIO(newline=""), sweep()
    write_csv(fields(points), points, stream)
    read: dict[str, Any] = {"int": int, "float": float, "text": str, "flag": {"true": True, "false": False}.get}
    back = [
        tuple(None if row[c.name] == "" else read[c.kind](row[c.name]) for c in points.columns)
        for row in table(stream.getvalue())
    ]
    assert back == list(points) and len(back) == 10


def test_jsonl_round_trip() -> None:
    stream, points = io.StringIO(), sweep()
    write_jsonl(fields(points), points, stream)
    assert [tuple(json.loads(line).values()) for line in stream.getvalue().splitlines()] == list(points)


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "plan.parquet"
    assert run("--over", "mem_fraction_static=0.1,0.8", "--over", "disable_radix_cache=on,off", "-o", str(target)) == 0
    assert [row["status"] for row in parquet.read_table(target).to_pylist()] == ["refused"] * 2 + ["ok"] * 2


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("--over", "tp_size=4", "-o", str(tmp_path / "plan.parquet")) == 2
    assert "pip install pyarrow" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_example_b_in_csv(capsys: Any) -> None:
    assert run("--over", "engine=0.5.21,0.5.22,0.5.23", "--format", "csv") == 0
    rows = table(capsys.readouterr().out)
    assert [row["max_total_num_tokens"] for row in rows] == ["8563520", "9932544", "9932544"]
    assert [row["max_mamba_cache_size"] for row in rows] == ["706", "695", "695"]


def test_where_sort_best_limit(capsys: Any) -> None:
    over = ("--over", "max_running_requests=1..200", "--format", "csv")
    assert run(*over, "--where", "max_running_requests >= 64 and free_gib > 10") == 0
    asked = [int(row["given_max_running_requests"]) for row in table(capsys.readouterr().out)]
    assert asked == list(range(64, 201))
    assert run(*over, "--sort", "given_max_running_requests:desc", "--best", "3") == 0
    best = [row["given_max_running_requests"] for row in table(capsys.readouterr().out)]
    assert best == ["200", "199", "198"]
    assert run(*over, "--sort", "given_max_running_requests:desc", "--limit", "2") == 0
    assert [row["given_max_running_requests"] for row in table(capsys.readouterr().out)] == best[:2]


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_a_table_cuts_no_number(columns: int, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run("--over", "engine=0.5.21,0.5.22", "--over", "mem_fraction_static=0.1,none") == 0
    out = capsys.readouterr().out
    assert "8,563,520" in out and "9,932,544" in out and "refused [1]" in out and "[1] the state" in out
    assert max(map(len, out.splitlines())) <= columns


def test_a_limited_table_says_so(capsys: Any) -> None:
    assert run("--over", "max_running_requests=1..100", "--limit", "3") == 0
    out = capsys.readouterr().out
    assert "the first 3 rows of 100 points" in out


def test_frontier(capsys: Any) -> None:
    assert run("--frontier", "context,concurrency", "--format", "csv") == 0
    rows = table(capsys.readouterr().out)
    served = [int(row["served"]) for row in rows]
    assert served == sorted(served, reverse=True) and served[0] == 48 and int(rows[-1]["context"]) == 1 << 20


def test_readings_of_another_layout_are_told(capsys: Any) -> None:
    assert run("--over", "tp_size=4,8", "--format", "csv") == 0
    assert "available_gib is taken as it is at every point, though tp_size" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "at least one axis"),
        (("--over", "tp=1", "--format", "xml"), "text, csv, jsonl, parquet"),
        (("--over", "tp=1", "--format", "parquet"), "-o FILE.parquet"),
        (("--over", "tp=1", "--format", "csv", "--json"), "--json and --format csv: give one"),
        (("--over", "tp=1", "--where", "x > 1"), "no column"),
        (("--over", "tp=1", "--sort", "x"), "no column"),
        (("--over", "tp=1", "--frontier", "tp,gpu"), "context,concurrency"),
        (("--frontier", "context,concurrency", "--concurrency", "4"), "leave concurrency out"),
        (("--frontier", "context,concurrency", "--best", "4"), "an order of its own"),
        (("--over", "context=1k", "-o", "/nowhere/at/all.csv"), "cannot be written"),
    ],
)
def test_what_cannot_be_done(words: tuple[str, ...], told: str, capsys: Any) -> None:
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert told in err and err.startswith("kvplan: ") and err.count("\n") == 1


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "plan.csv"
    target.write_text("old")
    assert run("--over", "max_running_requests=1..10", "-o", str(target), "--sort", "served") == 0
    assert len(table(target.read_text())) == 10
    assert run("--over", "tp_size=4", "-o", str(target), "--format", "xml") == 2
    assert len(table(target.read_text())) == 10 and list(tmp_path.iterdir()) == [target]


def test_a_reader_who_leaves() -> None:
    command = [*PROGRAM, "--over", "max_running_requests=1..1000000", "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())["max_running_requests"] == 1
        process.stdout.close()
        assert process.wait(timeout=300) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_interrupt_leaves_whole_rows(form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    target = tmp_path / f"plan.{form}"
    command = [*PROGRAM, "--over", "context=1..1000000", "-o", str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=_heeds_interrupts) as process:
        deadline = time.monotonic() + 20
        while not any(path.stat().st_size > 4 for path in tmp_path.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 130
        assert process.stderr is not None and f"plan.{form}.partial" in process.stderr.read()
    (partial,) = tmp_path.iterdir()
    assert partial.name == f"plan.{form}.partial"
    if form == "parquet":
        from pyarrow.parquet import read_table

        contexts = read_table(partial)["context"].to_pylist()
    elif form == "csv":
        rows = table(partial.read_text())
        assert all(row["served"] for row in rows)
        contexts = [int(row["context"]) for row in rows]
    else:
        contexts = [json.loads(line)["context"] for line in partial.read_text().splitlines()]
    assert contexts == list(range(1, len(contexts) + 1)) and contexts


def _heeds_interrupts() -> None:
    """A shell's background jobs ignore interrupts, and so would what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def peak_kib(points: int) -> int:
    """Peak memory of a process that writes this many points to nowhere."""
    code = "import resource; from glm_kvplan.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    over = ["--over", f"max_running_requests=1..{points // 10}", "--over", "context=1k..10k:1k"]
    words = ["sweep", *B, *over, "--where", "status == 'ok'", "--format", "csv", "-o", os.devnull]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=300)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts KiB on Linux")
def test_memory_does_not_grow_with_the_points() -> None:
    peak_kib(1000)  # compiles what is not compiled yet
    assert peak_kib(50_000) - peak_kib(10_000) < 3 * 1024


def test_every_column_is_explained() -> None:
    for name in NAMES:
        assert all(column.help for column in sweeping(engine_named(name)).COLUMNS)
