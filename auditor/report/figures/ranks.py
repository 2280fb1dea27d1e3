"""How a deployment's rank depends on the condition it is asked under."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from auditor.report.figures.parts import beside, gutter, head, joined, key, known, rows, told
from auditor.report.figures.theme import PANEL, Colour, finish, sheet
from auditor.report.words import Entry, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE: Final = 32.0
#: So many ranks have their number each; of more, every fifth has.
_NAMED: Final = 10
#: The highest bar fills so much of its line.
_FULL: Final = 0.84


def rank_bars(condition_ranks: Sequence[Entry]) -> Markup | None:
    """Draw for each deployment the shares of the conditions by its rank there, rank 1 endorsing most.

    Parameters
    ----------
    condition_ranks
        The document's entries of one rubric.
    """
    panels = [_panel(entry) for entry in condition_ranks if known(entry)]
    return joined(panels) if panels else None


def _panel(entry: Entry) -> Markup:
    ranks = sorted(entry["ranks"].items(), key=lambda one: (_mean(one[1]["shares"]), one[0]))
    names = [name for name, _ in ranks]
    count, highest = len(names), max(max(own["shares"] + own["resampled"]) for own in entry["ranks"].values())
    with sheet(PANEL, 60 + _LINE * count + 8, left=gutter(names), right=44, top=60, bottom=8) as axes:
        head(axes, f"Rank over {len(entry['conditions'])} conditions")
        solid = {"color": Colour.ACCENT, "marker": "s", "markersize": 7, "markeredgewidth": 0}
        line = {"color": Colour.INK, "marker": "_", "markersize": 9, "markeredgewidth": 1.4}
        key(axes, [(solid, "share of the conditions"), (line, "resampled")])
        rows(axes, names)
        axes.set_xlim(0.5, count + 0.5)
        axes.set_xticks(range(1, count + 1) if count <= _NAMED else [1, *range(5, count + 1, 5)])
        axes.xaxis.tick_top()
        for y, (name, own) in enumerate(ranks):
            _bars(axes, y + 0.45, name, own, scale=_FULL / highest)
            span = f"{own['best']}" if own["best"] == own["worst"] else f"{own['best']}\N{EN DASH}{own['worst']}"
            beside(axes, y, span)
        return finish(axes, "Shares of the conditions by a deployment's rank, 1 endorsing most")


def _bars(axes: "Axes", foot: float, name: str, own: Entry, *, scale: float) -> None:
    axes.axhline(foot, color=Colour.FAINT, linewidth=1)
    for rank, (share, resampled) in enumerate(zip(own["shares"], own["resampled"], strict=True), start=1):
        if share:
            (bar,) = axes.bar(rank, -scale * share, bottom=foot, width=0.7, color=Colour.ACCENT, alpha=0.7)
            told(
                bar,
                f"{name}: rank {rank} under {percent(share, 0)} of the conditions, resampled {percent(resampled, 0)}",
            )
        if resampled:
            axes.hlines(foot - scale * resampled, rank - 0.42, rank + 0.42, color=Colour.INK, linewidth=1.4)


def _mean(shares: Sequence[float]) -> float:
    return sum(rank * share for rank, share in enumerate(shares, start=1))
