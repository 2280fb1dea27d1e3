"""What a lower rate costs in tokens, and which conditions no other one beats in both (BiAxisAudit appendix F-C)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.lettering import cut
from auditor.report.figures.numbering import numbered
from auditor.report.figures.parts import (
    RATES,
    ceiling,
    head,
    joined,
    key,
    known,
    rate_scale,
    round_ticks,
    shortened,
    told,
)
from auditor.report.figures.theme import PANEL, ROW, Colour, finish, sheet
from auditor.report.words import Entry, percent, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT: Final = 7.0
_ON: Final[dict[str, Any]] = {"color": Colour.ACCENT, "marker": "o", "markersize": _DOT, "markeredgewidth": 0}
_OFF: Final[dict[str, Any]] = {"color": Colour.SOFT, "marker": "o", "markersize": 4.6, "markerfacecolor": "none"}
_RECIPE: Final[dict[str, Any]] = {"color": Colour.SEL, "marker": "D", "markersize": 12, "markerfacecolor": "none"}


def pareto_panels(tradeoff: Sequence[Entry]) -> Markup | None:
    """Draw rate against completion tokens with the frontier, a plane and its list an outcome.

    Parameters
    ----------
    tradeoff
        The document's entries of one rubric; those that are missing are left out.
    """
    drawn = [entry for entry in tradeoff if known(entry) and entry["options"]]
    return joined(panel for entry in drawn for panel in (_plane(entry), _list(entry))) if drawn else None


def _frontier(entry: Entry) -> list[Entry]:
    return sorted((option for option in entry["options"] if option["on_frontier"]), key=lambda option: option["tokens"])


def _plane(entry: Entry) -> Markup:
    options, frontier = entry["options"], _frontier(entry)
    with sheet(PANEL, PANEL, left=44, right=10, top=48, bottom=40) as axes:
        head(axes, f"{_outcome(entry)}: rate and tokens")
        key(axes, [(_ON, "on the frontier"), (_OFF, "beaten"), ({**_RECIPE, "markersize": 9}, "recipe")])
        _token_scale(axes, [option["tokens"] for option in options])
        rate_scale(axes, ceiling(option["rate"] for option in options), along="y")
        steps = [option["tokens"] for option in frontier], [option["rate"] for option in frontier]
        axes.step(*steps, where="post", color=Colour.ACCENT, linewidth=1)
        for option in options:
            (dot,) = axes.plot(option["tokens"], option["rate"], **(_ON if option["on_frontier"] else _OFF))
            told(dot, f"{option['name']}: {percent(option['rate'])} at {option['tokens']:.0f} tokens")
            if _uses(entry, option):
                axes.plot(option["tokens"], option["rate"], **_RECIPE)
        numbered(axes, [(option["tokens"], option["rate"], _DOT) for option in frontier])
        return finish(axes, f"{_outcome(entry)}: rate by completion tokens, with the Pareto frontier")


def _token_scale(axes: "Axes", tokens: Sequence[float]) -> None:
    margin = 0.08 * (max(tokens) - min(tokens)) or 1.0
    ends = max(0.0, min(tokens) - margin), max(tokens) + margin
    ticks = round_ticks(*ends, 4)
    axes.set_xlim(ends)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.grid(axis="x")
    axes.set_xlabel("completion tokens of a response", color=Colour.SOFT)


def _list(entry: Entry) -> Markup:
    """List the frontier: condition, tokens, rate, its share of the resamples, and what it is chosen for."""
    frontier = _frontier(entry)
    columns = (196.0, 246.0, PANEL)
    height = 26 + sum(_depth(entry, option) for option in frontier)
    with sheet(PANEL, height) as axes:
        axes.set(xlim=(0, PANEL), ylim=(height, 0))
        head(axes, "On the frontier")
        for x, name in zip(columns, ("tokens", "rate", "resampled"), strict=True):
            axes.text(x, 12, name, ha="right", color=Colour.SOFT)
        y = 34.0
        for number, option in enumerate(frontier, start=1):
            axes.text(14, y, str(number), ha="right", weight="bold")
            shortened(axes.text(22, y, cut(option["name"], 136)), option["name"])
            values = f"{option['tokens']:.0f}", percent(option["rate"]), percent(option["frontier_share"], 0)
            for x, value in zip(columns, values, strict=True):
                axes.text(x, y, value, ha="right")
            axes.text(22, y + 14, cut(_uses(entry, option), PANEL - 22), color=Colour.SEL)
            y += _depth(entry, option)
        return finish(axes, f"{_outcome(entry)}: the conditions on the Pareto frontier")


def _uses(entry: Entry, option: Entry) -> str:
    """Say what a condition is the recipe for."""
    return ", ".join(plain(recipe["use"]) for recipe in entry["recipes"] if recipe["name"] == option["name"])


def _depth(entry: Entry, option: Entry) -> float:
    """Give the height of an option's lines."""
    return ROW + 15 if _uses(entry, option) else ROW


def _outcome(entry: Entry) -> str:
    return RATES.get(entry["outcome"], str(entry["outcome"])).capitalize()
