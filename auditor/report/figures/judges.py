"""How far each judge agrees with the others (BiAxisAudit Fig. 4)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from auditor.report.figures.numbering import numbered
from auditor.report.figures.parts import beside, gutter, head, joined, key, known, round_ticks, rows, told
from auditor.report.figures.theme import ELAB, PANEL, Colour, finish, sheet
from auditor.report.words import Entry

#: Landis and Koch's "substantial" agreement begins here.
SUBSTANTIAL: Final = 0.61
_LINE: Final = 24.0
_DOT: Final = 7.0
_POOLED: Final[dict[str, Any]] = {**ELAB, "markersize": _DOT}
_OWN: Final[dict[str, Any]] = {"color": Colour.SOFT, "marker": "o", "markersize": 3.8, "markeredgewidth": 0}
_BAND: Final[dict[str, Any]] = {
    "color": Colour.ELAB,
    "marker": "s",
    "markersize": 9,
    "markeredgewidth": 0,
    "alpha": 0.2,
}
_TICKS: Final = (-0.5, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

#: Values of one layer by judge and deployment; the pooled one has no deployment.
_Kappas = Mapping[tuple[str, str | None], float]


def judge_dots(judge_means: Sequence[Entry]) -> Markup | None:
    """Draw each judge's mean kappa with the others; on both layers where the selection was judged, too.

    Parameters
    ----------
    judge_means
        The document's entries.
    """
    elab, sel = (_kappas(judge_means, layer) for layer in ("elab", "sel"))
    ordered = sorted((judge for judge, where in elab if where is None), key=lambda judge: (-elab[judge, None], judge))
    if not ordered:
        return None
    both = [judge for judge in ordered if (judge, None) in sel]
    ordered = [*both, *(judge for judge in ordered if judge not in both)]
    return joined([_lines(ordered, elab, len(both)), *([_plane(both, sel, elab)] if both else [])])


def _kappas(judge_means: Sequence[Entry], layer: str) -> _Kappas:
    own = [entry for entry in judge_means if entry["layer"] == layer and known(entry)]
    return {(entry["judge"], entry["deployment"]): entry["value"] for entry in own}


def _lines(judges: Sequence[str], elab: _Kappas, n_numbered: int) -> Markup:
    """Draw a line a judge; the first ``n_numbered`` have their number in the plane before their name."""
    names = [f"{place}  {judge}" if place <= n_numbered else judge for place, judge in enumerate(judges, start=1)]
    low = min(0.0, *elab.values())
    with sheet(PANEL, 44 + _LINE * len(judges) + 40, left=gutter(names, 140), right=44, top=44, bottom=40) as axes:
        head(axes, "Agreement on the elaboration")
        key(axes, [(ELAB, "all deployments"), (_OWN, "one"), (_BAND, f"from {SUBSTANTIAL}: substantial")])
        rows(axes, names)
        axes.set_xlim(low, 1)
        axes.set_xticks(*_ticks(low))
        axes.set_xlabel("mean κ with the others", color=Colour.SOFT)
        axes.grid(axis="x")
        axes.axvspan(SUBSTANTIAL, 1, color=Colour.ELAB, alpha=0.13, linewidth=0)
        for (judge, deployment), value in elab.items():
            y = judges.index(judge)
            if deployment is not None:
                told(axes.plot(value, y, **_OWN)[0], f"{judge}, {deployment}: κ {value:.3f}")
        for y, judge in enumerate(judges):
            told(axes.plot(elab[judge, None], y, **_POOLED)[0], f"{judge}: κ {elab[judge, None]:.3f}")
            beside(axes, y, f"{elab[judge, None]:.3f}")
        return finish(axes, "Mean kappa of each judge with the others on the elaboration, pooled and by deployment")


def _plane(judges: Sequence[str], sel: _Kappas, elab: _Kappas) -> Markup:
    """Draw both layers' kappas, each as far as it reaches."""
    with sheet(PANEL, PANEL - 20, left=44, right=12, top=28, bottom=40) as axes:
        head(axes, "κ of the elaboration and of the selection")
        axes.set_xlabel("κ, selection", color=Colour.SOFT)
        for axis, layer in ((axes.xaxis, sel), (axes.yaxis, elab)):
            values = [layer[judge, None] for judge in judges]
            ends = min(values) - 0.04, min(1.0, max(values) + 0.04)
            (axes.set_xlim if axis is axes.xaxis else axes.set_ylim)(ends)
            ticks = round_ticks(*ends, 4)
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.grid(visible=True)
        top = axes.get_ylim()[1]
        if top > SUBSTANTIAL:
            axes.axhspan(max(SUBSTANTIAL, axes.get_ylim()[0]), top, color=Colour.ELAB, alpha=0.13, linewidth=0)
        for judge in judges:
            x, y = sel[judge, None], elab[judge, None]
            told(axes.plot(x, y, **_POOLED)[0], f"{judge}: κ {x:.3f} on the selection, {y:.3f} on the elaboration")
        numbered(axes, [(sel[judge, None], elab[judge, None], _DOT) for judge in judges])
        return finish(axes, "Mean kappa of each judge with the others on the selection and on the elaboration")


def _ticks(low: float) -> tuple[list[float], list[str]]:
    ticks = [tick for tick in _TICKS if tick >= low]
    return ticks, [f"{tick:g}" for tick in ticks]
