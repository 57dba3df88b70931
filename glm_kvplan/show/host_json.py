"""What JSON answers say of HiCache's host pools and of a PD decode server's room (schema: docs/json.md)."""

from typing import TYPE_CHECKING, Any

from glm_kvplan.engines.sglang.components.decode_overrun import DecodeOverrun

if TYPE_CHECKING:  # most answers have no host pools
    from glm_kvplan.engines.sglang.components.host_pools import HostPool
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer, Level
    from glm_kvplan.engines.sglang.sizing.host_coverage import Balance, Coverage
    from glm_kvplan.engines.sglang.sizing.host_fit import HostFit
    from glm_kvplan.engines.sglang.sizing.host_sizes import HostPlan


def host_document(answer: "HostAnswer | None", certainty: str = "exact") -> dict[str, Any] | None:
    """The `host` of an answer, as sure as the device pools' sizes are; None where HiCache is off."""
    if answer is None:
        return None
    return {
        "given": answer.given._asdict(),
        "stages": [_plan(plan) for plan in answer.plans],
        "packed_draft_layers": answer.packed_layers,
        "bytes_per_rank": answer.plan.nbytes,
        "bytes_by_host": list(answer.host_bytes),
        "ranks_on_a_host": answer.ranks,
        "never_copied": [place.name for place in answer.never_copied],
        "fit": None if answer.fit is None else _fit(answer.fit),
        "coverage": _coverage(answer.coverage),
        "balance": None if answer.balance is None else _balance(answer.balance),
        "level": None if answer.level is None else _level(answer.level),
        "hazards": [hazard._asdict() for hazard in answer.hazards],
        "certainty": certainty,
    }


def overrun_document(overrun: DecodeOverrun | None) -> dict[str, Any] | None:
    """The `decode_overrun` of an answer; None unless the server is, or may become, a PD decode server."""
    if overrun is None:
        return None
    return {
        **overrun._asdict(),
        "parts": [{"name": name, "bytes": nbytes} for name, nbytes in overrun.parts],
        "bytes": overrun.nbytes,
        "slot_factor": overrun.slot_factor,
    }


def _plan(plan: "HostPlan") -> dict[str, Any]:
    split = None if plan.split is None else {"kv": plan.split[0], "mamba": plan.split[1]}
    return {
        "sizing": plan.sizing,
        "ratio": plan.ratio,
        "split_gb": split,
        "budget_bytes": plan.budget_bytes,
        "pools": [_pool(pool) for pool in plan.pools],
        "bytes": plan.nbytes,
        "staging_bytes": plan.staging_bytes,
    }


def _pool(pool: "HostPool") -> dict[str, Any]:
    account = pool.ledger.account
    return {
        "name": pool.name,
        "units": pool.units,
        "pages": pool.pages,
        "page_size": pool.page_size,
        "layers": pool.layers,
        "row_bytes": pool.row_bytes,
        "bytes": pool.nbytes,
        "requested_bytes": pool.requested_bytes,
        "staging_bytes": pool.staging_bytes,
        "formula": account.formula,
        "terms": dict(pool.ledger.terms),
        "source": account.source,
    }


def _coverage(found: "Coverage") -> dict[str, Any]:
    return {**found._asdict(), "usable_prefixes": found.usable_prefixes, "fraction": found.fraction}


def _balance(found: "Balance") -> dict[str, Any]:
    return {**found._asdict(), "state_share": found.state_share}


def _level(found: "Level") -> dict[str, Any]:
    return {
        "max_mamba_cache_size": found.max_mamba_cache_size,
        "sizes_per_rank": found.sizes._asdict(),
        "coverage": _coverage(found.coverage),
    }


def _fit(fit: "HostFit") -> dict[str, Any]:
    return {
        "fits": fit.fits,
        "available_bytes": fit.available_bytes,
        "spare_bytes": fit.spare_bytes,
        "refused": fit.refused,
        "largest_ratio": fit.largest_ratio,
        "largest_size": fit.largest_size,
    }
