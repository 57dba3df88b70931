"""`kvplan validate`: allocate the pools and confirm the byte counts."""

from pathlib import Path
from typing import Annotated

import typer

from glm_kvplan.allocate.validation import Allocating
from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.completions import devices, packages
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.pools import Context, PpRank
from glm_kvplan.cli.workload_options import Concurrency, Confidence, read_held
from glm_kvplan.engines.by_name import answering
from glm_kvplan.errors import InputError
from glm_kvplan.units import parse_size

_ALLOCATION = "Allocation"


@takes(*DEPLOYMENT)
def validate(
    ctx: typer.Context,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            help="auto, cuda, cuda:N, cpu or meta.",
            rich_help_panel=_ALLOCATION,
            metavar="DEVICE",
            autocompletion=devices,
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
            "--with",
            help="The engine's package: let it build what is compared.",
            metavar="PACKAGE",
            autocompletion=packages,
            rich_help_panel=_ALLOCATION,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Also write a Markdown record.", rich_help_panel=_ALLOCATION, metavar="FILE"
        ),
    ] = None,
    context: Context = None,
    concurrency: Concurrency = None,
    confidence: Confidence = "0.99",
    pp_rank: PpRank = None,
    json: Json = False,
) -> int:
    """Allocate one rank's pools for real, and compare what was taken with what was predicted.

    Exit code 0: equal to the byte; 1: not equal; 2: the input cannot be used, or the pools do not fit.

    Example: kvplan validate --device meta --tp-size 4 --max-total-tokens 1000000 --max-mamba-cache-size 200
    --max-running-requests 40
    """
    plan = plan_of(ctx)
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise InputError(f"-o {output}: not a file in a directory that exists")
    workload = read_held(plan, context, concurrency, confidence)
    made = answering(plan, "validate")
    how = Allocating(device, parse_size(keep_free, "--keep-free"), scale, not no_touch, engine_classes)
    from glm_kvplan.show.progress import bytes_bar

    try:
        with bytes_bar("allocating") as (begin, advance):
            answer = made.answer(plan, workload, pp_rank, how._replace(begin=begin, progress=advance))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; everything was freed") from None
    if output is not None:
        from glm_kvplan.cli.language import spoken
        from glm_kvplan.show.markdown import markdown
        from glm_kvplan.show.whole_file import destination

        with destination(str(output)) as file:
            file.write(markdown(made.page(answer, record=True), spoken()))
    print_answer("validate", answer, lambda: made.page(answer), json)
    return 0 if answer.ok else 1
