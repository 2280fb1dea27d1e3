"""Show people's labels: the measures corrected by them, and their agreement with judges."""

from collections.abc import Iterable, Sequence
from typing import Final

from markupsafe import Markup
from msgspec import UnsetType

from auditor.documents.agreement import (
    AlphaEntry,
    MissingAlpha,
    MissingReviewKappa,
    MissingViewComparison,
    ReviewKappaEntry,
    ViewComparisonEntry,
)
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.estimates import EstimateEntry, GroupEntry, Metrics
from auditor.metrics.corrected import CORRECTED_PAIRS
from auditor.period.document import CorrectionsEntry
from auditor.report.document import NOT_THERE
from auditor.report.judges import LAYERS
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    estimate_cell,
    estimate_cells,
    metric_head,
    no_value,
    share,
    table,
    text_cell,
    three_decimals,
)
from auditor.report.templates import PageSection
from auditor.report.wording import by_text, join_words, points

_MEASURES: Final = ("ber_elab_full_corrected", "ber_elab_corrected")
#: Measures of both layers, in the order of their columns.
_OF_BOTH: Final = ("ir", "dni", "ber_union", "ber_cor", "ir_over_union")
_VIEWS: Final = {"split": "the part", "whole": "the whole answer"}
_Kappas = Sequence[ReviewKappaEntry | MissingReviewKappa]


def section(document: AnalysisDocument, drawn: CorrectionsEntry | None) -> PageSection | None:
    """Return the section on people's labels: of a file's rows, or of the samples drawn in a period."""
    kappa: _Kappas
    if not isinstance(document.reviews, UnsetType):
        pooled = [entry for entry in document.groups if not entry.by]
        rates = [(_entry_name(entry), entry.metrics) for entry in [*document.deployments, *pooled]]
        kappa = document.reviews.kappa
    elif drawn is not None:
        rates = [(entry.deployment, entry.metrics) for entry in drawn.deployments]
        kappa = drawn.kappa
    else:
        return None
    of_file = None if isinstance(document.reviews, UnsetType) else document.reviews
    values = {
        "rates": _rate_table(rates),
        "pairs": _pair_table(rates),
        "kappa": _kappa_table(kappa),
        "alpha": None if of_file is None else _alpha_table(of_file.alpha),
        "views": None if of_file is None else _view_table(of_file.views),
    }
    return PageSection(name="people", title=Markup("People's labels"), values=values)


def _entry_name(entry: GroupEntry) -> str:
    return by_text(entry.by) + ("" if entry.rubric == "statement" else f" ({entry.rubric})")


def _rate_table(rates: Iterable[tuple[str, Metrics]]) -> ReportTable | None:
    rows = [TableRow(name=name, cells=estimate_cells(metrics, _MEASURES, sized=True)) for name, metrics in rates]
    heads = ["deployment", "of all with an elaboration", "of all coded on both layers"]
    return table("BER of the elaboration, corrected with people's labels", heads, rows)


def _pair_table(rates: Iterable[tuple[str, Metrics]]) -> ReportTable | None:
    """Make the table of the measures that compare the layers, of those that have labels of both."""
    rows = [
        TableRow(
            name=name,
            cells=[estimate_cell(metrics.get(f"{each}_corrected", NOT_THERE), each, sized=True) for each in _OF_BOTH],
        )
        for name, metrics in rates
        if any(isinstance(metrics.get(each), EstimateEntry) for each in CORRECTED_PAIRS)
    ]
    heads = ["deployment", *map(metric_head, _OF_BOTH)]
    return table("Both layers, corrected with people's labels of both", heads, rows)


def _kappa_table(entries: _Kappas) -> ReportTable | None:
    rows = [_agreement(entry) for entry in entries if entry.deployment is None]
    caption = "Cohen's κ of people with the judges, the rules and each other"
    return table(caption, ["who", "responses", "statements", "κ"], rows)


def _agreement(entry: ReviewKappaEntry | MissingReviewKappa) -> TableRow:
    kappa = bounded(entry, three_decimals) if isinstance(entry, ReviewKappaEntry) else no_value(entry.missing)
    other = entry.other if entry.kind == entry.other else f"{entry.other} ({entry.kind})"
    name = f"{entry.reviewer} and {other}, {LAYERS[entry.layer]}"
    return TableRow(name=name, cells=[count(entry.n), count(entry.n_statements), kappa])


def _alpha_table(entries: Iterable[AlphaEntry | MissingAlpha]) -> ReportTable | None:
    rows = [
        TableRow(
            name=f"{LAYERS[entry.layer]}, {_VIEWS[entry.view]}",
            cells=[
                text_cell(entry.raters, join_words),
                count(entry.n),
                count(entry.n_statements),
                bounded(entry, three_decimals) if isinstance(entry, AlphaEntry) else no_value(entry.missing),
            ],
        )
        for entry in entries
    ]
    heads = ["layer and text", "people", "responses", "statements", "alpha"]
    return table("Krippendorff's alpha of the people, nominal labels", heads, rows)


def _view_table(entries: Iterable[ViewComparisonEntry | MissingViewComparison]) -> ReportTable | None:
    """Make the table that compares labels of the split text with labels of the whole answer."""
    rows = [
        TableRow(name=LAYERS[entry.layer], cells=[count(entry.n), count(entry.n_statements), *_compared(entry)])
        for entry in entries
    ]
    heads = ["layer", "responses", "statements", "same label", "κ", "BER, split", "BER, whole", "whole less split"]
    return table("Does the split distort? The same answers, labelled in part and whole", heads, rows)


def _compared(entry: ViewComparisonEntry | MissingViewComparison) -> list[TableCell]:
    if isinstance(entry, MissingViewComparison):
        return [no_value(entry.missing)] * 5
    kappa = bounded(entry.kappa, three_decimals)
    return [share(entry.same), kappa, share(entry.split), share(entry.whole), bounded(entry.shift, points)]
