"""The pages of `kvplan validate`: predicted beside taken on the terminal, and the record a team can file."""

from collections.abc import Iterator

from glm_kvplan.answers.validate_answer import TensorFound, ValidateAnswer
from glm_kvplan.engines.sglang.answers.pools_page import rank_lines, shape_said, sizes_said, tensor_label
from glm_kvplan.show.format import decimal, whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, say


def validate_page(answer: ValidateAnswer) -> Page:
    """Every tensor, the three measures, and the verdict."""
    head = answer.head
    lead = [*rank_lines(head.layout, answer.pp_size, answer.pp_rank, answer.layers, answer.sizes)]
    lead.append(
        Line(say("device: {device}; tensors built by {built_by}", device=_device(answer), built_by=answer.built_by))
    )
    sections = (
        Section("tensors", (_tensor_table(answer), *_differences(answer)), say("Tensors"), quiet=True),
        Section("measures", (_measure_table(answer), verdict_line(answer)), say("Measures"), quiet=True),
    )
    return Page(head.title, tuple(lead), sections, answer.warnings, head.notes)


def validate_record(answer: ValidateAnswer) -> Page:
    """Machine, versions, inputs, every tensor with its shape, the three measures and the verdict."""
    lead = (
        verdict_line(answer),
        Line(answer.head.title),
        *rank_lines(answer.head.layout, 0, 0, answer.layers, answer.sizes),
        Line(say("pipeline rank {rank}, layers {first}-{last}", rank=answer.pp_rank, first=answer.layers.start,
                 last=answer.layers.stop - 1)),
        Line(say("device: {device}, {size} B kept free", device=_device(answer), size=whole(answer.keep_free_bytes))),
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
        Section("environment", (versions,), say("Machine and versions")),
        Section("flags", (Code(flags),), say("Flags")),
        Section("tensors", (_tensor_table(answer, shapes=True), *_differences(answer)), say("Tensors")),
        Section("measures", (_measure_table(answer),), say("Measures")),
    )
    return Page("kvplan validate", lead, sections, answer.warnings, answer.head.notes)


def verdict_line(answer: ValidateAnswer) -> Line:
    """The verdict in one line; it rests on the tensors' own bytes alone."""
    if answer.ok:
        count = sum(row.head.count for row in answer.tensors)
        said = say("equal to the byte: {size} B in {count} tensors", size=whole(answer.taken_bytes), count=count)
        return Line(said, "strong")
    wrong = sum(not row.equal for row in answer.tensors) + len(answer.unexpected)
    return Line(say("not equal: {wrong} of {all} predictions fail", wrong=wrong, all=len(answer.tensors)), "bad")


def _tensor_table(answer: ValidateAnswer, *, shapes: bool = False) -> Table:
    details = (Column("n", "count"), Column(say("dtype")), Column(say("shape"), "code")) if shapes else ()
    columns = (
        Column(say("tensor"), "code"),
        *details,
        Column(say("predicted, B"), "bytes"),
        Column(say("taken, B"), "bytes"),
        Column(""),
    )
    found = [Row(tuple(_tensor_cells(row, shapes))) for row in answer.tensors]
    blank = (None,) * len(details)
    total = Row((say("total"), *blank, answer.predicted_bytes, answer.taken_bytes, ""), "strong")
    return Table(columns, (*found, total))


def _tensor_cells(row: TensorFound, shapes: bool) -> Iterator[Cell]:
    tensor = row.head
    yield Cell(tensor.name if shapes else tensor_label(tensor.name, tensor.place))
    if shapes:
        yield from (Cell(tensor.count), Cell(tensor.dtype), Cell(str(list(tensor.shape))))
    yield Cell(tensor.nbytes)
    yield Cell(say("absent") if row.taken is None else row.taken.nbytes)
    yield Cell(say("equal"), "good") if row.equal else Cell(say("differs"), "bad")


def _differences(answer: ValidateAnswer) -> Iterator[Line]:
    for row in answer.tensors:
        if not row.equal and row.taken is not None:
            tensor, taken = row.head, row.taken
            yield Line(
                say(
                    "{name}: {count} x {dtype} {shape} predicted, {found} x {found_dtype} {found_shape} found",
                    name=tensor.name,
                    count=tensor.count,
                    dtype=tensor.dtype,
                    shape=shape_said(tensor.shape),
                    found=taken.tensors,
                    found_dtype=taken.dtype,
                    found_shape=shape_said(taken.shape),
                ),
                "bad",
            )
    for name in answer.unexpected:
        yield Line(say("not predicted: {name}", name=name), "bad")


def _measure_table(answer: ValidateAnswer) -> Table:
    columns = (
        Column(say("measure")),
        Column(say("bytes"), "bytes"),
        Column(say("to tensors"), "byte_change"),
        Column(say("explained by")),
    )
    found = []
    for measure in answer.measures:
        template = "NOT explained: {explanation}" if measure.explained is False else "{explanation}"
        nbytes = "-" if measure.nbytes is None else measure.nbytes
        difference = "-" if measure.difference is None else measure.difference
        found.append(Row((measure.name, nbytes, difference, say(template, explanation=measure.explanation))))
    return Table(columns, tuple(found))


def _device(answer: ValidateAnswer) -> Said:
    template = "{name} ({description})"
    if answer.free_bytes is not None:
        template += ", {free} free before"
    device = answer.device
    return say(template, name=device.name, description=device.description, free=decimal(answer.free_bytes or 0))
