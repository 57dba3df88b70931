"""Log files: gzip, standard input, what is no log, and how little memory a large one takes."""

import gc
import gzip
import io
import random
import tracemalloc
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

import pytest
from boots import FRAC80, LOGS, boots_of, facts, plain_lines, read_log

from glm_kvplan.engines.boot_logs import read_boots
from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.log_stream import PIECE, read_file
from glm_kvplan.engines.sglang.boot_log.boot import LogRank
from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS
from glm_kvplan.errors import InputError

EXPECTED = boots_of(FRAC80)[0]


@pytest.mark.parametrize("form", ["plain", "gzip", "utf-16", "utf-8-sig"])
def test_file_forms(form: str, tmp_path: Path) -> None:
    text = FRAC80.read_bytes()
    data = {
        "plain": text,
        "gzip": gzip.compress(text),
        "utf-16": text.decode().encode("utf-16"),
        "utf-8-sig": BOM_UTF8 + text,
    }[form]
    path = tmp_path / "server.log"
    path.write_bytes(data)
    assert [facts(boot) for boot in boots_of(path)] == [facts(EXPECTED)]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(FRAC80.read_bytes()))))
    assert [facts(boot) for boot in read_log(read_file("-", ANCHORS))] == [facts(EXPECTED)]


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_log(read_file("-", ANCHORS))


def test_a_cut_gzip_gives_what_it_holds(tmp_path: Path) -> None:
    noise = "".join(random.Random(1).choices("abcdefghij \n", k=400_000))
    path = tmp_path / "server.log.gz"
    whole = gzip.compress(FRAC80.read_bytes() + noise.encode())
    path.write_bytes(whole[: len(whole) // 2])
    assert facts(boots_of(path)[0]) == facts(EXPECTED)


def test_a_piece_that_ends_within_the_header_of_a_gzip_member(tmp_path: Path) -> None:
    member = gzip.compress(b"a", mtime=0)
    assert PIECE % len(member) == 1
    path = tmp_path / "server.log.gz"
    path.write_bytes(member * (PIECE // len(member) + 9) + gzip.compress(b"\n" + FRAC80.read_bytes()))
    assert [facts(boot) for boot in boots_of(path)] == [facts(EXPECTED)]


BAD = {
    "no boot": b"hello\nthis is not a server log\n" * 100,
    "another server": b"INFO 05-14 08:11:02 vLLM API server version 0.9.0\n" * 50,
    "empty": b"",
    "binary": bytes(range(256)) * 100,
    "png": b"\x89PNG\r\n\x1a\n" + b"\0\1\2\3" * 1000,
    "damaged gzip": b"\x1f\x8b\x08\x00garbage that is no deflate stream at all",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(BAD[name])
    with pytest.raises(InputError) as error:
        read_boots(str(path), [engine_named("sglang")])
    assert "\n" not in str(error.value)


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="cannot be read"):
            boots_of(path)


BUSY = b"[2026-05-14 09:00:00 TP0] Decode batch, #running-req: %d, max_total_num_tokens=7, token usage: 0.1"


def busy_server(lines: int) -> Iterator[bytes]:
    yield from (line.encode() for line in plain_lines(FRAC80))
    for number in range(lines):
        yield BUSY % number


def test_memory_does_not_grow_with_the_log() -> None:
    def peak(lines: int) -> int:
        usual = gc.get_threshold()
        gc.set_threshold(700, 10, 10)  # as outside of tests: garbage that waits for its collection is no growth
        tracemalloc.start()
        try:
            assert [facts(boot) for boot in read_log(busy_server(lines))] == [facts(EXPECTED)]
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            gc.set_threshold(*usual)

    peak(400)  # what is imported and compiled once is no growth
    assert peak(40_000) < peak(400) + (1 << 18)


def test_a_large_file_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(FRAC80.read_bytes())
        for _ in range(160):
            file.write(b"[2026-05-14 09:00:00 TP0] Decode batch, #running-req: 3, token usage: 0.01\n" * 7000)
        file.write((LOGS / "example-b-0.5.23.log").read_bytes())
    seen: list[int] = []
    tracemalloc.start()
    try:
        boots = read_log(read_file(str(path), ANCHORS, seen.append))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(boots) == 2
    assert seen == sorted(seen)
    assert seen[-1] > 80 << 20
    assert most < 8 << 20


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with path.open("wb") as file:
        for _ in range(24):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + FRAC80.read_bytes())
    tracemalloc.start()
    try:
        boots = boots_of(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [facts(boot) for boot in boots] == [facts(EXPECTED)]
    assert most < 12 << 20


def test_ranks_and_repeats_are_bounded() -> None:
    line = "[2026-05-14 08:11:02 DP{0} TP{0}] Load weight begin. avail mem=1.00 GB"
    boot = read_log([line.format(number) for number in range(6000)] + [line.format(0)] * 50)[0]
    assert len(boot.ranks) == 4096
    assert len(boot.ranks[LogRank()]["load_begin"]) == 8
