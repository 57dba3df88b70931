"""One deployment with one thing changed: what then comes of its expectations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from glm_kvplan.answers.check.deployment_file import Expectations
from glm_kvplan.answers.check.judgements import Judgement, judge
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.start import Boot, boot, setup_of
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven

SERVES = "enough memory to serve from"  # kept like an expectation, though no file needs to name it
_LAYOUT = ("tp_size", "pp_size", "dp_size", "attn_dp_size")  # weights per GPU change with them


class Change(NamedTuple):
    """Flags to change (None: leave it out), or memory to find, and the expectations that would then fall short."""

    flags: Mapping[str, Any]
    more_gib: float = 0.0
    then_short: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The change as one would type or do it."""
        if self.more_gib:
            return f"{self.more_gib:.2f} GiB more free on each GPU after the load"
        options = []
        for name, value in self.flags.items():
            option = f"--{name.replace('_', '-')}"
            if value is None:
                options.append(f"no {option}")
            else:
                options.append(option if value is True else f"{option} {_shown(value)}")
        return " ".join(options) + (" (its memory estimated)" if self.new_layout else "")

    @property
    def new_layout(self) -> bool:
        """Weights per GPU change: measured memory says nothing of it."""
        return any(name in _LAYOUT for name in self.flags)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Search:
    """What is changed and what is held against it. `kept` must go on holding, all of `targets` must begin to."""

    plan: Plan
    given: MemoryGiven
    expect: Expectations
    answer: Boot | None  # None: the weights alone do not fit
    targets: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def solution(self) -> Solution:
        assert self.answer is not None
        return self.answer.solution

    def judged(self, change: Change) -> dict[str, Judgement] | None:
        """What comes of the deployment with one change; None where the engine refuses it."""
        try:
            plan = self.plan.with_flags(**change.flags)
            given = _given(self.given, self.answer, change)
            if setup_of(plan, given).solution().failure is not None:
                return None
            answer = boot(plan, given, self.expect.min_context)
        except KvplanError:
            return None
        found = judge(self.expect, plan, answer)
        assert answer.headroom is not None
        found[SERVES] = Judgement(SERVES, answer.headroom.verdict != "short", "", "", "", "")
        return found

    def holds(self, change: Change) -> bool:
        """The engine starts and the targets hold."""
        found = self.judged(change)
        return found is not None and all(found[name].holds for name in ("boots", *self.targets))

    def short(self, change: Change) -> tuple[str, ...]:
        """What would fall short that did not before."""
        found = self.judged(change)
        assert found is not None
        return tuple(name for name in self.kept if not found[name].holds)


def _given(given: MemoryGiven, answer: Boot | None, change: Change) -> MemoryGiven:
    """The memory after a change: measured figures of one layout say nothing of another."""
    if change.new_layout:
        return MemoryGiven(checkpoint=given.checkpoint)
    if change.more_gib and answer is not None:
        budget = answer.budget
        return given._replace(pre_gib=budget.pre_gib, available_gib=budget.available_gib + change.more_gib)
    return given
