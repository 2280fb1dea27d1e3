"""What one layer hides of the other: each deployment's selection against its elaboration (BiAxisAudit Fig. 2b)."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import (
    beside,
    ceiling,
    change_scale,
    change_text,
    deployment_of,
    gutter,
    head,
    interval,
    joined,
    key,
    known,
    length,
    rate_scale,
    rate_text,
    rows,
    told,
)
from auditor.report.figures.theme import ELAB, PANEL, SEL, UNION, Colour, finish, sheet
from auditor.report.words import Entry, estimate_text

_LINE: Final = 34.0
_LAYERS: Final[tuple[tuple[str, str, float, dict[str, Any]], ...]] = (
    ("ber_sel", "selection", -0.19, SEL),
    ("ber_elab", "elaboration", 0.19, ELAB),
)


def naive_bars(deployments: Sequence[Entry]) -> Markup | None:
    """Draw what selection alone says, what elaboration says, and the signed correction, which is DNI.

    Parameters
    ----------
    deployments
        The document's groups by deployment, of one rubric; those without DNI are left out. Where the rubric names no
        stereotype there are no rates, and the correction stands alone.
    """
    drawn = [entry for entry in deployments if known(entry["metrics"]["dni"])]
    if not drawn:
        return None
    rated = [entry for entry in drawn if all(known(entry["metrics"][name]) for name, _, _, _ in _LAYERS)]
    return joined([*([_rates(rated)] if rated else []), _corrections(drawn)])


def _rates(entries: Sequence[Entry]) -> Markup:
    top = ceiling(entry["metrics"][name]["high"] for entry in entries for name, _, _, _ in _LAYERS)
    names = [deployment_of(entry) for entry in entries]
    with sheet(PANEL, 44 + _LINE * len(entries) + 24, left=gutter(names), right=44, top=44, bottom=24) as axes:
        head(axes, "What each layer says")
        key(axes, [(SEL, "selection alone"), (ELAB, "elaboration")])
        rows(axes, names)
        rate_scale(axes, top)
        for y, entry in enumerate(entries):
            for name, layer, dy, look in _LAYERS:
                estimate = entry["metrics"][name]
                bar = axes.barh(y + dy, length(estimate), height=0.3, color=look["color"], alpha=0.25)
                told(bar[0], f"{deployment_of(entry)}: {layer} {estimate_text(name, estimate)}")
                interval(axes, y + dy, estimate, look)
                beside(axes, y + dy, rate_text(estimate))
        return finish(axes, "BER of selection and of elaboration by deployment, on responses with both layers")


def _corrections(entries: Sequence[Entry]) -> Markup:
    dni = [entry["metrics"]["dni"] for entry in entries]
    reach = ceiling(max(abs(each["low"]), abs(each["high"])) for each in dni)
    names = [deployment_of(entry) for entry in entries]
    with sheet(PANEL, 44 + _LINE * len(entries) + 24, left=gutter(names), right=100, top=44, bottom=24) as axes:
        head(axes, "Correction: DNI", "selection less elaboration")
        rows(axes, names)
        change_scale(axes, reach, wanted=2)
        for y, (entry, each) in enumerate(zip(entries, dni, strict=True)):
            colour, words = _direction(each)
            bar = axes.barh(y, length(each), height=0.34, color=colour, alpha=0.35)
            told(bar[0], f"{deployment_of(entry)}: DNI {estimate_text('dni', each)}, {words}")
            interval(axes, y, each, {**UNION, "color": colour})
            beside(axes, y, change_text(each), dy=6, weight="bold")
            beside(axes, y, words, dy=-7, color=Colour.SOFT)
        return finish(axes, "DNI by deployment: how far selection alone over- or under-estimates")


def _direction(dni: Entry) -> tuple[Colour, str]:
    """Say the sign in words; an interval with 0 inside has none."""
    if dni["low"] > 0:
        return Colour.OVER, "over-estimates"
    if dni["high"] < 0:
        return Colour.UNDER, "under-estimates"
    return Colour.SOFT, "sign not sure"
