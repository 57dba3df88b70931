"""A server one may ask "what if" about: a deployment, its memory, and how to change a flag."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.sizing.solver import Solution, attempt
from glm_kvplan.errors import KvplanError
from glm_kvplan.model.geometry import Geometry


class Memory(NamedTuple):
    """GiB free on the rank with the least of it: before the weights, and after target and draft weights."""

    pre_gib: float
    available_gib: float


# Flags that no default depends on once memory is settled: changing one is replacing one value.
_ALONE = frozenset(
    (
        "mem_fraction_static",
        "mamba_full_memory_ratio",
        "max_mamba_cache_size",
        "max_total_tokens",
        "mamba_ssm_dtype",
        "context_length",
    )
)
# Flags that others' defaults may read: the resolver changes them where there is one.
_WITHOUT_RESOLVER = _ALONE | {
    "max_running_requests",
    "speculative_num_draft_tokens",
    "enable_linear_replayssm_spec",
    "chunked_prefill_size",
}
_DRAFT = frozenset(("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"))


@dataclass(frozen=True, slots=True)
class Setup:
    """One deployment with everything a changed deployment needs.

    `memory` gives the memory of a deployment (weights per rank change with the layout). `resolve_with` takes changed
    flags under the engine's argument names (None takes one back) and resolves every default anew; without it only
    flags that stand alone can be changed.
    """

    geometry: Geometry
    profile: EngineProfile
    deployment: Deployment
    memory: Callable[[Deployment], Memory]
    resolve_with: Callable[..., Deployment] | None = None

    @property
    def may_replay(self) -> bool:
        """Replay rings could be switched on in the place of verify snapshots."""
        deployment = self.deployment
        open_to_it = deployment.speculative and self.profile.replay_rings
        return open_to_it and not deployment.enable_linear_replayssm_spec

    def solution(self) -> Solution:
        """What the engine sizes; a refusal by memory is in its `failure`. Raises SizingError for a refused strategy."""
        return self.solution_with(*self.memory(self.deployment))

    def solution_with(self, pre_gib: float, available_gib: float) -> Solution:
        """The same with other memory than its own."""
        return attempt(self, pre_gib, available_gib)

    def changed(self, **changes: Any) -> "Setup | None":
        """This setup with some flags changed; None where the engine refuses them or they cannot be changed here."""
        resolver = self.resolve_with
        extra: dict[str, Any] = {}
        try:
            if changes.keys() <= _ALONE or (resolver is None and changes.keys() <= _WITHOUT_RESOLVER | _DRAFT):
                if "speculative_num_draft_tokens" in changes:
                    extra["max_draft_tokens"] = changes["speculative_num_draft_tokens"]
                if "chunked_prefill_size" in changes:  # a deployment's is one DP worker's
                    extra["chunked_prefill_size"] = changes["chunked_prefill_size"] // self.deployment.attn_dp_size
                deployment = self.deployment.changed(**{**changes, **extra})
            elif resolver is not None:
                deployment = resolver(**changes)
            else:
                return None
        except KvplanError:
            return None
        return Setup(self.geometry, self.profile, deployment, self.memory, _then(resolver, changes))

    def pinned(self) -> "Setup":
        """The same without a resolver and with its memory as it is now: for searches over flags that move neither."""
        memory = self.memory(self.deployment)
        return Setup(self.geometry, self.profile, self.deployment, lambda deployment: memory)

    def attempt(self, **changes: Any) -> Solution | None:
        """The solution with some flags changed; None where the engine refuses them or they cannot be changed here."""
        setup = self.changed(**changes)
        if setup is None:
            return None
        try:
            return setup.solution()
        except KvplanError:
            return None

    def boots(self, **changes: Any) -> bool:
        """The engine starts with these flags changed."""
        solution = self.attempt(**changes)
        return solution is not None and solution.failure is None


def _then(resolver: Callable[..., Deployment] | None, changes: dict[str, Any]) -> Callable[..., Deployment] | None:
    """A resolver that keeps the changes already made."""
    if resolver is None:
        return None
    first = resolver

    def resolve_with(**more: Any) -> Deployment:
        return first(**{**changes, **more})

    return resolve_with


def draft_flags(draft_tokens: int) -> dict[str, int]:
    """The three speculation flags that give `draft_tokens` draft tokens: top-k 1 ties the steps to them."""
    return {
        "speculative_num_steps": draft_tokens - 1,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": draft_tokens,
    }
