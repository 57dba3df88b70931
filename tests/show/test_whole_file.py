"""Writers: whole or not at all, the umask kept, links followed, read-only files left, killed runs in nobody's way."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT

from glm_kvplan.errors import InputError
from glm_kvplan.show.whole_file import destination


@pytest.fixture(params=[0o022, 0o077, 0o002], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def write(path: Path, text: str = "new", **options: bool) -> None:
    with destination(str(path), option="--save", **options) as stream:  # type: ignore[arg-type]
        stream.write(text)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("replace", [True, False])
def test_a_new_file_has_what_the_umask_leaves(umask: int, replace: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, replace=replace)
    assert path.read_text() == "new" and mode(path) == 0o666 & ~umask
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write(link)
    assert path.read_text() == "new" and mode(path) == 0o600 and link.is_symlink()
    far = tmp_path / "far"
    (tmp_path / "dangling").symlink_to(far)
    write(tmp_path / "dangling")
    assert far.read_text() == "new"


def test_a_read_only_file_stays(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o444)
    link.symlink_to(path)
    for name in (path, link):
        with pytest.raises(InputError, match=r"--save .*: cannot be written \(is read-only\)"):
            write(name)
    assert path.read_text() == "old" and sorted(tmp_path.iterdir()) == [path, link]


def test_without_replace_nothing_that_is_there_goes(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(tmp_path / "nowhere")
    for name in (path, link):
        with pytest.raises(InputError, match="the file exists"):
            write(name, replace=False)
    late = tmp_path / "late"
    with pytest.raises(InputError, match="the file exists"), destination(str(late), replace=False) as stream:
        late.write_text("somebody else's")
        stream.write("new")
    assert late.read_text() == "somebody else's" and path.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "late", "link"]


def test_names_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    for name in (ring, tmp_path, tmp_path / "no" / "folder", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match=r"--save .*: cannot be written"):
            write(name)
    assert list(tmp_path.iterdir()) == [ring]


def test_a_long_name_is_written(tmp_path: Path) -> None:
    write(tmp_path / ("x" * 250))
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 250]


def test_two_writers_at_once_and_what_one_that_failed_leaves(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with destination(str(path)) as outer:
        outer.write("outer")
        write(path, "inner")
        assert path.read_text() == "inner"
    assert path.read_text() == "outer"
    with pytest.raises(ZeroDivisionError), destination(str(path)) as stream:
        stream.write("half")
        raise ZeroDivisionError
    assert path.read_text() == "outer" and list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from glm_kvplan.show.whole_file import destination
with destination(sys.argv[1]) as stream:
    stream.write("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_stops_no_later_one_and_its_leftover_goes(tmp_path: Path) -> None:
    """hostile/09: in containers every run has the same process id."""
    path = tmp_path / "out.csv"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, env=env, timeout=300)
    (left,) = tmp_path.iterdir()
    write(path, "one")  # fresh: it may belong to a run that has not locked it yet
    old = time.time() - 3600
    os.utime(left, (old, old))
    with destination(str(path)) as stream:  # one that is being written stays, however old
        (ours,) = set(tmp_path.glob(".*.part")) - {left}
        os.utime(ours, (old, old))
        stream.write("three")
        write(path, "two")
        assert ours.exists() and path.read_text() == "two"
    assert path.read_text() == "three" and list(tmp_path.iterdir()) == [path]
