"""How far a rate moves over the tasks, on the same statements (BiAxisAudit Fig. 5)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.metrics.shares import BASELINE
from auditor.report.figures.parts import (
    beside,
    bounds_only,
    ceiling,
    deployment_of,
    gutter,
    head,
    key,
    known,
    rate_scale,
    rows,
    told,
)
from auditor.report.figures.theme import Colour, finish, series, sheet
from auditor.report.words import Entry, condition_levels, estimate_text, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE: Final = 30.0
#: The tasks' marks need more room than a bar.
_WIDTH: Final = 344.0
_METRIC: Final = "ber_union_full"


def swing_bars(horizontal: Sequence[Entry], conditions: Sequence[Entry]) -> Markup | None:
    """Draw the smallest and largest union rate over the tasks, a line a deployment, and each task's rate.

    Parameters
    ----------
    horizontal, conditions
        The document's entries of one rubric.
    """
    own = [e for e in horizontal if e["over"] == "task" and e["metric"] == _METRIC and known(e)]
    if not own:
        return None
    rates: dict[str, dict[str, Entry]] = {}
    for entry in conditions:
        if condition_levels(entry["by"])[1:] == BASELINE[1:]:
            rates.setdefault(str(entry["by"]["deployment"]), {})[entry["by"]["task"]] = entry["metrics"][_METRIC]
    return _panel(sorted(own, key=lambda entry: not entry["by"]), rates)


def _panel(ranges: Sequence[Entry], rates: Mapping[str, Mapping[str, Entry]]) -> Markup:
    names = [deployment_of(entry) for entry in ranges]
    tasks = sorted({task for own in rates.values() for task in own})
    looks = {task: _look(index) for index, task in enumerate(tasks)}
    with sheet(_WIDTH, 44 + _LINE * len(names) + 24, left=gutter(names, 112), right=80, top=44, bottom=24) as axes:
        head(axes, "Union rate over the tasks")
        key(axes, [(look, task) for task, look in looks.items()])
        rows(axes, names)
        rate_scale(axes, ceiling(entry["max"] for entry in ranges))
        for y, entry in enumerate(ranges):
            _bar(axes, y, entry)
            for task, estimate in rates.get(names[y], {}).items():
                _dot(axes, y, task, estimate, looks[task])
        return finish(axes, "Smallest and largest union rate over the tasks, by deployment")


def _bar(axes: "Axes", y: int, entry: Entry) -> None:
    low, high = entry["min"], entry["max"]
    (bar,) = axes.barh(y, high - low, left=low, height=0.34, color=Colour.ACCENT, alpha=0.22)
    axes.vlines([low, high], y - 0.17, y + 0.17, color=Colour.ACCENT, linewidth=1.6)
    told(bar, f"{deployment_of(entry)}: {percent(low)} at {entry['min_at']} to {percent(high)} at {entry['max_at']}")
    beside(axes, y, f"{100 * entry['range']:.1f} pp", dy=6, weight="bold")
    beside(axes, y, f"[{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]", dy=-7, color=Colour.SOFT)


def _dot(axes: "Axes", y: int, task: str, estimate: Entry, look: Mapping[str, Any]) -> None:
    if known(estimate) and not bounds_only(estimate):
        (dot,) = axes.plot(estimate["value"], y, **look)
        told(dot, f"{task}: {estimate_text(_METRIC, estimate)}")


def _look(index: int) -> dict[str, Any]:
    """Give a task its mark."""
    look = series(index)
    return {"color": look.colour, "marker": look.marker, "markersize": 6.6, "markeredgewidth": 0.8} | {
        "markeredgecolor": Colour.PAPER
    }
