"""A difference watched question by question: its mean, its confidence sequence, and the margins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import head, known, round_ticks
from auditor.report.figures.theme import PANEL, Colour, finish, sheet
from auditor.report.peer_words import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT: Final = 168.0
#: How far beyond the margins and the last values the scale reaches, as a share of them.
_ROOM: Final = 1.3


def sequence(name: str, found: Mapping[str, Any], target: str) -> Markup | None:
    """Draw a sequential verdict's path.

    Parameters
    ----------
    name
        The instrument's.
    found
        ``sequential`` of its entry in ``peers.json``.
    target
        Whose difference it is.
    """
    if not known(found):
        return None
    path, margin = found["path"], found["margin"]
    bounded = [point for point in path if "low" in point]
    with sheet(PANEL, _HEIGHT, left=60, right=10, top=28, bottom=38) as axes:
        head(axes, f"{name}: mean difference")
        # The first few means may lie anywhere; they do not set the scale.
        ends = [bound for point in bounded for bound in (point["low"], point["high"])] or [path[-1]["mean"]]
        _scale(axes, name, _ROOM * min(-margin, *ends), _ROOM * max(margin, *ends), path[-1]["n"])
        for side in (-margin, margin):
            axes.axhline(side, color=Colour.FAIL, linewidth=1, linestyle=(0, (5, 3)))
        if bounded:
            lows, highs = ([point[end] for point in bounded] for end in ("low", "high"))
            axes.fill_between(
                [point["n"] for point in bounded], lows, highs, color=Colour.ACCENT, alpha=0.25, linewidth=0
            )
        axes.plot([point["n"] for point in path], [point["mean"] for point in path], color=Colour.ACCENT)
        return finish(axes, f"{name}: mean difference of {target} from its peers by number of questions")


def _scale(axes: "Axes", name: str, low: float, high: float, n: int) -> None:
    axes.set(xlim=(0, n), ylim=(low, high))
    ticks = [tick for tick in round_ticks(0, n, 4) if tick.is_integer()]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("questions", color=Colour.SOFT)
    heights = round_ticks(low, high, 4)
    axes.set_yticks(heights, [number_text(name, tick) for tick in heights])
    axes.axhline(0, color=Colour.SOFT, linewidth=1, zorder=0.8)
    axes.grid(axis="y")
