"""Draw the elements that figures share: named rows, scales, intervals, legends, numbers beside marks."""

from collections.abc import Iterable, Sequence
from math import cos, hypot, pi, sin
from typing import Final, Literal

from markupsafe import Markup

from auditor.documents.base import Missing
from auditor.documents.estimates import BoundedEntry, By
from auditor.report.canvas import HEAD, PANEL, PLAIN, QUIET, ROW, Look, Plot, TextLook
from auditor.report.document import bounds_only
from auditor.report.svg import TEXT, round_ticks, shorten, text_width
from auditor.report.wording import DASH, percent, signed

#: The names of the rates in headings.
RATES: Final = {
    "ber_sel_full": "selection",
    "ber_elab_full": "elaboration",
    "ber_cor": "both layers",
    "ber_union_full": "either layer",
}
#: The possible ends of a rate's scale.
_TOPS: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: The width of bold letters relative to regular ones.
_BOLD: Final = 1.12
#: Space between a plot and a number at its right.
_BESIDE: Final = 8.0
#: From a mark's rim to the middle of its number, in pixels.
_AWAY: Final = 8.0
#: Directions in which a number may be placed: not beside or above a mark, where its intervals are.
_ANGLES: Final = (pi / 4, -pi / 4, 3 * pi / 4, -3 * pi / 4)
#: A mark's place in the plot's units, and its diameter in pixels.
Mark = tuple[float, float, float]
_Point = tuple[float, float]


def group_name(by: By) -> str:
    """Name an entry by its deployment; one without by what else it is by, or as all of them."""
    return str(by["deployment"]) if "deployment" in by else " · ".join(map(str, by.values())) or "all deployments"


def scale_top(values: Iterable[float]) -> float:
    """Choose where a scale from 0 ends: the first round share that no value exceeds.

    >>> scale_top([0.12, 0.31]), scale_top([])
    (0.4, 1.0)
    """
    highest = max(values, default=1.0)
    return next((top for top in _TOPS if highest <= top + 1e-9), 1.0)


def join_panels(panels: Iterable[Markup]) -> Markup:
    """Join panels, which the page shows beside each other."""
    return Markup("\n").join(panels)


def cut_name(name: str, room: float, size: float = TEXT) -> tuple[str, str]:
    """Cut a name to ``room`` pixels, and return it with what is shown when the pointer is over it: the full name."""
    shown = shorten(name, room, size)
    return shown, "" if shown == name else name


def panel_title(plot: Plot, title: str, *lines: str, aside: str = "") -> None:
    """Write a panel's heading from the sheet's left edge, lines under it, and what the numbers beside the plot are."""
    shown, full = cut_name(title, plot.width, HEAD)
    plot.write(0, 8, shown, TextLook(is_bold=True, size=HEAD), full)
    for index, line in enumerate(lines):
        plot.write(0, 28.5 + 17 * index, shorten(line, plot.width), QUIET)
    if aside:
        plot.write(plot.right + _BESIDE, 8.5 + 17 * len(lines), aside, QUIET)


def marker_key(plot: Plot, marks: Sequence[tuple[Look, str]], *, y: float = 34) -> None:
    """Name marks on one line, ``y`` pixels from the sheet's upper edge."""
    x = 0.0
    for look, name in marks:
        plot.mark_at(x + 5, y, look)
        plot.write(x + 14, y, name, QUIET)
        x += text_width(name) + 30


def gutter_width(names: Iterable[str], most: float = 190.0) -> float:
    """Choose the room at the left of a plot for the names of its rows."""
    return min(most, 24 + max((text_width(name) for name in names), default=0.0))


def name_rows(plot: Plot, names: Sequence[str], *, bold: Iterable[int] = (), dy: float = 0) -> None:
    """Label the rows of a plot, the first on top; names that do not fit are shortened.

    Parameters
    ----------
    plot, names
        Plot that has a row for each name.
    bold
        Rows whose names stand out.
    dy
        Pixels by which names stand below the middle of their row.
    """
    strong = set(bold)
    plot.set_y(len(names) - 0.5, -0.5)
    for place, name in enumerate(names):
        is_bold = place in strong
        shown, full = cut_name(name, plot.left - 8, TEXT * _BOLD if is_bold else TEXT)
        _, y = plot.at(0, place)
        plot.write(plot.left - 8, y + dy, shown, TextLook(anchor="end", is_bold=is_bold), full)


def open_rows(
    title: str,
    names: Sequence[str],
    line: float,
    *,
    lines: Sequence[str] = (),
    aside: str = "",
    key: Sequence[tuple[Look, str]] = (),
    bold: Iterable[int] = (),
    **sheet: float,
) -> Plot:
    """Make a panel with a heading and one named row for each of ``names``.

    Parameters
    ----------
    title, lines, aside
        Texts of the heading, as ``panel_title`` writes them.
    names, bold
        Names of the rows, as ``name_rows`` writes them.
    line
        Height of a row, in pixels.
    key
        Marks with their names, as ``marker_key`` draws them.
    sheet
        ``width``; ``dy`` of the names; and the edges as ``Plot`` has them. At the left the names have their room by
        default.
    """
    edges = {"left": gutter_width(names), "right": 52.0, "top": 54.0, "bottom": 28.0} | sheet
    dy = edges.pop("dy", 0.0)
    width, height = edges.pop("width", PANEL), edges["top"] + line * len(names) + edges["bottom"]
    plot = Plot(width, height, **edges)
    panel_title(plot, title, *lines, aside=aside)
    marker_key(plot, key)
    name_rows(plot, names, bold=bold, dy=dy)
    return plot


def rows_of(y: float, height: float) -> tuple[float, float]:
    """Return the ends of a bar about a row."""
    return y - height / 2, y + height / 2


def rate_scale(plot: Plot, top: float, *, wanted: int = 4, along: Literal["x", "y"] = "x") -> None:
    """Scale x (or y) as a rate from 0 to ``top``, with lines at round percents."""
    ticks = round_ticks(0, top, wanted)
    digits = _digits(ticks)
    names = [f"{100 * tick:.{digits}f}" for tick in ticks[:-1]]
    _scale(plot, along, (0, top), ticks, [*names, percent(ticks[-1], digits)])


def change_scale(plot: Plot, reach: float, *, wanted: int = 4, along: Literal["x", "y"] = "x") -> None:
    """Scale x (or y) as a signed difference within ``reach``, with lines at round points and one at 0."""
    ticks = round_ticks(-reach, reach, wanted)
    digits = _digits(ticks)
    names = [signed(tick, digits) if tick else "0" for tick in ticks]
    _scale(plot, along, (-reach, reach), ticks, [*names[:-1], f"{names[-1]} pp"])
    rule = plot.rule_x if along == "x" else plot.rule_y
    rule(0, is_back=True)


def _scale(
    plot: Plot, along: Literal["x", "y"], ends: tuple[float, float], ticks: Sequence[float], names: Sequence[str]
) -> None:
    if along == "x":
        plot.set_x(*ends)
        plot.ticks_x(ticks, names)
    else:
        plot.set_y(*ends)
        plot.ticks_y(ticks, names)


def _digits(ticks: Sequence[float]) -> int:
    """Return the number of digits that percents need to be exact."""
    return next((n for n in (0, 1) if all(abs(round(100 * tick, n) - 100 * tick) < 1e-9 for tick in ticks)), 2)


def draw_interval(plot: Plot, y: float, estimate: BoundedEntry, look: Look) -> None:
    """Draw an interval, and its value unless only the bounds are reliable."""
    plot.across(y, estimate.low, estimate.high, Look(colour=look.colour, width=2, alpha=0.6))
    if not bounds_only(estimate):
        plot.mark(estimate.value, y, look)


def write_beside(
    plot: Plot, y: float, text: str, look: TextLook = PLAIN, hover: str = "", *, dx: float = 0, dy: float = 0
) -> None:
    """Write at the right of a plot, on a row or some pixels below it."""
    _, middle = plot.at(0, y)
    plot.write(plot.right + _BESIDE + dx, middle + dy, text, look, hover)


def write_reason(plot: Plot, y: float, name: str, missing: Missing) -> None:
    """Write a dash at the right of a plot, with the reason on hover."""
    write_beside(plot, y, DASH, QUIET, f"{name}: {missing.missing}" if name else missing.missing)


def rate_text(estimate: BoundedEntry | Missing) -> str:
    """Write a rate as a number of percent beside a plot; if only bounds are reliable, the informative bound.

    >>> rate_text(BoundedEntry(value=0.1234, low=0.1, high=0.15))
    '12.3'
    """
    if isinstance(estimate, Missing):
        return DASH
    if not bounds_only(estimate):
        return f"{100 * estimate.value:.1f}"
    return f"≤ {100 * estimate.high:.1f}" if estimate.value < 0.5 else f"≥ {100 * estimate.low:.1f}"


def change_text(estimate: BoundedEntry | Missing) -> str:
    """Write a signed difference as a number of points; if only bounds are reliable, the largest distance from 0.

    >>> change_text(BoundedEntry(value=0.02, low=0.01, high=0.03))
    '+2.0'
    """
    if isinstance(estimate, Missing):
        return DASH
    if not bounds_only(estimate):
        return signed(estimate.value)
    return f"± {100 * max(abs(estimate.low), abs(estimate.high)):.1f}"


def bar_length(estimate: BoundedEntry) -> float:
    """Return the length of an estimate's bar: 0 if only its bounds are reliable."""
    return 0.0 if bounds_only(estimate) else estimate.value


def draw_legend(entries: Sequence[tuple[Look, str]]) -> Markup:
    """Draw a panel that names marks: how each looks as a line of the plot, and its name."""
    plot = Plot(PANEL, ROW * len(entries) + 6)
    for index, (look, name) in enumerate(entries):
        y = 12 + ROW * index
        plot.line((2, 28), (y, y), look)
        plot.mark(15, y, look)
        shown, full = cut_name(name, PANEL - 40)
        plot.write(36, y, shown, hover=full)
    return plot.svg("Legend")


def number_marks(plot: Plot, marks: Sequence[Mark]) -> None:
    """Write numbers from 1 beside marks, each where most space is free."""
    places = [plot.at(x, y) for x, y, _ in marks]
    taken: list[_Point] = []
    for index, (place, mark) in enumerate(zip(places, marks, strict=True)):
        others = [*places[:index], *places[index + 1 :], *taken]
        taken.append(_roomiest(place, mark[2] / 2 + _AWAY, others))
        plot.write(*taken[-1], str(index + 1), TextLook(anchor="middle", is_bold=True))


def _roomiest(place: _Point, away: float, others: Sequence[_Point]) -> _Point:
    """Choose the place around a mark that is farthest from all others."""
    around = [(place[0] + away * cos(angle), place[1] + away * sin(angle)) for angle in _ANGLES]
    return max(around, key=lambda point: min((hypot(point[0] - x, point[1] - y) for x, y in others), default=0.0))
