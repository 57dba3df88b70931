"""`kvplan report`: one page (or one chart) that shows a plan to people."""

from typing import Annotated

import typer

from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.memory_options import AvailableGib, Checkpoint, DraftWeightsGib, PreGib, WeightsGib
from glm_kvplan.cli.options import with_plan
from glm_kvplan.planner import Plan
from glm_kvplan.report.write import read_format, write_report
from glm_kvplan.sizing.boot import MemoryGiven
from glm_kvplan.sizing.estimate import default_workload
from glm_kvplan.sizing.workload import Demand, contexts, parse_contexts
from glm_kvplan.units import parse_count

_WORKLOAD = "Workload"


@with_plan
def report(
    plan: Plan,
    output: Annotated[
        str, typer.Option("-o", "--output", help="File to write (- for standard output).", metavar="FILE")
    ],
    format: Annotated[
        str | None,
        typer.Option("--format", help="html, md, png or svg. [by the file's name, else html]", metavar="NAME"),
    ] = None,
    chart: Annotated[
        str | None,
        typer.Option("--chart", help="For png and svg: map, frontier, prices, split or host. [map]", metavar="NAME"),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="Words of the report: en or zh.", metavar="en|zh")] = "en",
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            help="Context lengths: 128k, a mix 0.8:8k,0.2:128k, or a histogram file. [128k]",
            rich_help_panel=_WORKLOAD,
            metavar="LENGTHS",
        ),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            "--concurrency",
            help="Requests at once, over the whole deployment. [--max-running-requests, or 1]",
            rich_help_panel=_WORKLOAD,
            metavar="N",
        ),
    ] = None,
    checkpoints: Annotated[
        int,
        typer.Option(
            "--checkpoints",
            help="Shared-prefix states to keep per conversation.",
            rich_help_panel=_WORKLOAD,
            metavar="N",
        ),
    ] = 0,
    pre_gib: PreGib = None,
    available_gib: AvailableGib = None,
    weights_gib: WeightsGib = None,
    draft_weights_gib: DraftWeightsGib = None,
    checkpoint: Checkpoint = None,
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
) -> int:
    """One page that shows a plan: verdict, memory map, frontier, prices, split, flags and formulas.

    Exit code 1: written, and the plan does not serve the workload.

    Example: kvplan report -o plan.html --gpu b200 --tp-size 4 --context 128k --concurrency 64
    """
    wanted = read_format(output, format, chart, lang)
    given = MemoryGiven(pre_gib, available_gib, weights_gib, draft_weights_gib, checkpoint)
    usual = default_workload(plan, None, None if concurrency is None else parse_count(concurrency, "--concurrency"))
    lengths = contexts([(usual.context, 1)]) if context is None else parse_contexts(context)
    demand = Demand(lengths, usual.concurrency, checkpoints)
    from glm_kvplan.pictures.picture import picture

    seen = picture(plan, demand, given, read_host(plan.deployment, host_gib, pod_gib))
    write_report(seen, wanted)
    return 0 if seen.holds else 1
