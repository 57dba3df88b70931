"""Checks deployment files: one or many, a folder of them, or standard input."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glm_kvplan.answers.check.deployment_file import STDIN, DeploymentFile, parse_deployment, read_deployment_file
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.answers.check.findings import Finding, findings, held, refused, unused_notes
from glm_kvplan.answers.check.launch_lines import LaunchLines
from glm_kvplan.answers.check.positions import PlacedError
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.show.judged import Place

# What a folder is searched for, at any depth; folders whose names start with a dot are left out.
IN_FOLDERS = (".kvplan.yaml", ".kvplan.yml", ".kvplan.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of one file: what was found in it, or why it cannot be used (`error`, at `line`)."""

    path: str
    file: DeploymentFile | None = None
    plan: Any = None  # the engine's own
    answer: Any = None  # the engine's start, None where it refuses the flags
    found: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    line: int = 1
    cause: Place | None = None  # of the error, in the launch's own file

    @property
    def holds(self) -> bool:
        return self.error is None and not self.of("fails")

    @property
    def verdict(self) -> str:
        """`holds`, `falls short` or `unusable`."""
        return "unusable" if self.error is not None else "holds" if self.holds else "falls short"

    def of(self, *statuses: str) -> tuple[Finding, ...]:
        """The findings with one of these statuses."""
        return tuple(finding for finding in self.found if finding.status in statuses)


def check_files(
    paths: Iterable[str], *, engine: str | None = None, gpu: str | None = None, root: Path | None = None
) -> list[Checked]:
    """Check every file; a folder stands for the *.kvplan.yaml, .yml and .toml files in it. Files stand for themselves
    once, in the order given. A file that cannot be used does not keep the others from being checked.
    """
    found: list[Checked] = []
    seen: set[str] = set()
    for path in paths:
        try:
            files = files_of(path)
        except InputError as error:
            found.append(Checked(path=without_userinfo(path), error=_without_path(error, path)))
            continue
        for name in files:
            if name not in seen:
                seen.add(name)
                found.append(check_file(name, engine=engine, gpu=gpu, root=root))
    return found


def files_of(path: str) -> Sequence[str]:
    """The deployment files that a path stands for. Raises InputError for a folder without any."""
    folder = Path(path)
    if path == STDIN or not folder.is_dir():
        return (path,)
    files = sorted(
        str(file)
        for file in folder.rglob("*.kvplan.*")
        if file.name.endswith(IN_FOLDERS)
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts[:-1])
    )
    if not files:
        raise InputError(f"{path}: no file in it is called {', '.join('*' + suffix for suffix in IN_FOLDERS)}")
    return files


def check_file(
    path: str,
    *,
    engine: str | None = None,
    gpu: str | None = None,
    root: Path | None = None,
    text: str | None = None,
) -> Checked:
    """Check one file, under another engine or on another GPU where one is given. Never raises for bad input.

    `text` is what it holds, of one that is not written: its folder is this one. The --config file of its launch must
    lie in the deployment file's folder, or in `root`.
    """
    name = "stdin" if path == STDIN else path
    shown = without_userinfo(name)
    file: DeploymentFile | None = None
    plan: Any = None  # the engine's own
    try:
        file = read_deployment_file(path, root) if text is None else parse_deployment(text, name, Path())
        try:
            made = plan_of(file, engine=engine, gpu=gpu, root=root)
        except RefusedError as error:
            return Checked(path=shown, file=file, found=_caused(file, (refused(file, error),), engine, root))
        plan = made.plan
        try:
            told = held(file, made)
        except RefusedError as error:
            return Checked(path=shown, file=file, plan=plan, found=_caused(file, (refused(file, error),), engine, root))
        found = _caused(file, findings(file, made, told), engine, root)
    except InputError as error:
        message, line = _without_path(error, name), getattr(error, "line", 1)
        cause = None if file is None else LaunchLines(file, engine, root).said(message)
        return Checked(path=shown, file=file, plan=plan, error=message, line=line, cause=cause)
    remarks = made.command.warnings if made.command is not None else ()
    notes = [note for note in plan.notes if note not in remarks]
    notes += told.notes
    notes += [f"expect.tolerate.{name}: there is nothing to tolerate any more" for name in unused_notes(file, found)]
    return Checked(path=shown, file=file, plan=plan, answer=told.start, found=found, notes=tuple(notes))


def _caused(
    file: DeploymentFile, found: tuple[Finding, ...], engine: str | None, root: Path | None
) -> tuple[Finding, ...]:
    """The findings with the lines of the launch's own file that do it."""
    if file.content.launch_file is None or all(finding.status == "holds" for finding in found):
        return found
    lines = LaunchLines(file, engine, root)
    return tuple(
        finding
        if finding.status == "holds"
        else replace(
            finding,
            cause=(lines.said(finding.why) if finding.name == "launch" else None)
            or lines.of(
                (finding.limit, finding.why),
                () if finding.name == "boots" else (name for change in finding.changes for name in change.flags),
            ),
        )
        for finding in found
    )


def _without_path(error: InputError, path: str) -> str:
    message = error.message if isinstance(error, PlacedError) else str(error).removeprefix(f"{path}: ")
    return without_userinfo(message)


def exit_code(checked: Sequence[Checked], strict: bool = False) -> int:
    """0: everything holds; 1: something falls short (`strict`: or warns); 2: a file cannot be used."""
    if any(one.error is not None for one in checked):
        return 2
    failing = ("fails", "warns") if strict else ("fails",)
    return 1 if any(one.of(*failing) for one in checked) else 0
