"""Turn stored estimates into the cells that pages show: value, interval, or the reason why there is none."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from auditor.api.addresses import answers_of, plan_answers_of
from auditor.api.charts import ChartInterval
from auditor.documents.audits import PlanHeadlinesEntry
from auditor.documents.base import Missing
from auditor.documents.estimates import EstimateEntry, FlaggedEntry
from auditor.estimation.plans import HEADLINES
from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.metrics.rates import FOURFOLD_NAMES, METRICS
from auditor.report.wording import DASH, FLAGS, as_words, estimate_parts, estimate_text, percent
from auditor.store.estimates import EstimateRow

NO_ANSWER: Final = "no answer is coded yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateCell:
    """One number of a page."""

    value: str  #: a dash where there is none; empty where only the interval is reliable
    interval: str = ""
    reason: str = ""  #: why there is no value
    basis: str = ""  #: n, clusters and method
    warnings: tuple[str, ...] = ()
    readers: str = ""  #: how far errors of the readers reach
    answers: str = ""  #: address of the answers in the numerator
    bounds: ChartInterval | None = None

    @property
    def order(self) -> float | None:
        """The number by which rows are sorted; None where there is none."""
        if self.bounds is None:
            return None
        return self.bounds.value if self.bounds.value is not None else self.bounds.high

    @property
    def text(self) -> str:
        """Value and interval in one line."""
        return " ".join(part for part in (self.value, self.interval) if part)


def find_row(rows: Iterable[EstimateRow], metric: str, layer: str | None, base: str | None) -> EstimateRow | None:
    """Return the row of a measure."""
    return next((row for row in rows if (row.metric, row.layer, row.base) == (metric, layer, base)), None)


def estimate_cell_of(row: EstimateRow | None, corrected: EstimateRow | None = None) -> EstimateCell:
    """Return the cell of a row.

    Parameters
    ----------
    row
        Row of the measure; None if the snapshot has none.
    corrected
        Row of the same measure as people's labels correct it.
    """
    if row is None:
        return EstimateCell(value=DASH, reason=NO_ANSWER)
    if row.value is None or row.low is None or row.high is None:
        return EstimateCell(value=DASH, reason=str(row.missing))
    value, interval = estimate_parts(row.metric, entry_of(row))
    weighted = "" if row.n_effective is None else f" (effective {row.n_effective:,.0f})"
    return EstimateCell(
        value=value,
        interval=interval,
        basis=f"n = {row.n:,}{weighted}, {row.n_statements:,} clusters, {as_words(str(row.method))}",
        warnings=_warnings(row.flags),
        readers=_readers(row, corrected),
        answers=answers_of(row),
        bounds=ChartInterval(value=None if BOUNDS_ONLY in row.flags else row.value, low=row.low, high=row.high),
    )


def share_cell_of(row: EstimateRow | None) -> EstimateCell:
    """Return the cell of a share without an interval, such as coverage."""
    if row is None or row.value is None:
        return EstimateCell(value=DASH, reason=NO_ANSWER)
    return EstimateCell(
        value=percent(row.value),
        basis=f"{row.n_eligible or 0:,} of {row.n:,} responses",
        answers=answers_of(row),
        bounds=ChartInterval(value=row.value, low=row.value, high=row.value),
    )


def plan_cells_of(plan: str, deployment: str, headlines: PlanHeadlinesEntry) -> dict[str, EstimateCell]:
    """Return the cells of one deployment's answers to a plan: ``coverage`` and the headline measures, by name.

    Parameters
    ----------
    plan, deployment
        Plan and deployment of the answers.
    headlines
        Headline measures of these answers.
    """
    cells = {
        "coverage": EstimateCell(
            value=percent(headlines.coverage),
            basis=f"{headlines.n_eligible:,} of {headlines.n:,} responses",
            answers=plan_answers_of(plan, deployment, ",".join(FOURFOLD_NAMES)),
        )
    }
    for name in HEADLINES:
        entry: EstimateEntry | Missing = getattr(headlines, name)
        if isinstance(entry, Missing):
            cells[name] = EstimateCell(value=DASH, reason=entry.missing)
            continue
        value, interval = estimate_parts(name, entry)
        cells[name] = EstimateCell(
            value=value,
            interval=interval,
            basis=f"n = {entry.n:,}, {entry.n_statements:,} clusters, {as_words(entry.method)}",
            warnings=_warnings(entry.flags),
            answers=plan_answers_of(plan, deployment, METRICS[name].cells),
        )
    return cells


def _warnings(flags: Iterable[str]) -> tuple[str, ...]:
    return tuple(FLAGS[flag] for flag in flags if flag in FLAGS)


def entry_of(row: EstimateRow) -> FlaggedEntry:
    """Return a row with a value as an entry of a document, which reports write."""
    assert row.value is not None
    assert row.low is not None
    assert row.high is not None
    return FlaggedEntry(value=row.value, low=row.low, high=row.high, flags=row.flags)


def _readers(row: EstimateRow, corrected: EstimateRow | None) -> str:
    """Write IR or DNI as people's labels correct it, or how large an error of the readers explains it."""
    if row.metric not in {"ir", "dni"} or row.value is None:
        return ""
    if corrected is None or corrected.value is None or corrected.low is None or corrected.high is None:
        return f"explained if {percent(abs(row.value))} of the texts are misread"
    return f"corrected by people: {estimate_text(row.metric, entry_of(corrected))}"
