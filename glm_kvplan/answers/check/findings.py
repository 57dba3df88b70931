"""Everything a check found in one deployment: expectations that hold or fall short, and warnings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from glm_kvplan.answers.check.deployment_file import DeploymentFile
from glm_kvplan.answers.check.file_plan import FilePlan
from glm_kvplan.engines.expectations import Change, Held, Judgement
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.reading.yaml_text import KeyPath
from glm_kvplan.show.judged import Place
from glm_kvplan.units import GIB

Status = Literal["holds", "fails", "warns", "tolerated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found. `name` is a name of engines/expectations.KINDS; `line` is where the file speaks of it.

    Warnings have a `why` alone. `note` is the file's reason to tolerate what would fail or warn otherwise. `at_most`:
    `found` is an upper bound; `estimated`: at the ends of the memory's estimate it would be another. `cause` is the
    line of the launch's own file that does it, where there is one.
    """

    name: str
    status: Status
    line: int
    wanted: int | float | str | None = None
    found: int | float | str | None = None
    limit: str = ""
    why: str = ""
    changes: tuple[Change, ...] = ()
    note: str = ""
    at_most: bool = False
    estimated: bool = False
    cause: Place | None = None


def held(file: DeploymentFile, made: FilePlan) -> Held:
    """Start the deployment of a file and hold everything it expects against what comes out.

    Raises InputError for memory that is unknown or cannot be, and for host_memory without a host's memory;
    RefusedError where the engine refuses the flags.
    """
    memory, expect, pod_gib = file.content.memory, file.content.expect, _pod_gib(file, made)
    if expect.host_memory is not None and made.plan.has_host_pools and memory.host_gib is None and pod_gib is None:
        raise file.error(
            "host_memory needs memory.host_gib (or memory.pod_gib): how much a host has", "expect", "host_memory"
        )
    try:
        found: Held = made.plan.hold(memory.given, expect.wanted, host_gib=memory.host_gib, pod_gib=pod_gib)
    except RefusedError:
        raise
    except InputError as error:
        raise file.error(str(error), "memory") from None
    return found


def findings(file: DeploymentFile, made: FilePlan, found: Held) -> tuple[Finding, ...]:
    """What was found, with the lines that speak of it and the file's own tolerance; expectations, then warnings."""
    return (*(_finding(file, judgement) for judgement in found.judgements), *_warnings(file, made, found))


def refused(file: DeploymentFile, error: RefusedError) -> Finding:
    """The finding of flags that the engine refuses before it sizes anything."""
    judgement = Judgement("boots", False, "starts", "refused", "flags", str(error))
    return _finding(file, judgement)


def _finding(file: DeploymentFile, judgement: Judgement) -> Finding:
    name, note = judgement.name, file.tolerate.get(judgement.name, "")
    expected = name == "boots" or getattr(file.content.expect, name) is not None
    status: Status = "holds" if judgement.holds else "tolerated" if note else "fails" if expected else "warns"
    place = ("expect", name) if name != "boots" else _launch_key(file)
    return Finding(
        name=name,
        status=status,
        line=file.line(*place),
        wanted=judgement.wanted,
        found=judgement.found,
        limit=judgement.limit,
        why=judgement.why,
        changes=judgement.changes,
        note=note if status == "tolerated" else "",
        at_most=judgement.at_most,
        estimated=judgement.estimated,
    )


def _launch_key(file: DeploymentFile) -> KeyPath:
    return next(((key,) for key in ("launch", "launch_file", "flags") if (key,) in file.lines), ())


def _pod_gib(file: DeploymentFile, made: FilePlan) -> float | None:
    """The container's limit: the file's own figure, else the manifest's."""
    if file.content.memory.pod_gib is not None:
        return file.content.memory.pod_gib
    container = made.container
    return None if container is None or container.memory_bytes is None else container.memory_bytes / GIB


def _warnings(file: DeploymentFile, made: FilePlan, found: Held) -> Iterator[Finding]:
    plan = made.plan
    if made.command is not None:
        for text in made.command.warnings:
            yield _warning(file, "launch", text, *_launch_key(file))
    for text in plan.warnings:
        yield _warning(file, "resolve", text, *_launch_key(file))
    if plan.gpu_assumed:
        yield _warning(file, "assumed_gpu", f"no gpu is named, so an {plan.gpu.name} is assumed")
    container = made.container
    gpus = plan.gpus // plan.hosts
    if container is not None and container.gpus is not None and container.gpus != gpus:
        text = f"container {container.label} asks for {container.gpus} GPUs; the layout has {gpus} a node"
        yield _warning(file, "gpu_count", text, "launch_file")
    for remark in found.remarks:
        yield _warning(file, remark.name, remark.why, *remark.place)


def _warning(file: DeploymentFile, name: str, why: str, *place: str) -> Finding:
    note = file.tolerate.get(name, "")
    line = file.line("expect", "tolerate", name) if note else file.line(*place)
    return Finding(name=name, status="tolerated" if note else "warns", line=line, why=why, note=note)


def unused_notes(file: DeploymentFile, found: tuple[Finding, ...]) -> list[str]:
    """The kinds that the file tolerates and that did not occur."""
    occurred = {finding.name for finding in found if finding.status == "tolerated"}
    return [name for name in file.tolerate if name not in occurred]
