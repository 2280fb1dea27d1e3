"""What became of the responses: read on both layers, a layer absent by design, a layer failed."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from auditor.report.figures.parts import beside, deployment_of, gutter, head, key, rows, told
from auditor.report.figures.theme import PANEL, Colour, finish, sheet
from auditor.report.words import Entry, percent

_LINE: Final = 22.0
#: Parts of a bar, in their order: height, strength and colour differ, so that they are told apart in print.
_PARTS: Final[tuple[tuple[str, str, float, dict[str, Any]], ...]] = (
    ("eligible", "both layers", 0.7, {"color": Colour.ACCENT, "alpha": 0.85}),
    ("structural", "absent by design", 0.7, {"color": Colour.ABSENT, "alpha": 0.8}),
    ("failed", "failed", 0.34, {"color": Colour.FAIL}),
)


def coverage_bars(deployments: Sequence[Entry]) -> Markup | None:
    """Draw the shares of the responses by what became of them, a bar a deployment."""
    if not deployments:
        return None
    names = [deployment_of(entry) for entry in deployments]
    with sheet(PANEL, 60 + _LINE * len(names) + 4, left=gutter(names), right=100, top=60, bottom=4) as axes:
        head(axes, "Coverage")
        key(axes, [({**look, "marker": "s", "markeredgewidth": 0}, name) for _, name, _, look in _PARTS])
        for x, name in ((0, "both %"), (46, "failed %")):
            axes.annotate(name, (1, 1), (8 + x, 6), "axes fraction", "offset points", color=Colour.SOFT)
        rows(axes, names)
        axes.set_xlim(0, 1)
        for y, entry in enumerate(deployments):
            start = 0.0
            for kind, name, height, look in _PARTS:
                share = float(entry["coverage"][kind])
                (bar,) = axes.barh(y, share, left=start, height=height, linewidth=0, **look)
                told(bar, f"{names[y]}: {name} {percent(share)} of {entry['n']:,}")
                start += share
            beside(axes, y, f"{100 * entry['coverage']['eligible']:.1f}")
            beside(axes, y, f"{100 * entry['coverage']['failed']:.1f}", dx=46)
        return finish(axes, "Coverage by deployment: both layers coded, a layer absent by design, a layer failed")
