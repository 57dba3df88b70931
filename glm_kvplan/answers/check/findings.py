"""Everything a check found in one deployment: expectations that hold or fall short, and warnings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from glm_kvplan.answers.check.deployment_file import DeploymentFile
from glm_kvplan.answers.check.file_plan import FilePlan
from glm_kvplan.answers.check.host_memory import judge_host
from glm_kvplan.answers.check.judgements import Judgement, judge, short
from glm_kvplan.answers.check.smallest_changes import smallest_changes
from glm_kvplan.answers.check.trial import Change
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.budget import NoRoomError
from glm_kvplan.reading.yaml_text import KeyPath
from glm_kvplan.units import GIB

Status = Literal["holds", "fails", "warns", "tolerated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found. `name` is a key of checks/kinds.py; `line` is where the file speaks of it.

    Warnings have a `why` alone. `note` is the file's reason to tolerate what would fail or warn otherwise.
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


class Findings(NamedTuple):
    """The answer of one file: its start (None where the engine refuses the flags) and all that was found."""

    answer: Boot | None
    found: tuple[Finding, ...]


def findings(file: DeploymentFile, made: FilePlan) -> Findings:
    """Start the deployment of a file and hold everything it expects against what comes out.

    Raises InputError for memory that is unknown or cannot be, and for host_memory without a host's memory.
    """
    if file.expect.host_memory is not None and made.plan.deployment.enable_hierarchical_cache:
        _require_host(file, made)
    try:
        answer = boot(made.plan, file.memory, file.expect.min_context)
    except RefusedError as error:
        return Findings(None, (refused(file, error),))
    except NoRoomError as error:
        spread = smallest_changes(made.plan, file.memory, file.expect, None, "boots", set())
        too_large = Judgement("boots", False, "starts", "out of memory", "weights", str(error))
        return Findings(None, (_finding(file, too_large, spread),))
    except InputError as error:
        raise file.error(str(error), "memory") from None
    judged = judge(file.expect, made.plan, answer)
    holding = {name for name, judgement in judged.items() if judgement.holds}
    found = []
    for name in ("boots", *file.expect._fields):
        judgement = judged.get(name)
        if name == "host_memory" or (judgement is None and getattr(file.expect, name) is None):
            continue
        if judgement is None:
            found.append(_not_started(file, name))
            continue
        changes: tuple[Change, ...] = ()
        if not judgement.holds:
            changes = smallest_changes(made.plan, file.memory, file.expect, answer, name, holding)
        found.append(_finding(file, judgement, changes))
    found += _host(file, made, answer)
    found += _warnings(file, made, answer, judged)
    return Findings(answer, tuple(found))


def refused(file: DeploymentFile, error: RefusedError) -> Finding:
    """The finding of flags that the engine refuses before it sizes anything."""
    judgement = Judgement("boots", False, "starts", "refused", "flags", str(error))
    return _finding(file, judgement, ())


def _finding(file: DeploymentFile, judgement: Judgement, changes: tuple[Change, ...]) -> Finding:
    name, note = judgement.name, file.tolerate.get(judgement.name, "")
    expected = name == "boots" or getattr(file.expect, name) is not None
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
        changes=changes,
        note=note if status == "tolerated" else "",
    )


def _not_started(file: DeploymentFile, name: str) -> Finding:
    judgement = Judgement(name, False, getattr(file.expect, name), "nothing", "", "the engine does not start")
    return _finding(file, judgement, ())


def _launch_key(file: DeploymentFile) -> KeyPath:
    return next(((key,) for key in ("launch", "launch_file", "flags") if (key,) in file.lines), ())


def _require_host(file: DeploymentFile, made: FilePlan) -> None:
    if file.host_gib is None and _pod_gib(file, made) is None:
        raise file.error(
            "host_memory needs memory.host_gib (or memory.pod_gib): how much a host has", "expect", "host_memory"
        )


def _pod_gib(file: DeploymentFile, made: FilePlan) -> float | None:
    """The container's limit: the file's own figure, else the manifest's."""
    if file.pod_gib is not None:
        return file.pod_gib
    container = made.container
    return None if container is None or container.memory_bytes is None else container.memory_bytes / GIB


def _host(file: DeploymentFile, made: FilePlan, answer: Boot) -> Iterator[Finding]:
    """The host's side: what the file expects of it, and HiCache's hazards whether it does or not."""
    pod_gib = _pod_gib(file, made)
    hicache = made.plan.deployment.enable_hierarchical_cache
    expected = file.expect.host_memory is not None
    if not (hicache or expected):
        return
    if answer.failure is not None:
        if expected:
            yield _not_started(file, "host_memory")
        return
    if hicache and file.host_gib is None and pod_gib is None:
        return  # nobody said how much there is
    host = judge_host(made.plan, answer.solution.sizes, file.host_gib, pod_gib)
    if expected or not host.judgement.holds:
        yield _finding(file, host.judgement, host.changes)
    for hazard in host.hazards:
        yield _warning(file, hazard.kind, hazard.message, "expect", "host_memory")


def _warnings(file: DeploymentFile, made: FilePlan, answer: Boot, judged: Mapping[str, Judgement]) -> Iterator[Finding]:
    plan = made.plan
    deployment = plan.deployment
    if made.command is not None:
        for remark in made.command.warnings:
            yield _warning(file, "launch", remark, *_launch_key(file))
    for remark in plan.deployment.warnings:
        yield _warning(file, "resolve", remark, *_launch_key(file))
    if plan.gpu_assumed:
        yield _warning(file, "assumed_gpu", f"no gpu is named, so an {plan.gpu.name} is assumed", "gpu")
    container = made.container
    gpus = deployment.world_size * deployment.replicas // deployment.nnodes
    if container is not None and container.gpus is not None and container.gpus != gpus:
        text = f"container {container.label} asks for {container.gpus} GPUs; the layout has {gpus} a node"
        yield _warning(file, "gpu_count", text, "launch_file")
    if answer.failure is not None or not judged["boots"].holds:
        return
    assert answer.headroom is not None
    if answer.headroom.verdict == "short" and file.expect.headroom != "fits":
        yield _warning(file, "headroom", answer.headroom.message, "expect", "headroom")
    if answer.headroom.verdict == "tight":
        yield _warning(file, "tight_headroom", answer.headroom.message, "expect", "headroom")
    asked, granted = deployment.max_running_requests, answer.solution.running_requests * deployment.attn_dp_size
    if asked is not None and "max_running_requests" in plan.flags and granted < asked:
        assert answer.limits is not None
        limit = answer.limits.requests[0]
        text = f"{asked:,} running requests are asked for and {granted:,} granted: {limit.name} ({limit.text})"
        yield _warning(file, "requests_capped", text, "flags", "max_running_requests")
    lost = [name for name in short(file.expect, deployment, answer.span[0]) if judged[name].holds]
    if lost:
        text = (
            f"{', '.join(lost)} would fall short with {answer.budget.error_gib:.1f} GiB less: the memory is "
            "estimated; give memory.pre_gib and memory.available_gib from a boot log"
        )
        yield _warning(file, "estimated_memory", text, "memory")


def _warning(file: DeploymentFile, name: str, why: str, *place: str) -> Finding:
    note = file.tolerate.get(name, "")
    line = file.line("expect", "tolerate", name) if note else file.line(*place)
    return Finding(name=name, status="tolerated" if note else "warns", line=line, why=why, note=note)


def unused_notes(file: DeploymentFile, found: tuple[Finding, ...]) -> list[str]:
    """The kinds that the file tolerates and that did not occur."""
    occurred = {finding.name for finding in found if finding.status == "tolerated"}
    return [name for name in file.tolerate if name not in occurred]
