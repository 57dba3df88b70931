"""A rank's memory map as a chart."""

from glm_kvplan.engines.sglang.answers.map_shown import MapShown
from glm_kvplan.engines.sglang.sizing.memory_map import FREE
from glm_kvplan.engines.sglang.sizing.pool_map import REST, Segment
from glm_kvplan.show.chart import Bar, Look, Stack
from glm_kvplan.show.said import Said, say
from glm_kvplan.show.text_bars import bar_size

_OUTSIDE = "*"
_LOOKS: tuple[tuple[Look, Said], ...] = (
    ("loaded", say("before the pools")),
    ("latent", say("latent rows")),
    ("index", say("index keys")),
    ("states", say("states")),
    ("other", say("other pools")),
    ("free", say("free")),
    ("alarm", say("over")),
)
_SMALL = 250  # parts of the whole


def map_stack(memory: MapShown, unsure: frozenset[str] = frozenset(), *, fold: bool = False) -> Stack:
    """The map to scale. `unsure` names pools whose tokens, slots or requests are estimated: exact is what one of them
    costs, no more. `fold`: pools outside the budget that would hardly be seen are one bar.
    """
    small = [each for each in memory.segments if _outside(each) and each.nbytes * _SMALL < memory.total_bytes]
    if not fold or len(small) < 2:
        small = []
    bars = [_bar(segment, unsure) for segment in memory.segments if segment not in small]
    if small:
        name = say("{count} small pools", count=len(small))
        estimated = any(_bar(segment, unsure).estimated for segment in small)
        nbytes = sum(segment.nbytes for segment in small)
        last = bars.pop() if not memory.segments[-1].components else None
        bars += [Bar(name, nbytes, "other", estimated, _OUTSIDE), *([] if last is None else [last])]
    parts = tuple(say("{name} {size}", name=bar.name, size=bar_size(bar)) for bar in bars)
    return Stack(
        "map",
        say("One rank's memory, to scale"),
        tuple(bars),
        memory.total_bytes,
        say("Bars to scale: {parts}.", parts=parts),
        tuple((look, text) for look, text in _LOOKS if any(bar.look == look for bar in bars)),
        ((_OUTSIDE, say("outside the engine's budget")),),
    )


def _bar(segment: Segment, unsure: frozenset[str]) -> Bar:
    estimated = segment.certainty == "estimated" or segment.name in unsure
    return Bar(say(segment.name), segment.nbytes, _look(segment), estimated, _OUTSIDE if _outside(segment) else "")


def _outside(segment: Segment) -> bool:
    return bool(segment.components) and not segment.charged


def _look(segment: Segment) -> Look:
    if segment.name in (FREE, REST):
        return "free" if segment.nbytes >= 0 else "alarm"
    return (segment.ledger or "other") if segment.components else "loaded"
