"""`kvplan solve` in the terminal."""

from math import isfinite

from rich.table import Table
from rich.text import Text

from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.binding_limits import Limit
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.show.console import HEADROOM_STYLE, console
from glm_kvplan.show.format import about, free_change, three_digits, whole
from glm_kvplan.show.headline import headline, layout, memory_line
from glm_kvplan.show.host_text import render_host
from glm_kvplan.show.map_text import draw_map
from glm_kvplan.show.role_text import render_overrun

_UNITS = ("token", "state slot", "request row")  # what tokens, state slots and running requests move


def render(plan: Plan, answer: Boot, priced: list[Price] | None) -> None:
    """Print what the engine sizes and why, the memory map, and whether the rest is enough to serve from."""
    out = console()
    out.print(Text(headline(plan), style="bold"))
    out.print(Text(layout(plan), style="dim"))
    out.print(Text(memory_line(answer.budget)))
    for note in answer.weight_notes:
        out.print(Text(f"! {note}", style="yellow"))
    if answer.failure is not None:
        _refusal(answer)
        return
    estimated = answer.budget.certainty == "estimated"
    out.print()
    for name, position in (("max_total_num_tokens", 0), ("max_mamba_cache_size", 1), ("max_running_requests", 2)):
        out.print(_size_line(name, answer, position))
    if plan.deployment.attn_dp_size > 1:
        out.print(Text(f"per DP worker; there are {plan.deployment.attn_dp_size}", style="dim"))
    out.print()
    assert answer.limits is not None and answer.map is not None and answer.headroom is not None
    out.print(_limits_line("tokens", answer.limits.tokens, estimated))
    out.print(_limits_line("requests", answer.limits.requests, estimated))
    slots = answer.limits.slots
    out.print(Text(f"state slots follow {slots.name}" + ("" if estimated else f" ({slots.text})")))
    if isfinite(answer.limits.tokens_per_slot):
        out.print(Text(f"one state slot costs as much as {whole(int(answer.limits.tokens_per_slot))} tokens"))
    out.print()
    draw_map(answer.map, out, _unsure(answer))
    out.print(Text(f"\n{answer.headroom.message}", style=HEADROOM_STYLE[answer.headroom.verdict]))
    render_overrun(decode_overrun(rank_of(plan, answer.stage), answer.solution.sizes))
    if answer.host is not None:
        render_host(answer.host, estimated=estimated)
    if priced is not None:
        _prices(priced, estimated)


def _unsure(answer: Boot) -> frozenset[str]:
    """The segments whose tokens, slots or requests the memory's error moves."""
    assert answer.map is not None
    low, high = answer.span
    moved = set(_UNITS)
    if low is not None and high is not None:
        moved = {unit for least, most, unit in zip(low, high, _UNITS, strict=True) if least != most}
    return frozenset(segment.name for segment in answer.map.segments if segment.unit in moved)


def _size_line(name: str, answer: Boot, position: int) -> Text:
    """One of the engine's integers; with its span, to three digits, where the memory is estimated."""
    value = answer.solution.sizes[position]
    ends = [None if sizes is None else sizes[position] for sizes in answer.span]
    line = Text(f"{name}  {about(value, ends):>12}", style="bold")
    least, most = ("refused" if end is None else three_digits(end) for end in ends)
    if least != most:
        line.append(f"   {least} to {most} within the estimate", style="dim not bold")
    return line


def _limits_line(what: str, found: tuple[Limit, ...], estimated: bool) -> Text:
    line = Text(f"{what} are bound by ")
    line.append(found[0].name, style="bold")
    if not estimated:
        line.append(f" ({found[0].text})")
    if len(found) > 1:
        value = f"~{three_digits(found[1].value)}" if estimated else whole(found[1].value)
        line.append(f"; next {found[1].name} at {value}")
    return line


def _refusal(answer: Boot) -> None:
    out = console()
    out.print(Text(f"\nthe engine refuses to start: {answer.failure}", style="bold red"))
    if not answer.remedies:
        out.print(Text("no single flag lets it start"))
        return
    out.print(Text("each of these alone lets it start:"))
    for remedy in answer.remedies:
        out.print(Text(f"  {remedy.text}"))


def _prices(priced: list[Price], estimated: bool) -> None:
    out = console()
    out.print(Text("\nprices: one more unit of a knob; tokens and slots of a DP worker, requests of all"))
    if estimated:
        out.print(Text("~ from the middle of the estimate, to three digits", style="dim"))
    out.print(_price_table(priced, estimated))


def _price_table(priced: list[Price], estimated: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("knob", overflow="fold")
    for name in ("tokens", "slots", "requests", "free GiB"):
        table.add_column(name, justify="right", no_wrap=True)
    for price in priced:
        knob = Text(price.knob).append(f"\n  {price.before} -> {price.after}", style="dim")
        if price.failure is not None:
            table.add_row(knob, Text("refused: " + price.failure.replace("_", " "), style="red"))
            continue
        deltas = [_delta(each, estimated) for each in (price.tokens, price.slots, price.total_requests)]
        table.add_row(knob, *deltas, free_change(price.free_bytes))
    return table


def _delta(number: int, estimated: bool) -> str:
    """`+78,592`, `0`; to three digits where it follows from an estimate."""
    if not number:
        return "0"
    return ("+" if number > 0 else "-") + (three_digits(abs(number)) if estimated else whole(abs(number)))
