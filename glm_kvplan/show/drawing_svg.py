"""The drawing library's SVG made fit for a page: colours as variables, names that cannot clash, words for readers."""

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element, fromstring, register_namespace, tostring

from glm_kvplan.show.drawing_style import COLOURS


class Described(NamedTuple):
    """A chart's name, and its title and description in the language of a page."""

    name: str
    title: str
    alt: str


OURS = "kv-"  # what an artist's name starts with where a page keeps it
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_SHORTHAND = re.compile(r"(?:(\w+) )?([\d.]+px) .*")  # font: bold 9px 'DejaVu Sans'
_URL = re.compile(r"url\(#([^)]+)\)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_STILL = re.compile(r"rotate\(-?0(?:\.0)? [^)]*\)")
_VARIABLE = {colour: f"var(--{name})" for name, colour in COLOURS.items()}


def embedded(svg: bytes, chart: Described, kind: str) -> Element:
    """A chart as an element of a page, for "wide" or "narrow" windows: no size, font or namespace of its own."""
    root = fromstring(svg)
    _strip(root)
    prefix = f"{chart.name}-{kind}-"
    used = _referenced(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        element.text = (element.text or "").strip() or None
        element.tail = None
        attributes = {name.removeprefix(f"{{{_XLINK}}}"): value for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            _adopt(element, name, value, prefix, used)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"class": f"chart {kind}", "viewBox": view})
    _describe(root, chart, prefix)
    return root


def standalone(svg: bytes, chart: Described, fonts: tuple[str, ...]) -> str:
    """A chart as a file, in fixed colours on its own ground; `fonts` are tried in turn."""
    root = fromstring(svg)
    for name in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(name)
    family = ", ".join((*(f"'{font}'" for font in fonts), "sans-serif"))
    for element in root.iter(f"{{{_SVG}}}text"):
        style = {**_style(element.get("style", "")), "font-family": family}
        element.set("style", "; ".join(f"{name}: {value}" for name, value in style.items()))
    _describe(root, chart, f"{chart.name}-", f"{{{_SVG}}}")
    register_namespace("", _SVG)
    register_namespace("xlink", _XLINK)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _adopt(element: Element, name: str, value: str, prefix: str, used: set[str]) -> None:
    """Give an element of a page an attribute: names get the chart's prefix, colours become variables."""
    if name == "id":
        if value in used or value.startswith(OURS):
            element.set(name, prefix + value.removeprefix(OURS))
        return
    if name == "transform" and _STILL.fullmatch(value):
        return
    if name == "href":
        value = f"#{prefix}{value[1:]}"
    value = _URL.sub(rf"url(#{prefix}\1)", value)
    if name == "style":
        style = _style(value)
        style.pop("font-family", None)  # the page's own
        value = "; ".join(f"{key}: {_VARIABLE.get(part, part)}" for key, part in style.items())
    elif name in ("fill", "stroke") and value in _VARIABLE:  # no variables in these attributes
        element.set("style", f"{name}: {_VARIABLE[value]}")
        return
    else:
        value = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", value)
    element.set(name, value)


def _style(text: str) -> dict[str, str]:
    """A style's declarations, `font` taken apart (older releases of the library write it, newer ones its parts)."""
    found = {}
    for declaration in text.split(";"):
        name, colon, value = (part.strip() for part in declaration.partition(":"))
        font = _SHORTHAND.fullmatch(value) if name == "font" else None
        if font is not None:
            found["font-size"] = font[2]
            if font[1]:
                found["font-weight"] = font[1]
        elif colon:
            found[name] = value
    return found


def _referenced(root: Element) -> set[str]:
    """The names that other elements refer to."""
    values = [value for element in root.iter() for value in element.attrib.values()]
    found = {name for value in values for name in _URL.findall(value)}
    return found | {value[1:] for value in values if value.startswith("#")}


def _describe(root: Element, chart: Described, prefix: str, namespace: str = "") -> None:
    """A title and a description, which screen readers read instead of the drawing."""
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    for place, (tag, text) in enumerate((("title", chart.title), ("desc", chart.alt))):
        element = Element(f"{namespace}{tag}", id=f"{prefix}{tag}")
        element.text = text
        root.insert(place, element)


def _strip(root: Element) -> None:
    """Drop metadata and the drawing's own style sheet, which would rule the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
