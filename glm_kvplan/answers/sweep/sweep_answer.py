"""The first rows of a sweep with all that is to be known of them: the answer of `kvplan sweep` as a page or JSON.

More rows than a page holds are streamed instead: see `show.rows`.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from glm_kvplan import __version__
from glm_kvplan.answers.sweep.axes import ENGINE
from glm_kvplan.answers.sweep.memory_readings import reading_notes
from glm_kvplan.answers.sweep.points import Row, Sweep
from glm_kvplan.contexts import one_length
from glm_kvplan.engines.answer_head import ModelName, deployment_title
from glm_kvplan.engines.sweep_columns import CERTAINTY, UPPER_BOUND, Column, sweeping
from glm_kvplan.show.said import Said, Text, say
from glm_kvplan.workload import DEFAULT_CONTEXT


class SweepAnswer(NamedTuple):
    """Requests are of `contexts` ("": an axis says how long they are); of a mix they fit for so much of the time as
    `confidence` says, 0 for the mean. `points` are all there are, of which `rows` are the first that were asked for;
    `more`: others follow.

    `order` is the column they are ordered by ("": as the axes run), `frontier`: each is the most at its context.
    `advice` says what would make estimates exact.
    """

    kvplan: str
    model: ModelName
    engines: tuple[str, ...]
    title: Text
    contexts: str
    confidence: float | None
    points: int
    order: str
    frontier: bool
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, object], ...]
    more: bool
    advice: tuple[Text, ...]
    notes: tuple[Text, ...]
    warnings: tuple[Text, ...]


def answer_sweep(
    sweep: Sweep, rows: Iterable[Row], most: int, *, order: str = "", frontier: bool = False
) -> SweepAnswer:
    """The first `most` of `rows`."""
    names = [column.name for column in sweep.columns]
    held = [dict(zip(names, row, strict=True)) for row in islice(rows, most + 1)]
    asked = sweep.workload.contexts or one_length(DEFAULT_CONTEXT)
    model, said = sweep.given.model, _certainties(sweep, held[:most])
    return SweepAnswer(
        kvplan=__version__,
        model=ModelName(model.name, model.origin),
        engines=tuple(engine.title for engine in sweep.engines),
        title=_title(sweep),
        contexts="" if "context" in (axis.name for axis in sweep.axes) else asked.text,
        confidence=asked.confidence if len(asked.lengths) > 1 else None,
        points=len(sweep),
        order=order,
        frontier=frontier,
        columns=sweep.columns,
        rows=tuple(held[:most]),
        more=len(held) > most,
        notes=notes_of(sweep),
        advice=tuple(text for certainty, text in said if certainty != UPPER_BOUND),
        warnings=tuple(text for certainty, text in said if certainty == UPPER_BOUND),
    )


def notes_of(sweep: Sweep) -> tuple[Text, ...]:
    """How the input was read."""
    axes, flags = (axis.name for axis in sweep.axes), sweep.given.profile.engine.flags
    return (*sweep.given.notes, *reading_notes(axes, sweep.memory, flags))


def _title(sweep: Sweep) -> Said:
    """`GLM-5.3-Flash on SGLang 0.5.21, H200 (assumed: no --gpu given)`: what no axis changes."""
    given, varied = sweep.given, {axis.name for axis in sweep.axes}
    engines = " and ".join(engine.title for engine in sweep.engines)
    if ENGINE not in varied:
        engines = f"{engines} {given.profile.release}"
    if "gpu" in varied:
        return say("{model} on {engine}", model=given.model.name, engine=engines)
    return deployment_title(given.model.name, engines, given.gpu.name, given.gpu_assumed)


def _certainties(sweep: Sweep, rows: Iterable[Mapping[str, object]]) -> list[tuple[str, Text]]:
    """What the certainties of the rows ask for, in their engines' words."""
    certainties = {row[CERTAINTY] for row in rows}
    found: list[tuple[str, Text]] = []
    for engine in sweep.engines:
        for certainty, text in sweeping(engine).ADVICE.items():
            if certainty in certainties:
                alone = len(sweep.engines) == 1
                found.append((certainty, text if alone else say("{engine}: {text}", engine=engine.title, text=text)))
    return found
