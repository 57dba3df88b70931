"""How much of the host KV tier the host state tier can make usable, and the split that balances the two."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.sizing.host_sizes import HostPlan
from glm_kvplan.errors import InputError


class Coverage(NamedTuple):
    """Cached prefixes of one mean length in one rank's host tiers.

    A prefix comes back from DRAM only as a whole: its latent rows up to a checkpoint and the KDA state of exactly
    that checkpoint (one slot; a state cannot be rebuilt from a longer or shorter prefix). So a prefix of L tokens
    occupies ceil(L / page) pages of the KV tier and one slot of the state tier, prefixes share nothing, and

        kv_prefixes    = pages of the KV tier // ceil(L / page)
        state_prefixes = slots of the state tier
        fraction       = min(1, state_prefixes / kv_prefixes)

    Below 1 the KV of the remaining prefixes is kept but can never be used; and prefixes that return in turn, more
    of them than the state tier has slots, find their state evicted (least recently used goes first) every time:
    then nothing hits, though most of the KV is there.
    """

    prefix_tokens: int
    kv_prefixes: int
    state_prefixes: int
    stranded_kv_bytes: int  # KV (and index) bytes that no state can make usable
    stranded_state_bytes: int  # state bytes beyond the prefixes the KV tier can hold

    @property
    def usable_prefixes(self) -> int:
        return min(self.kv_prefixes, self.state_prefixes)

    @property
    def fraction(self) -> float:
        """Share of the KV tier's prefixes that have a state; 0 where the KV tier cannot hold a single prefix."""
        if not self.kv_prefixes:
            return 0.0
        return min(1.0, self.state_prefixes / self.kv_prefixes)


class Balance(NamedTuple):
    """The host bytes of one rank dealt out so that every prefix has both, and the flag that leads there.

    The engine has no knob for the host split itself: by ratio it copies the device's slots per token, by size its
    bytes. Both move with `max_mamba_cache_size` (global, over all attention-DP workers), which takes from the
    tokens what it gives to the states; solve again with it to see tokens and requests.
    """

    prefixes: int
    kv_bytes: int  # latent rows and, where the release keeps them, index keys
    state_bytes: int
    state_slots: int  # per rank, on the device
    max_mamba_cache_size: int

    @property
    def state_share(self) -> float:
        """Share of the host bytes that the states take."""
        total = self.kv_bytes + self.state_bytes
        return self.state_bytes / total if total else 0.0


def coverage(plan: HostPlan, prefix_tokens: int) -> Coverage:
    """The coverage of one rank's plan for cached prefixes of `prefix_tokens` tokens on average. See `Coverage`."""
    kv, state = plan.pools[0], plan.pools[1]
    pages = _pages(prefix_tokens, kv.page_size)
    kv_prefixes = kv.pages // pages
    spare_kv = max(0, kv_prefixes - state.pages) * pages * kv.page_size
    return Coverage(
        prefix_tokens=prefix_tokens,
        kv_prefixes=kv_prefixes,
        state_prefixes=state.pages,
        stranded_kv_bytes=spare_kv * _token_bytes(plan),
        stranded_state_bytes=max(0, state.pages - kv_prefixes) * state.bytes_per_unit,
    )


def balance(plan: HostPlan, deployment: Deployment, prefix_tokens: int) -> Balance:
    """The split of the plan's own bytes that holds the most whole prefixes, and the device slots that lead to it.

    The slots are solved with the device bytes of tokens (the draft's too) and slots (their replay rings too) held
    constant. By ratio the tokens must be `prefix` times the slots; by size what KV and states hold on the device must
    be in the proportion of a prefix to a state, where verify snapshots and rings count as states.
    """
    devices, kv, state = plan.devices, plan.pools[0], plan.pools[1]
    prefix = _pages(prefix_tokens, kv.page_size) * kv.page_size
    token, slot = _token_bytes(plan), state.bytes_per_unit
    prefixes = (kv.units * token + state.units * slot) // (prefix * token + slot)
    device_slot = slot + devices.ring_bytes
    slots_bytes = (devices.state_slots + 1) * device_slot
    movable = devices.kv_bytes + devices.draft_bytes + slots_bytes
    kv_token = devices.kv_bytes // (devices.tokens + deployment.page_size)
    device_token = kv_token + devices.draft_bytes // (devices.tokens + deployment.page_size)
    if plan.sizing == "size":
        snapshots = devices.state_bytes - slots_bytes
        host_prefix = prefix * kv.bytes_per_unit * device_token
        states = slot * kv_token
        weight = (host_prefix + states) * device_slot
        slots = (movable * states - snapshots * host_prefix) // weight if weight else 0
    else:
        slots = movable // (prefix * device_token + device_slot)
    slots = max(1, slots)
    return Balance(
        prefixes=prefixes,
        kv_bytes=prefixes * prefix * token,
        state_bytes=prefixes * slot,
        state_slots=slots,
        max_mamba_cache_size=slots * deployment.attn_dp_size,
    )


def _pages(prefix_tokens: int, page_size: int) -> int:
    if prefix_tokens < 1:
        raise InputError(f"mean prefix: {prefix_tokens} tokens; it must be at least 1")
    return -(-prefix_tokens // page_size)


def _token_bytes(plan: HostPlan) -> int:
    """Host bytes of one token: its latent rows and, where there is an index pool, its index keys."""
    return sum(pool.bytes_per_unit for pool in plan.pools if pool.unit == "token")
