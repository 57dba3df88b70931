"""`kvplan validate`: allocate the pools and confirm the byte counts."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from glm_kvplan.allocate.validation import Make, Validation
from glm_kvplan.allocate.validation import validate as run
from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.pools import Context, PpRank
from glm_kvplan.cli.workload_options import Concurrency, read_workload
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools, pools_of
from glm_kvplan.errors import InputError
from glm_kvplan.units import parse_size

_ALLOCATION = "Allocation"


@takes(*DEPLOYMENT)
def validate(
    ctx: typer.Context,
    device: Annotated[
        str,
        typer.Option(
            "--device", help="auto, cuda, cuda:N, cpu or meta.", rich_help_panel=_ALLOCATION, metavar="DEVICE"
        ),
    ] = "auto",
    keep_free: Annotated[
        str,
        typer.Option(
            "--keep-free", help="Memory to leave alone: 1GiB, 500MB.", rich_help_panel=_ALLOCATION, metavar="BYTES"
        ),
    ] = "1GiB",
    scale: Annotated[
        bool,
        typer.Option(
            "--scale", help="Shrink tokens, slots and requests in proportion to fit.", rich_help_panel=_ALLOCATION
        ),
    ] = False,
    no_touch: Annotated[
        bool, typer.Option("--no-touch", help="Do not fill with zeros.", rich_help_panel=_ALLOCATION)
    ] = False,
    engine_classes: Annotated[
        str | None,
        typer.Option(
            "--with", help="sglang: build the engine's own pools.", metavar="PACKAGE", rich_help_panel=_ALLOCATION
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a Markdown record.", rich_help_panel=_ALLOCATION)
    ] = None,
    context: Context = None,
    concurrency: Concurrency = None,
    pp_rank: PpRank = None,
    json: Json = False,
) -> int:
    """Allocate one rank's pools for real, and compare what was taken with what was predicted.

    Exit code 0: equal to the byte; 1: not equal; 2: the input cannot be used, or the pools do not fit.

    Example: kvplan validate --device meta --tp-size 4 --max-total-tokens 1000000 --max-mamba-cache-size 200
    --max-running-requests 40
    """
    plan = plan_of(ctx)
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        raise InputError(f"--report {report}: not a file in a directory that exists")
    pools = pools_of(plan, read_workload(plan, context, concurrency), pp_rank)
    found = _run(pools, device, parse_size(keep_free, "--keep-free"), scale, not no_touch, engine_classes)
    from glm_kvplan.answers.validate_answer import answer_validate
    from glm_kvplan.answers.validate_page import validate_page, validate_record

    answer = answer_validate(pools, found)
    if report is not None:
        from glm_kvplan.show.markdown import markdown
        from glm_kvplan.show.whole_file import destination

        with destination(str(report), option="--report") as file:
            file.write(markdown(validate_record(answer)))
    print_answer("validate", answer, lambda: validate_page(answer), json)
    return 0 if found.ok else 1


def _run(
    pools: RankPools, device: str, keep_free: int, scale: bool, touch: bool, package: str | None
) -> Validation[PoolSizes]:
    make: Make[PoolSizes] | None = None
    built_by = "torch"
    if package is not None:
        if package != "sglang":
            raise InputError(f"--with {package!r} is not known; use sglang")
        from glm_kvplan.engines.sglang.own_pools import EnginePools, check_release

        built_by = f"sglang {check_release(pools.rank.profile)}"
        make = partial(EnginePools, pools.rank)
    from glm_kvplan.show.progress import bytes_bar

    try:
        with bytes_bar("allocating") as (begin, advance):
            return run(
                pools.build,
                pools.sizes,
                shrink=lambda sizes, factor: sizes.scaled(factor, pools.plan.deployment.page_size),
                device=device,
                keep_free=keep_free,
                scale=scale,
                touch=touch,
                begin=begin,
                progress=advance,
                make=make,
                built_by=built_by,
            )
    except KeyboardInterrupt:
        print("kvplan: interrupted; everything was freed", file=sys.stderr)
        raise
