"""A deployment started and held against its expectations: SGLang's answer to `kvplan check`."""

from collections.abc import Iterator, Mapping

from glm_kvplan.engines.expectations import EXPECTATIONS, Expectations, Held, Judgement, Remark
from glm_kvplan.engines.mix_words import held_of
from glm_kvplan.engines.sglang.checks.host_memory import judge_host
from glm_kvplan.engines.sglang.checks.judgements import judge, resident, short
from glm_kvplan.engines.sglang.checks.smallest_changes import smallest_changes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.serving_host import Hosts
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.memory.budget import NoRoomError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text
from glm_kvplan.units import GIB
from glm_kvplan.workload import HostGiven


def hold(
    plan: Plan, given: MemoryGiven, expect: Expectations, *, host_gib: float | None = None, pod_gib: float | None = None
) -> Held:
    """Start the plan and judge everything that is expected of it.

    Raises InputError for memory that is unknown or cannot be, RefusedError where the engine refuses its flags.
    """
    hosts = Hosts(HostGiven(*(None if gib is None else int(gib * GIB) for gib in (host_gib, pod_gib))))
    try:
        answer = boot(plan, given, expect.longest)
    except NoRoomError as error:
        spread = smallest_changes(plan, given, expect, None, "boots", set(), hosts)
        return Held(None, (Judgement("boots", False, "starts", "out of memory", "weights", str(error), spread),))
    judged = judge(expect, plan, answer)
    holding = {name for name, judgement in judged.items() if judgement.holds}
    found = []
    for name in EXPECTATIONS:
        judgement = judged.get(name)
        if name == "host_memory" or (judgement is None and getattr(expect, name) is None):
            continue
        if judgement is None:
            judgement = _not_started(expect, name)
        elif not judgement.holds:
            changes = smallest_changes(plan, given, expect, answer, name, holding, hosts)
            judgement = judgement._replace(changes=changes)
        found.append(judgement)
    hazards: list[Remark] = []
    host = tuple(_host(plan, expect, answer, host_gib, pod_gib, hazards))
    remarks = (*hazards, *_remarks(plan, expect, answer, judged))
    notes = (*answer.weight_notes, *_mix(plan, expect, answer))
    return Held(answer, (*found, *host), remarks, notes)


def _mix(plan: Plan, expect: Expectations, answer: Boot) -> Iterator[Text]:
    """What is promised of a mix, and how many requests of it the mean would."""
    if expect.contexts is not None and answer.failure is None:
        mean = resident(expect.contexts.as_mean, plan.deployment, answer.solution.sizes).requests
        yield held_of(expect.contexts, mean)


def _not_started(expect: Expectations, name: str) -> Judgement:
    return Judgement(name, False, getattr(expect, name), "nothing", "", "the engine does not start")


def _host(
    plan: Plan,
    expect: Expectations,
    answer: Boot,
    host_gib: float | None,
    pod_gib: float | None,
    hazards: list[Remark],
) -> Iterator[Judgement]:
    """The host's side: what is expected of it, and HiCache's hazards whether anything is or not."""
    hicache, expected = plan.deployment.enable_hierarchical_cache, expect.host_memory is not None
    if not (hicache or expected):
        return
    if answer.failure is not None:
        if expected:
            yield _not_started(expect, "host_memory")
        return
    if hicache and host_gib is None and pod_gib is None:
        return  # nobody said how much there is
    host = judge_host(plan, answer.solution.sizes, host_gib, pod_gib)
    if expected or not host.judgement.holds:
        yield host.judgement._replace(changes=host.changes)
    hazards += [Remark(hazard.kind, hazard.message, ("expect", "host_memory")) for hazard in host.hazards]


def _remarks(plan: Plan, expect: Expectations, answer: Boot, judged: Mapping[str, Judgement]) -> Iterator[Remark]:
    if answer.failure is not None or not judged["boots"].holds:
        return
    deployment = plan.deployment
    assert answer.headroom is not None
    if answer.headroom.verdict == "short" and expect.headroom != "fits":
        yield Remark("headroom", str(answer.headroom.message), ("expect", "headroom"))
    if answer.headroom.verdict == "tight":
        yield Remark("tight_headroom", str(answer.headroom.message), ("expect", "headroom"))
    asked, granted = deployment.max_running_requests, answer.solution.running_requests * deployment.attn_dp_size
    if asked is not None and "max_running_requests" in plan.flags and granted < asked:
        assert answer.limits is not None
        limit = answer.limits.requests[0]
        text = f"{asked:,} running requests are asked for and {granted:,} granted: {limit.name} ({limit.text})"
        yield Remark("requests_capped", text, ("flags", "max_running_requests"))
    if answer.budget.upper_bound and not deployment.unknown_draft:  # of an unknown one the flags' own warning says it
        text = f"the {answer.budget.uncounted} is not counted: every size is the most there can be"
        yield Remark("upper_bound", text, ("memory",))
    lost = [name for name in short(expect, deployment, answer.span[0]) if judged[name].holds]
    if lost:
        text = (
            f"{', '.join(lost)} would fall short with {answer.budget.error_gib:.1f} GiB less: the memory is "
            "estimated; give memory.pre_gib and memory.available_gib from a boot log"
        )
        yield Remark("estimated_memory", text, ("memory",))
