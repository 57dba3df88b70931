"""The page of `kvplan report`: the verdict, sizes, charts with their numbers, flags, formulas, and what to paste."""

from glm_kvplan.engines.answer_head import deployment_title
from glm_kvplan.engines.report_parts import flags_section, footer, gpus_said, made_section
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer
from glm_kvplan.engines.sglang.answers.report_charts import (
    frontier_section,
    host_pools_section,
    map_section,
    prices_section,
    split_section,
)
from glm_kvplan.engines.sglang.answers.report_tables import (
    formulas_section,
    paste_section,
    sizes_section,
)
from glm_kvplan.engines.sglang.answers.report_verdict import verdict, wanted
from glm_kvplan.show.page import Line, Page
from glm_kvplan.show.said import Said, say


def report_page(answer: ReportAnswer) -> Page:
    head, starts = answer.head, answer.start.failure is None
    charts = (map_section, frontier_section, prices_section, split_section, host_pools_section)
    sections = [sizes_section(answer)]
    sections += [section for chart in charts if starts and (section := chart(answer)) is not None]
    sections += [flags_section(answer.choices), formulas_section(answer), paste_section(answer)]
    if answer.made.command:
        sections.append(made_section(head, answer.made))
    about = deployment_title(head.model.name, f"SGLang {head.engine}", gpus_said(head), head.gpu.assumed)
    return Page(
        title=say("Memory plan: {model}", model=head.model.name),
        lead=(
            Line(about),
            Line(head.layout, "muted"),
            Line(wanted(answer)),
        ),
        sections=tuple(sections),
        warnings=answer.warnings,
        notes=head.notes,
        footer=footer(head),
        verdict=verdict(answer),
        missing=tuple(_missing(answer).items()),
    )


def _missing(answer: ReportAnswer) -> dict[str, Said]:
    """Why a chart is not there, by its name."""
    start = answer.start
    if start.failure is not None:
        refused = say("the engine refuses to start, there is nothing to draw: {reason}", reason=start.failure.message)
        return dict.fromkeys(("map", "frontier", "prices", "split", "host"), refused)
    return {
        "host": say("HiCache is off; add --enable-hierarchical-cache"),
        "prices": say("no knob of this deployment can be moved by one unit"),
        "split": say("the radix cache is off, mamba_full_memory_ratio does nothing here"),
    }
