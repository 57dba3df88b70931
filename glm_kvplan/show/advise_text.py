"""`kvplan advise` in the terminal."""

from collections.abc import Sequence

from rich.text import Text

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.advice import Advice
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.show.console import console
from glm_kvplan.show.flag_words import flag_word
from glm_kvplan.show.format import count, gib, whole
from glm_kvplan.show.headline import headline, layout, memory_line
from glm_kvplan.units import GIB


def render(
    plan: Plan,
    demand: Demand,
    answer: Advice,
    budget: MemoryBudget,
    span: tuple[int, int],
    weight_notes: Sequence[str],
) -> None:
    """Print the flags to paste, the proof that they serve the demand, or what is short and which layouts are not.

    `span` is how many requests they serve at the ends of the memory's error.
    """
    out = console()
    out.print(Text(headline(plan), style="bold"))
    out.print(Text(layout(plan), style="dim"))
    out.print(Text(memory_line(budget)))
    for note in weight_notes:
        out.print(Text(f"! {note}", style="yellow"))
    out.print(Text(f"wanted: {count(demand.concurrency, 'request')} at once, contexts of {_contexts(demand.contexts)}"))
    if answer.solution is not None:
        out.print(Text("\nflags to add:", style="bold"))
        for name, value in answer.flags.items():
            out.print(Text(f"  {flag_word(name, value)}"))
        _proof(plan, demand, answer, span)
    if answer.shortage is not None:
        _shortage(answer)


def _proof(plan: Plan, demand: Demand, answer: Advice, span: tuple[int, int]) -> None:
    out, solution = console(), answer.solution
    assert solution is not None
    per = " per DP worker" if plan.deployment.attn_dp_size > 1 else ""
    out.print(
        Text(
            f"\nthe engine then sizes{per} {count(solution.tokens, 'token')}, "
            f"{count(solution.state_slots, 'state slot')}, {count(solution.running_requests, 'running request')}"
        )
    )
    style = "green" if answer.holds else "yellow"
    out.print(
        Text(
            f"serves {whole(answer.served.requests)} of {count(demand.concurrency, 'request')} at once; "
            f"its own split would serve {whole(answer.default.requests)} (bound by {answer.default.limit})",
            style=style,
        )
    )
    if span[0] < span[1]:
        out.print(
            Text(
                f"{whole(span[0])} to {whole(span[1])} within the memory's estimate; --pre-gib and --available-gib "
                "of a boot log settle it",
                style="yellow",
            )
        )
    if answer.conversations_kept:
        out.print(Text(f"keeps {count(answer.conversations_kept, 'finished conversation')} cached on a worker"))
    room = answer.room
    style = "green" if room.free >= room.needed + room.unsure else "yellow" if room.free >= room.needed else "red"
    out.print(
        Text(
            f"{gib(room.free)} stay free; serving takes ~{gib(room.needed)} of it, estimated to {gib(room.unsure)}",
            style=style,
        )
    )


def _shortage(answer: Advice) -> None:
    out, shortage = console(), answer.shortage
    assert shortage is not None
    more = "" if shortage.missing_bytes is None else f"; {shortage.missing_bytes / GIB:,.1f} GiB more a rank would do"
    out.print(
        Text(
            f"\n{count(shortage.missing_requests, 'request')} short, bound by {shortage.limit}{more}", style="bold red"
        )
    )
    if not answer.layouts:
        out.print(Text("no layout nearby serves it all"))
        return
    out.print(Text("the nearest layouts that serve it all:"))
    for nearby in answer.layouts:
        flags = " ".join(flag_word(name, value) for name, value in nearby.changes.items())
        how = " (its memory estimated)" if nearby.estimated else ""
        out.print(Text(f"  {nearby.gpus:>3} GPUs  {flags}{how}"))


def _contexts(contexts: Contexts) -> str:
    if len(contexts.lengths) == 1:
        return count(contexts.longest, "token")
    return f"{len(contexts.lengths)} lengths up to {whole(contexts.longest)} tokens, {contexts.mean:,.0f} on average"
