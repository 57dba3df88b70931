"""What a pull request changes: the deployment files of the work tree against those of a git revision, one by one."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from glm_kvplan import __version__
from glm_kvplan.answers.check.checking import IN_FOLDERS, files_of
from glm_kvplan.answers.check.deployment_file import STDIN, SUFFIXES
from glm_kvplan.answers.diff.diff_answer import DiffAnswer, SideShown, answer_diff, side_shown
from glm_kvplan.answers.diff.sides import Asked, Load, Planned, common_load, plan_side, start_side
from glm_kvplan.answers.diff.starts import Side
from glm_kvplan.engines.measures import SHARED, Measure
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.reading.git_revision import Revision, find_revision
from glm_kvplan.reading.secret_words import without_userinfo

CHANGED, SAME, ADDED, REMOVED = "changed", "the same", "added", "removed"
UNCLEAR = "not comparable"  # one side cannot be used, or the engine refuses it


class OneSide(NamedTuple):
    """A file on one side alone, or one whose other side does not start: what it holds there."""

    side: SideShown
    context: int
    measures: tuple[Measure, ...]


class FileDiff(NamedTuple):
    """One deployment file. `diff` is None where there is one side; `before_error` and `after_error` say why."""

    path: str
    status: str
    diff: DiffAnswer | None = None
    alone: OneSide | None = None
    before_error: str | None = None
    after_error: str | None = None


class BaseAnswer(NamedTuple):
    """`exit_code` is the command's, by the work tree alone: 1 where the engine refuses a file, 2 if one is unusable."""

    kvplan: str
    base: str
    commit: str
    exit_code: int
    files: tuple[FileDiff, ...]

    def of(self, status: str) -> tuple[FileDiff, ...]:
        """The files with this status."""
        return tuple(file for file in self.files if file.status == status)


class _Pair(NamedTuple):
    """A file of either side: its name in the revision, and in the work tree, where it is there."""

    path: str
    before: str | None
    after: str | None


def answer_base(
    base: str,
    paths: Sequence[str],
    engines: tuple[str | None, str | None] = (None, None),
    gpus: tuple[str | None, str | None] = (None, None),
    root: Path | None = None,
) -> BaseAnswer:
    """Compare every deployment file at `paths` (a folder: those in it). Nothing in the repository is written.

    Raises InputError where there is no repository or revision, or no deployment file on either side.
    """
    revision = find_revision(base, _folder(paths[0]))
    pairs = [*dict.fromkeys(pair for path in paths for pair in _pairs(revision, path))]
    with TemporaryDirectory(prefix="kvplan-") as name:
        target = Path(name).resolve()
        folders = [PurePosixPath(pair.before).parent.as_posix() for pair in pairs if pair.before is not None]
        revision_root = _in_revision(revision, root)
        folders += [] if revision_root is None else [revision_root]
        revision.lay_out([*dict.fromkeys("" if folder == "." else folder for folder in folders)], target)
        files, codes = [], [0]
        for pair in pairs:
            a = None
            if pair.before is not None:
                folder = root if revision_root is None else target / revision_root
                a = Asked(str(target / pair.before), engines[0], gpus[0], folder, f"{base}:{pair.before}")
            b = None if pair.after is None else Asked(pair.after, engines[1], gpus[1], root)
            file, code = _compared(pair.path, a, b)
            files.append(file)
            codes.append(code)
    return BaseAnswer(__version__, base, revision.commit, max(codes), tuple(files))


def _folder(path: str) -> Path:
    found = Path(path)
    while not found.is_dir() and found != found.parent:  # a file, or one that was removed with its folder
        found = found.parent
    return found


def _in_revision(revision: Revision, root: Path | None) -> str | None:
    """The folder of --root as the revision has it; None outside of its repository."""
    if root is None:
        return None
    try:
        return revision.inner(root)
    except InputError:
        return None


def _pairs(revision: Revision, path: str) -> Iterator[_Pair]:
    """The deployment files at a path on both sides, by name. Raises InputError where there is none on either."""
    if path == STDIN:
        raise InputError("--base compares files of a repository; standard input is none")
    inner, shown = revision.inner(Path(path)), Path(path)
    before = [name for name in revision.files(inner) if name == inner or _found_in(inner, name)]
    after: list[str] = []
    if shown.exists() or not before:
        try:
            after = [*files_of(path)]
        except InputError:  # a folder without any
            if not before:
                raise
    if not before and not shown.exists():
        raise InputError(f"{path}: is neither here nor in {revision.name}")
    if after == [path] and shown.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a deployment file ends in {', '.join(SUFFIXES)}")
    there = {revision.inner(Path(name)): name for name in after}
    for name in sorted({*before, *there}):
        now = there.get(name)
        at = now if now is not None else str(shown if name == inner else shown / PurePosixPath(name).relative_to(inner))
        yield _Pair(without_userinfo(at), name if name in before else None, now)


def _found_in(folder: str, name: str) -> bool:
    """Whether a search of the folder finds this file, as `files_of` does."""
    inside = name.removeprefix(f"{folder}/") if folder else name
    return name.endswith(IN_FOLDERS) and not any(part.startswith(".") for part in inside.split("/")[:-1])


def _compared(path: str, a: Asked | None, b: Asked | None) -> tuple[FileDiff, int]:
    """One file, and the exit code of its work tree's side."""
    before, after = _Tried(a), _Tried(b)
    load = common_load([side.planned for side in (before, after) if side.planned])
    for side in (before, after):
        side.start(load)
    if before.side is not None and after.side is not None:
        diff = answer_diff(before.side, after.side)
        return FileDiff(path, CHANGED if diff.changes else SAME, diff), 0
    status = ADDED if a is None else REMOVED if b is None else UNCLEAR
    one = after.side or before.side
    alone = None
    if one is not None:
        shared = tuple(measure for measure in one.start.measures if measure.name in SHARED)
        alone = OneSide(side_shown(one), one.start.context, shared)
    return FileDiff(path, status, None, alone, before.error, after.error), after.code


class _Tried:
    """One side as far as it comes: planned, started, or why not (with the exit code of that)."""

    def __init__(self, asked: Asked | None) -> None:
        self.planned: Planned | None = None
        self.side: Side | None = None
        self.error: str | None = None
        self.code = 0
        if asked is not None:
            try:
                self.planned = plan_side(asked)
            except KvplanError as error:
                self._failed(error)

    def start(self, load: Load) -> None:
        if self.planned is not None:
            try:
                self.side = start_side(self.planned, load)
            except KvplanError as error:
                self._failed(error)

    def _failed(self, error: KvplanError) -> None:
        self.error, self.code = without_userinfo(str(error)), 1 if error.is_no else 2
