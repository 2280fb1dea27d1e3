"""Draw heat maps of tables that are too wide to scan: each cell shaded, with its number."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi
from typing import Final

from markupsafe import Markup

from auditor.report.canvas import PANEL, ROW, WIDE, Colour, Look, Plot, TextLook
from auditor.report.drawing import cut_name, gutter_width, join_panels, name_rows, panel_title
from auditor.report.svg import text_width

_CELL: Final = 48.0
#: Names of columns stand at this angle, and take at most so many pixels.
_ANGLE: Final = 45.0
_NAME: Final = 136.0
#: The strongest shade still lets the number be read.
_STRONGEST: Final = 0.55
_SIDE: Final = 0.46


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatCell:
    """One cell: its number as text, the text shown on hover, and its shade."""

    text: str
    hover: str
    colour: Colour = Colour.PAPER
    strength: float = 0.0  #: in [0, 1]
    flipped: bool = False  #: a triangle in the corner
    hatched: bool = False


def heat_map(
    title: str,
    names: Sequence[str],
    columns: Sequence[str],
    cell: Callable[[str, str], HeatCell | None],
    *,
    last: str = "",
    lines: Sequence[str] = (),
) -> Markup:
    """Draw a table of cells, in several panels where it is too wide.

    Parameters
    ----------
    title
        Text that heads each panel: what the cells are.
    names, columns
        Names of the rows and of the columns.
    cell
        Function that returns the cell of a row and a column, or None where nothing is known.
    last
        Name of a column that ends every panel.
    lines
        Lines of text under the heading.
    """
    left = gutter_width(names, 224)
    room = int((WIDE - left - _NAME / 2) / _CELL) - bool(last)
    parts = -(-len(columns) // room)
    size = -(-len(columns) // parts)
    chunks = [[*columns[start : start + size], *filter(None, [last])] for start in range(0, len(columns), size)]
    return join_panels(_panel(title, names, chunk, cell, left=left, lines=lines) for chunk in chunks)


def _panel(
    title: str,
    names: Sequence[str],
    columns: Sequence[str],
    cell: Callable[[str, str], HeatCell | None],
    *,
    left: float,
    lines: Sequence[str],
) -> Markup:
    slant = min(_NAME, max(text_width(name) for name in columns)) * cos(pi * _ANGLE / 180)
    top, right = 34 + 17 * len(lines) + slant, slant
    width = max(_CELL, (PANEL - left - right) / len(columns))
    plot = Plot(
        left + width * len(columns) + right, top + ROW * len(names) + 4, left=left, right=right, top=top, bottom=4
    )
    panel_title(plot, title, *lines)
    name_rows(plot, names)
    plot.set_x(-0.5, len(columns) - 0.5)
    for x, column in enumerate(columns):
        _column(plot, x, column)
        for y, name in enumerate(names):
            heat_cell = cell(name, column)
            if heat_cell is not None:
                _draw(plot, x, y, heat_cell)
    return plot.svg(title)


def _column(plot: Plot, x: int, name: str) -> None:
    shown, full = cut_name(name, _NAME)
    left, _ = plot.at(x, 0)
    plot.write(left - 2, plot.top - 10, shown, TextLook(angle=_ANGLE), full)


def _draw(plot: Plot, x: int, y: int, cell: HeatCell) -> None:
    left, right, top, bottom = x - 0.48, x + 0.48, y - _SIDE, y + _SIDE
    colour = cell.colour if cell.strength else Colour.PANEL
    alpha = _STRONGEST * cell.strength if cell.strength else 1.0
    plot.box((left, right), (top, bottom), colour, alpha=alpha, hover=cell.hover)
    if cell.hatched:
        for start in (-0.48, -0.24, 0.0, 0.24):
            plot.line((x + start, x + start + 0.24), (bottom, top), Look(colour=Colour.INK, width=0.6, alpha=0.45))
    if cell.flipped:
        plot.area((right - 0.15, right, right), (top, top, top + 0.32), Colour.INK)
    plot.text(x, y, cell.text, TextLook(anchor="middle"))
