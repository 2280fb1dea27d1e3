"""Draw with matplotlib and write the drawing as SVG for a page. This is the one module that imports matplotlib.

A canvas is measured in CSS pixels. Colours are those of the page: each one is a placeholder in the drawing that
``inline`` replaces by a CSS variable, so that light, dark and print styles apply to every drawing. The SVG has no ids,
so drawings on the same page cannot clash.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NARROW_LETTERS: Final = frozenset("ijlt.,:;|!'`()[]f/ -")
_LEAST: Final = 0.37
_BROAD: Final = frozenset("mwMW@%")
FONT: Final = "system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif"
#: Prefix of an artist's name that is text for the reader.
HOVER: Final = "hover:"
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
#: Commands of a path that is more than a point: matplotlib also writes the line of a single mark.
_DRAWS: Final = re.compile("[LQCz]")
_COMMAND: Final = re.compile(r"\s*([A-Za-z])\s*")
#: Styles that the page or the root element sets.
_DROPPED: Final = {"font-family", "stroke-linejoin", "stroke-miterlimit"}
_NOTHING: Final = {("text-anchor", "start"), ("stroke-width", "1"), ("stroke-linecap", "butt")}
#: A drawing wider than a telephone is shown in full size, and scrolls within the page.
_NARROW: Final = 350
#: Widths: that of a panel that can be read alone, of one of two beside each other, and of one on a telephone.
PANEL: Final = 620.0
SMALL: Final = 320.0
PHONE: Final = 346.0
#: The largest width of a drawing: that of a printed page.
WIDE: Final = 660.0
ROW: Final = 22.0
TEXT: Final = 13.0
HEAD: Final = 15.0
#: Points per inch, and pixels per inch here: one unit for lines, text and the sheet.
INCH: Final = 72.0
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: Final = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)))


def text_width(text: str, size: float = TEXT) -> float:
    """Estimate the width of a line in pixels, rather too large than too small."""
    return size * sum(_share(character) for character in text)


def _share(character: str) -> float:
    """Estimate a character's width as a share of the font's size."""
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return 1.0
    if character in _NARROW_LETTERS:
        return _LEAST
    if character in _BROAD:
        return 0.92
    return 0.69 if character.isupper() else 0.6


def one_line(text: str) -> str:
    r"""Return a name as one line: characters that control a terminal or break XML become replacement characters.

    >>> one_line("one\ntwo") == "one\ufffdtwo"
    True
    """
    if text.isprintable():
        return text
    return "".join("\ufffd" if unicodedata.category(each) in {"Cc", "Cs", "Cn"} else each for each in text)


def shorten(text: str, room: float, size: float = TEXT) -> str:
    """Cut a name to ``room`` pixels in its middle, since names often differ at their end.

    >>> shorten("short", 110), shorten("a-very-long-deployment-name-mini", 110)
    ('short', 'a-very-lon…mini')
    """
    text = one_line(text)
    if text_width(text, size) <= room:
        return text
    for kept in range(min(len(text) - 1, int(room / (_LEAST * size))), 1, -1):
        tail = kept // 3
        short = f"{text[: kept - tail]}…{text[len(text) - tail :]}"
        if text_width(short, size) <= room:
            return short
    return "…"


def inline_svg(svg: str, label: str, variables: Mapping[str, str]) -> Markup:
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
    look = f"font:{TEXT:g}px {FONT};font-variant-numeric:tabular-nums;stroke-linejoin:round;align-self:flex-start" + (
        f";min-width:{width}px" if wide else ""
    )
    text = (
        f'<svg role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}" style="{look}">'
        f"<title>{escape(label)}</title>{inner}</svg>"
    )
    region = f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">{text}</div>'
    return Markup(region if wide else text)  # noqa: S704 -- every text in it is escaped


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
    if inner and name.startswith(HOVER):
        return f"<g><title>{escape(name.removeprefix(HOVER))}</title>{inner}</g>"
    return inner


def _place(text: ET.Element) -> str:
    x, y = (_short(text.get(axis, "0")) for axis in "xy")
    angle = _short(text.get("transform", "rotate(0 ").removeprefix("rotate(").split()[0])
    turned = "" if float(angle) == 0 else f' transform="rotate({angle} {x} {y})"'
    return f' x="{x}" y="{y}"{turned}'


def _path(d: str) -> str:
    r"""Return a path in short form.

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


class Colour(StrEnum):
    """The page's colours; a member ``SERIES_1`` is the CSS variable ``--series-1``."""

    INK = "#fe0001"
    SOFT = "#fe0002"
    FAINT = "#fe0003"
    PAPER = "#fe0004"
    PANEL = "#fe0005"
    ACCENT = "#fe0006"
    SEL = "#fe0007"
    ELAB = "#fe0008"
    FAIL = "#fe0009"
    ABSENT = "#fe000a"
    OVER = "#fe000b"
    UNDER = "#fe000c"
    SERIES_1 = "#fe0011"
    SERIES_2 = "#fe0012"
    SERIES_3 = "#fe0013"
    SERIES_4 = "#fe0014"
    SERIES_5 = "#fe0015"
    SERIES_6 = "#fe0016"
    SERIES_7 = "#fe0017"


#: The look of the layers and their union in all drawings.
SEL: Final[dict[str, Any]] = {"color": Colour.SEL, "marker": "D", "markersize": 5.4, "markeredgewidth": 0}


ELAB: Final[dict[str, Any]] = {"color": Colour.ELAB, "marker": "s", "markersize": 5.6, "markeredgewidth": 0}


UNION: Final[dict[str, Any]] = {"color": Colour.ACCENT, "marker": "o", "markersize": 6.4, "markeredgewidth": 0}


_VARIABLES: Final = {colour.value: f"var(--{colour.name.lower().replace('_', '-')})" for colour in Colour}


_SERIES: Final = [colour for colour in Colour if colour.name.startswith("SERIES")]


@dataclass(frozen=True, kw_only=True, slots=True)
class LineStyle:
    """The look of a line, distinct with and without colour."""

    colour: Colour
    marker: str
    dashes: Any


def line_style(index: int) -> LineStyle:
    """Return the look of the line with this index; the first 168 differ."""
    return LineStyle(
        colour=_SERIES[index % len(_SERIES)],
        marker=_MARKERS[index % len(_MARKERS)],
        dashes=_DASHES[index % len(_DASHES)],
    )


@contextmanager
def open_canvas(
    width: float, height: float, *, left: float = 0, right: float = 0, top: float = 0, bottom: float = 0
) -> "Iterator[Axes]":
    """Open an empty sheet with one plot in it; ``finish`` it before the context ends.

    Parameters
    ----------
    width, height
        Of the sheet, in pixels.
    left, right, top, bottom
        From the sheet's edges to the plot: room for names, numbers, heading and scale.
    """
    import matplotlib as mpl  # noqa: PLC0415 -- a quarter of a second, for those who draw alone
    from matplotlib.figure import Figure  # noqa: PLC0415 -- as above

    with mpl.rc_context(_settings()), warnings.catch_warnings():
        # The reader's fonts draw the letters, so a letter that is missing here does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width / INCH, height / INCH), frameon=False)
        place = left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height
        axes = figure.add_axes(place, frameon=False)
        axes.set_axisbelow(True)
        axes.set(xticks=[], yticks=[])
        yield axes


@cache
def _settings() -> Any:
    """Return all settings, so that a user's own matplotlibrc changes nothing."""
    import matplotlib as mpl  # noqa: PLC0415 -- as above

    settings = {name: value for name, value in mpl.rcParamsDefault.items() if "backend" not in name}
    texts = ("text.color", "axes.labelcolor", "ytick.labelcolor")
    return (
        settings
        | dict.fromkeys(texts, Colour.INK.value)
        | {
            "figure.dpi": INCH,
            "font.size": TEXT,
            "text.parse_math": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "biasmeter",
            "path.simplify": False,
            "grid.color": Colour.FAINT.value,
            "grid.linewidth": 1.0,
            "xtick.labelcolor": Colour.SOFT.value,
            "xtick.major.size": 0.0,
            "ytick.major.size": 0.0,
            "xtick.major.pad": 5.0,
            "ytick.major.pad": 8.0,
            "lines.solid_capstyle": "round",
        }
    )


def to_svg(axes: "Axes", label: str) -> Markup:
    """Return the canvas as an inline ``<svg>`` with a description; a wide one scrolls within the page."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return inline_svg(out.getvalue(), one_line(label), _VARIABLES)


@cache
def _light_colours() -> dict[str, str]:
    """Return the value of each CSS variable in the light style of the pages."""
    css = files("auditor.report").joinpath("page/report.css").read_text("utf-8")
    light = css[css.index("{") : css.index("}")]
    return {f"var({name})": value for name, value in re.findall(r"(--[a-z0-9-]+): ([^;]+);", light)}


def outside_the_page(drawing: Markup) -> str:
    """Return a drawing with its own colours and a light background, to be shown without the page's style."""
    text = str(drawing)
    for variable, value in _light_colours().items():
        text = text.replace(variable, value)
    return f'<div style="background:{_light_colours()["var(--paper)"]};padding:8px;overflow-x:auto">{text}</div>'
