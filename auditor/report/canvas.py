"""Draw figures as SVG for a page: a sheet with one plot in it, and the looks of lines and marks.

A sheet is measured in CSS pixels. Colours are CSS variables of the page, so that light, dark and print styles apply to
every drawing. The SVG has no ids, so drawings on the same page cannot clash.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from math import cos, isnan, pi, sin
from typing import Final, Literal

from markupsafe import Markup

from auditor.report.svg import TEXT, Scale, one_line, svg_element

#: A drawing wider than a telephone is shown in full size, and scrolls within the page.
_NARROW: Final = 350
#: Widths: that of a panel that can be read alone, of one of two beside each other, and of one on a telephone.
PANEL: Final = 620.0
SMALL: Final = 320.0
PHONE: Final = 346.0
#: The largest width of a drawing: that of a printed page.
WIDE: Final = 660.0
ROW: Final = 22.0
HEAD: Final = 15.0
_FONT: Final = "system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif"
_LOOK: Final = f"font:{TEXT:g}px {_FONT};font-variant-numeric:tabular-nums;stroke-linejoin:round"
#: From the middle of a line of text down to its baseline, as a share of the font's size.
_BASELINE: Final = 0.35
#: What is drawn later lies above: scales, areas, lines and marks, texts.
_BACK, _AREA, _LINE, _TEXT = range(4)


class Colour(StrEnum):
    """The page's colours, as CSS variables."""

    INK = "var(--ink)"
    SOFT = "var(--soft)"
    FAINT = "var(--faint)"
    PAPER = "var(--paper)"
    PANEL = "var(--panel)"
    ACCENT = "var(--accent)"
    SEL = "var(--sel)"
    ELAB = "var(--elab)"
    FAIL = "var(--fail)"
    ABSENT = "var(--absent)"
    OVER = "var(--over)"
    UNDER = "var(--under)"
    SERIES_1 = "var(--series-1)"
    SERIES_2 = "var(--series-2)"
    SERIES_3 = "var(--series-3)"
    SERIES_4 = "var(--series-4)"
    SERIES_5 = "var(--series-5)"
    SERIES_6 = "var(--series-6)"
    SERIES_7 = "var(--series-7)"


def _star(points: int, inner: float, rotation: float = 0.0) -> tuple[tuple[float, float], ...]:
    """Return the corners of a star in a circle of diameter 1."""
    radii = (0.5, 0.5 * inner)
    angles = [rotation - pi / 2 + pi * place / points for place in range(2 * points)]
    return tuple((radii[place % 2] * cos(angle), radii[place % 2] * sin(angle)) for place, angle in enumerate(angles))


_CROSS: Final = (
    *((-1 / 6, -1 / 2), (1 / 6, -1 / 2), (1 / 6, -1 / 6), (1 / 2, -1 / 6), (1 / 2, 1 / 6), (1 / 6, 1 / 6)),
    *((1 / 6, 1 / 2), (-1 / 6, 1 / 2), (-1 / 6, 1 / 6), (-1 / 2, 1 / 6), (-1 / 2, -1 / 6), (-1 / 6, -1 / 6)),
)
#: The corners of each shape of a mark, of size 1 about 0; a circle has none.
_SHAPES: Final = {
    "circle": (),
    "square": ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    "triangle": ((0.0, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    "diamond": ((0.0, -0.7), (0.7, 0.0), (0.0, 0.7), (-0.7, 0.0)),
    "wedge": ((0.0, 0.5), (0.5, -0.5), (-0.5, -0.5)),
    "plus": _CROSS,
    "cross": tuple(((x - y) * 0.75, (x + y) * 0.75) for x, y in _CROSS),
    "star": _star(5, 0.4),
    "dash": ((-0.5, 0.0), (0.5, 0.0)),
    "tick": ((0.0, -0.5), (0.0, 0.5)),
}
_MARKERS: Final = ("circle", "square", "triangle", "diamond", "wedge", "plus", "cross", "star")
_DASHES: Final = ("", "5 1.6", "1.2 1.4")
_SERIES: Final = [colour for colour in Colour if colour.name.startswith("SERIES")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """How a mark looks, and the line through it, distinct with and without colour."""

    colour: Colour
    shape: str = ""  #: of ``_SHAPES``; empty: a line alone
    size: float = 6.0  #: the mark's diameter, in pixels
    edge: float = 0.0  #: the width of its rim, in pixels
    rim: Colour | None = None  #: None: as the mark
    alpha: float = 1.0
    is_hollow: bool = False
    width: float = 0.0  #: that of the line, in pixels; 0: a mark alone
    dashes: str = ""  #: of the line, as in CSS


#: The look of the layers and their union in all drawings.
SEL: Final = Look(colour=Colour.SEL, shape="diamond", size=5.4)
ELAB: Final = Look(colour=Colour.ELAB, shape="square", size=5.6)
UNION: Final = Look(colour=Colour.ACCENT, shape="circle", size=6.4)


def line_look(index: int) -> Look:
    """Return the look of the line with this index; the first 168 differ."""
    return Look(
        colour=_SERIES[index % len(_SERIES)],
        shape=_MARKERS[index % len(_MARKERS)],
        size=4,
        width=1,
        dashes=_DASHES[index % len(_DASHES)],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TextLook:
    """How a text looks."""

    anchor: Literal["start", "middle", "end"] = "start"
    colour: Colour = Colour.INK
    is_bold: bool = False
    size: float = TEXT
    angle: float = 0.0  #: in degrees, to the left of the reading direction


PLAIN: Final = TextLook()
QUIET: Final = TextLook(colour=Colour.SOFT)
BOLD: Final = TextLook(is_bold=True)


class Plot:
    """A sheet with one plot in it. Lines and areas are placed in the plot's units; sizes are pixels.

    Parameters
    ----------
    width, height
        Size of the sheet, in pixels.
    left, right, top, bottom
        Distances from the sheet's edges to the plot, in pixels: room for names, numbers, heading and scale.
    """

    def __init__(
        self, width: float, height: float, *, left: float = 0, right: float = 0, top: float = 0, bottom: float = 0
    ) -> None:
        self.width, self.height = width, height
        #: The plot's edges, in pixels of the sheet.
        self.left, self.right, self.top, self.bottom = left, width - right, top, height - bottom
        # Until it has scales, its units are pixels of the sheet.
        self._x = Scale(low=self.left, high=self.right, start=self.left, end=self.right)
        self._y = Scale(low=self.top, high=self.bottom, start=self.top, end=self.bottom)
        self._parts: list[tuple[int, Markup]] = []

    def set_x(self, low: float, high: float) -> None:
        """Set the units from the plot's left to its right edge."""
        self._x = Scale(low=low, high=high, start=self.left, end=self.right)

    def set_y(self, low: float, high: float) -> None:
        """Set the units from the plot's lower to its upper edge."""
        self._y = Scale(low=low, high=high, start=self.bottom, end=self.top)

    def move(self, left: float, right: float) -> None:
        """Draw what follows in another plot of the sheet, between these edges and on the same rows."""
        self.left, self.right = left, right

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixels of a place."""
        return self._x.pixel(x), self._y.pixel(y)

    def ticks_x(
        self, values: Sequence[float], names: Sequence[str], *, is_grid: bool = True, is_above: bool = False
    ) -> None:
        """Name values under the plot, or above it, with a line through the plot for each."""
        y = self.top - 11 if is_above else self.bottom + 12
        for value, name in zip(values, names, strict=True):
            if is_grid:
                self.rule_x(value, Colour.FAINT, is_back=True)
            self.write(self._x.pixel(value), y, name, TextLook(colour=Colour.SOFT, anchor="middle"))

    def ticks_y(self, values: Sequence[float], names: Sequence[str]) -> None:
        """Name values at the left of the plot, with a line through the plot for each."""
        for value, name in zip(values, names, strict=True):
            self.rule_y(value, Colour.FAINT, is_back=True)
            self.write(self.left - 8, self._y.pixel(value), name, TextLook(anchor="end"))

    def label_x(self, text: str) -> None:
        """Write under the plot's scale what it measures."""
        middle = (self.left + self.right) / 2
        self.write(middle, self.bottom + 33, text, TextLook(colour=Colour.SOFT, anchor="middle"))

    def line(
        self, x: Iterable[float], y: Iterable[float], look: Look, hover: str = "", *, is_back: bool = False
    ) -> None:
        """Draw a line through points; a point without a value (nan) interrupts it."""
        parts: list[list[tuple[float, float]]] = [[]]
        for each_x, each_y in zip(x, y, strict=True):
            if isnan(each_x) or isnan(each_y):
                parts.append([])
            else:
                parts[-1].append(self.at(each_x, each_y))
        self._stroke("".join(_path(part) for part in parts if len(part) > 1), look, hover, is_back=is_back)

    def across(self, y: float, low: float, high: float, look: Look, hover: str = "") -> None:
        """Draw a level line."""
        self.line((low, high), (y, y), look, hover)

    def rule_x(self, x: float, colour: Colour = Colour.SOFT, *, is_back: bool = False) -> None:
        """Draw a thin line at a value of x through the whole plot."""
        at = self._x.pixel(x)
        self._stroke(_path([(at, self.top), (at, self.bottom)]), Look(colour=colour, width=1), is_back=is_back)

    def rule_y(self, y: float, colour: Colour = Colour.SOFT, *, dashes: str = "", is_back: bool = False) -> None:
        """Draw a thin line at a value of y through the whole plot."""
        at, look = self._y.pixel(y), Look(colour=colour, width=1, dashes=dashes)
        self._stroke(_path([(self.left, at), (self.right, at)]), look, is_back=is_back)

    def area(
        self, x: Sequence[float], y: Sequence[float], colour: Colour, *, alpha: float = 1.0, hover: str = ""
    ) -> None:
        """Fill the area within corners."""
        corners = [self.at(*corner) for corner in zip(x, y, strict=True)]
        shaded = {} if alpha == 1 else {"fill-opacity": alpha}
        self._add(_AREA, _path(corners) + "z", {"fill": colour, **shaded}, hover)

    def box(
        self, x: tuple[float, float], y: tuple[float, float], colour: Colour, *, alpha: float = 1.0, hover: str = ""
    ) -> None:
        """Fill a rectangle."""
        self.area((x[0], x[1], x[1], x[0]), (y[0], y[0], y[1], y[1]), colour, alpha=alpha, hover=hover)

    def mark(self, x: float, y: float, look: Look, hover: str = "") -> None:
        """Draw a mark."""
        self.mark_at(*self.at(x, y), look, hover)

    def mark_at(self, x: float, y: float, look: Look, hover: str = "") -> None:
        """Draw a mark at a pixel of the sheet."""
        corners = [(x + look.size * dx, y + look.size * dy) for dx, dy in _SHAPES[look.shape]]
        is_open = 0 < len(corners) < 3
        style: dict[str, object] = {"fill": "none" if look.is_hollow or is_open else look.colour}
        if look.edge:
            style |= {"stroke": look.rim or look.colour} | ({} if look.edge == 1 else {"stroke-width": look.edge})
        if look.alpha != 1:
            style |= {"opacity": look.alpha}
        shape = _circle(x, y, look.size / 2) if not corners else _path(corners) + ("" if is_open else "z")
        self._add(_LINE, shape, style, hover)

    def text(self, x: float, y: float, text: str, look: TextLook = PLAIN, hover: str = "") -> None:
        """Write a text at a place of the plot, which is the middle of its height."""
        self.write(*self.at(x, y), text, look, hover)

    def write(self, x: float, y: float, text: str, look: TextLook = PLAIN, hover: str = "") -> None:
        """Write a text at a pixel of the sheet, which is the middle of its height."""
        base = y + _BASELINE * look.size
        style: dict[str, object] = {"font-size": f"{look.size:g}px", "fill": look.colour}
        style |= {} if look.anchor == "start" else {"text-anchor": look.anchor}
        style |= {"font-weight": 700} if look.is_bold else {}
        turned = {"transform": f"rotate({-look.angle:g} {_short(x)} {_short(base)})"} if look.angle else {}
        written = svg_element("text", text, x=_short(x), y=_short(base), **turned, style=_style(style))
        self._parts.append((_TEXT, _with_hover(written, hover)))

    def svg(self, label: str) -> Markup:
        """Return the drawing as an inline ``<svg>`` with a description; a wide one scrolls within the page."""
        label, is_wide = one_line(label), self.width > _NARROW
        least = f";min-width:{_short(self.width)}px" if is_wide else ""
        drawing = self._drawing(label, style=f"{_LOOK};align-self:flex-start{least}")
        if not is_wide:
            return drawing
        region = Markup('<div class="scroll" role="region" aria-label="{}" tabindex="0">{}</div>')
        return region.format(label, drawing)

    def file(self, label: str) -> str:
        """Return the drawing as a file of its own, in light colours."""
        style = f"{_LOOK};background:{Colour.PAPER}"
        return _in_light_colours(self._drawing(one_line(label), xmlns="http://www.w3.org/2000/svg", style=style)) + "\n"

    def _drawing(self, label: str, **attributes: str) -> Markup:
        parts = [part for _, part in sorted(self._parts, key=lambda each: each[0])]
        width, height = _short(self.width), _short(self.height)
        content = Markup("").join([svg_element("title", label), *parts])
        return svg_element(
            "svg", content, role="img", width=width, height=height, viewBox=f"0 0 {width} {height}", **attributes
        )

    def _stroke(self, shape: str, look: Look, hover: str = "", *, is_back: bool = False) -> None:
        if not shape:
            return
        style: dict[str, object] = {"fill": "none", "stroke": look.colour}
        style |= {} if look.width == 1 else {"stroke-width": look.width}
        style |= {} if look.alpha == 1 else {"stroke-opacity": look.alpha}
        style |= {"stroke-dasharray": look.dashes} if look.dashes else {}
        self._add(_BACK if is_back else _LINE, shape, style, hover)

    def _add(self, layer: int, shape: str, style: Mapping[str, object], hover: str) -> None:
        drawn = svg_element("path", d=shape, style=_style(style))
        self._parts.append((layer, _with_hover(drawn, hover)))


def _with_hover(drawn: Markup, hover: str) -> Markup:
    """Show a text when the pointer is over a part of a drawing."""
    return svg_element("g", svg_element("title", one_line(hover)) + drawn) if hover else drawn


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points)


def _circle(x: float, y: float, radius: float) -> str:
    """Return the path of a circle, of four curves."""
    handle = 0.5523 * radius
    quarters = (
        ((radius, handle), (handle, radius), (0, radius)),
        ((-handle, radius), (-radius, handle), (-radius, 0)),
        ((-radius, -handle), (-handle, -radius), (0, -radius)),
        ((handle, -radius), (radius, -handle), (radius, 0)),
    )
    curves = ("C" + " ".join(f"{_short(x + dx)} {_short(y + dy)}" for dx, dy in quarter) for quarter in quarters)
    return f"M{_short(x + radius)} {_short(y)}{''.join(curves)}z"


def _short(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _style(pairs: Mapping[str, object]) -> str:
    return ";".join(f"{name}:{f'{value:g}' if isinstance(value, float) else value}" for name, value in pairs.items())


@cache
def _light_colours() -> dict[str, str]:
    """Return the value of each CSS variable in the light style of the pages."""
    css = files("auditor.report").joinpath("page/report.css").read_text("utf-8")
    light = css[css.index("{") : css.index("}")]
    return {f"var({name})": value for name, value in re.findall(r"(--[a-z0-9-]+): ([^;]+);", light)}


def _in_light_colours(drawing: Markup) -> str:
    text = str(drawing)
    for variable, value in _light_colours().items():
        text = text.replace(variable, value)
    return text


def outside_the_page(drawing: Markup) -> str:
    """Return a drawing with its own colours and a light background, to be shown without the page's style."""
    background = _light_colours()["var(--paper)"]
    return f'<div style="background:{background};padding:8px;overflow-x:auto">{_in_light_colours(drawing)}</div>'
