"""`kvplan solve`: what the engine will size, and which limit binds."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.each_role import each_role
from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, All, Json, plan_of
from glm_kvplan.cli.workload_options import WORKLOAD, Confidence, read_mix, read_tokens
from glm_kvplan.engines.by_name import answering


@takes(*DEPLOYMENT, MEMORY)
@each_role
def solve(
    ctx: typer.Context,
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", help="Longest prompt to serve. [the longest the server admits]", metavar="TOKENS"),
    ] = None,
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            help="Count the requests of these lengths at once: 128k, a mix 0.8:8k,0.2:128k, or a histogram file.",
            rich_help_panel=WORKLOAD,
            metavar="LENGTHS",
        ),
    ] = None,
    confidence: Confidence = "0.99",
    prices: Annotated[bool, typer.Option("--prices", help="What one more unit of each knob costs or buys.")] = False,
    whole: All = False,
    json: Json = False,
) -> int:
    """What the engine will size on this GPU, which limit binds, and what stays free.

    With the two readings of a boot log (--pre-gib, --available-gib) the answer is the engine's own integers; without
    them the weights are estimated, and the answer says by how much it may be off.

    Exit code 1: the engine refuses to start so or dies while it allocates its pools, or the host pools do not fit.

    Example: kvplan solve --gpu b200 --tp-size 4 --pre-gib 176.25 --weights-gib 44.76
    """
    plan, given = plan_of(ctx), MEMORY.of(ctx)
    mix = read_mix(context, confidence)
    host = read_host(ctx, plan, host_gib, pod_gib, mix)
    longest = None if prompt is None else read_tokens(plan, prompt, "--prompt")
    made = answering(plan, "solve")
    answer = made.answer(plan, given, longest, host, mix=mix, with_prices=prices)
    print_answer("solve", answer, lambda: made.page(answer), json, brief=not whole)
    return 0 if answer.holds else 1
