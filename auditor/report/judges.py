"""Show how far judges agree, and whether one judge determines the results (BiAxisAudit Figure 4, section V-A)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from markupsafe import Markup
from msgspec import UnsetType

from auditor.documents.agreement import (
    JudgeMeanEntry,
    KappaEntry,
    MissingJudgeMean,
    MissingKappa,
    MissingPanel,
    MissingPanelSwap,
    PanelEntry,
    PanelSubstitutionEntry,
    PanelSwapEntry,
)
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import QeFoldEntry, VendorEntry
from auditor.documents.estimates import FoldEntry, GroupEntry
from auditor.report.canvas import ELAB, PANEL, Colour, Look, Plot
from auditor.report.document import MOST_DRAWN, known
from auditor.report.drawing import (
    gutter_width,
    join_panels,
    number_marks,
    open_rows,
    panel_title,
    write_beside,
)
from auditor.report.svg import round_ticks
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    count,
    decimal,
    metric_head,
    no_value,
    number,
    share,
    table,
    text_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import MINUS, RHO, by_text, join_words, percent, points, yes_no

LAYERS: Final = {"sel": "selection", "elab": "elaboration"}
_VENDOR_MEASURES: Final = ("ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni")
#: Landis and Koch's "substantial" agreement begins here.
SUBSTANTIAL: Final = 0.61
_LINE: Final = 28.0
_HEIGHT: Final = 300.0
_DOT: Final = 7.0
_POOLED: Final = replace(ELAB, size=_DOT)
_SINGLE: Final = Look(colour=Colour.SOFT, shape="circle", size=3.8)
_BAND: Final = Look(colour=Colour.ELAB, shape="square", size=9, alpha=0.26)
_TICKS: Final = (-0.5, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Values of one layer by judge and deployment; the pooled one has no deployment.
_Kappas = Mapping[tuple[str, str | None], float]


def section(document: AnalysisDocument) -> PageSection | None:
    """Return the section on judges; None if no two of them labelled the same responses."""
    if not document.kappa:
        return None
    means = known(document.judge_means, JudgeMeanEntry)
    left_out = {*sorted({entry.deployment for entry in means if entry.deployment is not None})[MOST_DRAWN:]}
    values = {
        "dots": judge_dots([entry for entry in means if entry.deployment not in left_out]),
        "means": _mean_table(document.judge_means),
        "pairs": _pair_table(document.kappa),
        "panel": _panel_table(document.panel),
        "swaps": _swap_table(document.panel_swap),
        "substitutions": _substitution_table(document.panel_substitution),
        "unsubstituted": next((entry.missing for entry in known(document.panel_substitution, MissingPanelSwap)), ""),
        "folds": [_fold(entry) for entry in known(document.qe_fold, QeFoldEntry)],
        "fold_table": _fold_table(document.deployments),
        "vendors": _vendor_table(known(document.vendors, VendorEntry)),
    }
    return PageSection(name="judges", title="Judges", values=values)


def _mean_table(entries: Iterable[JudgeMeanEntry | MissingJudgeMean]) -> ReportTable | None:
    """Make the table of each judge's mean kappa with the others, over all deployments and by deployment."""
    by_key = {(entry.layer, entry.judge, entry.deployment): entry for entry in entries}
    names = sorted({name for _, _, name in by_key if name is not None})
    absent, cells = no_value("has not labelled it"), {key: _kappa(entry) for key, entry in by_key.items()}
    rows = [
        TableRow(
            name=f"{judge}, {LAYERS[layer]}",
            cells=[cells.get((layer, judge, where), absent) for where in (None, *names)],
        )
        for layer, judge in dict.fromkeys(key[:2] for key in by_key)
    ]
    return table("Mean κ of a judge with the others", ["judge", "all", *names], rows, source="Figure 4")


def _pair_table(entries: Iterable[KappaEntry | MissingKappa]) -> ReportTable | None:
    rows = [
        TableRow(name=f"{entry.judge} and {entry.other}, {LAYERS[entry.layer]}", cells=[_kappa(entry)])
        for entry in entries
        if entry.deployment is None
    ]
    return table("Cohen's κ on the responses that both judges labelled", ["judges", "κ"], rows, source="section V-A")


def _kappa(entry: JudgeMeanEntry | MissingJudgeMean | KappaEntry | MissingKappa) -> TableCell:
    if isinstance(entry, MissingJudgeMean | MissingKappa):
        return no_value(entry.missing)
    return decimal(entry.value).above(count(entry.n), "n = {}")


def _panel_table(entries: Iterable[PanelEntry | MissingPanel]) -> ReportTable | None:
    """Make the table of the number of independent votes that the panel equals."""
    rows = [TableRow(name=entry.deployment or "all deployments", cells=_vote_cells(entry)) for entry in entries]
    heads = ["deployment", "judges", "mean κ", "independent votes"]
    return table(f"Number of independent votes that the panel equals: m / (1 + (m {MINUS} 1) {RHO})", heads, rows)


def _vote_cells(entry: PanelEntry | MissingPanel) -> list[TableCell]:
    if isinstance(entry, PanelEntry):
        return [count(entry.n_judges), decimal(entry.rho), decimal(entry.n_eff, 2)]
    absent = no_value(entry.missing)
    return [absent if isinstance(entry.n_judges, UnsetType) else count(entry.n_judges), absent, absent]


def _swap_table(entries: Iterable[PanelSwapEntry | MissingPanelSwap]) -> ReportTable | None:
    """Make the table of what changes if one judge is left out, over all deployments."""
    rows = [
        TableRow(name=f"without {entry.without}", cells=_swapped(entry))
        for entry in entries
        if not isinstance(entry.without, UnsetType)
    ]
    heads = ["panel", "largest change", f"{RHO} of the rankings", "largest shift of a rank", "same ranking"]
    return table("The elaboration rate by a panel without one judge", heads, rows, source="section V-A")


def _substitution_table(entries: Iterable[PanelSubstitutionEntry | MissingPanelSwap]) -> ReportTable | None:
    """Make the table of what changes if one judge's seat is taken by another, over all deployments."""
    rows = [
        TableRow(
            name=f"{entry.without} replaced by {entry.by}",
            cells=[count(entry.seats), *_swapped(entry)],
        )
        for entry in entries
        if isinstance(entry, PanelSubstitutionEntry)
    ]
    heads = ["panels", "seats", "largest change", f"{RHO} of the rankings", "largest shift of a rank", "same ranking"]
    return table("The elaboration rate with one seat taken by another judge", heads, rows, source="section V-A")


def _swapped(entry: PanelSwapEntry | MissingPanelSwap) -> list[TableCell]:
    if isinstance(entry, MissingPanelSwap):
        return [no_value(entry.missing)] * 4
    return [
        number(entry.change, points).above(text_cell(entry.deployment)),
        decimal(entry.rho),
        decimal(entry.rank_shift, 0),
        text_cell(entry.same_ranking, yes_no),
    ]


def _fold(entry: QeFoldEntry) -> dict[str, Any]:
    rows = [TableRow(name=name, cells=[decimal(rho)]) for name, rho in entry.rho.items()]
    caption = "Rankings with and without qualified endorsements"
    return {
        "change": number(entry.change, points),
        "entry": entry,
        "left_out": join_words(entry.left_out),
        "table": table(caption, ["condition", RHO], rows, source="Appendix C-A"),
    }


def _fold_table(deployments: Iterable[GroupEntry]) -> ReportTable | None:
    rows = [
        TableRow(name=by_text(entry.by), cells=[count(entry.n_eligible), *_folded(entry.qe_fold)])
        for entry in deployments
    ]
    heads = ["deployment", "coded on both layers", "IR", "IR, qualified endorsements not counted"]
    heads.append("changes by less than a point")
    return table("Qualified endorsements counted as no endorsement", heads, rows, source="Appendix C-A")


def _folded(fold: FoldEntry | Missing) -> list[TableCell]:
    if isinstance(fold, Missing):
        return [no_value(fold.missing)] * 3
    return [share(fold.ir), share(fold.ir_folded), text_cell(fold.robust, yes_no)]


def _vendor_table(entries: Iterable[VendorEntry]) -> ReportTable | None:
    """Make the table of all measures without the deployments of one vendor."""
    rows = [
        TableRow(
            name=f"without {entry.vendor}, {kind}",
            cells=[
                count(entry.n_deployments),
                *(number(values[name], points if name == "dni" else percent) for name in _VENDOR_MEASURES),
                decimal(entry.rho),
            ],
        )
        for entry in entries
        for kind, values in (("pooled", entry.pooled), ("mean", entry.unweighted))
    ]
    heads = ["deployments", "how many", *map(metric_head, _VENDOR_MEASURES), f"{RHO} of the layers"]
    return table("One vendor's deployments left out", heads, rows, source="section V-A")


def judge_dots(judge_means: Sequence[JudgeMeanEntry]) -> Markup | None:
    """Draw each judge's mean kappa with the others; on both layers where the selection was judged, too.

    Parameters
    ----------
    judge_means
        The document's entries.
    """
    elab, sel = (
        {(entry.judge, entry.deployment): entry.value for entry in judge_means if entry.layer == layer}
        for layer in ("elab", "sel")
    )
    ordered = sorted((judge for judge, where in elab if where is None), key=lambda judge: (-elab[judge, None], judge))
    if not ordered:
        return None
    both = [judge for judge in ordered if (judge, None) in sel]
    ordered = [*both, *(judge for judge in ordered if judge not in both)]
    return join_panels([_lines(ordered, elab, len(both)), *([_plane(both, sel, elab)] if both else [])])


def _lines(judges: Sequence[str], elab: _Kappas, n_numbered: int) -> Markup:
    """Draw a line a judge; the first ``n_numbered`` have their number in the plane before their name."""
    names = [f"{place}  {judge}" if place <= n_numbered else judge for place, judge in enumerate(judges, start=1)]
    low = min(0.0, *elab.values())
    key = [(ELAB, "all deployments"), (_SINGLE, "one"), (_BAND, f"from {SUBSTANTIAL}: substantial")]
    left = gutter_width(names)
    plot = open_rows("Agreement on the elaboration", names, _LINE, left=left, bottom=46, key=key)
    plot.set_x(low, 1)
    plot.ticks_x(*_ticks(low))
    plot.label_x("mean κ with the others")
    plot.box((SUBSTANTIAL, 1), (len(judges) - 0.5, -0.5), Colour.ELAB, alpha=0.13)
    for (judge, deployment), value in elab.items():
        y = judges.index(judge)
        if deployment is not None:
            plot.mark(value, y, _SINGLE, f"{judge}, {deployment}: κ {value:.3f}")
    for y, judge in enumerate(judges):
        plot.mark(elab[judge, None], y, _POOLED, f"{judge}: κ {elab[judge, None]:.3f}")
        write_beside(plot, y, f"{elab[judge, None]:.3f}")
    return plot.svg("Mean kappa of each judge with the others on the elaboration, pooled and by deployment")


def _plane(judges: Sequence[str], sel: _Kappas, elab: _Kappas) -> Markup:
    """Draw both layers' kappas, each as far as it reaches."""
    plot = Plot(PANEL, _HEIGHT, left=56, right=16, top=34, bottom=46)
    panel_title(plot, "κ of the elaboration and of the selection")
    plot.label_x("κ, selection")
    left, right = _ends(sel[judge, None] for judge in judges)
    foot, top = _ends(elab[judge, None] for judge in judges)
    plot.set_x(left, right)
    plot.set_y(foot, top)
    across, up = round_ticks(left, right, 4), round_ticks(foot, top, 4)
    plot.ticks_x(across, [f"{tick:g}" for tick in across])
    plot.ticks_y(up, [f"{tick:g}" for tick in up])
    if top > SUBSTANTIAL:
        plot.box((left, right), (max(SUBSTANTIAL, foot), top), Colour.ELAB, alpha=0.13)
    for judge in judges:
        x, y = sel[judge, None], elab[judge, None]
        plot.mark(x, y, _POOLED, f"{judge}: κ {x:.3f} on the selection, {y:.3f} on the elaboration")
    number_marks(plot, [(sel[judge, None], elab[judge, None], _DOT) for judge in judges])
    return plot.svg("Mean kappa of each judge with the others on the selection and on the elaboration")


def _ends(kappas: Iterable[float]) -> tuple[float, float]:
    """Return the ends of a scale that reaches a little beyond some values."""
    values = list(kappas)
    return min(values) - 0.04, min(1.0, max(values) + 0.04)


def _ticks(low: float) -> tuple[list[float], list[str]]:
    ticks = [tick for tick in _TICKS if tick >= low]
    return ticks, [f"{tick:g}" for tick in ticks]
