"""How drawings look, and the one place where matplotlib is imported: colours, series, a sheet to draw on.

A sheet is measured in CSS pixels. Colours are those of the page: each stands in the drawing as a value of its own,
which ``inline`` replaces by a CSS variable, so that light, dark and print restyle every drawing.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.inline import inline
from auditor.report.figures.lettering import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Widths: a third of the page and a quarter of it, so that panels make rows on a desk and a column on a telephone.
PANEL: Final = 312.0
SMALL: Final = 228.0
#: What a wide drawing may take: the width of a printed page.
WIDE: Final = 660.0
ROW: Final = 18.0
TEXT: Final = 11.0
HEAD: Final = 12.5
#: Points of an inch, and pixels of one here: one length for lines, text and the sheet.
INCH: Final = 72.0


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


#: How the layers and their union look, everywhere.
SEL: Final[dict[str, Any]] = {"color": Colour.SEL, "marker": "D", "markersize": 5.4, "markeredgewidth": 0}
ELAB: Final[dict[str, Any]] = {"color": Colour.ELAB, "marker": "s", "markersize": 5.6, "markeredgewidth": 0}
UNION: Final[dict[str, Any]] = {"color": Colour.ACCENT, "marker": "o", "markersize": 6.4, "markeredgewidth": 0}

_VARIABLES: Final = {colour.value: f"var(--{colour.name.lower().replace('_', '-')})" for colour in Colour}
_SERIES: Final = [colour for colour in Colour if colour.name.startswith("SERIES")]
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: Final = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """What tells a line apart: with colour, and without it."""

    colour: Colour
    marker: str
    dashes: Any


def series(index: int) -> Series:
    """Give the look of the ``index``-th line; the first 168 differ."""
    return Series(
        colour=_SERIES[index % len(_SERIES)],
        marker=_MARKERS[index % len(_MARKERS)],
        dashes=_DASHES[index % len(_DASHES)],
    )


@contextmanager
def sheet(
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
        # Letters are drawn by the reader's own fonts: that ours lacks one does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width / INCH, height / INCH), frameon=False)
        place = left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height
        axes = figure.add_axes(place, frameon=False)
        axes.set_axisbelow(True)
        axes.set(xticks=[], yticks=[])
        yield axes


@cache
def _settings() -> Any:
    """Give all settings, so that a reader's own matplotlibrc changes nothing."""
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
            "svg.hashsalt": "tiltmeter",
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


def finish(axes: "Axes", label: str) -> Markup:
    """Write a sheet as an inline ``<svg>`` that says what it shows; a wide one scrolls within the page."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return inline(out.getvalue(), one_line(label), _VARIABLES)
