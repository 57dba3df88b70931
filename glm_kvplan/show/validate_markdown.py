"""`kvplan validate --report FILE`: a record a team can file."""

from glm_kvplan.allocate.validation import Validation, environment
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools
from glm_kvplan.show.format import whole
from glm_kvplan.show.headline import headline, layer_span, layout
from glm_kvplan.show.rank_words import explained, sizes_line, verdict


def markdown(pools: RankPools, found: Validation[PoolSizes]) -> str:
    """Machine, versions, inputs, every tensor, the three measures and the verdict."""
    free = "" if found.free_bytes is None else f", {whole(found.free_bytes)} B free before"
    lines = [
        "# kvplan validate",
        "",
        f"**{verdict(found)}**",
        "",
        f"- {headline(pools.plan)}",
        f"- {layout(pools.plan)}",
        f"- pipeline rank {pools.pp_rank}, {layer_span(pools.stage)}",
        f"- sizes: {sizes_line(pools.sizes)}",
        f"- device: {found.device.name} ({found.device.description}){free}, {whole(found.keep_free)} B kept free",
        f"- tensors built by {found.built_by}, {'zero-filled' if found.touched else 'not touched'}, "
        f"{found.seconds:.2f} s",
    ]
    if found.scale != 1:
        lines.append(f"- scaled to {float(found.scale):.4%} to fit: {sizes_line(found.sizes)}")
    lines += [f"- {name}: {value}" for name, value in environment().items()]
    lines += ["", "## Flags", "", "```"]
    lines += [f"{name} = {value}" for name, value in pools.plan.flags.items()] or ["(none)"]
    lines += ["```", "", "## Tensors", "", "| tensor | n | dtype | shape | predicted, B | taken, B | |"]
    lines += ["| --- | ---: | --- | --- | ---: | ---: | --- |"]
    for row in found.rows:
        spec = row.spec
        taken = "absent" if row.taken is None else whole(row.taken.nbytes)
        lines.append(
            f"| `{spec.name}` | {spec.count} | {spec.dtype} | {list(spec.shape)} | {whole(spec.nbytes)} | {taken} | "
            f"{'equal' if row.equal else '**differs**'} |"
        )
    lines += [f"| **total** | | | | {whole(found.predicted)} | {whole(found.taken)} | |", ""]
    lines += [f"- not predicted: {name}" for name in found.unexpected]
    lines += ["## Measures", "", "| measure | bytes | to tensors | explained by |", "| --- | ---: | ---: | --- |"]
    for measure in found.measures:
        nbytes = "-" if measure.nbytes is None else whole(measure.nbytes)
        difference = "-" if measure.difference is None else f"{measure.difference:+,}"
        note = explained(measure.explained) + measure.explanation
        lines.append(f"| {measure.name} | {nbytes} | {difference} | {note} |")
    return "\n".join(lines) + "\n"
