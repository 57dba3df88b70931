"""`kvplan report`: one page (or one chart) that shows a plan to people."""

from typing import Annotated

import typer

from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, plan_of
from glm_kvplan.cli.workload_options import Checkpoints, Concurrency, Lengths, read_demand
from glm_kvplan.show.write import read_format, write_report


@takes(*DEPLOYMENT, MEMORY)
def report(
    ctx: typer.Context,
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
    context: Lengths = None,
    concurrency: Concurrency = None,
    checkpoints: Checkpoints = 0,
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
) -> int:
    """One page that shows a plan: verdict, memory map, frontier, prices, split, flags and formulas.

    Exit code 1: written, and the plan does not serve the workload.

    Example: kvplan report -o plan.html --gpu b200 --tp-size 4 --context 128k --concurrency 64
    """
    plan, given = plan_of(ctx), MEMORY.of(ctx)
    wanted = read_format(output, format, chart, lang)
    demand = read_demand(plan, context, concurrency, checkpoints)
    from glm_kvplan.answers.pictures.picture import picture

    seen = picture(plan, demand, given, read_host(plan, host_gib, pod_gib))
    write_report(seen, wanted)
    return 0 if seen.holds else 1
