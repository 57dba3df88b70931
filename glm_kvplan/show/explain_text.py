"""`kvplan explain` in the terminal."""

import textwrap

from rich.text import Text

from glm_kvplan.answers.explain.location_topic import Place
from glm_kvplan.answers.explain.topic import Explanation
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.show.console import ascii_only, console
from glm_kvplan.show.format import SHORT_UNIT, whole
from glm_kvplan.show.headline import headline, layout

_READS = {"right": "green", "wrong": "red"}
_NAME, _PRICE, _TREE = 25, 20, 15


def render_topics(titles: dict[str, str]) -> None:
    """Print the topics, one a line."""
    out = console()
    width = max(map(len, titles))
    for name, title in titles.items():
        line = Text(name.ljust(width + 2), style="bold")
        out.print(line.append(title, style="not bold"))


def render(plan: Plan, found: Explanation) -> None:
    """Print one topic: sentences, the numbers of both readings, formula and source."""
    out = console()
    out.print(Text(found.title, style="bold"))
    out.print(Text(f"{headline(plan)}: {layout(plan)}", style="dim"))
    out.print()
    for sentence in found.lines:
        out.print(Text(sentence))
    if found.figures:
        out.print()
        width = max(len(whole(figure.value)) for figure in found.figures)
        for figure in found.figures:
            line = Text(figure.reading.ljust(6), style=_READS[figure.reading])
            line.append(f"{whole(figure.value).rjust(width)} {figure.unit}  {figure.says}", style="default")
            out.print(line)
    if found.formula:
        out.print()
        out.print(Text(found.formula))
        out.print(Text(f"= {found.numbers}"))
    out.print(Text(f"source: {found.source}", style="dim"))


def render_where(plan: Plan, places: tuple[Place, ...]) -> None:
    """Draw the map: HBM by pool on the left, the radix tree's component, the DRAM pool on the right."""
    out = console()
    plain, narrow = ascii_only(), out.width < _NAME + _PRICE + _TREE + 10
    out.print(Text(f"{headline(plan)}: {layout(plan)}", style="dim"))
    out.print()
    hicache = "DRAM" if plan.deployment.enable_hierarchical_cache else "DRAM (off)"
    head = f"{'HBM of one rank'.ljust(_NAME + _PRICE + 2)}  {'radix tree'.ljust(_TREE)}{hicache}"
    if not narrow:
        out.print(Text(head, style="bold"))
    pool = ""
    for number, place in enumerate(places):
        if place.pool != pool:
            pool = place.pool
            out.print(Text(pool, style="bold cyan"))
        last = number + 1 == len(places) or places[number + 1].pool != pool
        for line in _narrow_lines(place, last, plain) if narrow else [_place_line(place, last, plain)]:
            out.print(line)
    out.print()
    for place in places:
        said = f"{place.location.title}: {place.location.reason}"
        out.print(Text("\n".join(textwrap.wrap(said, out.width, subsequent_indent="  ")), style="dim"))
    out.print()
    out.print(Text("\n".join(textwrap.wrap(_tree_line(plan), out.width))))


def _place_line(place: Place, last: bool, plain: bool) -> Text:
    line = Text(f"{_branch(last, plain)} {place.location.title.ljust(_NAME - 1)}{_price(place).rjust(_PRICE)}  ")
    return line.append_text(_copy(place, plain))


def _narrow_lines(place: Place, last: bool, plain: bool) -> list[Text]:
    """The same on three lines: nothing is cut where a terminal has no room for one."""
    under = " " * 3 if last else "|  " if plain else "│  "
    return [
        Text(f"{_branch(last, plain)} {place.location.title}"),
        Text(f"{under}{_price(place)}"),
        Text(under).append_text(_copy(place, plain)),
    ]


def _branch(last: bool, plain: bool) -> str:
    return ("`-" if plain else "└─") if last else ("|-" if plain else "├─")


def _price(place: Place) -> str:
    return f"{whole(place.location.bytes_per_unit)} B/{SHORT_UNIT[place.location.unit]}"


def _copy(place: Place, plain: bool) -> Text:
    """`FULL ----> KV`, or that there is no copy."""
    tree, host_pool = place.location.tree or "", place.location.host_pool
    if host_pool is None:
        return Text(tree.ljust(_TREE)).append("no copy", style="dim")
    shaft = ("-" if plain else "─") * (_TREE - len(tree) - 3) + (">" if plain else "▶")
    return Text(f"{tree} {shaft} ").append(host_pool, style="green")


def _tree_line(plan: Plan) -> str:
    if plan.deployment.disable_radix_cache:
        return "There is no radix tree: the prefix cache is off."
    return (
        f"The tree holds indices, no bytes. FULL: a prefix's token slots, in pages of {plan.deployment.page_size}; "
        "MAMBA: one state slot a checkpoint. Each has a second index where DRAM has a copy."
    )
