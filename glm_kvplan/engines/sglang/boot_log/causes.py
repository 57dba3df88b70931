"""Why a printed number is not what was predicted: what would explain it is tried, not guessed."""

from collections.abc import Iterator

from glm_kvplan.engines.sglang.boot_log.boot import logged_memory
from glm_kvplan.engines.sglang.boot_log.log_rows import Row, printed_sizes
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation, rows_of
from glm_kvplan.engines.sglang.boot_log.sizing_rows import SIZES
from glm_kvplan.errors import KvplanError
from glm_kvplan.units import GIB

# A change that a build, a patch or an environment variable may have made, and the flags that stand for it.
_VARIATIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("raw FP8 rows of 512 bytes (kernels that need no scales)", {"kv_row_layout": "fp8_raw", "kv_cache_dtype": None}),
    ("FP8 rows with scales, 528 bytes", {"kv_row_layout": "fp8_scaled", "kv_cache_dtype": None}),
    ("FP8 rows with scales and room for RoPE, 656 bytes", {"kv_row_layout": "fp8_padded", "kv_cache_dtype": None}),
    ("BF16 rows of 1024 bytes", {"kv_row_layout": "bf16", "kv_cache_dtype": None}),
    ("a bfloat16 state (--mamba-ssm-dtype or SGLANG_MAMBA_SSM_DTYPE)", {"mamba_ssm_dtype": "bfloat16"}),
    ("a float32 state (SGLANG_MAMBA_SSM_DTYPE)", {"mamba_ssm_dtype": "float32"}),
    ("a radix cache that is off", {"disable_radix_cache": True}),
    ("an overlap schedule that is off", {"disable_overlap_schedule": True}),
    ("replay rings instead of snapshots", {"enable_linear_replayssm_spec": True}),
    ("a draft's cache in its own type (fa4 kernels)", {"speculative_draft_attention_backend": "fa4"}),
    ("another mamba_full_memory_ratio: 0.9", {"mamba_full_memory_ratio": None}),
)  # fmt: skip


def causes(answer: Reconciliation) -> tuple[str, ...]:
    """Likely causes of the first unexplained number, those that were tried and do explain it first."""
    row = answer.first_unexplained
    if row is None:
        return ()
    if answer.better is not None and not answer.better.unexplained:
        good = [fit.engine for fit in answer.fits if fit.rank == answer.better.rank]
        return (f"the engine is {' or '.join(good)}: under it every number is explained",)
    return tuple(dict.fromkeys((*_releases(answer), *_variations(answer, row), *_hints(answer, row))))


def _releases(answer: Reconciliation) -> Iterator[str]:
    best = answer.better
    if best is not None:
        yield f"{best.engine} fits better: it leaves {best.unexplained} numbers unexplained, first {best.first}"


def _variations(answer: Reconciliation, row: Row) -> Iterator[str]:
    for text, changes in _VARIATIONS:
        try:
            tried = answer.plan.with_flags(**changes)
            if tried.deployment == answer.plan.deployment:
                continue
            rows = rows_of(tried, answer.boot)[1]
        except KvplanError:
            continue
        again = next((other for other in rows if (other.name, other.rank) == (row.name, row.rank)), None)
        if again is not None and again.explained:
            yield f"{text} would explain it"


def _hints(answer: Reconciliation, row: Row) -> Iterator[str]:
    deployment, boot = answer.plan.deployment, answer.boot
    sized = row.name in SIZES
    own = _draft_pool(answer) if sized else None
    if own is not None:
        yield own
    elif sized:
        tokens, page = printed_sizes(boot).tokens, deployment.page_size
        if tokens is not None and tokens % page:
            yield f"{tokens:,} is no multiple of this release's page of {page} tokens: an older build"
        seen = len(boot.ranks)
        if logged_memory(boot) is not None and seen < deployment.world_size * deployment.replicas:
            yield (
                f"the log holds {seen} of {deployment.world_size * deployment.replicas} ranks: "
                "one that is not in it may have had less memory free"
            )
        if answer.sizing.band is not None and answer.sizing.taken_gib is not None:
            word = "less" if answer.sizing.taken_gib > 0 else "more"
            yield (
                f"the printed sizes mean {abs(answer.sizing.taken_gib):.2f} GiB {word} free at the sizing than the "
                "last reading: another process, or a reading of another rank"
            )
        elif answer.sizing.memory is not None:
            yield (
                "no amount of free memory gives these sizes together: a flag is not as printed, or the build "
                "budgets its pools differently (a profile of your own: --engine FILE)"
            )
    elif row.name in ("chunked_prefill_size", "max_prefill_tokens", "context_len", "page_size"):
        yield "a flag that the log does not show, or a build that changes the engine's default"
    elif row.name.startswith("free after"):
        yield "something else took GPU memory while the pools were built, or gave some back"
    elif row.rank and "of" in row.name:
        yield "the ranks do not run the same build or the same flags"
    elif "size" in row.name:
        yield "a build whose pools differ from every release known here (a profile of your own: --engine FILE)"


def _draft_pool(answer: Reconciliation) -> str | None:
    """What the log says of the cache of a draft model that is not known here, where there is one."""
    if not answer.plan.deployment.unknown_draft:
        return None
    pool = answer.boot.first("token_pool", 1)
    if pool is None:
        return (
            "the draft model's own token pool, which no budget here pays for: give its config.json with --draft-config"
        )
    gib = sum(float(pool[name]) for name in ("k_gib", "v_gib", "gib") if name in pool)
    rows = int(pool["tokens"]) + answer.plan.deployment.page_size
    return (
        f"the draft model's own token pool takes {gib:.2f} GiB, about {gib * GIB / rows:,.0f} bytes a token, and no "
        "budget here pays for it: give the draft's config.json with --draft-config"
    )
