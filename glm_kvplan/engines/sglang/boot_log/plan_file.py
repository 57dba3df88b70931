"""A deployment file for `kvplan check`, with the memory that was measured: the next change starts from it."""

from glm_kvplan.engines.sglang.boot_log.calibrated import exact_reading, taken_after_pools
from glm_kvplan.engines.sglang.boot_log.log_launch import shortest_flags
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation


def plan_document(answer: Reconciliation, source: str) -> dict[str, object]:
    """The file's content; as `expect` it has what the server now holds.

    `available_gib` is the memory that gives exactly the printed sizes, where there is such: it is what the engine
    read when it sized its pools, a little less than the log's last line.
    """
    plan, sizing = answer.plan, answer.sizing
    flags = shortest_flags(plan, answer.gpu_guessed)
    nodes = flags.pop("nnodes", 1)
    document: dict[str, object] = {
        "model": str(answer.boot.arguments.get("model_path", plan.model.name)),
        "engine": answer.engine,
        "gpu": plan.gpu.name,
        "nodes": nodes,
        "flags": flags,
    }
    if plan.environment:
        document["environment"] = dict(plan.environment)
    memory = _memory(answer, source)
    if memory:
        document["memory"] = memory
    sizes = sizing.sizes
    if sizes is not None:
        workers = plan.deployment.attn_dp_size * plan.deployment.replicas
        document["expect"] = {
            "min_total_tokens": sizes.tokens * workers,
            "max_running_requests": sizes.running_requests * workers,
        }
    return document


def _memory(answer: Reconciliation, source: str) -> dict[str, object]:
    sizing = answer.sizing
    band, memory = sizing.band, sizing.memory
    if memory is None:
        if band is None:
            return {}
        weights = answer.boot.first("weights")
        return {
            "pre_gib": sizing.pre_gib,
            "available_gib": round(band.middle_gib, 6),
            **({} if weights is None else {"target_weights_gib": float(weights["usage"])}),
            "source": f"{source}: no memory printed; the budget that the printed sizes imply, from the card's total",
        }
    exact = exact_reading(answer)
    how = "printed readings" if exact is None else "the reading that gives the printed sizes exactly"
    measured: dict[str, object] = {
        "pre_gib": memory.pre_gib,
        "available_gib": memory.available_gib if exact is None else round(exact, 6),
        "target_weights_gib": memory.target_weights_gib,
    }
    if memory.draft_weights_gib is not None:
        measured["draft_weights_gib"] = memory.draft_weights_gib
    graphs = taken_after_pools(answer.boot)
    if graphs is not None:
        measured["graphs_gib"] = round(graphs, 6)
    return {**measured, "source": f"{source}: {how}"}
