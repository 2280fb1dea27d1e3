"""Fill the page: from the document of ``analysis.json`` to ``report.html``. The same document gives the same bytes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jinja2 import PackageLoader

from auditor.report.cells import count
from auditor.report.levels import asked_levels
from auditor.report.part import Part, Section
from auditor.report.places import Place
from auditor.report.sections import (
    cases,
    coverage,
    crossed,
    decomposition,
    exposures,
    groups,
    judges,
    methods,
    mitigation,
    peers,
    people,
    prompts,
    rankings,
    slices,
    statements,
    summary,
)
from auditor.report.templating import environment
from auditor.report.words import listed

#: Sections in reading order: first what was found, then what it rests on. Each is of one rubric.
_FINDINGS: Final = (summary, decomposition, prompts, crossed, rankings, mitigation, statements, slices, groups)
_GROUNDS: Final = (cases, coverage)
#: Sections of the whole document.
_WHOLE: Final = (exposures, peers, judges, people)


def render(document: Mapping[str, Any]) -> bytes:
    """Render the report of one analysis.

    Parameters
    ----------
    document
        As ``auditor.analysis.run.analyse`` gives it, or as read back from ``analysis.json``. Keys that it has not are
        sections that the page has not, or lines that say so.
    """
    whole = Place(document)
    parts = [Part(whole, rubric) for rubric in sorted({entry.value["rubric"] for entry in whole.at("groups")})]
    page = environment(PackageLoader("auditor.report", "page")).get_template("report.html.j2")
    return page.render(title=_title(whole, parts), sections=_sections(whole, parts)).encode("utf-8")


def _sections(document: Place, parts: Sequence[Part]) -> list[tuple[str, Section]]:
    """List the sections in reading order, each with its anchor."""
    whole = [(found.name, found) for each in _WHOLE if (found := each.section(document)) is not None]
    return [*_of_parts(parts, _FINDINGS), *whole, *_of_parts(parts, _GROUNDS), ("methods", methods.section(document))]


def _of_parts(parts: Sequence[Part], modules: Sequence[Any]) -> Iterator[tuple[str, Section]]:
    """Make the sections of each rubric; with several rubrics a section's title says which."""
    several = len(parts) > 1
    for number, part in enumerate(parts, start=1):
        for module in modules:
            found = module.section(part)
            if found is not None:
                yield (f"{found.name}-{number}", found.of(part.rubric)) if several else (found.name, found)


def _title(document: Place, parts: Sequence[Part]) -> dict[str, Any]:
    """Say what was asked, when, and by whom it was read."""
    panels: dict[str, list[str]] = {}
    for deployment in document.at("panels").names():
        readers = listed([str(judge.value) for judge in document.at("panels", deployment)])
        panels.setdefault(readers or "no named judge", []).append(deployment)
    about = document.at("about")
    return {
        "n_rows": count(document.at("n_rows")),
        "n_skipped": count(document.at("n_skipped")) if document.at("n_skipped").value else None,
        "statements": {part.rubric: count(part.pooled.at("n_statements")) for part in parts},
        "asked": [asked for part in parts if (asked := asked_levels(part))],
        "panels": {readers: listed(names) if len(panels) > 1 else "" for readers, names in panels.items()},
        "about": {name: str(about.value[name]) for name in about.names()},
    }
