"""The inverse of the solver: flags that serve a workload, and the proof that they do."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.sizing.prices import allocated_free_bytes
from glm_kvplan.sizing.remedies import largest
from glm_kvplan.sizing.setup import Setup, attempt_with_memory
from glm_kvplan.sizing.solver import Solution
from glm_kvplan.sizing.workload import Demand, Served, check, served, slots_of_request
from glm_kvplan.units import GIB

DEFAULT_RATIO = 0.9  # mamba_full_memory_ratio where the user gives none
SMALLEST_CHUNK = 2048  # the engine's own reserve for activations shrinks no further below it
LOGIT_BYTES = 4  # fp32
MOST_TP = 64
MOST_KEPT = 1 << 20


class Layout(NamedTuple):
    """Another layout that serves the whole demand."""

    changes: dict[str, Any]  # flags beside the ones asked about
    gpus: int
    served: Served


class Shortage(NamedTuple):
    """How far a layout is from serving the demand."""

    missing_requests: int
    missing_bytes: int | None  # more bytes free on each rank that would do; None where no memory would
    limit: str  # what stopped one more request


class Advice(NamedTuple):
    """Flags, and what the engine makes of them.

    `flags` are the engine's argument names; empty where not one request of the demand fits. `solution` is the engine's
    sizing under exactly these flags, `served` what it serves; `default` is what the engine's own split serves.
    """

    flags: dict[str, Any]
    solution: Solution | None
    served: Served
    default: Served
    conversations_kept: int  # finished conversations a worker keeps cached beside its running requests
    free_bytes: int  # free on a rank once every pool is allocated
    logits_bytes: int  # the largest prefill's indexer logits, unbounded: chunk * longest context * 4
    shortage: Shortage | None  # None: the whole demand is served
    layouts: tuple[Layout, ...]  # where there is a shortage, the nearest layouts without one

    @property
    def holds(self) -> bool:
        """The whole demand is served."""
        return self.shortage is None

    @property
    def command(self) -> str:
        """The flags as one would paste them."""
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in self.flags.items())


class _Fit(NamedTuple):
    setup: Setup
    flags: dict[str, Any]
    solution: Solution | None
    served: Served
    kept: int = 0


def advise(setup: Setup, demand: Demand, *, state_dtype: str | None = None, nearest: int = 5) -> Advice:
    """Flags that serve the demand on this setup, or as much of it as fits.

    The state slots are fixed at what the requests need and the tokens take the rest; memory that is still spare then
    is split so that it keeps as many finished conversations cached as it can, tokens and states alike. The
    memory fraction is the setup's, written out. Where that does not serve the demand, smaller chunks are tried (the
    engine then reserves less). `state_dtype` tries another state dtype as well: accuracy is the caller's business.
    The served requests, as `served` defines them, are never fewer than under the engine's default split.

    Raises InputError for a demand no pool size can serve, SizingError for a strategy the engine refuses.
    """
    check(demand, setup.deployment)
    default = default_split(setup, demand)
    best: _Fit | None = None
    for variant in _variants(setup, state_dtype):
        fit = _fit(variant, demand)
        if best is None or fit.served.requests > best.served.requests:
            best = fit
        if best.served.requests >= demand.concurrency:
            break
    assert best is not None
    best = _room_for_logits(best, demand)
    shortage = None
    layouts: tuple[Layout, ...] = ()
    if best.served.requests < demand.concurrency:
        shortage = _shortage(best, demand)
        layouts = tuple(_nearest_layouts(setup, demand, nearest))
    free = allocated_free_bytes(best.setup, best.solution) if best.solution is not None else 0
    logits = _logits_bytes(best.setup, demand)
    return Advice(best.flags, best.solution, best.served, default, best.kept, free, logits, shortage, layouts)


def default_split(setup: Setup, demand: Demand) -> Served:
    """What the engine's own split serves: no explicit slots, its default ratio, every other flag as it is."""
    nothing = Served(0, 0, "memory")
    other = setup.changed(max_mamba_cache_size=None, mamba_full_memory_ratio=DEFAULT_RATIO, max_total_tokens=None)
    if other is None:
        return nothing
    solution = other.solution()
    return nothing if solution.failure else served(demand, other.deployment, solution.sizes)


def _variants(setup: Setup, state_dtype: str | None) -> Iterator[Setup]:
    """The setup, then the same with smaller chunks, then with the other state dtype."""
    yield setup
    chunk = setup.deployment.chunked_prefill_size // 2
    while chunk >= SMALLEST_CHUNK:
        other = setup.changed(chunked_prefill_size=chunk * setup.deployment.attn_dp_size)
        if other is not None and other.deployment.mem_fraction_static > setup.deployment.mem_fraction_static:
            yield other
        chunk //= 2
    if state_dtype is not None and state_dtype != setup.deployment.mamba_ssm_dtype:
        other = setup.changed(mamba_ssm_dtype=state_dtype)
        if other is not None:
            yield other


def _fit(setup: Setup, demand: Demand) -> _Fit:
    """The most requests of the demand that some split of this setup's memory serves, and the split.

    Searched without the resolver, because the flags of a split pin whatever another flag's default could move, then
    solved from the flags alone; where the resolver does move something, searched again with it.
    """
    fast = _search(setup.without_resolver(), demand)
    if setup.resolve_with is None or fast.solution is None:
        return fast._replace(setup=setup)
    solution = setup.attempt(**fast.flags)
    if solution is not None and solution.sizes == fast.solution.sizes:
        return fast._replace(setup=setup, solution=solution)
    return _search(setup, demand)


def _search(setup: Setup, demand: Demand) -> _Fit:
    workers = setup.deployment.attn_dp_size * setup.deployment.replicas
    wanted = -(-demand.concurrency // workers)

    def holds(requests: int) -> bool:
        solution = setup.attempt(**_flags(setup, requests, _slots(setup, demand, requests)))
        if solution is None or solution.failure is not None:
            return False
        return served(demand, setup.deployment, solution.sizes).per_worker >= requests

    if not holds(1):
        return _Fit(setup, {}, None, Served(0, 0, "memory"))
    requests = largest(holds, 1, wanted)
    kept = _conversations_kept(setup, demand, requests)
    flags = _flags(setup, requests, _slots(setup, demand, requests, kept))
    split = setup.attempt(**flags)
    assert split is not None
    flags["max_total_tokens"] = split.tokens
    solution = setup.attempt(**flags)
    assert solution is not None and solution.failure is None
    got = served(demand, setup.deployment, solution.sizes)
    return _Fit(setup, flags, solution, got if requests == wanted else got._replace(limit="memory"), kept)


def _conversations_kept(setup: Setup, demand: Demand, requests: int) -> int:
    """Finished conversations of one worker that spare memory keeps cached beside its running requests.

    Each holds its context's tokens and, since no request runs on it, one state slot and its checkpoints.
    """
    deployment = setup.deployment
    if deployment.disable_radix_cache:
        return 0
    page, reserve = deployment.page_size, deployment.decode_reserve

    def holds(kept: int) -> bool:
        solution = setup.attempt(**_flags(setup, requests, _slots(setup, demand, requests, kept)))
        if solution is None or solution.failure is not None:
            return False
        return demand.contexts.tokens(requests + kept, page, reserve) <= solution.tokens

    return largest(holds, 0, MOST_KEPT)


def _slots(setup: Setup, demand: Demand, requests: int, kept: int = 0) -> int:
    """State slots of one worker for its running requests and its finished conversations."""
    return requests * slots_of_request(demand, setup.deployment) + kept * (1 + demand.checkpoints)


def _flags(setup: Setup, requests: int, slots: int) -> dict[str, Any]:
    """The flags of a split, as the whole engine takes them: requests and slots count over all its DP workers."""
    deployment = setup.deployment
    workers = deployment.attn_dp_size
    return {
        "max_running_requests": requests * workers,
        "max_mamba_cache_size": slots * workers,
        "max_total_tokens": None,
        "chunked_prefill_size": deployment.chunked_prefill_size * workers,
        "mem_fraction_static": deployment.mem_fraction_static,
    }


def _logits_bytes(setup: Setup, demand: Demand) -> int:
    return setup.deployment.chunked_prefill_size * demand.contexts.longest * LOGIT_BYTES


def _room_for_logits(fit: _Fit, demand: Demand) -> _Fit:
    """The fit with its chunk halved until the indexer's prefill logits fit what the pools leave free.

    The memory fraction stays: a smaller chunk leaves more of it free.
    """
    if fit.solution is None:
        return fit
    free = allocated_free_bytes(fit.setup, fit.solution)
    deployment = fit.setup.deployment
    chunk = deployment.chunked_prefill_size
    while chunk * demand.contexts.longest * LOGIT_BYTES > free and chunk // 2 >= SMALLEST_CHUNK:
        chunk //= 2
    if chunk == deployment.chunked_prefill_size:
        return fit
    flags = {**fit.flags, "chunked_prefill_size": chunk * deployment.attn_dp_size}
    other = fit.setup.changed(**flags)
    if other is None or (solution := other.solution()).failure is not None:
        return fit
    got = served(demand, other.deployment, solution.sizes)
    if got.requests < fit.served.requests:
        return fit
    return fit._replace(setup=other, flags=flags, solution=solution)


def _shortage(fit: _Fit, demand: Demand) -> Shortage:
    setup = fit.setup
    workers = setup.deployment.attn_dp_size * setup.deployment.replicas
    wanted = -(-demand.concurrency // workers)
    other = setup.changed(**_flags(setup, wanted, _slots(setup, demand, wanted)))
    missing = None if other is None else _missing_bytes(other, demand, wanted)
    return Shortage(demand.concurrency - fit.served.requests, missing, fit.served.limit)


def _missing_bytes(setup: Setup, demand: Demand, wanted: int) -> int | None:
    """The least number of MiB more on a rank with which the setup serves the demand, in bytes; None: none does."""
    pre_gib, available_gib = setup.memory(setup.deployment)

    def holds(mib: int) -> bool:
        solution = attempt_with_memory(setup, pre_gib, available_gib + mib / 1024)
        return solution.failure is None and served(demand, setup.deployment, solution.sizes).per_worker >= wanted

    highest = 1 << 24
    if not holds(highest):
        return None
    low, high = -1, highest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high * (GIB // 1024)


def _nearest_layouts(setup: Setup, demand: Demand, most: int) -> list[Layout]:
    """Layouts that serve the whole demand: fewest GPUs first, then fewest changes."""
    found: list[Layout] = []
    for changes in sorted(_candidates(setup), key=lambda changes: (changes.get("tp_size", 0), len(changes))):
        other = setup.changed(**changes)
        if other is None or any(changes.items() >= layout.changes.items() for layout in found):
            continue
        try:
            check(demand, other.deployment)
            fit = _fit(other, demand)
        except InputError:
            continue
        if fit.served.requests >= demand.concurrency:
            gpus = other.deployment.world_size * other.deployment.replicas
            found.append(Layout(changes, gpus, fit.served))
            if len(found) == most:
                break
    return found


def _candidates(setup: Setup) -> Sequence[dict[str, Any]]:
    deployment = setup.deployment
    single: list[dict[str, Any]] = [{}]
    if deployment.kv_layout == "bf16":
        single.append({"kv_cache_dtype": "fp8_e4m3"})
    if deployment.speculative and setup.profile.replay_rings and not deployment.enable_linear_replayssm_spec:
        single.append({"enable_linear_replayssm_spec": True})
    if deployment.mamba_ssm_dtype == "float32":
        single.append({"mamba_ssm_dtype": "bfloat16"})
    wide: list[dict[str, Any]] = [{}]
    dp = deployment.attn_dp_size
    if deployment.tp_size % (dp * 2) == 0:
        wide.append({"dp_size": dp * 2, "enable_dp_attention": True})
    tp = deployment.tp_size * 2
    while tp <= MOST_TP:
        wide.append({"tp_size": tp})
        wide.append({"tp_size": tp, "dp_size": dp * 2, "enable_dp_attention": True})
        tp *= 2
    return [changes for one in wide for other in single if (changes := {**one, **other})]
