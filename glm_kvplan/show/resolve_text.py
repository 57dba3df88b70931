"""`kvplan resolve` in the terminal."""

from rich.padding import Padding
from rich.text import Text

from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.show.console import console
from glm_kvplan.show.format import shown
from glm_kvplan.show.headline import headline, layout


def render(plan: Plan) -> None:
    """Print every flag with its value and where it comes from, and under it the reason and its source."""
    out = console()
    out.print(Text(headline(plan), style="bold"))
    out.print(Text(layout(plan), style="dim"))
    flags = max(len(choice.flag) for choice in plan.choices)
    values = max(len(shown(choice.value)) for choice in plan.choices)
    for choice in plan.choices:
        style = "bold" if choice.given else ""
        line = Text(f"{choice.flag.ljust(flags)}  {shown(choice.value).ljust(values)}  ", style=style)
        line.append("given" if choice.given else "engine", style="bold" if choice.given else "dim")
        out.print(line)
        if choice.reason != "given":
            source = f" ({choice.source})" if choice.source else ""
            out.print(Padding(Text(choice.reason + source, style="dim"), (0, 0, 0, 4)))
