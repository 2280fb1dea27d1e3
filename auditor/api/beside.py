"""Serve ``/deployments/{name}/beside/{other}``: two deployments on what both were asked."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from auditor.api.addresses import beside_address, deployment_address, list_of
from auditor.api.cells import find_row
from auditor.api.charts import ChartInterval, interval_axis, interval_bar
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get
from auditor.api.overview import read_names, window_names
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters
from auditor.documents.deployments import (
    EventsEntry,
    MissingTwoDeployments,
    StatementOfTwoEntry,
    TwoDeploymentsBody,
    TwoDeploymentsEntry,
    UnionCountEntry,
)
from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.estimation.differences import COMPARED
from auditor.estimation.pairs import PairedMeasure, Pairing, Share, pair
from auditor.metrics.rates import METRICS
from auditor.report.drawing import scale_top
from auditor.report.wording import DASH, MINUS, condition_words, percent, points, points_text, signed
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_estimates
from auditor.store.plans import read_statement_texts
from auditor.store.tallies import read_window_of

#: Statements that are listed.
_MOST: Final = 40
_NAMES: Final = {
    "ber_union_full": "either layer endorses, of all responses",
    "ber_sel_full": "the selection endorses, of all that have one",
    "ber_elab_full": "the elaboration endorses, of all that have one",
    "ir": "the layers disagree (IR)",
    "dni": "OED minus UED (DNI)",
}
#: The answers in the numerator of a measure.
_CELLS: Final = {
    "ber_union_full": "union", "ber_sel_full": "sel_E", "ber_elab_full": "elab_E", "ir": "n10,n01", "dni": "n10,n01",
}  # fmt: skip


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [
        web.get("/deployments/{name}/beside", _choose),
        web.get("/deployments/{name}/beside/{other}", _page),
    ]


async def _choose(request: web.Request) -> web.Response:
    """Lead from the form of a deployment's page to the comparison."""
    other = known_filters(request, ("other",)).get("other")
    if other is None:
        raise ApiError(400, "other must name a deployment.", "invalid_value", "other")
    return web.Response(status=303, headers={"location": beside_address(request.match_info["name"], other)})


async def _read(request: web.Request) -> tuple[Pairing, tuple[EstimateRow, ...], Mapping[str, str]]:
    """Read the comparison, a row of each side to link from, and the texts of the statements that are listed.

    Raises
    ------
    ApiError
        400 for a filter, 404 for a deployment that is neither configured nor stored.
    """
    app = request.app
    config, now = app[CONFIG](), app[CLOCK]()
    known_filters(request, ())
    names = request.match_info["name"], request.match_info["other"]
    window = window_names(config)[0]
    sides: list[EstimateRow] = []
    rows: list[Sequence[Mapping[str, Any]]] = []
    async with transaction(app[ENGINE]) as connection:
        known = await read_names(connection, config, now)
        for name in names:
            if name not in known:
                raise ApiError(404, f"No deployment has the name {name!r}.", "deployment_not_found", "name")
            estimates = await read_estimates(
                connection, deployment=name, origin=Origin.PROBE, window=window, condition="all", metric="coverage"
            )
            row = find_row(estimates, "coverage", None, None)
            sides += [] if row is None else [row]
            rows.append([] if row is None else await read_window_of(connection, row.coder, window, name, row.origin))
        pairing = await asyncio.to_thread(pair, *rows)
        shown = [entry.statement for entry in pairing.statements[:_MOST]]
        texts = await read_statement_texts(connection, shown)
    return pairing, tuple(sides), texts


async def _page(request: web.Request) -> web.Response:
    pairing, sides, texts = await _read(request)
    names = request.match_info["name"], request.match_info["other"]
    addresses = [deployment_address(name) for name in names]
    lines = [_line(measure) for measure in pairing.measures]
    reach = scale_top(
        [abs(end) for line in lines if line["bounds"] for end in (line["bounds"].low, line["bounds"].high)]
    )
    return render_page(
        request,
        "beside.html.j2",
        names=names,
        addresses=addresses,
        swapped=beside_address(names[1], names[0]),
        pairing=pairing,
        conditions=[condition_words(condition) for condition in pairing.conditions],
        window=window_names(request.app[CONFIG]())[0],
        axis=interval_axis(-reach, reach, change=True),
        lines=[
            {
                **line,
                "bar": interval_bar(line["bounds"], -reach, reach, line["difference"]) if line["bounds"] else "",
                "sides": [
                    _share(share, measure.name, side, pairing)
                    for share, side in zip((measure.first, measure.second), sides, strict=True)
                ],
            }
            for line, measure in zip(lines, pairing.measures, strict=True)
        ],
        statements=[
            {
                "id": entry.statement,
                "text": texts.get(entry.statement, entry.statement),
                "difference": f"{signed(entry.difference, 0)} pp",
                "sides": [
                    _share(share, "ber_union_full", side, pairing, statement_id=entry.statement)
                    for share, side in zip((entry.first, entry.second), sides, strict=True)
                ],
            }
            for entry in pairing.statements[:_MOST]
        ],
        left_out=max(0, len(pairing.statements) - _MOST),
        json=f"/api{beside_address(*names)}",
    )


def _line(measure: PairedMeasure) -> dict[str, Any]:
    difference = measure.difference
    if isinstance(difference, Insufficient):
        return {"name": _NAMES[measure.name], "difference": DASH, "reason": difference.reason, "bounds": None, "n": 0}
    return {
        "name": _NAMES[measure.name],
        "difference": points_text(difference.value, difference.low, difference.high),
        "reason": "",
        "bounds": ChartInterval(value=difference.value, low=difference.low, high=difference.high),
        "n": difference.n_statements,
    }


def _share(share: Share, name: str, side: EstimateRow, pairing: Pairing, **more: str) -> dict[str, Any]:
    """Return one side of a line, with the address of the answers that it counts."""
    rate = percent(share.events / share.trials, 0 if more else 1) if share.trials else DASH
    if METRICS[name].kind == "difference" and share.trials:
        rate = points(share.events / share.trials)
    conditions = ",".join(pairing.conditions)
    return {
        "rate": rate,
        "of": f"{share.events:,} of {share.trials:,}".replace("-", MINUS),
        "address": list_of(side, condition=conditions, cell=_CELLS[name], **more),
    }


@get("/api/deployments/{name}/beside/{other}", "Two deployments on the questions that both were asked")
async def _compare(request: web.Request) -> TwoDeploymentsBody:
    pairing, _, texts = await _read(request)
    return TwoDeploymentsBody(
        first=request.match_info["name"],
        second=request.match_info["other"],
        conditions=pairing.conditions,
        n_statements=pairing.n_statements,
        measures={measure.name: _measure_entry(measure) for measure in pairing.measures},
        statements=[
            StatementOfTwoEntry(
                statement_id=entry.statement,
                statement=texts.get(entry.statement),
                first=UnionCountEntry(union=entry.first.events, n=entry.first.trials),
                second=UnionCountEntry(union=entry.second.events, n=entry.second.trials),
            )
            for entry in pairing.statements[:_MOST]
        ],
    )


def _measure_entry(measure: PairedMeasure) -> TwoDeploymentsEntry | MissingTwoDeployments:
    first, second = (EventsEntry(events=share.events, n=share.trials) for share in (measure.first, measure.second))
    difference = measure.difference
    if isinstance(difference, Insufficient):
        return MissingTwoDeployments(first=first, second=second, missing=difference.reason)
    return TwoDeploymentsEntry(
        first=first,
        second=second,
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        n_statements=difference.n_statements,
    )


OPERATIONS: Final = (_compare,)
assert set(_NAMES) == set(COMPARED)
