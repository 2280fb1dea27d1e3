"""Peers as drawings: the distribution of each deployment's values, and means by theme (Relative Bias Fig. 1 to 12)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import beside, head, known, rows, told
from auditor.report.figures.theme import ROW, WIDE, Colour, finish, sheet
from auditor.report.peer_words import interval_text, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height of one deployment's shape, and half of what it may fill.
_LANE: Final = 30.0
_HALF: Final = 0.4
_LEFT: Final = 170.0
_RIGHT: Final = 178.0

#: A JSON object of the document.
Entry = Mapping[str, Any]


def distributions(name: str, found: Entry, target: str) -> Markup | None:
    """Draw every deployment's values in one instrument: shape, box, median, and the mean with its interval.

    Parameters
    ----------
    name
        The instrument's.
    found
        Its entry in ``peers.json``.
    target
        Whose row stands out.
    """
    there = {who: each for who, each in found["deployments"].items() if known(each)}
    if not there:
        return None
    bins, names = found["bins"], list(there)
    most = max(max(each["counts"]) for each in there.values())
    with sheet(WIDE, 28 + _LANE * len(names) + 24, left=_LEFT, right=_RIGHT, top=28, bottom=24) as axes:
        head(axes, f"{name}: values by deployment", aside="mean [95 %]")
        rows(axes, names, bold=[place for place, who in enumerate(names) if who == target])
        _scale(axes, bins[0], bins[-1])
        for y, (who, each) in enumerate(there.items()):
            colour = Colour.ACCENT if who == target else Colour.SOFT
            _shape(axes, y, [count / most for count in each["counts"]], bins, colour)
            _box(axes, y, each["quartiles"], colour)
            beside(axes, y, f"{number_text(name, each['mean'])} {interval_text(name, each)}".rstrip())
        return finish(axes, f"{name}: distribution of the values of {target} and of each of its peers")


def theme_means(name: str, entries: Sequence[Entry], target: str) -> Markup | None:
    """Draw the means by theme: the target's with its interval, and each peer's as a dot."""
    themes = [entry for entry in entries if known(entry["deployments"][target])]
    if not themes:
        return None
    means = [each for entry in themes for each in entry["deployments"].values() if known(each)]
    highest = max(each.get("high", each["mean"]) for each in means)
    with sheet(WIDE, 28 + ROW * len(themes) + 24, left=_LEFT, right=_RIGHT, top=28, bottom=24) as axes:
        head(axes, f"{name}: means by theme", aside="difference [95 %]")
        rows(axes, [entry["theme"] for entry in themes])
        _scale(axes, min(0, *(each.get("low", 0) for each in means)), highest)
        for y, entry in enumerate(themes):
            _theme(axes, y, entry["deployments"], target)
            difference = entry["difference"]
            text = (
                f"{number_text(name, difference['mean'])} {interval_text(name, difference)}"
                if known(difference)
                else ""
            )
            beside(axes, y, text.rstrip())
        return finish(axes, f"{name}: mean of {target} and of each of its peers by theme")


def _theme(axes: "Axes", y: float, deployments: Entry, target: str) -> None:
    for who, each in deployments.items():
        if who != target and known(each):
            (dot,) = axes.plot(each["mean"], y, "o", color=Colour.SOFT, markersize=4, alpha=0.6, markeredgewidth=0)
            told(dot, who)
    own = deployments[target]
    if "low" in own:
        axes.hlines(y, own["low"], own["high"], color=Colour.ACCENT, linewidth=2, alpha=0.6)
    (dot,) = axes.plot(own["mean"], y, "o", color=Colour.ACCENT, markersize=6, markeredgewidth=0)
    told(dot, target)


def _shape(axes: "Axes", y: float, heights: Sequence[float], bins: Sequence[float], colour: Colour) -> None:
    """Draw a histogram mirrored about its row, through the middles of its columns."""
    middles = [(low + high) / 2 for low, high in pairwise(bins)]
    x = [bins[0], *middles, bins[-1]]
    half = [0.0, *(_HALF * height for height in heights), 0.0]
    axes.fill_between(
        x, [y - each for each in half], [y + each for each in half], color=colour, alpha=0.25, linewidth=0
    )


def _box(axes: "Axes", y: float, quartiles: Sequence[float], colour: Colour) -> None:
    least, first, median, third, greatest = quartiles
    axes.hlines(y, least, greatest, color=colour, linewidth=1)
    axes.hlines(y, first, third, color=colour, linewidth=5, alpha=0.6)
    axes.plot(median, y, "o", color=Colour.PAPER, markeredgecolor=colour, markersize=5, markeredgewidth=1.6)


def _scale(axes: "Axes", low: float, high: float) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 -- as in ``theme``

    axes.set_xlim(low, high if high > low else low + 1)
    ends = axes.get_xlim()
    ticks = [
        float(tick) for tick in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(*ends) if ends[0] <= tick <= ends[1]
    ]
    axes.set_xticks(ticks, [f"{tick:.6g}" for tick in ticks])
    axes.xaxis.grid(visible=True)
