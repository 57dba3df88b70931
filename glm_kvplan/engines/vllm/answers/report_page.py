"""The page of `kvplan report` of a vLLM launch: the verdict, the boot line and what it means, charts, what to paste."""

from glm_kvplan.engines.answer_head import deployment_title
from glm_kvplan.engines.report_parts import flags_section, footer, gpus_said, made_section
from glm_kvplan.engines.vllm.answers.memory_lines import memory_line
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer
from glm_kvplan.engines.vllm.answers.report_charts import frontier_section, map_section, prices_section
from glm_kvplan.engines.vllm.answers.report_tables import formulas_section, paste_section
from glm_kvplan.engines.vllm.answers.report_verdict import verdict, wanted
from glm_kvplan.engines.vllm.answers.solve_page import sections
from glm_kvplan.show.page import Line, Page
from glm_kvplan.show.said import Said, say


def report_page(answer: ReportAnswer) -> Page:
    head = answer.head
    found = [*sections(answer.start)]
    if answer.start.holds:
        found += [map_section(answer), frontier_section(answer)]
    found += prices_section(answer)
    found += [flags_section(answer.choices), formulas_section(answer), paste_section(answer)]
    if answer.made.command:
        found.append(made_section(head, answer.made))
    engine = f"vLLM {head.engine.removeprefix('vllm-')}"
    about = deployment_title(head.model.name, engine, gpus_said(head), head.gpu.assumed)
    return Page(
        title=say("Memory plan: {model}", model=head.model.name),
        lead=(
            Line(about),
            Line(head.layout, "muted"),
            Line(memory_line(answer.start.memory)),
            Line(wanted(answer)),
        ),
        sections=tuple(found),
        warnings=answer.warnings,
        notes=head.notes,
        footer=footer(head),
        verdict=verdict(answer),
        missing=tuple(_missing(answer).items()),
    )


def _missing(answer: ReportAnswer) -> dict[str, Said]:
    """Why a chart is not there, by its name."""
    failure = answer.start.failure
    if failure is not None:
        refused = say("the engine refuses to start, there is nothing to draw: {reason}", reason=failure.reason)
        return dict.fromkeys(("map", "frontier", "prices", "split", "host"), refused)
    return {
        "host": say("no host memory of vLLM is planned"),
        "prices": say("no knob of this deployment can be moved by one unit"),
        "split": say("vLLM deals out no memory between tokens and states: all its blocks are alike"),
    }
