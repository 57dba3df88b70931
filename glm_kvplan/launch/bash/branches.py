"""Branches of a script: the one that is taken, or every one where that is not known."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.leaving import Leave, Left, Truth, frame_of
from glm_kvplan.launch.bash.syntax import Body, Case
from glm_kvplan.launch.bash.values import Scalar, Value, first_of, joined, mark_of, text_of, weight
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter


def conditional(shell: "Interpreter", branches: Sequence[tuple[Body, Body]]) -> Truth:
    """`if` from one of its conditions on."""
    if not branches:
        return True
    test, body = branches[0]
    status = shell.tested(test)
    if isinstance(status, Mark):
        return branched(shell, status, [lambda: shell.run_body(body), lambda: conditional(shell, branches[1:])])
    return shell.run_body(body) if status else conditional(shell, branches[1:])


def alternatives(shell: "Interpreter", found: Case) -> Truth:
    """`case`."""
    subject = shell.expander.scalar(found.word.parts, found.word.line)
    mark = mark_of(subject)
    text = text_of(subject) if mark is None else None
    ways: list[Callable[[], Truth]] = []
    for nodes, body in found.alternatives:
        fits = may_fit = False
        for node in nodes:
            pattern = shell.expander.pattern(node.parts, node.line)
            if isinstance(pattern, Mark):
                mark, may_fit = mark or pattern, True
            elif pattern.takes_everything or (text is not None and pattern.matches(text)):
                fits = True
            else:
                may_fit |= text is None
        if fits and not ways:
            return shell.run_body(body)
        if fits or may_fit:
            ways.append(partial(shell.run_body, body))
        if fits:
            break
    else:
        ways.append(lambda: True)
    if mark is None:
        return True
    return branched(shell, shell.doubt(mark, found.line), ways)


def branched(shell: "Interpreter", mark: Mark, ways: Sequence[Callable[[], Truth]]) -> Truth:
    """Go every way, each in a layer of its own, and join what comes out; a way that ends the script is left."""
    going: list[tuple[Mapping[str, Value], Truth, Leave | None]] = []
    outer, before = shell.output, shell.status
    outputs: list[Scalar] = []
    for way in ways:
        shell.scope.push()
        shell.deciding.append(mark)
        shell.status = before
        printed: list[Piece] = []
        shell.output = None if outer is None else printed
        left: Leave | None = None
        try:
            status = way()
        except Leave as leave:
            left, status = leave, leave.status
        finally:
            shell.deciding.pop()
            changes = shell.scope.pop()
            shell.output = outer
        if left is None or frame_of(shell.leaving, left) is not None:
            going.append((changes, status, left))
            outputs.append(tuple(printed))
    if not going:
        raise Leave("exit")
    shell.grow(sum(256 * weight(value) for changes, _, _ in going for value in changes.values()))
    shell.scope.join([changes for changes, _, _ in going], mark, shell.get)
    if any(outputs):
        shell.printed(first_of(joined(outputs, "", mark), ""))
    return _left_over(shell, [(status, left) for _, status, left in going], mark)


def _left_over(shell: "Interpreter", ways: Sequence[tuple[Truth, Leave | None]], mark: Mark) -> Truth:
    """The status after branches. Where each has left, the one that leaves least counts; the others may have left."""
    stays = [status for status, left in ways if left is None]
    leaves = [left for _, left in ways if left is not None]
    least = None if stays else min(leaves, key=lambda left: left.reach).way
    for left in leaves:
        frame = frame_of(shell.leaving, left)
        if frame is not None and left.way != least:
            frame.left.append(Left(mark, left.kind, left.status))
    statuses = stays or [left.status for left in leaves if left.way == least]
    status = statuses[0] if all(one == statuses[0] for one in statuses) else mark
    if least is not None:
        raise Leave(*least, status)
    return status
