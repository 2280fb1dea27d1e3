"""What every level of a factor does to both layers, against its baseline (BiAxisAudit section VI)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from auditor.report.figures.parts import (
    beside,
    ceiling,
    change_scale,
    change_text,
    gutter,
    head,
    interval,
    joined,
    key,
    known,
    rows,
    told,
)
from auditor.report.figures.theme import ELAB, PANEL, SEL, Colour, finish, sheet
from auditor.report.words import DASH, Entry, estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE: Final = 36.0
_LAYERS: Final = (("sel", "selection", SEL, -0.2), ("elab", "elaboration", ELAB, 0.16))


def mitigation_panels(mitigation: Sequence[Entry]) -> Markup | None:
    """Draw the changes of both layers with their intervals, a panel a factor, and each verdict in words.

    Parameters
    ----------
    mitigation
        The document's entries of one rubric: the pooled ones, or those of some deployments.
    """
    drawn = [entry for entry in mitigation if entry["levels"]]
    effects = [level["effect"] for entry in drawn for level in entry["levels"] if known(level["effect"])]
    if not effects:
        return None
    ends = [abs(effect[layer][side]) for effect in effects for layer in ("sel", "elab") for side in ("low", "high")]
    return joined(_panel(entry, ceiling(ends)) for entry in drawn)


def _panel(entry: Entry, reach: float) -> Markup:
    levels = entry["levels"]
    names = [str(level["level"]) for level in levels]
    title = f"{str(entry['factor']).capitalize()}, against {entry['baseline']}"
    title += "".join(f": {value}" for value in entry["by"].values())
    with sheet(PANEL, 44 + _LINE * len(names) + 24, left=max(gutter(names), 104), right=48, top=44, bottom=24) as axes:
        head(axes, title)
        key(axes, [(look, name) for _, name, look, _ in _LAYERS])
        rows(axes, names)
        for tick in axes.get_yticklabels():
            tick.set_verticalalignment("bottom")
        change_scale(axes, reach, wanted=4)
        for y, level in enumerate(levels):
            _level(axes, y, level)
        return finish(axes, f"{title}: change of both layers by level, and the verdict")


def _level(axes: "Axes", y: int, level: Entry) -> None:
    verdict = level["verdict"]
    words = str(verdict) if isinstance(verdict, str) else DASH
    text = axes.annotate(
        words, (0, y), (-8, -8), ("axes fraction", "data"), "offset points", ha="right", va="center", color=Colour.SOFT
    )
    if not isinstance(verdict, str):
        told(text, verdict["missing"])
    effect = level["effect"]
    if not known(effect):
        told(beside(axes, y, DASH, color=Colour.SOFT), effect["missing"])
        return
    for layer, name, look, dy in _LAYERS:
        interval(axes, y + dy, effect[layer], look)
        shown = beside(axes, y + dy, change_text(effect[layer]))
        told(shown, f"{level['level']}: {name} {estimate_text('dni', {'flags': [], **effect[layer]})}")
