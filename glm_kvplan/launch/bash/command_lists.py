"""Commands joined to one another: pipelines, `&&` and `||`."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

from glm_kvplan.launch.bash.branches import branched
from glm_kvplan.launch.bash.leaving import Truth
from glm_kvplan.launch.bash.syntax import Statement
from glm_kvplan.launch.bash.truth import both, negated
from glm_kvplan.launch.bash.values import missing
from glm_kvplan.launch.marked_words import Mark

if TYPE_CHECKING:
    from glm_kvplan.launch.bash.interpreter import Interpreter

_MOST_PATHS = 4  # commands after an unknown one in a chain of && and || that are followed on each of its paths


def pipeline(shell: "Interpreter", parts: Sequence[Statement]) -> Truth:
    """What its commands assign stays inside; what the last one prints of the others' output is not known."""
    if len(parts) == 1:
        return shell.execute(parts[0])
    outer = shell.output, shell.typed
    shell.output, statuses = None, []
    try:
        for part in parts:
            statuses.append(shell.apart(partial(shell.execute, part)))
            shell.typed = False  # what follows reads the pipe
    finally:
        shell.output, shell.typed = outer
    shell.printed(missing("$(...)"))
    found, all_of_them = statuses[-1], reduce(both, statuses)
    checked = shell.scope.option("pipefail")
    if checked is None and found != all_of_them:
        return Mark("`set -o pipefail`")
    return all_of_them if checked else found


def joined_to(shell: "Interpreter", status: Truth, others: Sequence[tuple[str, Statement]]) -> Truth:
    """What `&&` and `||` join to a command that has ended with `status`."""
    for at, (operator, other) in enumerate(others):
        goes_on = status if operator == "&&" else negated(status)
        rest = others[at + 1 :]
        run = partial(shell.tested, (other,)) if rest else partial(shell.execute, other)
        if isinstance(goes_on, Mark):
            skipped = operator == "||"  # the status if it is
            if len(rest) > _MOST_PATHS:
                status = branched(shell, goes_on, [run, partial(bool, skipped)])
                continue
            return branched(
                shell,
                goes_on,
                [
                    lambda: joined_to(shell, run(), rest),  # noqa: B023 (called before the loop goes on)
                    lambda: joined_to(shell, skipped, rest),  # noqa: B023
                ],
            )
        if goes_on:
            status = run()
    return status
