"""HiCache's host memory: the pools of a rank, those of a host against its memory, and the prefixes both tiers hold."""

from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.show.charts_style import COLOURS, ROW, SMALL, TEXT, Shape, axes, figure, fill, text_width
from glm_kvplan.show.words import Words
from glm_kvplan.units import GB

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Bar(NamedTuple):
    name: str
    value: float
    text: str
    colour: str
    hatch: str = ""


def draw(seen: Picture, words: Words, shape: Shape) -> "Figure":
    panels = _panels(seen, words)
    bars = [bar for _, found in panels for bar in found]
    left = max(text_width(bar.name) for bar in bars) + 10
    right = max(text_width(bar.text, SMALL) for bar in bars) + 8
    top = shape.head
    heights = [len(found) * ROW + 30 for _, found in panels]
    made = figure(shape, sum(heights))
    whole = sum(heights) + shape.head
    for number, ((title, found), height) in enumerate(zip(panels, heights, strict=True)):
        plot = axes(made, left, whole - top - height + 6, shape.width - left - right, len(found) * ROW)
        top += height
        plot.set_title(title, fontsize=TEXT, weight="bold", loc="left", pad=4)
        for row, bar in enumerate(found):
            (drawn,) = plot.barh(row, bar.value, 0.62, **fill(bar.colour, bar.hatch))
            drawn.set_gid(f"kv-{number}-{row}")
            plot.annotate(bar.name, (0, row), (-6, 0), xycoords=("axes fraction", "data"), ha="right", va="center",
                          textcoords="offset points", fontsize=TEXT, annotation_clip=False)  # fmt: skip
            plot.annotate(bar.text, (bar.value, row), (4, 0), textcoords="offset points", va="center",
                          fontsize=SMALL, annotation_clip=False)  # fmt: skip
        plot.set_xlim(0, max(*(bar.value for bar in found), 1e-9))
        plot.set_ylim(len(found) - 0.5, -0.5)
        plot.set_xticks([])
        plot.set_yticks([])
        plot.spines["bottom"].set_visible(False)
        plot.axvline(0, color=COLOURS["muted"], linewidth=0.8)
    return made


def _panels(seen: Picture, words: Words) -> list[tuple[str, list[_Bar]]]:
    answer = seen.boot.host
    assert answer is not None
    colours = {"kv": ("charged", ""), "mamba": ("states", "\\\\\\"), "indexer": ("tokens", "///")}
    rank = [_gb(pool.name.upper(), pool.nbytes, *colours[pool.name]) for pool in answer.plan.pools]
    everywhere = [_gb(words("host_pools", ranks=answer.ranks), answer.fullest_bytes, "charged")]
    if answer.fit is not None:
        everywhere.append(_gb(words("host_available"), answer.fit.available_bytes, "free", "---"))
    covered = answer.coverage
    prefixes = [
        _Bar(words(f"host_{name}"), value, f"{value:,}", colour, hatch)
        for name, value, colour, hatch in (
            ("tier_kv", covered.kv_prefixes, "charged", ""),
            ("tier_state", covered.state_prefixes, "states", "\\\\\\"),
            ("usable", covered.usable_prefixes, "free", ""),
        )
    ]
    return [
        (words("host_x_rank"), rank),
        (words("host_x_host"), everywhere),
        (words("host_x_prefixes"), prefixes),
    ]


def _gb(name: str, nbytes: int, colour: str, hatch: str = "") -> _Bar:
    return _Bar(name, nbytes / GB, f"{nbytes / GB:,.2f} GB", colour, hatch)
