"""A boot held against the plan: the answer of `kvplan reconcile`."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head, head_of_boot
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.boot_log.boot import LoggedMemory
from glm_kvplan.engines.sglang.boot_log.causes import causes
from glm_kvplan.engines.sglang.boot_log.log_rows import Row
from glm_kvplan.engines.sglang.boot_log.reconciliation import Fit, Reconciliation
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.show.said import Said, Text, say


class BootShown(NamedTuple):
    """Which start it is, and what came of it; `refusal` is why the engine gave up, None where it did not."""

    origin: str
    number: int
    count: int  # type: ignore[assignment]  # not tuple.count
    ranks: int
    ready: bool
    refusal: str | None


class ReconcileAnswer(NamedTuple):
    """Every number predicted and printed. Printed numbers stay the text that was printed."""

    head: Head
    boot: BootShown
    engine_chosen: str
    explained: bool
    verdict: Text
    likely_causes: tuple[str, ...]
    memory: LoggedMemory | None
    available_gib_of_printed_sizes: tuple[float, float] | None
    sizes: PoolSizes | None
    rows: tuple[Row, ...]
    engines_tried: tuple[Fit, ...]
    warnings: tuple[Text, ...]


def answer_reconcile(found: Reconciliation, number: int, count: int) -> ReconcileAnswer:
    """The answer of one start, the `number`th of `count`, with the likely causes of what is not explained."""
    sizing, boot = found.sizing, found.boot
    band = sizing.band
    return ReconcileAnswer(
        head=head_of_boot(
            head_of(found.plan), found.plan, say(found.chosen), guessed=found.gpu_guessed, unknown=found.gpu_unknown
        ),
        boot=BootShown(boot.origin, number, count, len(boot.ranks), boot.ready, boot.failure),
        engine_chosen=found.chosen,
        explained=found.explained,
        verdict=_verdict(found),
        likely_causes=causes(found),
        memory=sizing.memory,
        available_gib_of_printed_sizes=band and (band.least_gib, band.most_gib),
        sizes=sizing.sizes,
        rows=found.rows,
        engines_tried=found.fits,
        warnings=tuple(_warnings(found)),
    )


def _verdict(found: Reconciliation) -> Said:
    """One line: explained to rounding, or the first number that is not."""
    row = found.first_unexplained
    if row is None:
        count = sum(row.explained is True for row in found.rows)
        return say("explained to rounding: all {count} numbers", count=count)
    template = "not explained: {name}{on}: predicted {predicted}, printed {printed}"
    on = say(" on {rank}", rank=row.rank) if row.rank else ""
    return say(template, name=row.name, on=on, predicted=row.predicted or "-", printed=row.printed)


def _warnings(found: Reconciliation) -> list[Said]:
    """What to know before reading the numbers."""
    boot, said = found.boot, []
    if boot.arguments_cut:
        said.append(say("the server_args line is cut: flags behind the cut are taken as defaults"))
    if not boot.arguments:
        said.append(say("the boot has no server_args line: the flags are the launch command's"))
    if boot.failure is not None:
        said.append(say("the engine refused to start: see its own line in the log"))
    elif not boot.ready:
        said.append(say("the log ends before the server was ready: what it holds until then is checked"))
    return said
