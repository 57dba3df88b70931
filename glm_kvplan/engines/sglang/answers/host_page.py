"""The section of a page about HiCache's host pools. GB are 10**9 bytes."""

from collections.abc import Iterator
from functools import reduce

from glm_kvplan.engines.sglang.answers.host_shown import FitShown, HostShown, PoolShown
from glm_kvplan.show.format import count, decimal, whole
from glm_kvplan.show.page import Column, Line, Row, Section, Table
from glm_kvplan.show.said import Said, Text, say
from glm_kvplan.units import GB, GIB

_OF_SLOTS = "mamba"  # the pool that holds state slots; the others hold tokens
_TITLE = "Host memory (HiCache)"


def host_section(host: HostShown) -> Section:
    """The pools of the fullest rank and host, and everything that speaks for or against them but the hazards."""
    blocks = tuple(block for section in host_sections(host) for block in section.blocks)
    return Section(blocks, say(_TITLE))


def host_sections(host: HostShown) -> Iterator[Section]:
    """The same in two: whether the pools fit, and as a detail what they are."""
    sized = Line(how_sized(host))
    yield Section((sized,) if host.fit is None else tuple(_about_fit(host)), say(_TITLE))
    pools = (*_about_pools(host), *coverage_lines(host))
    pools = pools if host.fit is None else (sized, *pools)
    yield Section(pools, say("The host pools"), spare=3)


def host_line(taken: int, available: int | None, *, fits: bool = True, at_most: bool = False) -> Line:
    """Pools of `taken` bytes on the fullest host, in one line; `available` is what it has beside the reserve,
    None where nobody said. What does not fit was lowered as far as can be.
    """
    if available is None:
        template = "host pools of {taken}, held against nothing: --host-gib says how much a host has"
        if at_most:
            template = "host pools of up to {taken}, held against nothing: --host-gib says how much a host has"
        return Line(say(template, taken=_gb(taken)), "careful")
    template = "host pools of {taken} fit a host: {available} beside the engine's reserve"
    if not fits:
        template = "no host pools fit a host: these take {taken}, there are {available} beside the engine's reserve"
    return Line(say(template, taken=_gb(taken), available=_gb(max(available, 0))), "good" if fits else "bad")


def _about_pools(host: HostShown) -> Iterator[Line | Table]:
    if host.certainty == "estimated":
        yield Line(say("~ the device pools' sizes are estimated, and with them these"))
    yield pool_table(host)
    if host.packed_draft_layers:
        yield Line(
            say(
                "the draft's layers are packed into these pools: {count} of KV's layers", count=host.packed_draft_layers
            )
        )
    staging = host.fullest.staging_bytes
    if staging:
        yield Line(
            say("on each GPU: {size} of staging buffers, outside the engine's budget", size=decimal(staging)),
        )
    titles = tuple(say(each.title) for each in host.never_copied)
    yield Line(say("never copied to the host: {titles}", titles=titles))


def how_sized(host: HostShown) -> Said:
    """By which of the engine's three rules the pools are sized."""
    stage = host.fullest
    if stage.split_gb is not None:
        kv, states = stage.split_gb
        return say(
            "sized by --hicache-size, GB a rank: {kv} for KV, {states} for states",
            kv=f"{kv:.2f}",
            states=f"{states:.2f}",
        )
    if stage.sizing == "ratio":
        return say("sized by ratio: {ratio} times the device pools", ratio=f"{stage.ratio:g}")
    if host.fit is None:
        return say(
            "sized by ratio: at most {ratio} times the device pools; the engine lowers the ratio at start-up "
            "until host memory holds them (--host-gib tells how far)",
            ratio=f"{stage.ratio:g}",
        )
    return say("sized by the automatic rule: {ratio} times the device pools", ratio=f"{stage.ratio:.3f}")


def pool_table(host: HostShown) -> Table:
    """A row a pool: what it holds, what it costs on the fullest rank and on the fullest host."""
    columns = (
        Column(say("pool")),
        Column(say("capacity"), "count"),
        Column(say("pages"), "count"),
        Column(say("one unit costs"), "count"),
        Column(say("one rank"), "gb"),
        Column(say("host, {ranks}", ranks=count(host.ranks_on_a_host, "rank")), "gb"),
    )
    found = [
        Row(
            (
                pool.name.upper(),
                _holds(pool),
                pool.pages,
                say(
                    "{size} B/{unit}",
                    size=whole(pool.bytes_per_unit),
                    unit="slot" if pool.name == _OF_SLOTS else "token",
                ),
                pool.nbytes,
                pool.bytes_all_ranks,
            )
        )
        for pool in host.fullest.pools
    ]
    total = Row((say("total"), None, None, None, host.bytes_per_rank, max(host.bytes_by_host)), "strong")
    return Table(columns, (*found, total))


def _holds(pool: PoolShown) -> Said:
    return say("{units} slots" if pool.name == _OF_SLOTS else "{units} tokens", units=whole(pool.units))


def _about_fit(host: HostShown) -> Iterator[Line]:
    fit = host.fit
    if fit is None:
        return
    known = _known(host, fit)
    if fit.refused is not None:
        yield Line(say("the engine refuses to start: {reason}", reason=fit.refused), "bad")
    if fit.spare_bytes < 0:
        yield Line(say("does not fit: {known}: {size} too little", known=known, size=_gb(-fit.spare_bytes)), "bad")
    elif fit.refused is None:
        yield Line(say("fits: {known}: {size} to spare", known=known, size=_gb(fit.spare_bytes)), "good")
    largest: list[Text] = [
        f"{flag} {value:g}"
        for flag, value in (("--hicache-ratio", fit.largest_ratio), ("--hicache-size", fit.largest_size))
        if value is not None
    ]
    if largest:
        yield Line(say("the most that fits: {flags}", flags=reduce(_or, largest[1:], largest[0])))
    else:
        yield Line(say("no ratio and no size fits"))


def _known(host: HostShown, fit: FitShown) -> Said:
    parts = []
    if host.given.host_bytes is not None:
        parts.append(say("{size} GiB on a host", size=f"{host.given.host_bytes / GIB:g}"))
    if host.given.pod_bytes is not None:
        parts.append(say("{size} GiB for its container", size=f"{host.given.pod_bytes / GIB:g}"))
    both = say("{one} and {other}", one=parts[0], other=parts[1]) if len(parts) == 2 else parts[0]
    return say("{known}, {size} GiB of it reserved by the engine", known=both, size=f"{fit.reserve_bytes / GIB:g}")


def coverage_lines(host: HostShown) -> Iterator[Line]:
    """What the two tiers hold of the workload's prefixes, and the flag that balances them."""
    covered = host.coverage
    yield Line(
        say(
            "prefixes of {tokens} in one rank's host memory: KV for {kv}, states for {states}",
            tokens=count(covered.prefix_tokens, "token"),
            kv=whole(covered.kv_prefixes),
            states=whole(covered.state_prefixes),
        )
    )
    if host.level is not None:
        level = host.level
        yield Line(
            say(
                "--max-mamba-cache-size {slots} would hold {prefixes} whole, "
                "and leave {tokens} and {requests} on the GPU",
                slots=level.max_mamba_cache_size,
                prefixes=whole(level.coverage.usable_prefixes),
                tokens=count(level.sizes.tokens, "token"),
                requests=count(level.sizes.running_requests, "request"),
            )
        )
    elif host.better is not None:
        better = host.better
        yield Line(
            say(
                "with {share} of them for states the same bytes hold {prefixes} whole: "
                "about --max-mamba-cache-size {slots}",
                share=f"{better.state_share:.0%}",
                prefixes=whole(better.prefixes),
                slots=better.max_mamba_cache_size,
            )
        )


def _or(one: Text, other: Text) -> Said:
    return say("{one} or {other}", one=one, other=other)


def _gb(nbytes: int) -> str:
    return f"{nbytes / GB:,.2f} GB"
