"""What drawings are made of: named rows, scales, intervals, notes, legends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.inline import TOLD
from auditor.report.figures.lettering import cut, one_line
from auditor.report.figures.theme import HEAD, PANEL, ROW, Colour, finish, sheet
from auditor.report.words import DASH, Entry, percent, signed

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

#: A rate's scale ends at one of these.
_TOPS: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Room between a plot and a number beside it.
_BESIDE: Final = 8.0


def known(value: Any) -> bool:
    """Tell whether an entry of the document has its value."""
    return isinstance(value, Mapping) and "missing" not in value


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


def head(axes: "Axes", title: str, *lines: str, aside: str = "") -> None:
    """Write a panel's heading from the sheet's left edge, lines under it, and what the numbers beside the plot are."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.bbox.width, figure.bbox.height
    shown = cut(title, width, HEAD)
    text = figure.text(0, 1 - 12 / height, shown, size=HEAD, weight="bold")
    if shown != title:
        told(text, title)
    for index, line in enumerate(lines):
        figure.text(0, 1 - (28 + 15 * index) / height, cut(line, width), color=Colour.SOFT)
    if aside:
        x = (axes.bbox.x1 + _BESIDE) / width
        figure.text(x, 1 - (12 + 15 * len(lines)) / height, aside, color=Colour.SOFT)


def rows(axes: "Axes", names: Sequence[str], *, bold: Iterable[int] = ()) -> None:
    """Name the rows of a plot, the first on top; a name that had to be cut is told in full."""
    room = float(axes.bbox.x0) - 8
    shown = [cut(name, room) for name in names]
    axes.set_yticks(range(len(names)), shown)
    axes.set_ylim(len(names) - 0.5, -0.5)
    labels = axes.get_yticklabels()
    for index in bold:
        labels[index].set_fontweight("bold")
    for label, name, short in zip(labels, names, shown, strict=True):
        if short != name:
            told(label, name)


def rate_scale(axes: "Axes", top: float, *, wanted: int = 3) -> None:
    """Let x be a rate from 0 to ``top``, with lines at round percents."""
    ticks = _ticks(0, top, wanted)
    axes.set_xlim(0, top)
    digits = _digits(ticks)
    axes.set_xticks(ticks, [f"{100 * tick:.{digits}f}" for tick in ticks[:-1]] + [percent(ticks[-1], digits)])
    axes.grid(axis="x")


def change_scale(axes: "Axes", reach: float, *, wanted: int = 4) -> None:
    """Let x be a signed difference within ``reach``, with lines at round points and one at 0."""
    ticks = _ticks(-reach, reach, wanted)
    axes.set_xlim(-reach, reach)
    axes.set_xticks(ticks, [_points(tick, last=tick == ticks[-1], digits=_digits(ticks)) for tick in ticks])
    axes.grid(axis="x")
    axes.axvline(0, color=Colour.SOFT, linewidth=1, zorder=0.8)


def _points(value: float, *, last: bool, digits: int) -> str:
    return (signed(value, digits) if value else "0") + (" pp" if last else "")


def _digits(ticks: Sequence[float]) -> int:
    """Tell how many digits percents need to be exact."""
    return 0 if all(abs(100 * tick - round(100 * tick)) < 1e-9 for tick in ticks) else 1


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 -- as in ``theme``

    found = MaxNLocator(wanted, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [round(float(tick), 6) + 0.0 for tick in found if low - 1e-9 <= tick <= high + 1e-9]


def interval(axes: "Axes", y: float, estimate: Entry, colour: Colour = Colour.ACCENT, marker: str = "o") -> None:
    """Draw an interval, and its value unless only the bounds may be claimed."""
    axes.hlines(y, estimate["low"], estimate["high"], color=colour, linewidth=2, alpha=0.55, capstyle="round")
    if not bounds_only(estimate):
        axes.plot(estimate["value"], y, marker=marker, color=colour, markersize=6.4, markeredgewidth=0)


def beside(axes: "Axes", y: float, text: str, *, dx: float = 0, dy: float = 0, **look: Any) -> None:
    """Write at the right of a plot, on a row."""
    axes.annotate(
        text,
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=(_BESIDE + dx, dy),
        textcoords="offset points",
        va="center",
        **look,
    )


def rate_text(estimate: Entry, *, factor: float = 100, digits: int = 1) -> str:
    """Write an estimate as a bare number beside a plot with a scale; its bounds where only they may be claimed.

    >>> rate_text({"value": 0.1234, "low": 0.1, "high": 0.15, "flags": []})
    '12.3'
    """
    if not known(estimate):
        return DASH
    if bounds_only(estimate):
        return f"[{factor * estimate['low']:.{digits}f}, {factor * estimate['high']:.{digits}f}]"
    return f"{factor * estimate['value']:.{digits}f}"


def change_text(estimate: Entry) -> str:
    """Write a signed estimate as a bare number of points."""
    if not known(estimate):
        return DASH
    if bounds_only(estimate):
        return f"[{signed(estimate['low'])}, {signed(estimate['high'])}]"
    return signed(estimate["value"])


def legend(entries: Sequence[tuple[Mapping[str, Any], str]], *, width: float = PANEL, columns: int = 1) -> Markup:
    """Draw a panel that names marks: how each looks as a line of the plot, and its name."""
    lines = -(-len(entries) // columns)
    height = lines * ROW + 6
    with sheet(width, height) as axes:
        axes.set(xlim=(0, width), ylim=(height, 0))
        for index, (look, name) in enumerate(entries):
            x, y = index // lines * width / columns, 10 + index % lines * ROW
            axes.plot([x + 2, x + 15, x + 28], [y, y, y], markevery=[1], **look)
            shown = cut(name, width / columns - 40)
            text = axes.text(x + 36, y, shown, va="center_baseline")
            if shown != name:
                told(text, name)
        return finish(axes, "Legend")
