"""Leaving a script, function or loop before its end: for certain, or perhaps."""

from typing import NamedTuple, TypeAlias

from glm_kvplan.launch.marked_words import Mark

Truth: TypeAlias = bool | Mark  # whether a command succeeds; a Mark names what decides


class Leave(Exception):
    """`exit`, `return`, `break` or `continue`; `status` is what the shell or function left gives."""

    def __init__(self, kind: str, levels: int = 1, status: Truth = True) -> None:
        self.kind, self.levels, self.status = kind, levels, status

    @property
    def reach(self) -> tuple[int, int]:
        """How far it leaves, to be compared."""
        return ("continue", "break", "return", "exit").index(self.kind), self.levels

    @property
    def way(self) -> tuple[str, int]:
        return self.kind, self.levels


class Left(NamedTuple):
    """What a branch that may have been taken has left: the rest is reached only if it was not."""

    mark: Mark
    kind: str
    status: Truth


class Frame:
    """A "function", "loop" or "subshell" that is being followed, and what may have left it already."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.left: list[Left] = []

    def settled(self, status: Truth) -> Truth:
        """The status at the end, given that of its last command."""
        others = [one for one in self.left if one.status != status]
        return others[0].mark if others else status

    def next_round(self) -> bool:
        """Whether another round of the loop is certain to follow; what was passed over with `continue` is over."""
        self.left = [one for one in self.left if one.kind != "continue"]
        return not self.left


def frame_of(frames: list[Frame], leave: Leave) -> Frame | None:
    """The frame that is left; None where it is the script."""
    levels = leave.levels
    for frame in reversed(frames):
        if leave.kind == "exit":
            if frame.kind == "subshell":
                return frame
        elif leave.kind == "return":
            if frame.kind in ("function", "subshell"):
                return frame
        elif frame.kind == "loop":
            levels -= 1
            if not levels:
                return frame
        elif frame.kind == "subshell":
            return frame
    return None
