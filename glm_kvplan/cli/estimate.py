"""`kvplan estimate`: what the caches cost."""

from typing import Annotated

import typer

from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.workload_options import Concurrency, Context, read_workload
from glm_kvplan.engines.sglang.sizing.estimate import estimate as make_estimate


@takes(*DEPLOYMENT)
def estimate(
    ctx: typer.Context,
    context: Context = None,
    concurrency: Concurrency = None,
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
    explain: Annotated[bool, typer.Option("--explain", help="Every number's formula, values and source.")] = False,
    json: Json = False,
) -> int:
    """What the caches cost: per token, per state slot, per request, per rank and in total.

    No GPU is asked and no memory is measured: these are the bytes that shapes need.

    Example: kvplan estimate --tp-size 8 --dp-size 8 --enable-dp-attention --kv-cache-dtype fp8_e4m3
    --context 128k --concurrency 64
    """
    plan = plan_of(ctx)
    workload = read_workload(plan, context, concurrency)
    answer, host = make_estimate(plan, workload), None
    if plan.deployment.enable_hierarchical_cache or host_gib is not None or pod_gib is not None:
        from glm_kvplan.engines.sglang.sizing.host_answer import host_answer

        given = read_host(plan.deployment, host_gib, pod_gib)
        host = host_answer(plan, answer.sizes, given._replace(prefix_tokens=workload.context))
    if json:
        from glm_kvplan.show.estimate_json import document
        from glm_kvplan.show.json_text import print_json

        print_json(document(plan, answer, host))
    else:
        from glm_kvplan.show.estimate_text import render

        render(plan, answer, host, explain=explain)
    return 0 if host is None or host.fits else 1
