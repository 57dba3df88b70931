"""`kvplan report`: one page (or one chart) that shows a plan to people."""

import os
import shlex
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from glm_kvplan.cli.answer_forms import check_form
from glm_kvplan.cli.answering import note
from glm_kvplan.cli.host_options import HostGib, PodGib, read_host
from glm_kvplan.cli.language import spoken
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, plan_of
from glm_kvplan.cli.workload_options import Concurrency, Confidence, Lengths, PrefixStates, read_demand
from glm_kvplan.engines.by_name import answering, assumed_engine, told_engine
from glm_kvplan.engines.flag_words import flag_word
from glm_kvplan.engines.protocol import Plan
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.show.page import Line, Page
from glm_kvplan.show.page_file import CHART_FORMATS, FORMATS, page_bytes
from glm_kvplan.show.said import ENGLISH
from glm_kvplan.show.text import print_page
from glm_kvplan.show.whole_file import destination

_CHARTS = ("map", "frontier", "prices", "split", "host")


@takes(*DEPLOYMENT, MEMORY)
def report(
    ctx: typer.Context,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="File to write (- for standard output).", metavar="FILE")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="html, md, png or svg. [by the file's name, else html]",
            metavar="NAME",
            autocompletion=lambda: [*FORMATS],
        ),
    ] = None,
    chart: Annotated[
        str | None,
        typer.Option(
            "--chart",
            help="For png and svg: map, frontier, prices, split or host. [map]",
            metavar="NAME",
            autocompletion=lambda: [*_CHARTS],
        ),
    ] = None,
    context: Lengths = None,
    concurrency: Concurrency = None,
    confidence: Confidence = "0.99",
    prefix_states: PrefixStates = 0,
    host_gib: HostGib = None,
    pod_gib: PodGib = None,
) -> int:
    """One page that shows a plan: verdict, memory map, frontier, prices, split, flags and formulas.

    The verdict and the file's name are printed. SOURCE_DATE_EPOCH sets the day that the page names.

    Exit code 1: written, and no flags on these GPUs serve the workload.

    Example: kvplan report -o plan.html --gpu b200 --tp-size 4 --context 128k --concurrency 64
    """
    if output is None:
        raise InputError("kvplan report writes a file: add -o plan.html (or plan.md; - for standard output)")
    plan, given = plan_of(ctx), MEMORY.of(ctx)
    wanted, words = _read_format(output, format, chart), spoken()
    demand = read_demand(plan, context, concurrency, prefix_states, confidence)
    made = answering(plan, "report")
    host = read_host(ctx, plan, host_gib, pod_gib)
    answer = made.answer(plan, demand, given, host, command=_command(ctx, plan), day=_day())
    page = made.page(answer)
    data, remark = page_bytes(page, words, wanted.format, wanted.chart)
    if remark is not None:
        note(ctx, remark)
    with destination(output, binary=True) as stream:
        stream.write(data)
    if wanted.path is not None and page.verdict is not None:
        print_page(Page("", (Line(page.verdict.text, page.verdict.tone), Line(output)), (), quiet=True), words=words)
    return 0 if answer.holds else 1


def _command(ctx: typer.Context, plan: Plan) -> str:
    """The command as one would type it again, an option a line: a launch command after `--` by the memory flags that
    were read of it, since it may hold secrets.
    """
    lines = ["kvplan"]
    for word in map(shlex.quote, map(without_userinfo, ctx.obj["words"])):
        if word.startswith("-"):
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    if ctx.obj["launch"] is not None:
        engine = plan.given.profile.engine
        named = [word.partition("=")[2] or after for word, after in pairwise((*ctx.obj["words"], ""))
                 if word.partition("=")[0] == "--engine"]  # fmt: skip
        if engine is not assumed_engine() and not (named and told_engine(named[-1])):
            lines.append(f"--engine {engine.name}-{plan.given.profile.base_release}")  # the launch told it
        known = {flag.name: flag for flag in engine.flags}
        found = [flag_word(known, name, value) for name, value in plan.given.flags.items()]
        found += [f"--env {shlex.quote(f'{name}={value}')}" for name, value in plan.given.environment.items()]
        lines += [word for word in found if word and word not in lines]
    if (language := spoken().language) != ENGLISH.language:
        lines.append(f"--lang {language}")
    return " \\\n  ".join(lines)


def _day() -> str:
    """Today, or the day of SOURCE_DATE_EPOCH (seconds, as builds that are to be the same again set it)."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        now = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError("SOURCE_DATE_EPOCH: give whole seconds since 1970") from None
    return now.date().isoformat()


class _Wanted(NamedTuple):
    """What to write: `path` None is standard output, `chart` counts for png and svg."""

    path: Path | None
    format: str
    chart: str


def _read_format(output: str, format: str | None, chart: str | None) -> _Wanted:
    """The user's words, checked before anything is computed. Raises InputError."""
    path = None if output == "-" else Path(output)
    suffix = "" if path is None else path.suffix.lower()
    chosen = format or next((name for name, suffixes in FORMATS.items() if suffix in suffixes), "html")
    check_form(chosen, [*FORMATS])
    if chart is not None and chosen not in CHART_FORMATS:
        raise InputError(f"--chart {chart}: a single chart is written as png or svg; a {chosen} report has them all")
    if chart is not None and chart not in _CHARTS:
        raise InputError(f"--chart {chart!r}: one of {', '.join(_CHARTS)}")
    if path is None and chosen == "png":
        raise InputError("-o -: a png is not text; name a file")
    if path is not None and path.is_dir():
        raise InputError(f"-o {path}: is a directory; name a file in it")
    if path is not None and not path.parent.is_dir():
        raise InputError(f"-o {path}: there is no directory {path.parent}")
    if chosen != "md":
        from glm_kvplan.show.drawing_style import require_charts

        require_charts()
    return _Wanted(path, chosen, chart or _CHARTS[0])
