"""A rank's memory map as a chart."""

from glm_kvplan.engines.sglang.answers.map_shown import MapShown
from glm_kvplan.engines.sglang.sizing.memory_map import FREE
from glm_kvplan.engines.sglang.sizing.pool_map import REST, Segment
from glm_kvplan.show.page import Bar, Stack
from glm_kvplan.show.said import say
from glm_kvplan.show.text_bars import bar_size

_OUTSIDE = "*"
_LOOKS = (
    ("loaded", say("before the pools")),
    ("charged", say("pools in the budget")),
    ("uncharged", say("pools outside it")),
    ("free", say("free")),
    ("alarm", say("over")),
)


def map_stack(memory: MapShown, unsure: frozenset[str] = frozenset()) -> Stack:
    """The map to scale. `unsure` names pools whose tokens, slots or requests are estimated: exact is what one of them
    costs, no more.
    """
    bars = tuple(
        Bar(
            say(segment.name),
            segment.nbytes,
            _look(segment),
            segment.certainty == "estimated" or segment.name in unsure,
            _OUTSIDE if segment.components and not segment.charged else "",
        )
        for segment in memory.segments
    )
    parts = tuple(say("{name} {size}", name=bar.name, size=bar_size(bar)) for bar in bars)
    return Stack(
        "map",
        say("One rank's memory, to scale"),
        bars,
        memory.total_bytes,
        say("Bars to scale: {parts}.", parts=parts),
        tuple((look, text) for look, text in _LOOKS if any(bar.look == look for bar in bars)),
        ((_OUTSIDE, say("outside the engine's budget")),),
    )


def _look(segment: Segment) -> str:
    if segment.name in (FREE, REST):
        return "free" if segment.nbytes >= 0 else "alarm"
    if not segment.components:
        return "loaded"
    return "charged" if segment.charged else "uncharged"
