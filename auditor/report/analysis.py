"""Render ``report.html`` from the document of ``analysis.json``. The same document gives the same bytes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from jinja2 import PackageLoader
from markupsafe import Markup
from msgspec import UNSET

from auditor.counting.rows import CONTROLS
from auditor.documents.analysis import AnalysisDocument
from auditor.metrics.divergence import DNI_MAX, IR_MIN
from auditor.metrics.estimate import BOUNDS_RATE, ENOUGH_STATEMENTS, LOW_RATE, MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.period.document import CorrectionsEntry, ExposureReplay
from auditor.report import (
    basis,
    crossed,
    decomposition,
    direction,
    exposures,
    generalizability,
    judges,
    mitigation,
    model,
    peers,
    prompts,
    quotations,
    rankings,
    reviews,
    slices,
    summary,
    trials,
)
from auditor.report.canvas import outside_the_page
from auditor.report.document import MOST_DRAWN, of_rubric, pooled_group, varied_levels, with_places
from auditor.report.links import ConsoleLinks
from auditor.report.tables import count, number, text_cell
from auditor.report.templates import PageSection, environment, no_answers
from auditor.report.wording import FLAGS, glossary_terms, join_words, percent, times
from auditor.trials.document import TrialEntry

_Maker = Callable[[AnalysisDocument], PageSection | None]
#: Sections in reading order: first the findings, then the appendix. Each section is for one rubric.
_FINDINGS: Final[Sequence[_Maker]] = (
    summary.section,
    summary.results_section,
    decomposition.section,
    prompts.section,
    generalizability.section,
    crossed.section,
    rankings.section,
    mitigation.section,
    direction.section,
    slices.section,
)
_APPENDIX: Final[Sequence[_Maker]] = (
    basis.design_section,
    basis.coverage_section,
    basis.statements_section,
    slices.groups_section,
    quotations.section,
)
#: Terms that the page uses and defines.
_TERMS: Final = (
    "statement", "task", "condition", "baseline", "factor", "level", "layer", "selection", "elaboration", "eligible",
    "coverage", "cancellation trap", "eta squared", "interval", "kappa",
)  # fmt: skip
#: What the software chooses, for the sentences that name it.
_FLOORS: Final = {
    "min_statements": MIN_STATEMENTS,
    "enough_statements": ENOUGH_STATEMENTS,
    "low_rate": percent(LOW_RATE, 0),
    "bounds_rate": percent(BOUNDS_RATE, 0),
    "ir_min": percent(IR_MIN, 0),
    "dni_max": percent(DNI_MAX, 0),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PeriodContext:
    """What the page shows in a report over a period, in addition to the analysis."""

    period: str = ""  #: as people write it
    origin: str = ""  #: whose answers these are
    about: Mapping[str, str] = field(default_factory=dict)  #: of the appendix: exact times, coder, digest
    console: ConsoleLinks | None = None  #: None: rates lead nowhere
    people: CorrectionsEntry | None = None
    compared: Sequence[peers.ComparedPeers] = ()
    trials: Sequence[TrialEntry] = ()
    exposures: Sequence[ExposureReplay] | None = None  #: None where the page is not to show them


def render_analysis(analysis: AnalysisDocument, period: PeriodContext | None = None) -> bytes:
    """Render the report of one analysis.

    Parameters
    ----------
    analysis
        Document as read back from ``analysis.json``.
    period
        Context of a report over a period; None for a file.
    """
    document, period = with_places(analysis), period or PeriodContext()
    # Controls have no pages of their own: they are set against the statements' answers.
    rubrics = {entry.rubric for entry in document.groups}
    parts = {rubric: of_rubric(document, rubric) for rubric in sorted(rubrics - set(CONTROLS) or rubrics)}
    links = period.console
    answers_of = no_answers if links is None else partial(links.of, document)
    page = environment(PackageLoader("auditor.report", "page"), answers_of).get_template("report.html.j2")
    title = _title(document, parts) | {"period": period.period, "origin": period.origin}
    return page.render(title=title, sections=_sections(document, parts, period)).encode("utf-8")


def draw_analysis(analysis: AnalysisDocument) -> dict[str, str]:
    """Return the drawings of the report as HTML with inline SVG, by the section and the name of the drawing."""
    document = with_places(analysis)
    parts = {rubric: of_rubric(document, rubric) for rubric in sorted({entry.rubric for entry in document.groups})}
    return {
        f"{anchor}.{name}": outside_the_page(drawn)
        for anchor, section in _sections(document, parts, PeriodContext())
        for name, drawn in section.values.items()
        if isinstance(drawn, Markup) and "<svg" in drawn
    }


def _sections(
    document: AnalysisDocument, parts: Mapping[str, AnalysisDocument], period: PeriodContext
) -> list[tuple[str, PageSection]]:
    """List the sections in reading order, each with its anchor."""
    whole = (
        trials.section(period.trials),
        None if period.exposures is None else exposures.section(period.exposures),
        peers.section(period.compared),
        model.section(document),
        judges.section(document),
        reviews.section(document, period.people),
    )
    named = [(section.name, section) for section in whole if section is not None]
    last = (_methods(document), _origin(document, period))
    appendix = [*_of_parts(parts, _APPENDIX), *((section.name, section) for section in last)]
    return [
        *_of_parts(parts, _FINDINGS),
        *named,
        *((anchor, replace(section, title=f"Appendix. {section.title}")) for anchor, section in appendix),
    ]


def _of_parts(parts: Mapping[str, AnalysisDocument], makers: Sequence[_Maker]) -> Iterator[tuple[str, PageSection]]:
    """Make the sections of each rubric; with several rubrics each title names its rubric."""
    for place, (rubric, part) in enumerate(parts.items(), start=1):
        for section in filter(None, (make(part) for make in makers)):
            yield (f"{section.name}-{place}", section.of(rubric)) if len(parts) > 1 else (section.name, section)


def _title(document: AnalysisDocument, parts: Mapping[str, AnalysisDocument]) -> dict[str, Any]:
    """Return the facts of the title: prompts, sizes and judges."""
    panels: dict[str, list[str]] = {}
    clusters = document.clusters
    for deployment, judges_of in document.panels.items():
        panels.setdefault(join_words(judges_of) or "no named judge", []).append(deployment)
    return {
        "n_rows": count(document.n_rows),
        "n_skipped": count(document.n_skipped) if document.n_skipped else None,
        "statements": {rubric: count(pooled_group(part).n_statements) for rubric, part in parts.items()},
        "varied": [levels for part in parts.values() if (levels := varied_levels(part))],
        "clustered": []
        if clusters is UNSET
        else [(text_cell(clustering.field), count(clustering.n_clusters)) for clustering in clusters.used],
        "coarser": []
        if clusters is UNSET
        else [
            (text_cell(each.field), count(each.n_clusters), number(each.widening, times)) for each in clusters.coarser
        ],
        "most_drawn": MOST_DRAWN if any(len(part.deployments) > MOST_DRAWN for part in parts.values()) else None,
        "panels": {readers: join_words(names) if len(panels) > 1 else "" for readers, names in panels.items()},
    }


def _methods(document: AnalysisDocument) -> PageSection:
    """Return the section on methods, limits and versions."""
    values = {
        **_FLOORS,
        "metrics": METRICS.values(),
        "flags": FLAGS,
        "terms": glossary_terms(*_TERMS),
        "n_boot": count(document.n_boot),
        "seed": count(document.seed),
    }
    return PageSection(name="methods", title="Methods and limits", values=values)


def _origin(document: AnalysisDocument, period: PeriodContext) -> PageSection:
    """Return the section on what the page was made from: exact times, digests, versions."""
    values = {
        "about": period.about,
        "document": document,
        "n_boot": count(document.n_boot),
        "seed": count(document.seed),
    }
    return PageSection(name="origin", title="Origin of the numbers", values=values)
