"""The page of a comparison with peers, made from the document of ``peers.json`` alone: same document, same bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jinja2 import PackageLoader

from auditor.report.figures.parts import known
from auditor.report.figures.peers import distributions, theme_means
from auditor.report.figures.sequence import sequence
from auditor.report.peer_words import fixed_text, interval_text, number_text, p_text, reason_text, word_text
from auditor.report.templating import environment

#: The two readings of blocked answers, as a page names them.
READINGS: Final = {"answer": "a block is an answer", "drop": "blocks are dropped"}
#: Themes that the page shows; all of them are in peers.json.
MAX_THEMES: Final = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """What the page of a report over a period says beside its comparison."""

    title: str  #: the domain, or the route and its deployment
    about: Mapping[str, str]
    scorers: Sequence[Mapping[str, Any]]  #: with ``id``, ``method`` and ``description``
    others: Mapping[str, str] = field(default_factory=dict)  #: titles of the other comparisons, by page


def render_peers(document: Mapping[str, Any], period: Reported | None = None) -> bytes:
    """Render the page.

    Parameters
    ----------
    document
        As ``auditor.peers.run.analyse`` gives it, or as read back from ``peers.json``.
    period
        Of a report over a period; a file has none.
    """
    templates = environment(PackageLoader("auditor.report", "page"))
    templates.filters |= {"fixed": fixed_text, "p": p_text, "said": word_text, "why": reason_text}
    templates.globals |= {"number": number_text, "interval": interval_text, "watched": sequential_text}
    targets = [
        {"entry": entry, "instruments": _instruments(entry), "warnings": _warnings(entry)}
        for entry in document["targets"]
    ]
    page = templates.get_template("peers.html.j2").render(
        document=document,
        targets=targets,
        hosts=_hosts(document),
        period=period,
        readings=READINGS,
        most_themes=MAX_THEMES,
    )
    return page.encode("utf-8")


def result_cells(name: str, found: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Write an instrument's result in one line: both means, the paired difference, the margin, the verdict."""
    between = found.get("paired", {})
    return (
        number_text(name, found.get("mean_target")),
        number_text(name, found.get("mean_baseline")),
        f"{number_text(name, between.get('diff'))} {interval_text(name, between)}".rstrip(),
        number_text(name, found.get("delta"), 4),
        word_text(found.get("verdict")),
    )


def host_cells(name: str, found: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Write one instrument's result at two hosts in one line, as ``result_cells`` does."""
    means = dict(zip(("mean_target", "mean_baseline"), found.get("means", ()), strict=False))
    return result_cells(name, {**found, **means})


def sequential_text(name: str, found: Mapping[str, Any]) -> str:
    """Say in one sentence what came of looking after every question."""
    if not known(found):
        return reason_text(found)
    source = f"the first {found['n_calibration']} made it" if found["n_calibration"] else "declared"
    margin = f"δ = {number_text(name, found['margin'], 4)}, {source}"
    said = f"{found['verdict']} {_after(found)}, by bets ({margin})"
    bounds = found["confidence_sequence"]
    if not known(bounds):
        return f"{said}; no confidence sequence: {reason_text(bounds)}"
    return f"{said}; {bounds['verdict']} {_after({'n': found['n'], **bounds})}, by the confidence sequence"


def _after(found: Mapping[str, Any]) -> str:
    return f"after {found['after']} questions" if "after" in found else f"in {found['n']} questions"


def _hosts(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "entry": pair,
            "instruments": [
                {"name": name, "found": found, "cells": host_cells(name, found)}
                for name, found in pair["instruments"].items()
            ],
        }
        for pair in document["hosts"]
    ]


def _instruments(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    target, other = entry["target"], entry["other_reading"].get("instruments", {})
    return [
        {
            "name": name,
            "found": found,
            "there": known(found),
            "cells": result_cells(name, found),
            "other": other.get(name),
            "other_cells": result_cells(name, other[name]) if name in other else None,
            "distributions": distributions(name, found, target),
            "sequence": sequence(name, found.get("sequential", {"missing": ""}), target),
            "themes": found["themes"][:MAX_THEMES],
            "theme_means": theme_means(name, found["themes"][:MAX_THEMES], target),
        }
        for name, found in entry["instruments"].items()
    ]


def _warnings(entry: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {"name": name, "text": warning["text"]}
        for name, found in entry["instruments"].items()
        for warning in found.get("warnings", ())
    ]
