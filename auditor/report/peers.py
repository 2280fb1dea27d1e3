"""The page of a comparison with peers, made from the document of ``peers.json`` alone: same document, same bytes."""

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import PackageLoader

from auditor.report.figures.parts import known
from auditor.report.figures.peers import distributions, theme_means
from auditor.report.peer_words import fixed_text, interval_text, number_text, p_text, reason_text, word_text
from auditor.report.templating import environment

#: The two readings of blocked answers, as a page names them.
READINGS: Final = {"answer": "a block is an answer", "drop": "blocks are dropped"}
#: Themes that the page shows; all of them are in peers.json.
MAX_THEMES: Final = 50


def render_peers(document: Mapping[str, Any]) -> bytes:
    """Render the page.

    Parameters
    ----------
    document
        As ``auditor.peers.run.analyse`` gives it, or as read back from ``peers.json``.
    """
    templates = environment(PackageLoader("auditor.report", "page"))
    templates.filters |= {"fixed": fixed_text, "p": p_text, "said": word_text, "why": reason_text}
    templates.globals |= {"number": number_text, "interval": interval_text}
    targets = [
        {"entry": entry, "instruments": _instruments(entry), "warnings": _warnings(entry)}
        for entry in document["targets"]
    ]
    page = templates.get_template("peers.html.j2").render(document=document, targets=targets, readings=READINGS)
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
