"""The knobs that are tried where an expectation falls short: of each, the smallest change worth solving."""

from collections.abc import Callable, Iterator

from glm_kvplan.answers.check.judgements import short
from glm_kvplan.answers.check.trial import Change, Search
from glm_kvplan.bisection import largest, least
from glm_kvplan.engines.sglang.sizing.layouts import MOST_TP
from glm_kvplan.engines.sglang.sizing.remedies import FRACTION_STEPS, LARGEST_RATIO, RATIO_STEPS
from glm_kvplan.engines.sglang.sizing.serving_headroom import SMALLEST_CHUNK
from glm_kvplan.engines.sglang.sizing.start import setup_of
from glm_kvplan.engines.sglang.sizing.what_if import draft_flags


def _requests_wanted(search: Search) -> int:
    """Running requests of one DP worker that the expectations add up to."""
    expect, deployment = search.expect, search.plan.deployment
    workers = deployment.attn_dp_size * deployment.replicas
    return -(-max(expect.min_concurrency or 1, expect.max_running_requests or 1) // workers)


def _sizes(search: Search) -> Iterator[Change]:
    """Requests and state slots set to what the expectations need, alone or together."""
    deployment = search.plan.deployment
    solution, workers = search.solution, deployment.attn_dp_size
    requests = _requests_wanted(search)
    slots = requests * deployment.slots_per_request
    if requests <= solution.running_requests:
        return
    more_requests = {"max_running_requests": requests * workers}
    more_slots = {"max_mamba_cache_size": slots * workers}
    if solution.costs.requests is not None and solution.costs.requests < requests:
        yield Change(more_requests)
    if solution.state_slots < slots:
        yield Change(more_slots)
        yield Change({**more_requests, **more_slots})


def _fewer_slots(search: Search) -> Iterator[Change]:
    """The most state slots, below those there are, that leave enough for the rest."""
    deployment = search.plan.deployment
    workers, now = deployment.attn_dp_size, search.solution.state_slots
    fewest = _requests_wanted(search) * deployment.slots_per_request

    def change(slots: int) -> Change:
        return Change({"max_mamba_cache_size": slots * workers})

    if fewest < now and search.holds(change(fewest)):
        yield change(largest(lambda slots: search.holds(change(slots)), fewest, now))


def _ratio(search: Search) -> Iterator[Change]:
    """The nearest ratio, where it is what sets the slots; sizes alone say which are worth trying in full."""
    if search.targets == ("headroom",) or search.solution.costs.state_slots is not None:
        return
    pinned = setup_of(search.plan, search.given).pinned()
    now, most = round(pinned.deployment.mamba_full_memory_ratio * RATIO_STEPS), LARGEST_RATIO * RATIO_STEPS
    for step in range(1, most):
        for steps in (now - step, now + step):
            if not 0 < steps <= most:
                continue
            solution = pinned.attempt(mamba_full_memory_ratio=steps / RATIO_STEPS)
            if solution is None or solution.failure is not None:
                continue
            if not short(search.expect, pinned.deployment, solution.sizes):
                yield Change({"mamba_full_memory_ratio": steps / RATIO_STEPS})
                return


def _token_cap(search: Search) -> Iterator[Change]:
    """A cap on tokens: the smallest rise of the user's, or for more free memory the highest that leaves it."""
    deployment, solution = search.plan.deployment, search.solution
    page = deployment.page_size

    def change(pages: int) -> Change:
        return Change({"max_total_tokens": pages * page})

    held, most = solution.tokens // page, solution.token_capacity // page
    if search.targets == ("headroom",):
        if held > 1 and search.holds(change(1)):
            yield change(largest(lambda pages: search.holds(change(pages)), 1, held))
    elif deployment.max_total_tokens is not None and held < most and search.holds(change(most)):
        yield change(least(lambda pages: search.holds(change(pages)), held, most))


def _context_length(search: Search) -> Iterator[Change]:
    wanted = search.expect.min_context
    if wanted is not None and wanted > search.plan.deployment.context_length:
        yield Change({"context_length": wanted})


def _fraction(search: Search) -> Iterator[Change]:
    """The least fraction above the present one, or for more free memory the largest below it."""
    now = search.plan.deployment.mem_fraction_static

    def change(thousandths: int) -> Change:
        return Change({"mem_fraction_static": thousandths / FRACTION_STEPS})

    def holds(thousandths: int) -> bool:
        return search.holds(change(thousandths))

    if search.targets == ("headroom",):
        highest = int(now * FRACTION_STEPS - 1e-9)
        step = 100
        while step <= highest and not holds(step):  # below some fraction the engine does not start
            step += 10
        if step <= highest:
            yield change(largest(holds, step, highest))  # what holds for a fraction holds for those below it
    elif holds(FRACTION_STEPS - 1):
        yield change(least(holds, int(now * FRACTION_STEPS), FRACTION_STEPS - 1))
    else:  # high fractions leave nothing to allocate the uncharged part from
        for thousandths in range(int(now * FRACTION_STEPS) + 1, FRACTION_STEPS):
            if holds(thousandths):
                yield change(thousandths)
                return


def _chunk(search: Search) -> Iterator[Change]:
    deployment = search.plan.deployment
    chunk = deployment.chunked_prefill_size // 2
    while chunk >= SMALLEST_CHUNK // deployment.attn_dp_size and chunk >= deployment.page_size:
        yield Change({"chunked_prefill_size": chunk * deployment.attn_dp_size})
        chunk //= 2


def _drafts(search: Search) -> Iterator[Change]:
    now = search.plan.deployment.speculative_num_draft_tokens
    if search.plan.deployment.eagle and now is not None:
        for drafts in range(now - 1, 1, -1):
            yield Change(draft_flags(drafts))


def _switches(search: Search) -> Iterator[Change]:
    deployment = search.plan.deployment
    if deployment.speculative and search.plan.profile.replay_rings and not deployment.enable_linear_replayssm_spec:
        yield Change({"enable_linear_replayssm_spec": True})


def _rows(search: Search) -> Iterator[Change]:
    if search.plan.deployment.kv_layout == "bf16":
        yield Change({"kv_cache_dtype": "fp8_e4m3"})


def _state_dtype(search: Search) -> Iterator[Change]:
    if search.plan.deployment.mamba_ssm_dtype == "float32":
        yield Change({"mamba_ssm_dtype": "bfloat16"})


def _attention_dp(search: Search) -> Iterator[Change]:
    """More attention groups: the only layout that gives a token pool more places in all."""
    deployment = search.plan.deployment
    if deployment.attn_cp_size > 1 or "attn_dp_size" in search.plan.flags:
        return
    groups = deployment.attn_dp_size * 2
    while deployment.tp_size % groups == 0:
        yield Change({"dp_size": groups, "enable_dp_attention": True})
        groups *= 2


def _more_gpus(search: Search) -> Iterator[Change]:
    """Twice the GPUs, and twice as many again: states and weights spread over them, token rows do not."""
    tp_size = search.plan.deployment.tp_size * 2
    while tp_size <= MOST_TP:
        yield Change({"tp_size": tp_size})
        tp_size *= 2


def _memory(search: Search) -> Iterator[Change]:
    """More memory left by the weights, in steps of 1/100 GiB."""
    assert search.answer is not None
    budget = search.answer.budget
    most = int((budget.pre_gib - budget.available_gib) * 100)

    def holds(step: int) -> bool:
        return search.holds(Change({}, step / 100))

    if most > 1 and holds(most):
        yield Change({}, least(holds, 0, most) / 100)


KNOBS: tuple[Callable[[Search], Iterator[Change]], ...] = (
    _context_length,
    _sizes,
    _token_cap,
    _fewer_slots,
    _ratio,
    _fraction,
    _chunk,
    _drafts,
    _switches,
    _rows,
    _state_dtype,
    _attention_dp,
    _more_gpus,
    _memory,
)
# Where the weights alone do not fit: what spreads them.
LAYOUTS: tuple[Callable[[Search], Iterator[Change]], ...] = (_more_gpus,)
