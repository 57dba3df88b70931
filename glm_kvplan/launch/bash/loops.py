"""Loops of a script: followed round by round as far as their conditions are known."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.assignments import store
from glm_kvplan.launch.bash.branches import branched
from glm_kvplan.launch.bash.leaving import Leave, Truth
from glm_kvplan.launch.bash.syntax import Body, CountingFor, For, Loop
from glm_kvplan.launch.bash.truth import negated, number_holds
from glm_kvplan.launch.bash.values import Scalar, mark_of
from glm_kvplan.launch.marked_words import Mark, Piece

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter


def while_loop(shell: "Interpreter", found: Loop) -> Truth:
    def holds() -> Truth:
        status = shell.tested(found.condition)
        return negated(status) if found.until else status

    return _followed(shell, holds, lambda: _round(shell, found.body))


def counting_loop(shell: "Interpreter", found: CountingFor) -> Truth:
    """`for ((start; test; step))`."""

    def one_round() -> tuple[bool, Truth]:
        goes_on, status = _round(shell, found.body)
        if goes_on:
            shell.expander.calculated(found.step, found.line)
        return goes_on, status

    shell.expander.calculated(found.start, found.line)
    return _followed(shell, lambda: not found.test or number_holds(shell, found.test, found.line), one_round)


def _followed(shell: "Interpreter", holds: Callable[[], Truth], one_round: Callable[[], tuple[bool, Truth]]) -> Truth:
    status: Truth = True
    with shell.frame("loop") as frame:
        while True:
            shell.count()
            goes_on = holds()
            if isinstance(goes_on, Mark):
                return frame.settled(_perhaps(shell, goes_on, one_round, status))
            if not goes_on:
                return frame.settled(status)
            started = shell.started
            again, status = one_round()
            if not again or shell.started > started:
                return frame.settled(status)  # a server that was started in the round runs until it is stopped
            if not frame.next_round():
                mark = frame.left[0].mark
                return frame.settled(_perhaps(shell, mark, one_round, status))


def _perhaps(shell: "Interpreter", mark: Mark, one_round: Callable[[], tuple[bool, Truth]], status: Truth) -> Truth:
    """Rounds of which it is not known whether they come: what changes from one to the next is not known after two."""

    def rounds() -> Truth:
        started = shell.started
        again, found = one_round()
        if again and shell.started == started and not shell.repeating:
            shell.repeating = True
            try:
                return branched(shell, mark, [lambda: one_round()[1], lambda: found])
            finally:
                shell.repeating = False
        return found

    return branched(shell, mark, [rounds, lambda: status])


def _round(shell: "Interpreter", body: Body) -> tuple[bool, Truth]:
    """One round of a loop; whether another may follow."""
    try:
        return True, shell.run_body(body)
    except Leave as left:
        if left.kind not in ("break", "continue"):
            raise
        if left.levels > 1:
            raise Leave(left.kind, left.levels - 1) from None
        return left.kind == "continue", True


def for_loop(shell: "Interpreter", found: For) -> Truth:
    nodes = found.words
    words = shell.arguments() if nodes is None else tuple(one.value for one in shell.expander.fields(nodes))
    with shell.frame("loop") as frame:
        unknown = next((mark for value in words if (mark := mark_of(value)) is not None), None)
        if unknown is not None:
            each = Piece(f"${found.name}", unknown._replace(several=False))
            one_of_them = partial(_round_with, shell, found, (each,))
            return frame.settled(_perhaps(shell, shell.doubt(unknown, found.line), one_of_them, True))
        status: Truth = True
        for value in words:
            shell.count()
            started = shell.started
            again, status = _round_with(shell, found, value)
            if not again or (not frame.next_round() and shell.started > started):
                break  # another round would start again what this one has, and left the loop if it ran
        return frame.settled(status)


def _round_with(shell: "Interpreter", found: For, value: Scalar) -> tuple[bool, Truth]:
    store(shell, found.name, value)
    return _round(shell, found.body)
