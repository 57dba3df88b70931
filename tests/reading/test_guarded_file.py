"""Files and streams that are none, never end, or are too large: one line, at once."""

import io
import os
import threading
from pathlib import Path

import pytest

from glm_kvplan.errors import InputError
from glm_kvplan.reading import guarded_file
from glm_kvplan.reading.guarded_file import read_bytes, read_stdin, read_text

POSIX = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")


def read(path: Path | str) -> str:
    return read_text(path, "it", most=1000, advice="keep it short")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x" * 1001, r"^it: larger than 0 KiB; keep it short$"),
        (b"x" * 2000, r"^it: larger than 0 KiB \(2000 bytes\); keep it short$"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a\0b", "NUL"),
    ],
)
def test_files_that_are_not_read(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="1099511627776 bytes"):
        read(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, why in (
        (tmp_path, "a directory"),
        (tmp_path / "none", "No such file"),
        ("a\0b", "null"),
        ("x" * 5000, "too long"),
    ):
        with pytest.raises(InputError, match=f"^it: cannot be read .*{why}"):
            read(path)
    with pytest.raises(InputError, match="not a regular file"):
        read("/dev/zero")


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa")
    assert read(path) == "a"
    assert read_bytes(path, "it", most=1000, advice="") == b"\xef\xbb\xbfa"


@POSIX
def test_a_pipe_that_ends_is_read_and_one_that_does_not_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert read(path) == ""  # nobody writes: at its end already
    writing = os.open(path, os.O_RDWR)
    try:
        os.write(writing, b"abc")
        monkeypatch.setattr(guarded_file, "PIPE_SECONDS", 0.2)
        with pytest.raises(InputError, match="the pipe has not ended"):
            read(path)
        with pytest.raises(InputError, match="not a regular file"):
            read_bytes(path, "it", most=10, advice="", pipes=False)
    finally:
        os.close(writing)
    monkeypatch.setattr(guarded_file, "PIPE_SECONDS", 20)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # so that the writer below does not wait
    writer = threading.Thread(target=path.write_bytes, args=(b"x" * 900,))
    writer.start()
    try:
        assert len(read(path)) in (0, 900)
    finally:
        writer.join()
        os.close(reading)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * 2000)))
    with pytest.raises(InputError, match="larger than"):
        read_stdin("it", most=1000, advice="")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="closed"):
        read_stdin("it", most=1000, advice="")
