"""Show people's labels: the measures corrected by them, and their agreement with judges."""

from collections.abc import Iterable, Sequence
from typing import Final

from markupsafe import Markup
from msgspec import UnsetType

from auditor.documents.agreement import MissingReviewKappa, ReviewKappaEntry
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.estimates import EstimateEntry, GroupEntry, Metrics
from auditor.documents.report import CorrectionsEntry
from auditor.metrics.corrected import CORRECTED_PAIRS
from auditor.report.document import NOT_THERE
from auditor.report.judges import LAYERS
from auditor.report.tables import (
    ReportTable,
    TableRow,
    bounded,
    count,
    estimate_cell,
    estimate_cells,
    metric_head,
    no_value,
    table,
    three_decimals,
)
from auditor.report.templates import PageSection
from auditor.report.wording import by_text

_MEASURES: Final = ("ber_elab_full_corrected", "ber_elab_corrected")
#: Measures of both layers, in the order of their columns.
_OF_BOTH: Final = ("ir", "dni", "ber_union", "ber_cor", "ir_over_union")
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
    given = {"rates": _rate_table(rates), "pairs": _pair_table(rates), "kappa": _kappa_table(kappa)}
    return PageSection(name="people", title=Markup("People's labels"), given=given)


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
