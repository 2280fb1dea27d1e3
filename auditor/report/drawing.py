"""Draw the elements that figures share: named rows, scales, intervals, legends, numbers beside marks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil, cos, floor, hypot, log10, pi, sin
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.documents.base import Missing
from auditor.documents.estimates import BoundedEntry, By
from auditor.report.canvas import (
    HEAD,
    HOVER,
    INCH,
    PANEL,
    ROW,
    TEXT,
    Colour,
    one_line,
    open_canvas,
    shorten,
    text_width,
    to_svg,
)
from auditor.report.document import bounds_only
from auditor.report.wording import DASH, percent, signed

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

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


def set_hover(artist: "Artist", text: str) -> None:
    """Show ``text`` when the pointer is over a part of a drawing."""
    artist.set_gid(f"{HOVER}{one_line(text)}")


def hover_if_cut(text: "Text", name: str) -> None:
    """Show the full name when the pointer is over a shortened one."""
    if text.get_text() != name:
        set_hover(text, name)


def panel_title(axes: "Axes", title: str, *lines: str, aside: str = "") -> None:
    """Write a panel's heading from the sheet's left edge, lines under it, and what the numbers beside the plot are."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.bbox.width, figure.bbox.height
    hover_if_cut(figure.text(0, 1 - 13 / height, shorten(title, width, HEAD), size=HEAD, weight="bold"), title)
    for index, line in enumerate(lines):
        figure.text(0, 1 - (33 + 17 * index) / height, shorten(line, width), color=Colour.SOFT)
    if aside:
        x = (axes.bbox.x1 + _BESIDE) / width
        figure.text(x, 1 - (13 + 17 * len(lines)) / height, aside, color=Colour.SOFT)


def marker_key(axes: "Axes", marks: Sequence[tuple[Mapping[str, Any], str]], *, y: float = 34) -> None:
    """Name marks on one line, ``y`` pixels from the sheet's upper edge."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    inches = figure.dpi_scale_trans
    width, height = figure.bbox.width, figure.bbox.height
    x = 0.0
    for look, name in marks:
        axes.plot((x + 5) / INCH, (height - y) / INCH, transform=inches, **look)
        figure.text((x + 14) / width, 1 - y / height, name, va="center_baseline", color=Colour.SOFT)
        x += text_width(name) + 30


def gutter_width(names: Iterable[str], most: float = 190.0) -> float:
    """Choose the room at the left of a plot for the names of its rows."""
    return min(most, 24 + max((text_width(name) for name in names), default=0.0))


def name_rows(axes: "Axes", names: Sequence[str], *, bold: Iterable[int] = ()) -> None:
    """Label the rows of a plot, the first on top; names that do not fit are shortened."""
    room = float(axes.bbox.x0) - 8
    strong = set(bold)
    shown = [shorten(name, room, TEXT * _BOLD if place in strong else TEXT) for place, name in enumerate(names)]
    axes.set_yticks(range(len(names)), shown)
    axes.set_ylim(len(names) - 0.5, -0.5)
    labels = axes.get_yticklabels()
    for index in strong:
        labels[index].set_fontweight("bold")
    for label, name in zip(labels, names, strict=True):
        hover_if_cut(label, name)


@contextmanager
def open_rows(
    title: str,
    names: Sequence[str],
    line: float,
    *,
    lines: Sequence[str] = (),
    aside: str = "",
    key: Sequence[tuple[Mapping[str, Any], str]] = (),
    bold: Iterable[int] = (),
    **sheet: float,
) -> "Iterator[Axes]":
    """Open a panel with a heading and one named row for each of ``names``.

    Parameters
    ----------
    title, lines, aside
        As ``panel_title`` writes them.
    names, bold
        As ``name_rows`` writes them.
    line
        The height of a row, in pixels.
    key
        Marks with their names, as ``marker_key`` draws them.
    sheet
        ``width``, and the edges as ``open_canvas`` has them. At the left the names have their room by default.
    """
    edges = {"left": gutter_width(names), "right": 52.0, "top": 54.0, "bottom": 28.0} | sheet
    width, height = edges.pop("width", PANEL), edges["top"] + line * len(names) + edges["bottom"]
    with open_canvas(width, height, **edges) as axes:
        panel_title(axes, title, *lines, aside=aside)
        if key:
            marker_key(axes, key)
        name_rows(axes, names, bold=bold)
        yield axes


def rate_scale(axes: "Axes", top: float, *, wanted: int = 4, along: str = "x") -> None:
    """Scale x (or y) as a rate from 0 to ``top``, with lines at round percents."""
    ticks = round_ticks(0, top, wanted)
    digits = _digits(ticks)
    names = [f"{100 * tick:.{digits}f}" for tick in ticks[:-1]]
    _scale(axes, along, (0, top), ticks, [*names, percent(ticks[-1], digits)])


def change_scale(axes: "Axes", reach: float, *, wanted: int = 4, along: str = "x") -> None:
    """Scale x (or y) as a signed difference within ``reach``, with lines at round points and one at 0."""
    ticks = round_ticks(-reach, reach, wanted)
    digits = _digits(ticks)
    names = [signed(tick, digits) if tick else "0" for tick in ticks]
    _scale(axes, along, (-reach, reach), ticks, [*names[:-1], f"{names[-1]} pp"])
    line = axes.axvline if along == "x" else axes.axhline
    line(0, color=Colour.SOFT, linewidth=1, zorder=0.8)


def _scale(axes: "Axes", along: str, ends: tuple[float, float], ticks: Sequence[float], names: Sequence[str]) -> None:
    axes.set(**{f"{along}lim": ends})
    axis = axes.xaxis if along == "x" else axes.yaxis
    axis.set_ticks(ticks, names)
    axis.grid(visible=True)


def _digits(ticks: Sequence[float]) -> int:
    """Return the number of digits that percents need to be exact."""
    return next((n for n in (0, 1) if all(abs(round(100 * tick, n) - 100 * tick) < 1e-9 for tick in ticks)), 2)


def round_ticks(low: float, high: float, wanted: int) -> list[float]:
    """Choose round values within a scale, at most ``wanted`` steps of them.

    >>> round_ticks(0, 0.9, 4), round_ticks(-0.2, 0.2, 2)
    ([0.0, 0.25, 0.5, 0.75], [-0.2, 0.0, 0.2])
    """
    rough = (high - low) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * place, 10) + 0.0 for place in range(first, last + 1)]


def draw_interval(axes: "Axes", y: float, estimate: BoundedEntry, look: Mapping[str, Any]) -> None:
    """Draw an interval, and its value unless only the bounds are reliable."""
    axes.hlines(y, estimate.low, estimate.high, color=look["color"], linewidth=2, alpha=0.6)
    if not bounds_only(estimate):
        axes.plot(estimate.value, y, **look)


def write_beside(axes: "Axes", y: float, text: str, *, dx: float = 0, dy: float = 0, **look: Any) -> "Text":
    """Write at the right of a plot, on a row."""
    return axes.annotate(
        text,
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=(_BESIDE + dx, dy),
        textcoords="offset points",
        va="center_baseline",
        **look,
    )


def write_reason(axes: "Axes", y: float, name: str, missing: Missing) -> None:
    """Write a dash at the right of a plot, with the reason on hover."""
    set_hover(write_beside(axes, y, DASH, color=Colour.SOFT), f"{name}: {missing.missing}" if name else missing.missing)


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


def draw_legend(entries: Sequence[tuple[Mapping[str, Any], str]]) -> Markup:
    """Draw a panel that names marks: how each looks as a line of the plot, and its name."""
    height = ROW * len(entries) + 6
    with open_canvas(PANEL, height) as axes:
        axes.set(xlim=(0, PANEL), ylim=(height, 0))
        for index, (look, name) in enumerate(entries):
            y = 12 + ROW * index
            axes.plot([2, 15, 28], [y, y, y], markevery=[1], **look)
            hover_if_cut(axes.text(36, y, shorten(name, PANEL - 40), va="center_baseline"), name)
        return to_svg(axes, "Legend")


def number_marks(axes: "Axes", marks: Sequence[Mark]) -> None:
    """Write numbers from 1 beside marks, each where most space is free."""
    places = [_pixels(axes, mark) for mark in marks]
    taken: list[_Point] = []
    for index, (place, mark) in enumerate(zip(places, marks, strict=True)):
        others = [*places[:index], *places[index + 1 :], *taken]
        taken.append(_roomiest(place, mark[2] / 2 + _AWAY, others))
        axes.annotate(str(index + 1), taken[-1], xycoords="figure pixels", ha="center", va="center", weight="bold")


def _pixels(axes: "Axes", mark: Mark) -> _Point:
    x, y = axes.transData.transform(mark[:2])
    return float(x), float(y)


def _roomiest(place: _Point, away: float, others: Sequence[_Point]) -> _Point:
    """Choose the place around a mark that is farthest from all others."""
    around = [(place[0] + away * cos(angle), place[1] + away * sin(angle)) for angle in _ANGLES]
    return max(around, key=lambda one: min((hypot(one[0] - x, one[1] - y) for x, y in others), default=0.0))
