"""The answer in a sentence, and what stands around it."""

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.engines.flag_words import flag_word
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.show.format import gib, whole
from glm_kvplan.show.words import Words


def subtitle(seen: Picture, words: Words) -> str:
    """Model, engine and GPUs."""
    plan = seen.plan
    text = words("subtitle", model=plan.model.name, engine=plan.profile.release, gpus=gpus(seen))
    return text + (words("assumed") if plan.gpu_assumed else "")


def gpus(seen: Picture) -> str:
    """`8 × H200`."""
    deployment = seen.plan.deployment
    return f"{deployment.world_size * deployment.replicas} × {seen.plan.gpu.name}"


def wanted(seen: Picture, words: Words) -> str:
    return words("wanted", requests=whole(seen.demand.concurrency), contexts=contexts(seen, words))


def contexts(seen: Picture, words: Words) -> str:
    """The context lengths of the workload in words."""
    lengths = seen.demand.contexts
    if len(lengths.lengths) == 1:
        text = words("contexts_one", length=whole(lengths.longest))
    else:
        text = words(
            "contexts_mix",
            count=len(lengths.lengths),
            longest=whole(lengths.longest),
            mean=f"{lengths.mean:,.0f}",
        )
    kept = seen.demand.checkpoints
    return words("contexts_checkpoints", text=text, count=whole(kept)) if kept else text


def verdict(seen: Picture, words: Words) -> tuple[str, str, tuple[str, ...]]:
    """The sentence, its mood ("yes", "tight" or "no"), and the remarks that belong to it."""
    answer = seen.boot
    if answer.failure is not None:
        remarks = _advice(seen, words)
        if answer.remedies:
            flags = ", ".join(remedy.text for remedy in answer.remedies)
            remarks = (words("remedies", flags=flags), *remarks)
        return words("verdict_refused", reason=str(answer.failure)), "no", remarks
    assert answer.headroom is not None
    given = {
        "wanted": whole(seen.demand.concurrency),
        "served": whole(seen.served.requests),
        "contexts": contexts(seen, words),
        "gpus": gpus(seen),
        "limit": words.term(seen.served.limit),
    }
    remarks = (*_room(seen, words), *_span(seen, words), *_advice(seen, words))
    bound = answer.budget.upper_bound
    if bound:
        given["served"] = words("at_most", value=given["served"])
        remarks = (words("upper_bound", uncounted=words.term(answer.budget.uncounted)), *remarks)
    if answer.headroom.verdict == "short":
        return _dies(seen, words), "no", remarks
    if seen.served.requests < seen.demand.concurrency:
        return words("verdict_no", **given), "no", remarks
    if answer.host is not None and not answer.host.fits:
        return words("verdict_host"), "no", remarks
    if bound:
        return words("verdict_at_most", **given), "tight", remarks
    tight = answer.headroom.verdict == "tight" or seen.span[0] < seen.demand.concurrency
    return words("verdict_yes", **given), "tight" if tight else "yes", remarks


def _dies(seen: Picture, words: Words) -> str:
    room, needs = seen.boot.headroom, seen.boot.needs
    assert room is not None and needs is not None
    if room.free < 0:
        return words("verdict_over", over=gib(-room.free))
    return words("verdict_short", prompt=whole(needs.prompt_tokens), free=gib(room.free), needed=gib(room.needed))


def _room(seen: Picture, words: Words) -> tuple[str, ...]:
    """Whether what stays free is enough to serve from, in a sentence of either language."""
    room, needs = seen.boot.headroom, seen.boot.needs
    assert room is not None and needs is not None
    lower = words("room_lower")
    if room.verdict == "short":
        return (lower,)
    items = words("comma").join(f"{words.term(item.name)} ~{gib(item.nbytes)}" for item in needs.items)
    free = gib(room.free)
    given = {
        "free": words("at_most", value=free) if seen.boot.budget.upper_bound else free,
        "prompt": whole(needs.prompt_tokens),
        "needed": gib(room.needed),
        "items": items,
        "unsure": gib(needs.unsure_bytes),
    }
    if room.verdict == "fits":
        return (words("room_fits", **given),)
    if room.free < room.needed + needs.unsure_bytes:
        return (f"{words('room_tight', **given)} {lower}",)
    assert needs.largest_context is not None
    return (f"{words('room_batch', limit=whole(needs.largest_context), **given)} {lower}",)


def _span(seen: Picture, words: Words) -> tuple[str, ...]:
    budget = seen.boot.budget
    if budget.how == "measured" or budget.upper_bound:
        return ()
    low, high = (whole(end) for end in seen.span)
    return (words("span", error=f"±{max(budget.error_gib, 0.1):.1f} GiB", low=low, high=high),)


def _advice(seen: Picture, words: Words) -> tuple[str, ...]:
    """What the advised flags would serve, where the plan serves less; the nearest layout where they do not either."""
    advice, demand = seen.advice, seen.demand
    if seen.boot.failure is None and seen.served.requests >= demand.concurrency:
        return ()
    if advice.solution is None:
        found = [words("advised_none")]
    else:
        served = whole(advice.served.requests)
        found = [words("advised_more", served=served, wanted=whole(demand.concurrency))]
    if advice.layouts:
        nearest = advice.layouts[0]
        flags = " ".join(flag_word(FLAG, name, value) for name, value in nearest.changes.items())
        found.append(words("layout_first", gpus=whole(nearest.gpus), flags=flags))
    return tuple(found)
