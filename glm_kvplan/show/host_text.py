"""HiCache's host pools in the terminal: sizes, whether the host holds them, coverage, hazards. GB are 10**9 bytes."""

from rich.table import Table
from rich.text import Text

from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer
from glm_kvplan.engines.sglang.sizing.host_fit import HostFit
from glm_kvplan.engines.sglang.sizing.host_sizes import RESERVE_BYTES
from glm_kvplan.show.console import console
from glm_kvplan.show.format import count, decimal, whole
from glm_kvplan.units import GB, GIB

_HOLDS = {"kv": "tokens", "mamba": "slots", "indexer": "tokens"}
_UNIT = {"kv": "token", "mamba": "slot", "indexer": "token"}


def render_host(answer: HostAnswer, *, estimated: bool = False) -> None:
    """Print the host pools of the fullest rank and host, and everything that speaks for or against them.

    `estimated`: the device pools they follow are.
    """
    out = console()
    out.print()
    out.print(Text("Host memory (HiCache)", style="bold"))
    out.print(Text(how_sized(answer)))
    if estimated:
        out.print(Text("~ the device pools' sizes are estimated, and with them these"))
    out.print(_pool_table(answer))
    if answer.packed_layers:
        out.print(Text(f"the draft's layers are packed into these pools: {answer.packed_layers} of KV's layers"))
    staging = answer.plan.staging_bytes
    if staging:
        out.print(Text(f"on each GPU: {decimal(staging)} of staging buffers, outside the engine's budget"))
    names = ", ".join(place.title for place in answer.never_copied)
    out.print(Text(f"never copied to the host: {names}"))
    if answer.fit is not None:
        for line, style in _fit_lines(answer, answer.fit):
            out.print(Text(line, style=style))
    for line in coverage_lines(answer):
        out.print(Text(line))
    for hazard in answer.hazards:
        out.print(Text(f"! {hazard.message}", style="yellow"))


def how_sized(answer: HostAnswer) -> str:
    """By which of the engine's three rules the pools are sized."""
    plan = answer.plan
    if plan.split is not None:
        kv, state = plan.split
        return f"sized by --hicache-size, GB a rank: {kv:.2f} for KV, {state:.2f} for states"
    if plan.sizing == "ratio":
        return f"sized by ratio: {plan.ratio:g} times the device pools"
    if answer.fit is None:
        return (
            f"sized by ratio: at most {plan.ratio:g} times the device pools; the engine lowers the ratio at start-up "
            "until host memory holds them (--host-gib tells how far)"
        )
    return f"sized by the automatic rule: {plan.ratio:.3f} times the device pools"


def _pool_table(answer: HostAnswer) -> Table:
    plan = answer.plan
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", show_footer=True, footer_style="bold")
    table.add_column("pool", "total", no_wrap=True)
    table.add_column("holds", no_wrap=True, justify="right")
    table.add_column("pages", no_wrap=True, justify="right")
    table.add_column("one unit costs", no_wrap=True, justify="right")
    table.add_column("one rank", _gb(plan.nbytes), no_wrap=True, justify="right")
    ranks = f"host, {count(answer.ranks, 'rank')}"
    table.add_column(ranks, _gb(answer.fullest_bytes), no_wrap=True, justify="right")
    for pool, everywhere in zip(plan.pools, answer.pool_bytes, strict=True):
        table.add_row(
            pool.name.upper(),
            f"{whole(pool.units)} {_HOLDS[pool.name]}",
            whole(pool.pages),
            f"{whole(pool.bytes_per_unit)} B/{_UNIT[pool.name]}",
            _gb(pool.nbytes),
            _gb(everywhere),
        )
    return table


def _fit_lines(answer: HostAnswer, fit: HostFit) -> list[tuple[str, str]]:
    given = answer.given
    known = " and ".join(
        f"{size / GIB:g} GiB {what}"
        for size, what in ((given.host_bytes, "on a host"), (given.pod_bytes, "for its container"))
        if size is not None
    )
    known += f", {RESERVE_BYTES / GIB:g} GiB of it reserved by the engine"
    lines = []
    if fit.refused is not None:
        lines.append((f"the engine refuses to start: {fit.refused}", "bold red"))
    if fit.spare_bytes < 0:
        lines.append((f"does not fit: {known}: {_gb(-fit.spare_bytes)} too little", "bold red"))
    elif fit.refused is None:
        lines.append((f"fits: {known}: {_gb(fit.spare_bytes)} to spare", "green"))
    best = [
        f"{flag} {value:g}"
        for flag, value in (("--hicache-ratio", fit.largest_ratio), ("--hicache-size", fit.largest_size))
        if value is not None
    ]
    lines.append((f"the most that fits: {' or '.join(best)}" if best else "no ratio and no size fits", ""))
    return lines


def coverage_lines(answer: HostAnswer) -> list[str]:
    """What the two tiers hold of the workload's prefixes, and the flag that balances them."""
    covered = answer.coverage
    lines = [
        f"prefixes of {count(covered.prefix_tokens, 'token')} in one rank's host memory: KV for "
        f"{whole(covered.kv_prefixes)}, states for {whole(covered.state_prefixes)}"
    ]
    best = answer.level
    if best is not None:
        lines.append(
            f"--max-mamba-cache-size {best.max_mamba_cache_size} would hold {whole(best.coverage.usable_prefixes)} "
            f"whole, and leave {count(best.sizes.tokens, 'token')} and {count(best.sizes.running_requests, 'request')} "
            "on the GPU"
        )
    elif answer.better is not None:
        better = answer.better
        lines.append(
            f"with {better.state_share:.0%} of them for states the same bytes hold {whole(better.prefixes)} whole: "
            f"about --max-mamba-cache-size {better.max_mamba_cache_size}"
        )
    return lines


def _gb(count: int) -> str:
    return f"{count / GB:,.2f} GB"
