"""Every condition of every deployment: both layers and their union."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import (
    beside,
    bounds_only,
    ceiling,
    gutter,
    head,
    interval,
    joined,
    key,
    known,
    rate_scale,
    rate_text,
    rows,
    told,
)
from auditor.report.figures.theme import ELAB, PANEL, SEL, UNION, Colour, finish, sheet
from auditor.report.words import DASH, Entry, condition_order, condition_text, estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE: Final = 17.0
#: Conditions a panel can show and still be read.
MOST: Final = 60
_LAYERS: Final = (("ber_sel_full", "selection", SEL), ("ber_elab_full", "elaboration", ELAB))


def condition_panels(conditions: Sequence[Entry]) -> Markup | None:
    """Draw the union rate by condition with intervals, a panel a deployment; both layers as small marks.

    Parameters
    ----------
    conditions
        The document's entries of one rubric.
    """
    by_deployment: dict[str, dict[str, Entry]] = {}
    ordered = sorted(conditions, key=lambda entry: condition_order(entry["by"]))
    for entry in ordered:
        by_deployment.setdefault(str(entry["by"]["deployment"]), {})[condition_text(entry["by"])] = entry
    names = list(dict.fromkeys(condition_text(entry["by"]) for entry in ordered))[:MOST]
    unions = [entry["metrics"]["ber_union_full"] for entry in conditions]
    top = ceiling(union["high"] for union in unions if known(union))
    panels = [_panel(name, names, own, top) for name, own in sorted(by_deployment.items())]
    return joined(panels) if panels else None


def _panel(deployment: str, names: Sequence[str], entries: Mapping[str, Entry], top: float) -> Markup:
    left = gutter(names, 150)
    with sheet(PANEL, 44 + _LINE * len(names) + 24, left=left, right=48, top=44, bottom=24) as axes:
        head(axes, deployment)
        key(axes, [(UNION, "either layer"), *((_hollow(look), name) for _, name, look in _LAYERS)])
        rows(axes, names)
        rate_scale(axes, top)
        for y, name in enumerate(names):
            if name in entries:
                _row(axes, y, name, entries[name])
        return finish(axes, f"{deployment}: rates by condition, of the selection, of the elaboration and of either")


def _row(axes: "Axes", y: int, name: str, entry: Entry) -> None:
    union = entry["metrics"]["ber_union_full"]
    for metric, layer, look in _LAYERS:
        estimate = entry["metrics"][metric]
        if known(estimate) and not bounds_only(estimate):
            (mark,) = axes.plot(estimate["value"], y, **_hollow(look))
            told(mark, f"{name}: {layer} {estimate_text(metric, estimate)}")
    if not known(union):
        told(beside(axes, y, DASH, color=Colour.SOFT), f"{name}: {union['missing']}")
        return
    interval(axes, y, union, UNION)
    told(beside(axes, y, rate_text(union)), f"{name}: {estimate_text('ber_union_full', union)}, n = {entry['n']:,}")


def _hollow(look: Mapping[str, Any]) -> dict[str, Any]:
    return {**look, "markeredgewidth": 1.2, "markerfacecolor": "none"}
