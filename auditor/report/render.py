"""Fill the page: from the document of ``analysis.json`` to ``report.html``. The same document gives the same bytes."""

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import PackageLoader

from auditor.report.cells import count
from auditor.report.part import Part, Section
from auditor.report.places import Place
from auditor.report.sections import (
    cases,
    coverage,
    crossed,
    decomposition,
    groups,
    judges,
    methods,
    mitigation,
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
_READERS: Final = (judges, people)


def render(document: Mapping[str, Any]) -> bytes:
    """Render the report of one analysis.

    Parameters
    ----------
    document
        As ``auditor.analysis.run.analyse`` gives it, or as read back from ``analysis.json``. Keys that it has not are
        sections that the page has not, or lines that say so.
    """
    whole = Place(document)
    page = environment(PackageLoader("auditor.report", "page")).get_template("report.html.j2")
    return page.render(title=_title(whole), sections=_sections(whole)).encode("utf-8")


def _sections(document: Place) -> list[tuple[str, Section]]:
    """List the sections in reading order, each with its anchor; with several rubrics a title says which."""
    parts = [Part(document, rubric) for rubric in sorted({entry.value["rubric"] for entry in document.at("groups")})]
    made = [*_of_parts(parts, _FINDINGS)]
    made += [(found.name, found) for each in _READERS if (found := each.section(document)) is not None]
    made += _of_parts(parts, _GROUNDS)
    return [*made, ("methods", methods.section(document))]


def _of_parts(parts: list[Part], modules: tuple[Any, ...]) -> list[tuple[str, Section]]:
    out = []
    for number, part in enumerate(parts, start=1):
        for module in modules:
            found = module.section(part)
            if found is not None:
                several = len(parts) > 1
                out.append(
                    (f"{found.name}-{number}" if several else found.name, found.of(part.rubric if several else ""))
                )
    return out


def _title(document: Place) -> dict[str, Any]:
    """Say what was asked, when, and by whom it was read."""
    panels: dict[str, list[str]] = {}
    for deployment in document.at("panels").names():
        judges_of = listed([str(judge.value) for judge in document.at("panels", deployment)])
        panels.setdefault(judges_of or "no named judge", []).append(deployment)
    about = document.at("about")
    pooled = [entry for entry in document.at("groups") if not entry.value["by"]]
    return {
        "n_rows": count(document.at("n_rows")),
        "n_skipped": count(document.at("n_skipped")) if document.at("n_skipped").value else None,
        "statements": {entry.value["rubric"]: count(entry.at("n_statements")) for entry in pooled},
        "panels": {readers: listed(names) if len(panels) > 1 else "" for readers, names in panels.items()},
        "about": {name: str(about.value[name]) for name in about.names()},
    }
