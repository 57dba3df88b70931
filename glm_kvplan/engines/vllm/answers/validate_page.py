"""The pages of `kvplan validate` of a vLLM launch: predicted beside taken, and the record a team can file."""

from glm_kvplan.engines.tensor_tables import compared_tensors, device_said, differences, measure_table, shape_said
from glm_kvplan.engines.vllm.answers.pools_page import blocks_said
from glm_kvplan.engines.vllm.answers.validate_answer import ValidateAnswer
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import say


def validate_page(answer: ValidateAnswer, *, record: bool = False) -> Page:
    """The tensor, the views of it, the three measures, and the verdict; with `record` all that a team files."""
    head = answer.head
    lead = [
        Line(head.layout, "muted"),
        Line(blocks_said(answer.allocated_sizes, answer.block_bytes, answer.block_tokens)),
        Line(
            say("device: {device}; tensors built by {built_by}", device=device_said(answer), built_by=answer.built_by)
        ),
    ]
    sections = [
        Section((compared_tensors(answer, shapes=record), *differences(answer)), say("Tensors"), quiet=True),
        Section((_views(answer),), say("Views of it"), quiet=True),
        Section((measure_table(answer), _verdict(answer)), say("Measures"), quiet=True),
    ]
    if record:
        versions = Table(
            (Column(say("what")), Column("")), tuple(Row(pair) for pair in answer.environment.items()), head=False
        )
        flags = "\n".join(f"{name} = {value}" for name, value in answer.flags.items()) or "(none)"
        sections = [
            Section((versions,), say("Machine and versions")),
            Section((Code(flags),), say("Flags")),
            *sections,
        ]
    title = "kvplan validate" if record else head.title
    lead = [_verdict(answer), Line(head.title), *lead] if record else lead
    return Page(title, tuple(lead), tuple(sections), answer.warnings, head.notes)


def _views(answer: ValidateAnswer) -> Table:
    columns = (
        Column(say("view")),
        Column(say("layers"), "count"),
        Column(say("shape of a layer")),
        Column(say("dtype")),
        Column(""),
    )
    rows = (
        Row(
            (
                say(view.name),
                view.layers,
                shape_said(view.shape),
                view.dtype,
                Cell(say("equal"), "good") if view.equal else Cell(say("differs"), "bad"),
            )
        )
        for view in answer.views
    )
    return Table(columns, tuple(rows))


def _verdict(answer: ValidateAnswer) -> Line:
    """The verdict in one line: the tensor's own bytes, and that every view lies in it as predicted."""
    if answer.ok:
        said = say(
            "equal to the byte: {size} B in one tensor, every layer's view inside it", size=whole(answer.taken_bytes)
        )
        return Line(said, "strong")
    wrong = sum(not row.equal for row in answer.tensors) + len(answer.unexpected)
    wrong += sum(not view.equal for view in answer.views)
    count = len(answer.tensors) + len(answer.views)
    return Line(say("not equal: {wrong} of {all} predictions fail", wrong=wrong, all=count), "bad")
