"""How task and sentiment act together on the selection (BiAxisAudit Fig. 7)."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from auditor.metrics.shares import BASELINE, level_order
from auditor.report.figures.parts import (
    beside,
    bounds_only,
    ceiling,
    gutter,
    head,
    key,
    known,
    length,
    rate_scale,
    rate_text,
    rows,
    told,
)
from auditor.report.figures.theme import PANEL, SEL, Colour, finish, sheet
from auditor.report.words import Entry, estimate_text, percent

_LINE: Final = 22.0
_SPREAD: Final[dict[str, Any]] = {
    "color": Colour.SOFT,
    "marker": "_",
    "markersize": 10,
    "markeredgewidth": 4,
    "alpha": 0.4,
}
_METRIC: Final = "ber_sel_full"


def interaction_panel(interaction: Sequence[Entry]) -> Markup | None:
    """Draw the selection rate by task and sentiment: pooled with its interval, and one SD over the deployments.

    Parameters
    ----------
    interaction
        The document's entries of one rubric; those without a rate are left out.
    """
    drawn = sorted((entry for entry in interaction if known(entry[_METRIC])), key=_place)
    if not drawn:
        return None
    names = [f"{entry['task']}, {entry['sentiment']}" for entry in drawn]
    top = ceiling(end for entry in drawn for end in (entry[_METRIC]["high"], *(_band(entry) or ())))
    with sheet(PANEL, 44 + _LINE * len(drawn) + 24, left=gutter(names), right=44, top=44, bottom=24) as axes:
        head(axes, "Selection by task and sentiment")
        key(axes, [(SEL, "pooled"), (_SPREAD, "mean of deployments \N{PLUS-MINUS SIGN} 1 SD")])
        rows(axes, names)
        rate_scale(axes, top)
        for y, (name, entry) in enumerate(zip(names, drawn, strict=True)):
            estimate = entry[_METRIC]
            neutral = entry["sentiment"] == BASELINE[3]
            (bar,) = axes.barh(y, length(estimate), height=0.66, color=Colour.SEL, alpha=0.14 if neutral else 0.34)
            told(bar, _told(name, entry))
            band = _band(entry)
            if band:
                axes.hlines(y + 0.2, *band, color=Colour.SOFT, linewidth=4, alpha=0.4)
            axes.hlines(y - 0.1, estimate["low"], estimate["high"], color=Colour.SEL, linewidth=2)
            if not bounds_only(estimate):
                axes.plot(estimate["value"], y - 0.1, **SEL)
            beside(axes, y, rate_text(estimate))
        return finish(axes, "BER of the selection by task and sentiment, pooled, with the spread over deployments")


def _place(entry: Entry) -> tuple[tuple[int, str], tuple[int, str]]:
    """Sort by task and by sentiment, both in the instrument's order."""
    return level_order("task", entry["task"]), level_order("sentiment", entry["sentiment"])


def _band(entry: Entry) -> tuple[float, float] | None:
    """Give the mean of the deployments less and plus one SD, within [0, 1]; few deployments have none."""
    mean, spread = entry["mean"], entry["sd"]
    if not isinstance(mean, float | int) or not isinstance(spread, float | int):
        return None
    return max(0.0, mean - spread), min(1.0, mean + spread)


def _told(name: str, entry: Entry) -> str:
    band = _band(entry)
    spread = f", {percent(band[0])} to {percent(band[1])}" if band else ""
    pooled = estimate_text(_METRIC, entry[_METRIC])
    return f"{name}: pooled {pooled}, n = {entry['n']:,}; {entry['n_deployments']} deployments{spread}"
