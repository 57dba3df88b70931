"""The pages of `kvplan validate`: predicted beside taken on the terminal, and the record a team can file."""

from glm_kvplan.engines.sglang.answers.pools_page import rank_lines, sizes_said
from glm_kvplan.engines.sglang.answers.validate_answer import ValidateAnswer
from glm_kvplan.engines.tensor_tables import compared_tensors, device_said, differences, measure_table, verdict_line
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Code, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import say


def validate_page(answer: ValidateAnswer, *, record: bool = False) -> Page:
    """Every tensor, the three measures, and the verdict; with `record` all that a team files."""
    if record:
        return _record(answer)
    head = answer.head
    lead = [*rank_lines(head.layout, answer.pp_size, answer.pp_rank, answer.layers, answer.sizes)]
    lead.append(
        Line(say("device: {device}; tensors built by {built_by}", device=device_said(answer), built_by=answer.built_by))
    )
    sections = (
        Section((compared_tensors(answer), *differences(answer)), say("Tensors"), quiet=True),
        Section((measure_table(answer), verdict_line(answer)), say("Measures"), quiet=True),
    )
    return Page(head.title, tuple(lead), sections, answer.warnings, head.notes)


def _record(answer: ValidateAnswer) -> Page:
    """Machine, versions, inputs, every tensor with its shape, the three measures and the verdict."""
    lead = (
        verdict_line(answer),
        Line(answer.head.title),
        *rank_lines(answer.head.layout, 0, 0, answer.layers, answer.sizes),
        Line(say("pipeline rank {rank}, layers {first}-{last}", rank=answer.pp_rank, first=answer.layers.start,
                 last=answer.layers.stop - 1)),
        Line(
            say("device: {device}, {size} B kept free", device=device_said(answer), size=whole(answer.keep_free_bytes))
        ),
        Line(
            say(
                "tensors built by {built_by}, {touched}, {seconds} s",
                built_by=answer.built_by,
                touched=say("zero-filled" if answer.touched else "not touched"),
                seconds=f"{answer.seconds:.2f}",
            )
        ),
        Line(say("sizes taken: {sizes}", sizes=sizes_said(answer.allocated_sizes))),
    )  # fmt: skip
    versions = Table(
        (Column(say("what")), Column("")), tuple(Row(pair) for pair in answer.environment.items()), head=False
    )
    flags = "\n".join(f"{name} = {value}" for name, value in answer.flags.items()) or "(none)"
    sections = (
        Section((versions,), say("Machine and versions")),
        Section((Code(flags),), say("Flags")),
        Section((compared_tensors(answer, shapes=True), *differences(answer)), say("Tensors")),
        Section((measure_table(answer),), say("Measures")),
    )
    return Page("kvplan validate", lead, sections, answer.warnings, answer.head.notes)
