"""`kvplan sweep`: a deployment over any axes."""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any

import typer

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.conditions import read_where
from glm_kvplan.answers.sweep.order import MOST_SORTED, read_order
from glm_kvplan.answers.sweep.pareto import context_axis, frontier
from glm_kvplan.answers.sweep.points import Row, Sweep, Workload
from glm_kvplan.answers.sweep.sweep_answer import SweepAnswer, answer_sweep, notes_of
from glm_kvplan.cli.answer_forms import check_form
from glm_kvplan.cli.answering import note
from glm_kvplan.cli.app import drop_output
from glm_kvplan.cli.completions import axes, columns
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, given_of
from glm_kvplan.cli.workload_options import WORKLOAD, Confidence, PrefixStates, read_concurrency, read_confidence
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.sweep_columns import SERVED_PER_GPU
from glm_kvplan.errors import InputError
from glm_kvplan.units import parse_count

_ROWS = "Sweep"
_STREAMED = ("csv", "jsonl", "parquet")
_FORMATS = ("text", *_STREAMED, "md", "json")
_SHOWN = 40  # rows of a table
_BEST = f"{SERVED_PER_GPU}:desc"


@takes(*DEPLOYMENT, MEMORY)
def sweep(
    ctx: typer.Context,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            help="An axis, NAME=VALUES; repeat it for a product, the last one fastest. NAME: a flag, engine, gpu, "
            "context, concurrency, checkpoint, pre_gib, ... VALUES: 1,2,4 or 8k..1m:x2 or 0.70..0.90:0.02 (ends "
            "included; 8k is 8 * 1024) or on,off; none takes a flag back.",
            metavar="NAME=VALUES",
            autocompletion=axes,
            rich_help_panel=_ROWS,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            help='Keep these rows: "served >= 64 and gpus <= 8". Names are columns: what the engine '
            "sizes; a flag of the same name is given_NAME.",
            metavar="EXPRESSION",
            rich_help_panel=_ROWS,
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", help="Order by a column.", metavar="COL[:desc]", autocompletion=columns, rich_help_panel=_ROWS
        ),
    ] = None,
    best: Annotated[
        int | None,
        typer.Option(
            "--best",
            min=1,
            help="The first N in order of --sort; of requests at once a GPU where that is left out.",
            metavar="N",
            rich_help_panel=_ROWS,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Stop after N rows. [40 in a table]", metavar="N", rich_help_panel=_ROWS),
    ] = None,
    pareto: Annotated[
        str | None,
        typer.Option(
            "--frontier",
            help="For each context the most requests that fit at once and what limits them; only "
            "rows that no other beats. Contexts double from 1k on where no axis says them.",
            metavar="context,concurrency",
            autocompletion=lambda: ["context,concurrency"],
            rich_help_panel=_ROWS,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{', '.join(_FORMATS)} (parquet needs pyarrow). [by the name of -o, else text]",
            metavar="NAME",
            autocompletion=lambda: [*_FORMATS],
            rich_help_panel=_ROWS,
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write to this file.", metavar="FILE", rich_help_panel=_ROWS)
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            help="Context lengths to serve: 128k, a mix 0.8:8k,0.2:128k, or a histogram file.",
            rich_help_panel=WORKLOAD,
            metavar="LENGTHS",
        ),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            "--concurrency",
            help="Requests at once, over the whole deployment. [all that fit]",
            rich_help_panel=WORKLOAD,
            metavar="N",
        ),
    ] = None,
    confidence: Confidence = "0.99",
    prefix_states: PrefixStates = 0,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            help="Longest prompt to serve. [the longest the server admits]",
            rich_help_panel=WORKLOAD,
            metavar="TOKENS",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """A deployment over any axes: what the engine sizes at every point, and why it refuses where it does.

    Example: kvplan sweep --gpu b200 --tp-size 4 --over mem_fraction_static=0.70..0.90:0.05 --over engine=0.5.21,0.5.23
    """
    given, memory = given_of(ctx), MEMORY.of(ctx)
    if json and form is not None and form != "json":
        raise InputError(f"--json and --format {form[:40]}: give one of them")
    form = _format("json" if json else form, output)
    axes = [read_axis(text, given.profile.engine) for text in over or []]
    if pareto is not None:
        _check_frontier(pareto, concurrency, [axis.name for axis in axes], (sort, best))
        if not any(axis.name == "context" for axis in axes):
            axes.append(context_axis(given, axes))
    mix = None if context is None else parse_contexts(context)
    if not axes:
        raise InputError("give at least one axis, such as --over mem_fraction_static=0.70..0.90:0.02")
    share = read_confidence(confidence)
    points = Sweep(
        given,
        axes,
        memory,
        Workload(
            None if mix is None else mix._replace(confidence=share),
            None if concurrency is None else read_concurrency(concurrency, "sweep"),
            prefix_states,
            None if prompt is None else parse_count(prompt, "--prompt"),
        ),
    )
    keep = None if where is None else read_where(where, points.columns)
    ordered = sort or (_BEST if best is not None else "")
    order = read_order(ordered or _BEST, points.columns)
    for text in notes_of(points):
        note(ctx, text)

    from glm_kvplan.show.progress import counted

    rows: Iterable[Row] = counted(points, len(points), "points")
    if keep is not None:
        rows = filter(keep, rows)
    if pareto is not None:
        rows = frontier(points, rows)
    elif best is not None:
        rows = order.best(rows, best)
    elif sort is not None:
        rows = order.sorted(rows)
    try:
        if form in _STREAMED:
            _stream(points, rows, form, output, limit)
        else:
            most = limit or (MOST_SORTED if form == "json" else _SHOWN)
            _print(answer_sweep(points, rows, most, order=ordered, frontier=pareto is not None), form, output)
    except BrokenPipeError:  # the reader has left, and what is still buffered has nowhere to go
        drop_output()


def _stream(points: Sweep, rows: Iterable[Row], form: str, output: str | None, limit: int | None) -> None:
    """Write the rows one at a time: none is held."""
    from glm_kvplan.show import rows as streams
    from glm_kvplan.show.whole_file import destination

    fields = [streams.Field(column.name, column.kind) for column in points.columns]
    write: Any = {"csv": streams.write_csv, "jsonl": streams.write_jsonl, "parquet": streams.write_parquet}[form]
    with destination(output, binary=form == "parquet", partial=True) as stream:
        write(fields, rows if limit is None else islice(rows, limit), stream)


def _print(answer: SweepAnswer, form: str, output: str | None) -> None:
    """Write an answer that is held, as a page or JSON."""
    from glm_kvplan.answers.sweep.sweep_page import sweep_page
    from glm_kvplan.cli.language import spoken
    from glm_kvplan.show.whole_file import destination

    with destination(output) as opened:
        stream: Any = opened
        if form == "json":
            from glm_kvplan.show.json import document, print_json

            print_json(document("sweep", answer), stream)
        elif form == "md":
            from glm_kvplan.show.markdown import markdown

            stream.write(markdown(sweep_page(answer), spoken()))
        else:
            from glm_kvplan.show.text import print_page

            print_page(sweep_page(answer), stream if output else None, spoken())


def _format(form: str | None, output: str | None) -> str:
    """The output's form: as asked for, or by the file's name."""
    named = (output or "").rpartition(".")[2].lower()
    if form is None:
        form = named if named in _FORMATS else "text"
    check_form(form, _FORMATS)
    if form == "parquet":
        from glm_kvplan.show.rows import check_parquet

        if output in (None, "-"):
            raise InputError("--format parquet writes a file: add -o FILE.parquet")
        check_parquet()
    return form


def _check_frontier(pareto: str, concurrency: str | None, axes: list[str], ordered: tuple[object, ...]) -> None:
    if [part.strip() for part in pareto.split(",")] != ["context", "concurrency"]:
        raise InputError(f"--frontier {pareto[:60]!r}: write context,concurrency")
    if concurrency is not None or "concurrency" in axes:
        raise InputError("--frontier finds the most requests at once: leave concurrency out")
    if any(ordered):
        raise InputError("--frontier has an order of its own: leave --sort and --best out")
