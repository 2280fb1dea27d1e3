"""The plane of (IR, DNI): how often the layers disagree, and to which side (BiAxisAudit Fig. 6)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.metrics.divergence import DNI_MAX, IR_MIN
from auditor.report.figures.lettering import cut
from auditor.report.figures.numbering import numbered
from auditor.report.figures.parts import (
    bounds_only,
    ceiling,
    change_scale,
    change_text,
    deployment_of,
    head,
    joined,
    known,
    rate_scale,
    rate_text,
    shortened,
    told,
)
from auditor.report.figures.theme import PANEL, ROW, Colour, finish, sheet
from auditor.report.words import Entry, estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE: Final = 348.0
#: Diameter of a mark in pixels, and what a BER_sel of 1 adds to it.
_DOT: Final = 6.0
_GROWTH: Final = 18.0


def reliability_map(deployments: Sequence[Entry]) -> Markup | None:
    """Draw (IR, DNI) of each deployment with both intervals over the zones; marks grow with BER_sel where it is known.

    Parameters
    ----------
    deployments
        The document's groups by deployment, of one rubric; those without IR or DNI are left out.
    """
    placed = [entry for entry in deployments if known(entry["metrics"]["ir"]) and known(entry["metrics"]["dni"])]
    if not placed:
        return None
    ordered = sorted(placed, key=lambda entry: (-entry["metrics"]["ir"]["value"], deployment_of(entry)))
    return joined([_map(ordered), _key(ordered)])


def _map(entries: Sequence[Entry]) -> Markup:
    top = ceiling([1.6 * IR_MIN, *(entry["metrics"]["ir"]["high"] for entry in entries)])
    sides = [abs(entry["metrics"]["dni"][side]) for entry in entries for side in ("low", "high")]
    reach = ceiling([4 * DNI_MAX, *sides])
    with sheet(_SIDE, _SIDE, left=50, right=16, top=32, bottom=40) as axes:
        head(axes, "DNI, pp: selection less elaboration")
        rate_scale(axes, top)
        change_scale(axes, reach, along="y")
        axes.set_xlabel("IR: the layers disagree", color=Colour.SOFT, labelpad=5)
        _zones(axes, top, reach)
        _points(axes, entries)
        return finish(axes, "IR and DNI by deployment, over the zones reliable, over, under and cancellation trap")


def _zones(axes: "Axes", top: float, reach: float) -> None:
    """Shade the zones and name them; where |DNI| would exceed IR, which cannot be, nothing is shaded."""
    bend, corner = min(top, reach), min(IR_MIN, reach)
    axes.fill([0, corner, IR_MIN, IR_MIN, corner], [0, corner, corner, -corner, -corner], color=Colour.ELAB, alpha=0.16)
    for colour, sign in ((Colour.OVER, 1), (Colour.UNDER, -1)):
        x, y = (IR_MIN, IR_MIN, corner, bend, top, top), (DNI_MAX, corner, corner, bend, bend, DNI_MAX)
        axes.fill(x, [sign * each for each in y], color=colour, alpha=0.16)
    axes.fill_between([IR_MIN, top], -DNI_MAX, DNI_MAX, color=Colour.FAIL, alpha=0.22)
    names = (
        (0, reach, 4, -9, "left", f"reliable: IR under {100 * IR_MIN:g} %", Colour.SOFT),
        (top, reach, -4, -9, "right", "over-estimates", Colour.SOFT),
        (top, -reach, -4, 9, "right", "under-estimates", Colour.SOFT),
        (top, -DNI_MAX, -4, -9, "right", "cancellation trap", Colour.FAIL),
    )
    for x_at, y_at, dx, dy, side, name, colour in names:
        axes.annotate(name, (x_at, y_at), (dx, dy), textcoords="offset points", ha=side, va="center", color=colour)


def _points(axes: "Axes", entries: Sequence[Entry]) -> None:
    marks = []
    for entry in entries:
        ir, dni = entry["metrics"]["ir"], entry["metrics"]["dni"]
        sel = entry["metrics"]["ber_sel"]
        size = _DOT + (_GROWTH * sel["value"] if known(sel) else 0)
        axes.hlines(dni["value"], ir["low"], ir["high"], color=Colour.ACCENT, linewidth=1.4, alpha=0.7)
        axes.vlines(ir["value"], dni["low"], dni["high"], color=Colour.ACCENT, linewidth=1.4, alpha=0.7)
        look: dict[str, Any] = {"color": Colour.ACCENT, "markersize": size, "markeredgecolor": Colour.PAPER}
        alpha = 0.0 if bounds_only(ir) or bounds_only(dni) else 0.8
        (dot,) = axes.plot(ir["value"], dni["value"], "o", alpha=alpha, **look)
        told(dot, f"{deployment_of(entry)}: IR {estimate_text('ir', ir)}, DNI {estimate_text('dni', dni)}")
        marks.append((ir["value"], dni["value"], size))
    numbered(axes, marks)


def _key(entries: Sequence[Entry]) -> Markup:
    """List the numbers of the map, with what they stand for."""
    columns = (212.0, 262.0, PANEL)
    height = 24 + ROW * len(entries)
    with sheet(PANEL, height) as axes:
        axes.set(xlim=(0, PANEL), ylim=(height, 0))
        head(axes, "Deployments")
        for x, name in zip(columns, ("IR, %", "DNI, pp", "sel, %"), strict=True):
            axes.text(x, 12, name, ha="right", color=Colour.SOFT)
        for index, entry in enumerate(entries):
            y, metrics = 34 + ROW * index, entry["metrics"]
            axes.text(14, y, str(index + 1), ha="right", weight="bold")
            shortened(axes.text(22, y, cut(deployment_of(entry), 146)), deployment_of(entry))
            values = rate_text(metrics["ir"]), change_text(metrics["dni"]), rate_text(metrics["ber_sel"])
            for x, value in zip(columns, values, strict=True):
                axes.text(x, y, value, ha="right")
        return finish(axes, "The deployments of the map")
