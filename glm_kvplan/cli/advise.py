"""`kvplan advise`: which flags serve a workload."""

from typing import Annotated, Any

import typer

from glm_kvplan.cli.answering import note, print_answer
from glm_kvplan.cli.completions import tried
from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, All, Json, plan_of
from glm_kvplan.cli.workload_options import Concurrency, Confidence, Lengths, PrefixStates, read_demand
from glm_kvplan.engines.by_name import answering
from glm_kvplan.engines.fleets import MOST_GPUS
from glm_kvplan.engines.protocol import Plan
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import cards_in
from glm_kvplan.reading.secret_words import quoted
from glm_kvplan.show.format import count
from glm_kvplan.show.said import say
from glm_kvplan.units import parse_count
from glm_kvplan.workload import Demand

_SEARCH = "Search for a layout"
MOST_SAVED = 5000  # context lengths of a deployment file


@takes(*DEPLOYMENT, MEMORY)
def advise(
    ctx: typer.Context,
    context: Lengths = None,
    concurrency: Concurrency = None,
    confidence: Confidence = "0.99",
    prefix_states: PrefixStates = 0,
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
    gpus: Annotated[
        str | None,
        typer.Option(
            "--gpus",
            help="Search layouts on so many GPUs: 8, or 8,16,32; the cheapest that serves wins.",
            rich_help_panel=_SEARCH,
            metavar="N,...",
        ),
    ] = None,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            help="Values to try beside your own, kv-cache-dtype=fp8_e4m3,bfloat16; may be repeated. Without --gpus: "
            "of the state's dtype alone.",
            rich_help_panel=_SEARCH,
            metavar="FLAG=VALUE,...",
            autocompletion=tried,
        ),
    ] = None,
    per_host: Annotated[
        int | None,
        typer.Option(
            "--gpus-per-host",
            help="With --gpus: GPUs of one host. [8; as the card says]",
            rich_help_panel=_SEARCH,
            min=1,
            max=MOST_GPUS,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files of --launch-out and --save.", rich_help_panel=_SEARCH)
    ] = False,
    launch_out: Annotated[
        str | None,
        typer.Option(
            "--launch-out",
            help="With --gpus: write the launch command of a server there.",
            rich_help_panel=_SEARCH,
            metavar="FILE",
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            help="With --gpus: write a deployment file of a server there, for `kvplan check`.",
            rich_help_panel=_SEARCH,
            metavar="FILE",
        ),
    ] = None,
    whole: All = False,
    json: Json = False,
) -> int:
    """Which flags serve a workload on this GPU and layout, proved by solving them; or how many GPUs it takes.

    Exit code 1: no flags on these GPUs do; layouts that would are listed.

    Example: kvplan advise --gpu h200 --tp-size 8 --context 0.8:8k,0.2:128k --concurrency 200
    """
    plan, given = plan_of(ctx), MEMORY.of(ctx)
    demand = read_demand(plan, context, concurrency, prefix_states, confidence)
    host = read_host(ctx, plan, host_gib, pod_gib)
    if save is not None and len(demand.contexts.lengths) > MOST_SAVED:
        raise InputError(f"--save: a deployment file takes {MOST_SAVED:,} lengths; join these into fewer bins")
    asked = _tries(plan, tries or [])
    if gpus is not None:
        made = answering(plan, "fleet")
        answer = made.answer(plan, demand, given, _numbers(gpus), asked, per_host, host)
        _note_load(ctx, concurrency, demand)
        if answer.best is not None:
            _write(answer.best, launch_out, save, force)
        print_answer("advise --gpus", answer, lambda: made.page(answer), json, brief=not whole)
        return 0 if answer.holds else 1
    if per_host or launch_out or save:
        raise InputError("--gpus-per-host, --launch-out and --save go with --gpus")
    made = answering(plan, "advise")
    answer = made.answer(plan, demand, given, asked, host)
    _note_load(ctx, concurrency, demand)
    print_answer("advise", answer, lambda: made.page(answer), json, brief=not whole)
    return 0 if answer.holds else 1


def _note_load(ctx: typer.Context, concurrency: str | None, demand: Demand) -> None:
    if concurrency is None:
        template = "no --concurrency is given: this is for {requests} at once; --concurrency and --context say the load"
        note(ctx, say(template, requests=count(demand.concurrency, "request")))


def _numbers(text: str) -> list[int]:
    several = cards_in(text.strip())
    if several is not None:
        raise InputError(f"--gpus {text[:60]} names a card, too: --gpus {several[0]} --gpu {several[1]}")
    if not text.strip().startswith("-") and any(dash in text for dash in ("-", "..", ":")):
        raise InputError(f"--gpus {text[:60]}: give the numbers to try one by one, such as 1,2,4,8")
    numbers = [parse_count(word, "--gpus") for word in text.split(",")]
    if max(numbers) > MOST_GPUS:
        raise InputError(f"--gpus {text[:60]}: at most {MOST_GPUS}")
    return numbers


def _write(best: Any, launch_out: str | None, save: str | None, force: bool) -> None:
    if launch_out is not None:
        from glm_kvplan.show.whole_file import destination

        with destination(launch_out, replace=force, option="--launch-out") as file:
            if best.left_out:
                file.write(f"# not in it, for you to add: {', '.join(best.left_out)}\n")
            file.write(best.command + "\n")
    if save is not None:
        from glm_kvplan.engines import saved_plan

        saved_plan.save(save, saved_plan.to_yaml(best.plan_file), force=force)


def _tries(plan: Plan, texts: list[str]) -> dict[str, list[object]]:
    """The values of `--try FLAG=VALUE,...` by flag. Raises InputError."""
    engine = plan.given.profile.engine
    flags = {flag.name: flag for flag in engine.flags}
    found: dict[str, list[object]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        known = flags.get(name.strip().lstrip("-").replace("-", "_"))
        if known is None or not equals:
            raise InputError(f"--try {quoted(text)}: give FLAG=VALUE,... of a flag of the engine's memory")
        several = [values] if known.kind == "json" else values.split(",")
        found.setdefault(known.name, []).extend(engine.read_flag(known, value.strip()) for value in several)
    return found
