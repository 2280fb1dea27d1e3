"""Serve the status page at ``/``: the state of each deployment, reasons for gaps, and the next command."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.overview import HEADLINES, DeploymentOverview, Overview, read_overview
from auditor.api.pages import render_page
from auditor.config import Config
from auditor.config.audits import LEXICON
from auditor.documents.estimates import FlaggedEntry
from auditor.domain.exchange import Origin
from auditor.domain.readers import divergence_refusal
from auditor.report.wording import DASH, estimate_parts, estimate_text, glossary_terms, percent
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow

#: The answers in the numerator of each headline; those of DNI are subtracted from each other.
_CELLS: Final = {"ber": "union", "ir": "n10,n01", "dni": "n10,n01"}


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/", _page)]


async def _page(request: web.Request) -> web.Response:
    app = request.app
    config = app[CONFIG]()
    async with transaction(app[ENGINE]) as connection:
        overview = await read_overview(connection, config, app[CLOCK]())
    return render_page("status.html.j2", **_context(overview, config))


def _context(overview: Overview, config: Config) -> dict[str, Any]:
    refused = divergence_refusal(config.panel.judges)
    parts = [part for standing in overview.standings for part in standing.parts]
    return {
        "as_of": overview.as_of.strftime("%Y-%m-%d %H:%M:%S") if overview.as_of else None,
        "window": overview.window,
        "standings": overview.standings,
        "totals": {
            "stored": sum(part.seen.complete for part in parts),
            "coded": sum(part.read.coded for part in parts),
            "waiting": sum(part.waiting for part in parts),
        },
        "judges": config.panel.judges,
        "coarse": config.panel.judges == (LEXICON,),
        "refused": "" if refused is None else refused.reason,
        "probes": [_probes(standing) for standing in overview.standings],
        "traffic": [row for standing in overview.standings for row in _traffic(standing)],
        "terms": glossary_terms("probe", "coding", "selection", "elaboration", "BER_union", "OED, UED", "IR", "DNI"),
        "open": [standing for standing in overview.standings if standing.reasons or standing.next_command],
    }


def _probes(standing: DeploymentOverview) -> dict[str, Any]:
    part = next((part for part in standing.parts if part.origin == Origin.PROBE), None)
    progress = standing.progress
    rows = [row for row in standing.headlines if row.origin == Origin.PROBE]
    declared = standing.deployment
    about = [declared.vendor, declared.weights or declared.model] if declared else ["no longer configured"]
    return {
        "name": standing.name,
        "about": " · ".join(text for text in about if text),
        "planned": progress.planned,
        "answered": progress.answered,
        "share": round(100 * progress.answered / progress.planned) if progress.planned else 0,
        "coded": part.read.coded if part else 0,
        "waiting": part.waiting if part else 0,
        **_numbers(rows),
    }


def _traffic(standing: DeploymentOverview) -> Iterator[dict[str, Any]]:
    rows = [row for row in standing.headlines if row.origin == Origin.CLIENT]
    for condition in sorted({row.condition for row in rows}):
        own = [row for row in rows if row.condition == condition]
        pooled = next(row for row in own if row.metric == "coverage")
        yield {
            "name": standing.name,
            "audit": condition,
            "rubric": own[0].rubric,
            "n": pooled.n,
            **_numbers(own),
        }


def _numbers(rows: Sequence[EstimateRow]) -> dict[str, Any]:
    covered = next((row.value for row in rows if row.metric == "coverage"), None)
    return {
        "coverage": percent(covered) if covered is not None else DASH,
        "cells": [_cell(rows, metric, layer, base) for metric, layer, base in HEADLINES],
    }


def _cell(rows: Iterable[EstimateRow], metric: str, layer: str | None, base: str) -> dict[str, str]:
    row = next((row for row in rows if (row.metric, row.layer, row.base) == (metric, layer, base)), None)
    corrected = next((row for row in rows if row.metric == f"{metric}_corrected"), None)
    if row is None:
        return {"value": DASH, "interval": "", "why": "no answer is coded yet", "readers": "", "answers": ""}
    if row.value is None or row.low is None or row.high is None:
        return {"value": DASH, "interval": "", "why": str(row.missing), "readers": "", "answers": ""}
    entry = FlaggedEntry(value=row.value, low=row.low, high=row.high, flags=row.flags)
    value, interval = estimate_parts(metric, entry)
    weighted = "" if row.n_effective is None else f" (effective {row.n_effective:.0f})"
    why = f"n = {row.n}{weighted}, {row.n_statements} clusters, {row.method}"
    return {
        "value": value,
        "interval": interval,
        "why": why,
        "readers": _readers(row, corrected),
        "answers": _answers(row),
    }


def _readers(row: EstimateRow, corrected: EstimateRow | None) -> str:
    """Write IR or DNI as people's labels correct it, or how large an error of the readers explains it."""
    if row.metric not in {"ir", "dni"} or row.value is None:
        return ""
    if corrected is None or corrected.value is None or corrected.low is None or corrected.high is None:
        return f"explained if {percent(abs(row.value))} of the texts are misread"
    entry = FlaggedEntry(value=corrected.value, low=corrected.low, high=corrected.high, flags=corrected.flags)
    return f"corrected by people: {estimate_text(row.metric, entry)}"


def _answers(row: EstimateRow) -> str:
    """Return the address of the answers in the numerator of a headline."""
    asked = {"audit": row.condition} if row.origin == Origin.CLIENT else {}
    filters = {"deployment": row.deployment, "origin": row.origin, "rubric": row.rubric, **asked}
    return "/answers?" + urlencode({**filters, "cell": _CELLS[row.metric], "from": row.since.isoformat()})
