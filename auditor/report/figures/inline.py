"""SVG as matplotlib writes it, made fit for the page: colours as CSS variables, text in the page's font, no ids.

Without ids nothing can clash where drawings share a page: what matplotlib defines once and refers to is written where
it is used, and nothing is clipped. The name that an artist was given (``told``) becomes its ``<title>``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree import ElementTree as ET

from markupsafe import Markup, escape

FONT: Final = "system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif"
#: An artist's name that begins so is text for the reader.
TOLD: Final = "told:"
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
#: What a path has that is more than a point: matplotlib writes the line of a lone mark, too.
_DRAWS: Final = re.compile("[LQCz]")
_COMMAND: Final = re.compile(r"\s*([A-Za-z])\s*")
#: What the page decides, and what the root says for all.
_DROPPED: Final = {"font-family", "stroke-linejoin", "stroke-miterlimit"}
_NOTHING: Final = {("text-anchor", "start"), ("stroke-width", "1"), ("stroke-linecap", "butt")}
#: Wider than a telephone: shown in full size, the page scrolls it.
_NARROW: Final = 350


def inline(svg: str, label: str, variables: Mapping[str, str]) -> Markup:
    """Rewrite a drawing for a page.

    Parameters
    ----------
    svg
        As matplotlib writes it with ``svg.fonttype: none`` at 72 dots an inch: a unit is a pixel.
    label
        What it shows, for readers who do not see it.
    variables
        CSS value for each colour of the drawing.

    Raises
    ------
    KeyError
        For a colour that is none of the page's.
    """
    root = ET.fromstring(svg)  # noqa: S314 -- written by matplotlib a moment ago
    width, height = (_short(root.attrib["viewBox"].split()[place]) for place in (2, 3))
    shapes = {f"#{path.get('id')}": path.get("d", "") for path in root.iter(f"{_SVG}path") if path.get("id")}
    inner = "".join(_written(root, shapes, variables))
    wide = float(width) > _NARROW
    look = f"font:11px {FONT};font-variant-numeric:tabular-nums;stroke-linejoin:round;align-self:flex-start" + (
        f";min-width:{width}px" if wide else ""
    )
    text = (
        f'<svg role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}" style="{look}">'
        f"<title>{escape(label)}</title>{inner}</svg>"
    )
    return Markup(f'<div class="scroll">{text}</div>' if wide else text)  # noqa: S704 -- every text in it is escaped


def _written(parent: ET.Element, shapes: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[str]:
    for element in parent:
        style = _style(element.get("style", ""), variables)
        match element.tag.removeprefix(_SVG):
            case "g":
                yield _group(element.get("id", ""), "".join(_written(element, shapes, variables)))
            case "path":
                shape = _path(element.get("d", ""))
                yield f'<path d="{shape}"{style}/>' if _DRAWS.search(shape) else ""
            case "use":
                x, y = (_short(element.get(axis, "0")) for axis in "xy")
                shape = _path(shapes[element.attrib[_HREF]])
                yield f'<path transform="translate({x} {y})" d="{shape}"{style}/>'
            case "text":
                yield f"<text{_place(element)}{style}>{escape(element.text or '')}</text>"


def _group(name: str, inner: str) -> str:
    if inner and name.startswith(TOLD):
        return f"<g><title>{escape(name.removeprefix(TOLD))}</title>{inner}</g>"
    return inner


def _place(text: ET.Element) -> str:
    x, y = (_short(text.get(axis, "0")) for axis in "xy")
    angle = _short(text.get("transform", "rotate(0 ").removeprefix("rotate(").split()[0])
    turned = "" if float(angle) == 0 else f' transform="rotate({angle} {x} {y})"'
    return f' x="{x}" y="{y}"{turned}'


def _path(d: str) -> str:
    r"""Write a path shortly.

    >>> _path("M 62.4 160.000001 \nL 62.4 20 \nz\n")
    'M62.4 160L62.4 20z'
    """
    return _COMMAND.sub(r"\1", _NUMBER.sub(lambda found: _short(found[0]), d)).strip()


def _short(number: str) -> str:
    text = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _style(style: str, variables: Mapping[str, str]) -> str:
    pairs = [tuple(pair.split(": ", 1)) for pair in style.split("; ") if pair]
    kept = [
        f"{name}:{variables[value] if value.startswith('#') else value}"
        for name, value in pairs
        if name not in _DROPPED and (name, value) not in _NOTHING
    ]
    return f' style="{";".join(kept)}"' if kept else ""
