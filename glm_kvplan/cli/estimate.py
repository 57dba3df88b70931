"""`kvplan estimate`: what the caches cost."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.each_role import each_role
from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, All, Json, plan_of
from glm_kvplan.cli.workload_options import Concurrency, Confidence, Lengths, read_held
from glm_kvplan.engines.by_name import answering


@takes(*DEPLOYMENT)
@each_role
def estimate(
    ctx: typer.Context,
    context: Lengths = None,
    concurrency: Concurrency = None,
    confidence: Confidence = "0.99",
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
    explain: Annotated[bool, typer.Option("--explain", help="Every number's formula, values and source.")] = False,
    whole: All = False,
    json: Json = False,
) -> int:
    """What the caches cost: per token, per state slot, per request, per rank and in total.

    No GPU is asked and no memory is measured: these are the bytes that shapes need. Of a mix of lengths they are those
    that hold for a share of the time (--confidence), and the mean is said beside them.

    Exit code 1: they do not fit beside the weights of the GPU named, or on the host.

    Example: kvplan estimate --tp-size 8 --dp-size 8 --enable-dp-attention --kv-cache-dtype fp8_e4m3
    --context 128k --concurrency 64
    """
    plan = plan_of(ctx)
    workload = read_held(plan, context, concurrency, confidence)
    made = answering(plan, "estimate")
    answer = made.answer(plan, workload, read_host(ctx, plan, host_gib, pod_gib))
    print_answer("estimate", answer, lambda: made.page(answer, explain=explain), json, brief=not (whole or explain))
    return 0 if answer.holds else 1
