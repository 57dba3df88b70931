"""Tables of tensors, whatever the engine: what is allocated, predicted beside taken, the measures, and the verdict."""

from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

from glm_kvplan.allocate.device import Device
from glm_kvplan.allocate.measure import Measure
from glm_kvplan.engines.tensors_shown import TensorFound, TensorShown
from glm_kvplan.show.format import decimal, whole
from glm_kvplan.show.page import Cell, Column, Line, Row, Table, heading
from glm_kvplan.show.said import Said, say


class Validated(Protocol):
    """What every engine's answer of `kvplan validate` has."""

    @property
    def tensors(self) -> tuple[TensorFound, ...]: ...
    @property
    def unexpected(self) -> tuple[str, ...]: ...
    @property
    def predicted_bytes(self) -> int: ...
    @property
    def taken_bytes(self) -> int: ...
    @property
    def measures(self) -> tuple[Measure, ...]: ...
    @property
    def ok(self) -> bool: ...
    @property
    def device(self) -> Device: ...
    @property
    def free_bytes(self) -> int | None: ...


def tensor_label(name: str, place: str) -> str:
    """A tensor's name, with its place where that is not the device."""
    return name if place == "device" else f"{name} ({place})"


def shape_said(shape: tuple[int, ...]) -> str:
    """`131136x1x576`."""
    return "x".join(map(str, shape))


def listed_tensors(tensors: tuple[TensorShown, ...]) -> Table:
    columns = (
        Column(say("tensor"), "code"),
        Column("n", "count"),
        Column(say("shape")),
        Column(say("dtype")),
        Column(say("bytes"), "bytes"),
        Column(say("budget")),
    )
    ordered = sorted(tensors, key=lambda tensor: _first(tensors, tensor.component))
    found: list[Row] = []
    for component, group in groupby(ordered, key=lambda tensor: tensor.component):
        found.append(heading(component))
        found += [
            Row(
                (
                    f" {tensor_label(tensor.name, tensor.place)}",
                    tensor.count,
                    shape_said(tensor.shape),
                    tensor.dtype,
                    tensor.nbytes,
                    say("pays") if tensor.charged else "-",
                )
            )
            for tensor in group
        ]
    return Table(columns, tuple(found))


def _first(tensors: tuple[TensorShown, ...], component: str) -> int:
    return next(number for number, tensor in enumerate(tensors) if tensor.component == component)


def verdict_line(answer: Validated) -> Line:
    """The verdict in one line; it rests on the tensors' own bytes alone."""
    if answer.ok:
        count = sum(row.head.count for row in answer.tensors)
        said = say("equal to the byte: {size} B in {count} tensors", size=whole(answer.taken_bytes), count=count)
        return Line(said, "strong")
    wrong = sum(not row.equal for row in answer.tensors) + len(answer.unexpected)
    return Line(say("not equal: {wrong} of {all} predictions fail", wrong=wrong, all=len(answer.tensors)), "bad")


def compared_tensors(answer: Validated, *, shapes: bool = False) -> Table:
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


def differences(answer: Validated) -> Iterator[Line]:
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


def measure_table(answer: Validated) -> Table:
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


def device_said(answer: Validated) -> Said:
    template = "{name} ({description})"
    if answer.free_bytes is not None:
        template += ", {left} free before"
    device = answer.device
    return say(template, name=device.name, description=device.description, left=decimal(answer.free_bytes or 0))
