"""`kvplan estimate` in the terminal."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from glm_kvplan.answers.pictures.pool_bars import pool_map
from glm_kvplan.engines.component import Ledger
from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.estimate import Estimate, RankEstimate
from glm_kvplan.show.console import ascii_only, console
from glm_kvplan.show.format import SHORT_UNIT, bar, count, decimal, whole
from glm_kvplan.show.headline import headline, layer_span, layout
from glm_kvplan.show.map_text import draw_map
from glm_kvplan.show.role_text import render_overrun

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer

_BAR = 6
_NARROW = 68  # columns; a narrower table would break numbers in two


def render(plan: Plan, answer: Estimate, host: "HostAnswer | None" = None, *, explain: bool) -> None:
    """Print the ledgers of the fullest rank, one request's bill, and what is allocated beside what is charged."""
    out = console()
    rank = answer.largest
    out.print(Text(headline(plan), style="bold"))
    out.print(Text(layout(plan), style="dim"))
    out.print(Text(_sizes_line(plan, answer)))
    if len(answer.stages) > 1:
        span = layer_span(rank.stage)
        out.print(Text(f"the fullest of {len(answer.stages)} pipeline stages: {span}", style="dim"))
    if out.width < _NARROW:
        for line in _ledger_lines(answer, rank):
            out.print(Text(line))
    else:
        out.print(_ledger_table(answer, rank))
    out.print(_request_line(plan, rank, answer))
    out.print(_allocation_table(answer, rank))
    out.print()
    draw_map(pool_map(plan, rank.rank, answer.sizes, 0 if host is None else host.plan.staging_bytes), out)
    for warning in _shortfalls(answer):
        out.print(Text(f"! {warning}", style="yellow"))
    render_overrun(decode_overrun(rank.rank, answer.sizes))
    if host is not None:
        from glm_kvplan.show.host_text import render_host

        render_host(host)
    if explain:
        for ledger in rank.ledgers:
            _explain(ledger)


def _sizes_line(plan: Plan, answer: Estimate) -> str:
    workload, sizes = answer.workload, answer.sizes
    workers = plan.deployment.attn_dp_size * plan.deployment.replicas
    holds = "has room for" if workload.concurrency % workers else "holds"  # not every worker has as many requests
    return (
        f"{whole(workload.concurrency)} x {count(workload.context, 'token')}; a rank {holds}"
        f" {count(sizes.running_requests, 'request')}, {count(sizes.tokens, 'token')},"
        f" {count(sizes.state_slots, 'state slot')}"
    )


def _ledger_table(answer: Estimate, rank: RankEstimate) -> Table:
    total = sum(ledger.total for ledger in rank.ledgers)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_footer=True, footer_style="bold")
    table.add_column("ledger", "total", overflow="fold")
    table.add_column("one unit costs", "", justify="right", overflow="fold")
    table.add_column("units", "", justify="right", overflow="fold")
    table.add_column("one rank", decimal(total), justify="right", overflow="fold")
    everywhere = sum(answer.everywhere(ledger.account.name) for ledger in rank.ledgers)
    table.add_column(count(answer.ranks, "rank"), decimal(everywhere), justify="right", overflow="fold")
    table.add_column("share", "", overflow="fold")
    for ledger in rank.ledgers:
        share = ledger.total / total if total else 0.0
        table.add_row(
            ledger.account.title,
            f"{whole(ledger.bytes_per_unit)} B/{SHORT_UNIT[ledger.account.unit]}",
            whole(ledger.units),
            decimal(ledger.total),
            decimal(answer.everywhere(ledger.account.name)),
            f"{bar(share, _BAR, ascii_only())}{share:4.0%}",
        )
    return table


def _ledger_lines(answer: Estimate, rank: RankEstimate) -> list[str]:
    """The table's rows as sentences."""
    lines = [
        f"{ledger.account.title}: {whole(ledger.units)} x {whole(ledger.bytes_per_unit)} B a "
        f"{SHORT_UNIT[ledger.account.unit]} = {decimal(ledger.total)} on a rank, "
        f"{decimal(answer.everywhere(ledger.account.name))} on {count(answer.ranks, 'rank')}"
        for ledger in rank.ledgers
    ]
    total = sum(ledger.total for ledger in rank.ledgers)
    return [*lines, f"total: {decimal(total)} on a rank"]


def _request_line(plan: Plan, rank: RankEstimate, answer: Estimate) -> Text:
    """One request of the workload: its tokens, its state slots, its rows."""
    deployment = plan.deployment
    tokens = answer.request_tokens
    cost = rank.request_bytes(tokens)
    return Text(
        f"\none request on a rank: {decimal(sum(cost.values()))}"
        f" = {decimal(cost['token'])} for {count(tokens, 'token')}"
        f" + {decimal(cost['state slot'])} for {count(deployment.slots_per_request, 'state slot')}"
        f" + {decimal(cost['request row'])} for its rows\n"
    )


def _allocation_table(answer: Estimate, rank: RankEstimate) -> Table:
    attribution = rank.attribution
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("what one rank's pools take", overflow="fold")
    table.add_column("bytes", justify="right", overflow="fold")
    table.add_column("", justify="right", overflow="fold")
    table.add_row("charged to the engine's budget", whole(attribution.charged), decimal(attribution.charged))
    for part in attribution.parts:
        table.add_row(f"  {part.name}", f"{part.nbytes:+,}", decimal(part.nbytes), style="dim")
    table.add_row("allocated", whole(attribution.allocated), decimal(attribution.allocated), style="bold")
    return table


def _shortfalls(answer: Estimate) -> list[str]:
    """Where sizes that flags fix are smaller than the workload."""
    words = {"tokens": "tokens", "state_slots": "state slots", "running_requests": "running requests"}
    return [
        f"the workload needs {whole(need)} {words[name]} on a rank; the flags give {whole(size)}"
        for name, need, size in zip(answer.need._fields, answer.need, answer.sizes, strict=True)
        if need > size
    ]


def _explain(ledger: Ledger) -> None:
    account, out = ledger.account, console()
    budget = "charged to the engine's budget" if account.charged else "not charged to the engine's budget"
    backup = "can have a copy in DRAM" if account.backed_up else "never copied to DRAM"
    out.print(Text(f"\n{account.title}", style="bold"), Text(f"(per {account.unit}; exact; {budget}; {backup})"))
    out.print(Text(f"  {account.formula}"))
    out.print(Text(f"  = {ledger.formula_in_numbers}"))
    out.print(Text(f"  = {whole(ledger.bytes_per_unit)} B; x {whole(ledger.units)} = {whole(ledger.total)} B"))
    if ledger.written != ledger.bytes_per_unit:
        out.print(Text(f"  reserved; written are {whole(ledger.written)} B of it"))
    out.print(Text(f"  source: {account.source}", style="dim"))
