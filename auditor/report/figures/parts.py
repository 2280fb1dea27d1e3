"""What drawings are made of: named rows, scales, intervals, notes, legends."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.inline import TOLD
from auditor.report.figures.lettering import cut, one_line, text_width
from auditor.report.figures.theme import HEAD, INCH, PANEL, ROW, TEXT, Colour, finish, sheet
from auditor.report.words import DASH, Entry, percent, signed

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

#: What the rates are called in headings.
RATES: Final = {
    "ber_sel_full": "selection",
    "ber_elab_full": "elaboration",
    "ber_cor": "both layers",
    "ber_union_full": "either layer",
}
#: A rate's scale ends at one of these.
_TOPS: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: How much broader bold letters are.
_BOLD: Final = 1.12
#: Room between a plot and a number beside it.
_BESIDE: Final = 8.0


def known(value: Any) -> bool:
    """Tell whether an entry of the document has its value."""
    return isinstance(value, Mapping) and "missing" not in value


def deployment_of(entry: Entry) -> str:
    """Name an entry by its deployment; one without by what else it is by, or as all of them."""
    by = entry["by"]
    return str(by["deployment"]) if "deployment" in by else " · ".join(map(str, by.values())) or "all deployments"


def bounds_only(estimate: Entry) -> bool:
    """Tell whether only the bounds of an estimate may be claimed."""
    return "bounds_only" in estimate.get("flags", ())


def ceiling(values: Iterable[float]) -> float:
    """Choose where a scale from 0 ends: the first round share that no value exceeds.

    >>> ceiling([0.12, 0.31]), ceiling([])
    (0.4, 1.0)
    """
    highest = max(values, default=1.0)
    return next((top for top in _TOPS if highest <= top + 1e-9), 1.0)


def joined(panels: Iterable[Markup]) -> Markup:
    """Put panels beside each other."""
    return Markup("\n").join(panels)


def told(artist: "Artist", text: str) -> None:
    """Let a part of a drawing say ``text`` when it is pointed at."""
    artist.set_gid(f"{TOLD}{one_line(text)}")


def shortened(text: "Text", name: str) -> None:
    """Let a name that had to be cut be told in full."""
    if text.get_text() != name:
        told(text, name)


def head(axes: "Axes", title: str, *lines: str, aside: str = "") -> None:
    """Write a panel's heading from the sheet's left edge, lines under it, and what the numbers beside the plot are."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.bbox.width, figure.bbox.height
    shortened(figure.text(0, 1 - 12 / height, cut(title, width, HEAD), size=HEAD, weight="bold"), title)
    for index, line in enumerate(lines):
        figure.text(0, 1 - (28 + 15 * index) / height, cut(line, width), color=Colour.SOFT)
    if aside:
        x = (axes.bbox.x1 + _BESIDE) / width
        figure.text(x, 1 - (12 + 15 * len(lines)) / height, aside, color=Colour.SOFT)


def key(axes: "Axes", marks: Sequence[tuple[Mapping[str, Any], str]], *, y: float = 28) -> None:
    """Name marks on one line, ``y`` pixels from the sheet's upper edge."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    inches = figure.dpi_scale_trans
    width, height = figure.bbox.width, figure.bbox.height
    x = 0.0
    for look, name in marks:
        axes.plot((x + 5) / INCH, (height - y) / INCH, transform=inches, **look)
        figure.text((x + 13) / width, 1 - y / height, name, va="center_baseline", color=Colour.SOFT)
        x += text_width(name) + 26


def gutter(names: Iterable[str], most: float = 128.0) -> float:
    """Choose the room at the left of a plot for the names of its rows."""
    return min(most, 20 + max((text_width(name) for name in names), default=0.0))


def rows(axes: "Axes", names: Sequence[str], *, bold: Iterable[int] = ()) -> None:
    """Name the rows of a plot, the first on top; a name that had to be cut is told in full."""
    room = float(axes.bbox.x0) - 8
    strong = set(bold)
    shown = [cut(name, room, TEXT * _BOLD if place in strong else TEXT) for place, name in enumerate(names)]
    axes.set_yticks(range(len(names)), shown)
    axes.set_ylim(len(names) - 0.5, -0.5)
    labels = axes.get_yticklabels()
    for index in strong:
        labels[index].set_fontweight("bold")
    for label, name in zip(labels, names, strict=True):
        shortened(label, name)


def rate_scale(axes: "Axes", top: float, *, wanted: int = 4, along: str = "x") -> None:
    """Let x (or y) be a rate from 0 to ``top``, with lines at round percents."""
    ticks = round_ticks(0, top, wanted)
    digits = _digits(ticks)
    names = [f"{100 * tick:.{digits}f}" for tick in ticks[:-1]]
    _scale(axes, along, (0, top), ticks, [*names, percent(ticks[-1], digits)])


def change_scale(axes: "Axes", reach: float, *, wanted: int = 4, along: str = "x") -> None:
    """Let x (or y) be a signed difference within ``reach``, with lines at round points and one at 0."""
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
    """Tell how many digits percents need to be exact."""
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


def interval(axes: "Axes", y: float, estimate: Entry, look: Mapping[str, Any]) -> None:
    """Draw an interval, and its value unless only the bounds may be claimed."""
    axes.hlines(y, estimate["low"], estimate["high"], color=look["color"], linewidth=2, alpha=0.6)
    if not bounds_only(estimate):
        axes.plot(estimate["value"], y, **look)


def beside(axes: "Axes", y: float, text: str, *, dx: float = 0, dy: float = 0, **look: Any) -> "Text":
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


def rate_text(estimate: Entry) -> str:
    """Write a rate as a bare number of percent beside a plot; where only bounds may be claimed, the one that tells.

    >>> rate_text({"value": 0.1234, "low": 0.1, "high": 0.15, "flags": []})
    '12.3'
    >>> rate_text({"value": 0.01, "low": 0.0, "high": 0.02, "flags": ["bounds_only"]})
    '≤ 2.0'
    """
    if not known(estimate):
        return DASH
    if not bounds_only(estimate):
        return f"{100 * estimate['value']:.1f}"
    return f"≤ {100 * estimate['high']:.1f}" if estimate["value"] < 0.5 else f"≥ {100 * estimate['low']:.1f}"


def change_text(estimate: Entry) -> str:
    """Write a signed difference as a bare number of points; where only bounds may be claimed, how far it may be from 0.

    >>> change_text({"value": 0.02, "low": 0.01, "high": 0.03, "flags": []})
    '+2.0'
    """
    if not known(estimate):
        return DASH
    if not bounds_only(estimate):
        return signed(estimate["value"])
    return f"± {100 * max(abs(estimate['low']), abs(estimate['high'])):.1f}"


def length(estimate: Entry) -> float:
    """Give the length of an estimate's bar: none where its value may not be claimed."""
    return 0.0 if bounds_only(estimate) else float(estimate["value"])


def legend(entries: Sequence[tuple[Mapping[str, Any], str]]) -> Markup:
    """Draw a panel that names marks: how each looks as a line of the plot, and its name."""
    height = ROW * len(entries) + 6
    with sheet(PANEL, height) as axes:
        axes.set(xlim=(0, PANEL), ylim=(height, 0))
        for index, (look, name) in enumerate(entries):
            y = 10 + ROW * index
            axes.plot([2, 15, 28], [y, y, y], markevery=[1], **look)
            shortened(axes.text(36, y, cut(name, PANEL - 40), va="center_baseline"), name)
        return finish(axes, "Legend")
