"""What can be turned: one table of the knobs, a unit more of each, the values worth trying, and what they cure.

Prices, remedies, advice and checks turn these knobs and no others.
"""

from collections.abc import Callable, Iterator
from typing import Any

from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.knob_search import Move, Turn, Way, Wish
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.server import Server

MOST_TP = 64
MOST_DRAFTS = 256  # more are not tried: the engine takes as many with a prefix cache (mamba_track_interval)
SMALLEST_CHUNK = 2048  # the engine's own reserve for activations shrinks no further below it
FRACTION_STEPS = 1000  # mem_fraction_static is searched in thousandths
RATIO_STEPS = 100  # mamba_full_memory_ratio in hundredths
LARGEST_RATIO = 10
MORE_CONTEXT = 1024
_DRAFT_FLAGS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def typed(flags: dict[str, Any]) -> str:
    """Flags as one would type them."""
    if flags.get("speculative_algorithm", "") is None:
        return "no speculation (leave --speculative-algorithm out)"
    return " ".join(_typed(name, value) for name, value in flags.items())


def _typed(name: str, value: object) -> str:
    option = FLAG[name].option
    if value is None:
        return f"no {option}"
    if value is True:
        return option
    return f"{option} {f'{value:g}' if isinstance(value, float) else value}"


def draft_flags(draft_tokens: int) -> dict[str, int]:
    """The three speculation flags that give `draft_tokens` draft tokens: top-k 1 ties the steps to them."""
    return dict(zip(_DRAFT_FLAGS, (draft_tokens - 1, 1, draft_tokens), strict=True))


def chunk_flag(server: Server, chunk: int) -> dict[str, int]:
    """The chunk of one attention group as typed, for all of them; one without a bound stays without."""
    return {"chunked_prefill_size": chunk * server.deployment.attn_dp_size if chunk > 0 else -1}


def smaller_chunks(server: Server) -> list[int]:
    """Chunks of one attention group in whole pages, each half of the one before."""
    deployment = server.deployment
    page, chunk = deployment.page_size, deployment.chunked_prefill_size
    if chunk <= 0:
        chunk = deployment.max_prefill_tokens
    found: list[int] = []
    while (chunk := chunk // 2 // page * page) >= max(page, SMALLEST_CHUNK // deployment.attn_dp_size):
        found.append(chunk)
    return found


def _workers(name: str, server: Server) -> Callable[[int], dict[str, Any]]:
    """A number of one DP worker as a flag that counts over all of them."""
    return lambda value: {name: value * server.deployment.attn_dp_size}


def _no_unit(server: Server) -> None:
    return None


# --- context_length


def _context_unit(server: Server) -> Turn | None:
    now = server.deployment.context_length
    after = now + MORE_CONTEXT
    if after > server.plan.geometry.max_position_embeddings:
        after = now - MORE_CONTEXT  # the model ends here: the price of the last unit
    return Turn(str(now), str(after), {"context_length": after}) if after > 0 else None


def _context(server: Server, wish: Wish) -> Iterator[Way]:
    if wish.context > server.deployment.context_length:
        yield Way((wish.context,), lambda tokens: {"context_length": tokens})


# --- max_running_requests, with the state slots that they need


def _requests_unit(server: Server) -> Turn:
    """One more running request on each worker, from what the engine grants now."""
    workers, solution = server.deployment.attn_dp_size, server.solution
    now, more = solution.running_requests, solution.running_requests + 1
    flags: dict[str, Any] = {"max_running_requests": more * workers}
    slots = more * solution.costs.slots_per_request
    name = ""
    if slots > solution.state_slots:
        flags["max_mamba_cache_size"] = slots * workers
        name = "max_running_requests with its state slots"
    return Turn(str(now * workers), str(more * workers), flags, name)


def _requests(server: Server, wish: Wish) -> Iterator[Way]:
    solution = server.solution
    now, wanted, flags = solution.costs.requests, max(1, wish.requests), _workers("max_running_requests", server)
    if now is None:
        return
    if now < wanted:
        yield Way((wanted,), flags)
        slots = _workers("max_mamba_cache_size", server)(wanted * solution.costs.slots_per_request)
        if wanted * solution.costs.slots_per_request > solution.state_slots:
            yield Way((wanted,), lambda requests: {**flags(requests), **slots})
    yield Way(range(now - 1, wanted - 1, -1), flags, frozenset(("tokens",)))


# --- max_mamba_cache_size


def _slots_unit(server: Server) -> Turn:
    workers, now = server.deployment.attn_dp_size, server.solution.state_slots
    return Turn(str(now * workers), str((now + 1) * workers), {"max_mamba_cache_size": (now + 1) * workers})


def _slots(server: Server, wish: Wish) -> Iterator[Way]:
    solution, flags = server.solution, _workers("max_mamba_cache_size", server)
    wanted = max(1, wish.requests) * solution.costs.slots_per_request
    if solution.state_slots < wanted:
        yield Way((wanted,), flags)
    yield Way(range(solution.state_slots - 1, wanted - 1, -1), flags, frozenset(("tokens",)))


# --- mamba_full_memory_ratio


def _ratio(server: Server, wish: Wish) -> Iterator[Way]:
    if server.solution.costs.state_slots is not None:
        return  # the ratio is not read
    now = round(server.deployment.mamba_full_memory_ratio * RATIO_STEPS)

    def flags(hundredths: int) -> dict[str, Any]:
        return {"mamba_full_memory_ratio": hundredths / RATIO_STEPS}

    yield Way(range(now - 1, 0, -1), flags, frozenset(("tokens",)))
    yield Way(range(now + 1, LARGEST_RATIO * RATIO_STEPS + 1), flags, frozenset(("slots",)))


# --- max_total_tokens


def _token_cap(server: Server, wish: Wish) -> Iterator[Way]:
    solution, page, cap = server.solution, server.deployment.page_size, server.deployment.max_total_tokens

    def flags(pages: int) -> dict[str, Any]:
        return {"max_total_tokens": pages * page}

    held, most = solution.tokens // page, solution.token_capacity // page
    if cap is not None:
        yield Way(range(max(cap // page, 0) + 1, max(most, 1) + 1), flags, frozenset(("tokens",)))
    yield Way(range(held - 1, 0, -1), flags, frozenset(("free",)))


# --- mem_fraction_static


def _fraction_unit(server: Server) -> Turn | None:
    now = server.typed_fraction
    after = round(now + 0.01, 6)
    return Turn(f"{now:g}", f"{after:g}", {"mem_fraction_static": after}) if after < 1 else None


def _fraction(server: Server, wish: Wish) -> Iterator[Way]:
    now = server.typed_fraction * FRACTION_STEPS

    def flags(thousandths: int) -> dict[str, Any]:
        return {"mem_fraction_static": thousandths / FRACTION_STEPS}

    yield Way(range(int(now) + 1, FRACTION_STEPS), flags, frozenset(("slots", "tokens")))
    yield Way(range(int(now - 1e-9), 0, -1), flags, frozenset(("free",)))


# --- chunked_prefill_size


def _chunk(server: Server, wish: Wish) -> Iterator[Way]:
    """Smaller chunks leave more to serve from, and raise the memory fraction where the engine picks it."""
    yield Way(smaller_chunks(server), lambda chunk: chunk_flag(server, chunk))


# --- speculation


def _drafts_unit(server: Server) -> Turn | None:
    now = server.deployment.speculative_num_draft_tokens
    if not server.deployment.speculative or now is None:
        return None
    return Turn(str(now), str(now + 1), draft_flags(now + 1))


def _drafts(server: Server, wish: Wish) -> Iterator[Way]:
    now = server.deployment.speculative_num_draft_tokens
    if server.deployment.speculative and now is not None:
        yield Way(range(min(now - 1, MOST_DRAFTS), 1, -1), draft_flags)
        yield Way((None,), lambda none: dict.fromkeys(("speculative_algorithm", *_DRAFT_FLAGS)))


def _replay_unit(server: Server) -> Turn | None:
    return Turn("off", "on", {"enable_linear_replayssm_spec": True}) if _may_replay(server) else None


def _replay(server: Server, wish: Wish) -> Iterator[Way]:
    if _may_replay(server):
        yield Way((True,), lambda on: {"enable_linear_replayssm_spec": on})


def _may_replay(server: Server) -> bool:
    """Replay rings could be switched on in the place of verify snapshots."""
    deployment = server.deployment
    open_to_it = deployment.speculative and server.plan.profile.replay_rings
    return open_to_it and not deployment.enable_linear_replayssm_spec


# --- dtypes


def _rows_unit(server: Server) -> Turn:
    before, after = "bfloat16", "fp8_e4m3"
    if server.deployment.kv_layout != "bf16":
        before, after = after, before
    return Turn(before, after, {"kv_cache_dtype": after})


def _rows(server: Server, wish: Wish) -> Iterator[Way]:
    if server.deployment.kv_layout == "bf16":
        yield Way(("fp8_e4m3",), lambda dtype: {"kv_cache_dtype": dtype})


def _states_unit(server: Server) -> Turn | None:
    if server.deployment.mamba_ssm_dtype != "float32":
        return None
    return Turn("float32", "bfloat16", {"mamba_ssm_dtype": "bfloat16"})


def _states(server: Server, wish: Wish) -> Iterator[Way]:
    if server.deployment.mamba_ssm_dtype == "float32":
        yield Way(("bfloat16",), lambda dtype: {"mamba_ssm_dtype": dtype})


# --- layout


def group_flags(plan: Plan, groups: int) -> dict[str, Any]:
    """The flags of `groups` attention groups, by the spelling that the launch uses."""
    if "attn_dp_size" in plan.flags:
        return {"attn_dp_size": groups}
    return {"dp_size": groups, "enable_dp_attention": True}


def _groups(server: Server) -> list[int]:
    """Wider attention DP inside the same GPUs."""
    deployment, found = server.deployment, []
    groups = deployment.attn_dp_size * 2
    while deployment.replicas == deployment.attn_cp_size == 1 and deployment.tp_size % groups == 0:
        found.append(groups)
        groups *= 2
    return found


def _groups_unit(server: Server) -> Turn | None:
    now, wider = server.deployment.attn_dp_size, _groups(server)
    return Turn(str(now), str(wider[0]), group_flags(server.plan, wider[0])) if wider else None


def _attention_groups(server: Server, wish: Wish) -> Iterator[Way]:
    """The only layout that gives a token pool more places in all; it helps no server to start."""
    if wish.serve:
        yield Way(_groups(server), lambda groups: group_flags(server.plan, groups))


def _gpus_unit(server: Server) -> Turn:
    now = server.deployment.tp_size
    return Turn(str(now), str(now * 2), {"tp_size": now * 2})


def _gpus(server: Server, wish: Wish) -> Iterator[Way]:
    """Twice the GPUs, and twice as many again: states and weights spread over them, token rows do not."""
    now, found = server.deployment.tp_size, []
    while (now := now * 2) <= MOST_TP:
        found.append(now)
    yield Way(found, lambda tp_size: {"tp_size": tp_size})


MOVES: tuple[Move, ...] = (
    Move("context_length", _context_unit, _context),
    Move("max_running_requests", _requests_unit, _requests),
    Move("max_mamba_cache_size", _slots_unit, _slots),
    Move("mamba_full_memory_ratio", _no_unit, _ratio),
    Move("max_total_tokens", _no_unit, _token_cap),
    Move("mem_fraction_static", _fraction_unit, _fraction),
    Move("chunked_prefill_size", _no_unit, _chunk),
    Move("speculative_num_draft_tokens", _drafts_unit, _drafts),
    Move("enable_linear_replayssm_spec", _replay_unit, _replay, "switch"),
    Move("kv_cache_dtype", _rows_unit, _rows, "switch"),
    Move("mamba_ssm_dtype", _states_unit, _states, "switch"),
    Move("dp_size", _groups_unit, _attention_groups, "layout"),
    Move("tp_size", _gpus_unit, _gpus, "layout"),
)
MOVE = {move.name: move for move in MOVES}
