"""Serve the page at ``/``: every deployment with its estimates, what changed this week, and what is missing and why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from auditor.api.addresses import deployment_address
from auditor.api.cells import EstimateCell, estimate_cell_of, find_row, share_cell_of
from auditor.api.charts import Point, divergence_plane, interval_axis, interval_bar
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.overview import DeploymentOverview, Overview, by_deployment, read_overview, window_names
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, wants_page
from auditor.api.signals import DriftSummary, PeerSummary, drift_state, peer_verdicts
from auditor.api.start import is_new
from auditor.api.week import changes_of_week, week_window
from auditor.coding.coders import PROPOSITION
from auditor.coding.split import OPEN, STATEMENT
from auditor.config import Config
from auditor.config.audits import LEXICON
from auditor.domain.exchange import Origin
from auditor.domain.readers import divergence_refusal
from auditor.report.drawing import scale_top
from auditor.report.wording import glossary_terms
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_signals

_ORIGINS: Final = (Origin.PROBE.value, Origin.REPLAY.value, Origin.CLIENT.value)
_RUBRICS: Final = (STATEMENT, PROPOSITION, OPEN)
_SECTIONS: Final = {"probe": "Probes", "replay": "Replays", "client": "Client traffic"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetRow:
    """One deployment's answers of one origin; of client traffic, those that one audit profile reads."""

    name: str
    about: str
    origin: str
    rubric: str
    audit: str  #: empty for planned calls
    address: str
    union: EstimateCell
    ir: EstimateCell
    dni: EstimateCell
    coverage: EstimateCell
    drift: DriftSummary
    peers: PeerSummary
    last_at: datetime | None
    planned: int
    answered: int
    coded: int
    waiting: int


#: What the table can be sorted by; None comes last in either order.
_ORDERS: Final[Mapping[str, Callable[[FleetRow], Any]]] = {
    "union": lambda row: row.union.order,
    "name": lambda row: row.name,
    "ir": lambda row: row.ir.order,
    "dni": lambda row: row.dni.order,
    "coverage": lambda row: row.coverage.order,
    "drift": lambda row: row.drift.severity,
    "peers": lambda row: row.peers.severity,
    "last": lambda row: row.last_at,
}
#: Columns whose first click sorts upwards; a minus before a name gives the other order.
_RISING: Final = frozenset({"name", "last"})


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/", _page)]


async def _page(request: web.Request) -> web.Response:
    app = request.app
    if wants_page(request) and not request.query and await is_new(app[ENGINE]):
        raise web.HTTPSeeOther("/start")
    config, now = app[CONFIG](), app[CLOCK]()
    filters = known_filters(request, ("origin", "rubric", "window", "sort"))
    chosen = _check(filters, config)
    async with transaction(app[ENGINE]) as connection:
        overview = await read_overview(connection, config, now, chosen["window"])
        signals = await read_signals(connection, week_window(config))
        week = await changes_of_week(connection, week_window(config), signals, now)
    rows = sorted(_rows(overview, by_deployment(signals)), key=lambda row: row.name)
    shown = [
        row for row in rows if all(getattr(row, name) == chosen[name] for name in ("origin", "rubric") if chosen[name])
    ]
    return render_page(
        request,
        "fleet.html.j2",
        **_context(overview, config),
        sections=[
            _section(origin, shown, filters) for origin in _ORIGINS if any(row.origin == origin for row in shown)
        ],
        empty=not shown,
        choices=_choices(config, chosen),
        sort=filters.get("sort", ""),
        week=week,
        now=now,
        json="/api/deployments?" + urlencode({name: value for name, value in filters.items() if name == "window"}),
    )


def _check(filters: Mapping[str, str], config: Config) -> dict[str, str]:
    """Check the filters.

    Raises
    ------
    ApiError
        400.
    """
    allowed: dict[str, tuple[str, ...]] = {
        "origin": _ORIGINS,
        "rubric": _RUBRICS,
        "window": window_names(config),
        "sort": tuple(f"{sign}{name}" for name in _ORDERS for sign in ("", "-")),
    }
    for name, value in filters.items():
        if value not in allowed[name]:
            raise ApiError(400, f"{name} must be one of {', '.join(allowed[name])}.", "invalid_value", name)
    return {name: filters.get(name, "") for name in allowed} | {"window": filters.get("window", allowed["window"][0])}


def _choices(config: Config, chosen: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the fields of the form."""
    return [
        {"name": "origin", "value": chosen["origin"], "all": "all origins", "options": _ORIGINS},
        {"name": "rubric", "value": chosen["rubric"], "all": "all rubrics", "options": _RUBRICS},
        {"name": "window", "value": chosen["window"], "all": "", "options": window_names(config)},
    ]


def _context(overview: Overview, config: Config) -> dict[str, Any]:
    refused = divergence_refusal(config.panel.judges)
    parts = [part for deployment in overview.deployments for part in deployment.parts]
    return {
        "as_of": overview.as_of,
        "window": overview.window,
        "n_deployments": len(overview.deployments),
        "totals": {
            "stored": sum(part.seen.complete for part in parts),
            "coded": sum(part.coded for part in parts),
            "waiting": sum(part.waiting for part in parts),
        },
        "judges": config.panel.judges,
        "coarse": config.panel.judges == (LEXICON,),
        "refused": "" if refused is None else refused.reason,
        "terms": glossary_terms(
            "probe", "coding", "selection", "elaboration", "BER_union", "OED, UED", "IR", "DNI", "interval", "coverage",
            "drift", "verdict", "window", "rubric", "origin",
        ),
        "open": [deployment for deployment in overview.deployments if deployment.reasons or deployment.next_command],
    }  # fmt: skip


def _rows(overview: Overview, signals: Mapping[str, Sequence[EstimateRow]]) -> Iterator[FleetRow]:
    for deployment in overview.deployments:
        headlines: dict[tuple[str, str], list[EstimateRow]] = {}
        for row in deployment.headlines:
            audit = row.condition if row.origin == Origin.CLIENT else ""
            headlines.setdefault((row.origin, audit), []).append(row)
        # A deployment without estimates is shown as well: with its reasons.
        if not any(origin == Origin.PROBE for origin, _ in headlines) and (
            deployment.progress.planned or not headlines
        ):
            headlines[Origin.PROBE, ""] = []
        for (origin, audit), rows in headlines.items():
            yield _row(deployment, origin, audit, rows, signals.get(deployment.name, ()))


def _row(
    overview: DeploymentOverview, origin: str, audit: str, rows: Sequence[EstimateRow], signals: Sequence[EstimateRow]
) -> FleetRow:
    part = next((part for part in overview.parts if part.origin == origin), None)
    declared = overview.deployment
    about = [declared.vendor, declared.weights or declared.model] if declared else ["no longer configured"]
    ir, dni = (
        estimate_cell_of(find_row(rows, name, None, "eligible"), find_row(rows, f"{name}_corrected", None, "eligible"))
        for name in ("ir", "dni")
    )
    is_probe = origin == Origin.PROBE
    return FleetRow(
        name=overview.name,
        about=" · ".join(text for text in about if text),
        origin=origin,
        rubric=rows[0].rubric if rows else "",
        audit=audit,
        address=deployment_address(overview.name),
        union=estimate_cell_of(find_row(rows, "ber", "union", "full")),
        ir=ir,
        dni=dni,
        coverage=share_cell_of(find_row(rows, "coverage", None, None)),
        drift=drift_state(signals if is_probe else ()),
        peers=peer_verdicts([row for row in signals if row.origin == origin]),
        last_at=part.seen.last_at if part else None,
        planned=overview.progress.planned if is_probe else 0,
        answered=overview.progress.answered,
        coded=part.coded if part else 0,
        waiting=part.waiting if part else 0,
    )


def _section(origin: str, rows: Sequence[FleetRow], filters: Mapping[str, str]) -> dict[str, Any]:
    shown = [row for row in rows if row.origin == origin]
    sort = filters.get("sort", "union")
    shown = _sorted(shown, sort)
    top = scale_top([row.union.bounds.high for row in shown if row.union.bounds is not None])
    return {
        "origin": origin,
        "title": _SECTIONS[origin],
        "rows": shown,
        "bars": [_bar(row, top) for row in shown],
        "axis": interval_axis(0, top),
        "sorts": {name: _sort_link(name, sort, filters) for name in _ORDERS},
        "map": _map(shown),
    }


def _sorted(rows: Sequence[FleetRow], sort: str) -> list[FleetRow]:
    name = sort.removeprefix("-")
    order = _ORDERS[name]
    known = [row for row in rows if order(row) is not None]
    falling = (name in _RISING) == sort.startswith("-")
    return [*sorted(known, key=order, reverse=falling), *(row for row in rows if order(row) is None)]


def _bar(row: FleetRow, top: float) -> Any:
    if row.union.bounds is None:
        return ""
    return interval_bar(row.union.bounds, 0, top, f"{row.name}: {row.union.text}")


def _sort_link(name: str, sort: str, filters: Mapping[str, str]) -> dict[str, str]:
    """Return the address that sorts by a column, and how it is sorted now in the words of ``aria-sort``."""
    rising = name in _RISING
    if sort == name:
        return {"address": _with_sort(filters, f"-{name}"), "now": "ascending" if rising else "descending"}
    now = "" if sort != f"-{name}" else "descending" if rising else "ascending"
    return {"address": _with_sort(filters, name), "now": now}


def _with_sort(filters: Mapping[str, str], sort: str) -> str:
    return "/?" + urlencode({**filters, "sort": sort})


def _map(rows: Sequence[FleetRow]) -> Any:
    points = [
        Point(
            name=row.name,
            x=row.ir.bounds,
            y=row.dni.bounds,
            text=f"{row.name}{f' ({row.audit})' if row.audit else ''}: IR {row.ir.text}, DNI {row.dni.text}",
            address=row.address,
        )
        for row in rows
        if row.ir.bounds is not None and row.dni.bounds is not None and row.ir.bounds.value is not None
    ]
    return divergence_plane(points, "IR and DNI of each deployment, with 95 % intervals") if points else ""
