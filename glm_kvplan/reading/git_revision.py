"""A git revision's files, laid out in a folder of their own: the repository, its index and its work tree stay as is."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.reading.guarded_file import inside

_SECONDS = 120
_LARGEST = 10 << 20  # bytes of a file; larger ones are no text that a deployment names, and are left out
_MOST_FILES, _MOST_BYTES = 50_000, 256 << 20  # of all that is laid out
_BATCH = 32 << 20
_LINK = "120000"
# Nothing is fetched (by a git that does not know the second, neither), nobody is asked, no index is touched; and
# messages are in English.
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")  # of another folder than ours


class _Entry(NamedTuple):
    path: str
    mode: str
    blob: str
    size: int


class Revision(NamedTuple):
    """One commit of the repository whose work tree is `top`; `name` is what the user calls it."""

    name: str
    top: Path
    commit: str

    def inner(self, path: Path) -> str:
        """A path of the work tree as git names it, "" for its top. Raises InputError outside of it."""
        whole = path.parent.resolve() / path.name if path.name not in ("", "..") else path.resolve()
        try:
            found = whole.relative_to(self.top).as_posix()
        except ValueError:
            raise InputError(f"{path}: lies outside the repository of --base {self.name}") from None
        return "" if found == "." else found

    def files(self, inner: str) -> list[str]:
        """The files at and under a path, links among them. Raises InputError where git fails."""
        return [entry.path for entry in self._entries(inner)]

    def lay_out(self, folders: Sequence[str], target: Path) -> None:
        """Write the files under `folders` into `target`, at their own places; those over 10 MiB are left out.

        Raises InputError for more than 50,000 files or 256 MiB, and where git fails.
        """
        found = {entry.path: entry for folder in folders for entry in self._entries(folder)}
        small = [entry for entry in found.values() if entry.size <= _LARGEST]
        if len(small) > _MOST_FILES or sum(entry.size for entry in small) > _MOST_BYTES:
            raise InputError(
                f"--base {self.name}: {len(small)} files lie beside the deployment files or below; give these a folder "
                "of their own"
            )
        for batch in _batches(sorted(small, key=lambda entry: entry.mode == _LINK)):  # links last: none is written to
            for entry, data in zip(batch, self._blobs(batch), strict=True):
                _write(target, entry, data)

    def _entries(self, inner: str) -> list[_Entry]:
        words = ["ls-tree", "-r", "-l", "-z", "--full-tree", self.commit, *(["--", inner] if inner else [])]
        return [*_read_entries(self._git(words))]

    def _blobs(self, entries: Sequence[_Entry]) -> Iterator[bytes]:
        """What the entries hold, as git stores it: no filter of the repository's is run."""
        names = "".join(f"{entry.blob}\n" for entry in entries).encode()
        answer = memoryview(self._git(["cat-file", "--batch"], names))
        at = 0
        for entry in entries:
            start = at + len(f"{entry.blob} blob {entry.size}\n")
            if bytes(answer[at:start]) != f"{entry.blob} blob {entry.size}\n".encode():
                raise InputError(f"--base {self.name}: git does not have {entry.path[:200]}; fetch the revision whole")
            at = start + entry.size + 1
            yield bytes(answer[start : start + entry.size])

    def _git(self, words: Sequence[str], data: bytes = b"") -> bytes:
        done = _run(self.top, words, self.name, data)
        if done.returncode:
            raise InputError(f"--base {self.name}: git {words[0]} failed ({_said(done)})")
        return done.stdout


def find_revision(name: str, folder: Path) -> Revision:
    """The commit that `name` means in the repository around `folder`. Raises InputError."""
    if name.startswith("-") or not name or "\0" in name:
        raise InputError(f"--base {name[:60]!r}: give a revision of git, such as origin/main")
    done = _run(folder, ["rev-parse", "--show-toplevel"], name)
    if done.returncode:
        said = _said(done)
        lost = "not a git repository" in said
        raise InputError(f"--base {name}: " + (f"{folder} lies in no git repository" if lost else f"git says: {said}"))
    top = Path(os.fsdecode(done.stdout.removesuffix(b"\n"))).resolve()
    done = _run(top, ["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], name)
    if done.returncode:
        raise InputError(
            f"--base {name}: the repository has no such revision; fetch it first (git fetch; of a shallow checkout all)"
        )
    return Revision(name, top, done.stdout.decode().strip())


def _run(folder: Path, words: Sequence[str], name: str, data: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = ["git", "--no-pager", "--literal-pathspecs", "-C", str(folder), *words]
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK} | _ENVIRONMENT
    try:
        return subprocess.run(command, input=data, capture_output=True, timeout=_SECONDS, check=False, env=environment)
    except FileNotFoundError:
        raise InputError(f"--base {name}: git is not installed here") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InputError(f"--base {name}: git cannot be run ({error})") from None


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The first line of git's own complaint."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ")[:300] if lines else f"exit code {done.returncode}"


def _read_entries(listing: bytes) -> Iterator[_Entry]:
    """Files and links of `git ls-tree -r -l -z`; submodules have no text of theirs, odd paths belong to nobody."""
    for line in listing.split(b"\0"):
        head, tab, path = line.partition(b"\t")
        words = head.split()
        if not tab or words[1] != b"blob":
            continue
        name = os.fsdecode(path)
        if not any(part in ("", ".", "..", ".git") for part in name.split("/")):
            yield _Entry(name, words[0].decode(), words[2].decode(), int(words[3]))


def _batches(entries: Sequence[_Entry]) -> Iterator[list[_Entry]]:
    batch: list[_Entry] = []
    size = 0
    for entry in entries:
        if batch and size + entry.size > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


def _write(target: Path, entry: _Entry, data: bytes) -> None:
    path = target / PurePosixPath(entry.path)
    inside(target, str(path.parent), entry.path)  # a tree that git itself never writes may lead through a link
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == _LINK:
        path.symlink_to(os.fsdecode(data))
    else:
        path.write_bytes(data)
