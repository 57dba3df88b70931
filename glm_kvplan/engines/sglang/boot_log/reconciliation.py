"""A boot held against the plan: every printed number predicted, and the verdict."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.boot_log.boot import Boot, logged_memory
from glm_kvplan.engines.sglang.boot_log.host_rows import host_rows
from glm_kvplan.engines.sglang.boot_log.likely_card import likely_card
from glm_kvplan.engines.sglang.boot_log.log_launch import environment_of, flags_of
from glm_kvplan.engines.sglang.boot_log.log_releases import possible, said
from glm_kvplan.engines.sglang.boot_log.log_rows import Row
from glm_kvplan.engines.sglang.boot_log.pool_rows import flag_rows, pool_rows
from glm_kvplan.engines.sglang.boot_log.server_args import require_model
from glm_kvplan.engines.sglang.boot_log.sizing_rows import Sizing, sizing
from glm_kvplan.engines.sglang.boot_log.world import world_sizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.profile import BASELINE, releases
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.memory.gpu import Gpu


class Fit(NamedTuple):
    """How one release does on a boot. `refused` says why it would not even start with these flags."""

    engine: str
    unexplained: int
    explained: int
    first: str  # the first number it does not explain
    refused: str = ""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Smaller is better."""
        return bool(self.refused), self.unexplained, -self.explained


class Reconciliation(NamedTuple):
    """`rows` are in the order of a boot. `engine` is the release used, or the profile file, and `chosen` says why.

    `fits` holds every release tried: all of them, unless the one that is known explains everything.
    """

    boot: Boot
    plan: Plan
    engine: str
    chosen: str
    gpu_guessed: bool
    gpu_unknown: bool  # no card of the table fits the log: `plan.gpu` only stands in for it
    sizing: Sizing
    rows: tuple[Row, ...]
    fits: tuple[Fit, ...]

    @property
    def first_unexplained(self) -> Row | None:
        return next((row for row in self.rows if row.explained is False), None)

    @property
    def explained(self) -> bool:
        """Every number that kvplan predicts came out as printed, to the printed rounding; `reconcile` sees to one."""
        return self.first_unexplained is None

    @property
    def better(self) -> Fit | None:
        """The release that fits best, where it is not the one used."""
        best = min(self.fits, key=lambda fit: fit.rank)
        own = next(fit for fit in self.fits if fit.engine == self.engine)
        return best if best.rank < own.rank else None


def reconcile(boot: Boot, given: BesideLog | None = None) -> Reconciliation:
    """Predict every number of a boot, under every release, and keep the release that was named or that fits best.

    Raises InputError where the log has neither flags nor numbers, and what `plan` raises where the release that was
    named refuses the flags.
    """
    given = given or BesideLog()
    flags = {**flags_of(boot.arguments), **given.flags}
    if not flags:
        lacks = "server_args line is cut before its flags" if boot.arguments_cut else "boot has no server_args line"
        raise InputError(f"{boot.origin}: the {lacks}; give its launch command after -- or with --launch FILE")
    if not given.flags:
        require_model(flags)
    if given.draft is not None:
        flags["draft_config"] = given.draft
    likely = None if given.gpu is not None else likely_card(boot, flags, given.environment)
    memory = logged_memory(boot)
    named_card = given.card(boot.origin, None if memory is None else memory.pre_gib)
    gpu = named_card if named_card is not None else None if likely is None else likely.gpu
    named = given.engine or said(boot) or (possible(boot)[0] if len(possible(boot)) == 1 else None)
    tries: list[_Try] = []
    refused: list[Fit] = []
    error: KvplanError | None = None
    for engine in sorted(_engines(named), key=lambda engine: engine != named):
        try:
            made = _plan(engine, boot, flags, given, gpu)
        except KvplanError as problem:
            if engine == given.engine:
                raise
            error = problem
            refused.append(Fit(engine, 0, 0, "", str(problem)))
            continue
        tries.append(_try(engine, made, boot))
        if engine == named and not tries[0].fit.unexplained:
            break  # the release is known and explains everything: there is nothing left to find out
    if not tries:
        cut = ""
        if boot.arguments_cut:
            cut = "the server_args line is cut, its launch command after -- or with --launch FILE says the rest; "
        raise InputError(f"{boot.origin}: {cut}no release known here takes these flags: {error}")
    best, chosen = _choose(boot, given.engine, tries)
    if not any(row.explained is not None for row in best.rows):
        raise InputError(f"{boot.origin}: the boot printed no number to hold against the plan (cut before its pools?)")
    fits = (*(each.fit for each in tries), *refused)
    guessed = given.gpu is None
    unknown = guessed and (likely is None or not likely.known)
    return Reconciliation(boot, best.plan, best.engine, chosen, guessed, unknown, best.sizing, best.rows, fits)


class _Try(NamedTuple):
    engine: str  # as --engine names it
    plan: Plan
    sizing: Sizing
    rows: tuple[Row, ...]
    fit: Fit


def _try(engine: str, made: Plan, boot: Boot) -> _Try:
    answer, rows = rows_of(made, boot)
    wrong = [row.name for row in rows if row.explained is False]
    good = sum(row.explained is True for row in rows)
    return _Try(engine, made, answer, rows, Fit(engine, len(wrong), good, wrong[0] if wrong else ""))


def rows_of(plan: Plan, boot: Boot) -> tuple[Sizing, tuple[Row, ...]]:
    """Every number of a boot under one plan. Replicas (plain data parallelism) are sized each on its own memory."""
    rows = list(flag_rows(plan, boot))
    answers = []
    for label, part in world_sizes(boot, plan.deployment):
        answer = sizing(plan, part)
        found = [*answer.rows, *pool_rows(plan, part, answer), *host_rows(plan, part, answer.sizes)]
        rows += [row._replace(rank=row.rank or label) for row in found]
        answers.append(answer)
    return answers[0], tuple(rows)


def _engines(given: str | None) -> tuple[str, ...]:
    known = releases()
    return known if given is None or given in known else (*known, given)


def _plan(engine: str, boot: Boot, flags: Mapping[str, object], given: BesideLog, gpu: Gpu | None) -> Plan:
    switches = {**environment_of(boot, "cuda" if gpu is None else gpu.vendor), **given.environment}
    made: Plan = plan(flags, model=given.model, revision=given.revision, gpu=gpu, engine=engine, environment=switches)
    return made


def _choose(boot: Boot, given: str | None, tries: Sequence[_Try]) -> tuple[_Try, str]:
    """The try to show, and why: named, said by the server, or the best fit of those that could have written it."""
    by_name = {each.engine: each for each in tries}
    if given is not None:
        return by_name[given], "named"
    release = said(boot)
    if release in by_name:
        return by_name[release], f"the server says {boot.release}"
    unknown = f"the server says {boot.release}, which has no profile; " if boot.release else ""
    allowed = possible(boot)
    candidates = [each for each in tries if each.engine in allowed] or list(tries)
    best = min(each.fit.rank for each in candidates)
    equal = [each for each in candidates if each.fit.rank == best]
    chosen = next((each for each in equal if each.engine == BASELINE), equal[-1])
    if len(allowed) == 1 and chosen.engine in allowed:
        return chosen, "told by the log's own fields"
    others = [each.engine for each in equal if each is not chosen]
    also = f"; {' and '.join(others)} fit{'s' * (len(others) == 1)} as well" if others else ""
    return chosen, f"{unknown}fits best{also}"
