"""A vLLM boot held against the plan: the answer of `kvplan reconcile`."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head, head_of_boot
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.boot_fits import BootFit, Fit
from glm_kvplan.engines.vllm.reconciliation import LogRow
from glm_kvplan.show.said import Said, Text, say


class BootShown(NamedTuple):
    """Which start it is, and what came of it; `refusal` is vLLM's own error, None where there is none."""

    origin: str
    number: int
    count: int  # type: ignore[assignment]  # not tuple.count
    release: str | None  # as printed
    refusal: str | None


class ReconcileAnswer(NamedTuple):
    """Every number printed and planned. `num_blocks` prints exactly the log's cache size; None where none does.

    `planned_refusal` is what the plan says of a start that failed.
    """

    head: Head
    boot: BootShown
    engine_chosen: str
    explained: bool
    verdict: Text
    likely_causes: tuple[str, ...]
    num_blocks: int | None
    block_bytes: int
    planned_refusal: str | None
    rows: tuple[LogRow, ...]
    engines_tried: tuple[Fit, ...]
    warnings: tuple[Text, ...]


def answer_reconcile(found: BootFit, number: int, count: int) -> ReconcileAnswer:
    """The answer of one start, the `number`th of `count`."""
    boot, held = found.boot, found.held
    return ReconcileAnswer(
        head=head_of_boot(
            head_of(found.plan), found.plan, found.chosen, guessed=found.gpu_guessed, unknown=found.gpu_unknown
        ),
        boot=BootShown(boot.origin, number, count, boot.release, boot.refusal),
        engine_chosen=found.chosen,
        explained=found.explained,
        verdict=_verdict(found),
        likely_causes=found.causes,
        num_blocks=None if held.start is None else held.start.count,
        block_bytes=found.plan.blocks.nbytes,
        planned_refusal=held.refusal,
        rows=held.rows,
        engines_tried=found.fits,
        warnings=tuple(_warnings(found)),
    )


def _verdict(found: BootFit) -> Said:
    held = found.held
    if found.explained and held.start is None:
        return say("explained: the plan refuses this start, too")
    if found.explained:
        same = sum(row.verdict == "same" for row in held.rows)
        return say("explained to the last digit: all {count} exact numbers", count=same)
    row = next((row for row in held.rows if row.verdict == "differs"), None)
    if row is not None:
        return say(
            "not explained: {name}: planned {planned}, printed {printed}",
            name=row.title,
            planned=f"{row.planned:,g}",
            printed=f"{row.printed:,g}",
        )
    if held.start is None and "cache tokens" in found.boot.printed:
        return say("not explained: no number of blocks of this plan prints the cache size")
    return say("not explained: the log prints no cache size, and no refusal that the plan shares")


def _warnings(found: BootFit) -> Iterator[Text]:
    boot = found.boot
    yield from found.held.warnings
    if not boot.flags:
        yield say("the boot prints no arguments: the flags are the launch command's, or what the engine says of itself")
    if boot.refusal is not None:
        yield say("vLLM refused to start: {refusal}", refusal=boot.refusal)
