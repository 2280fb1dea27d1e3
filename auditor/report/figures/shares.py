"""Shares of variance: what each prompt factor, and the choice of a deployment, explains of a rate."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from auditor.metrics.shares import FACTORS
from auditor.report.figures.parts import RATES, beside, deployment_of, gutter, head, joined, rows, told
from auditor.report.figures.theme import ROW, SMALL, Colour, finish, sheet
from auditor.report.words import DASH, Entry

#: Effects with a panel each: the factors alone, and the deployment; interactions have their table.
_EFFECTS: Final = (*FACTORS, "deployment")


def share_bars(eta_squared: Sequence[Entry]) -> Markup | None:
    """Draw eta squared with its intervals, a panel an effect and a line a deployment.

    Parameters
    ----------
    eta_squared
        The document's rows of one rubric and one design or, after them, those of the deployment's share.
    """
    drawn = [(effect, [e for e in eta_squared if effect in e.get("effects", {})]) for effect in _EFFECTS]
    told_of = [(effect, own) for effect, own in drawn if any(_number(e, effect) is not None for e in own)]
    if not told_of:
        return None
    ends = [max(_bounds(e, effect)) for effect, own in told_of for e in own if _number(e, effect) is not None]
    return joined(_panel(effect, own, max(0.02, *ends)) for effect, own in told_of)


def _panel(effect: str, entries: Sequence[Entry], top: float) -> Markup:
    names = [_name(entry, effect) for entry in entries]
    pooled = [place for place, entry in enumerate(entries) if not entry["by"]]
    with sheet(SMALL, 28 + ROW * len(names) + 4, left=gutter(names, 114), right=44, top=28, bottom=4) as axes:
        head(axes, effect.capitalize(), aside="η²")
        rows(axes, names, bold=pooled)
        axes.set_xlim(0, top)
        axes.axvline(0, color=Colour.SOFT, linewidth=1)
        for y, entry in enumerate(entries):
            value = _number(entry, effect)
            if value is None:
                beside(axes, y, DASH, color=Colour.SOFT)
                continue
            low, high = _bounds(entry, effect)
            (bar,) = axes.barh(y, value, height=0.55, color=Colour.ACCENT, alpha=0.4)
            told(bar, f"{names[y]}: {value:.3f}" + (f" [{low:.3f}, {high:.3f}]" if low < high else ""))
            axes.hlines(y, low, high, color=Colour.ACCENT, linewidth=1.8)
            beside(axes, y, f"{value:.3f}", weight="bold" if y in pooled else "normal")
        return finish(axes, f"Share of variance that {effect} explains, by deployment")


def _name(entry: Entry, effect: str) -> str:
    """Name a row; one of the deployment's share is told by its outcome."""
    return RATES.get(entry["outcome"], str(entry["outcome"])) if effect == "deployment" else deployment_of(entry)


def _number(entry: Entry, effect: str) -> float | None:
    value = entry["effects"][effect]
    return float(value) if isinstance(value, int | float) else None


def _bounds(entry: Entry, effect: str) -> tuple[float, float]:
    """Give the interval, or the value twice where there is none."""
    low, high = entry.get("intervals", {}).get(effect, (entry["effects"][effect],) * 2)
    return low, high
