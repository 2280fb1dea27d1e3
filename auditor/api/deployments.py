"""Serve ``GET /api/deployments``: the state of each deployment, with its headline estimates, and what changed."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web
from msgspec import UNSET

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.estimates import estimate_json
from auditor.api.operations import get
from auditor.api.overview import DeploymentOverview, OriginOverview, by_deployment, read_overview, window_names
from auditor.api.requests import ApiError, known_filters
from auditor.api.signals import drift_state, peer_verdicts
from auditor.api.week import changes_of_week, week_window
from auditor.config import Config
from auditor.documents.base import Missing, or_unset
from auditor.documents.deployments import (
    DeploymentEntry,
    DeploymentsBody,
    DriftStateEntry,
    OriginEntry,
    PeerVerdictEntry,
)
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_signals


@get(
    "/api/deployments",
    "Each deployment: progress, headline estimates, what is missing and why",
    filters={"window": str},
)
async def _list(request: web.Request) -> DeploymentsBody:
    config, now = request.app[CONFIG](), request.app[CLOCK]()
    window = check_window(known_filters(request, ("window",)).get("window"), config)
    async with transaction(request.app[ENGINE]) as connection:
        overview = await read_overview(connection, config, now, window)
        signals = await read_signals(connection, week_window(config))
        week = await changes_of_week(connection, week_window(config), signals, now)
    known = by_deployment(signals)
    return DeploymentsBody(
        as_of=overview.as_of.isoformat() if overview.as_of else None,
        window=overview.window,
        deployments=[
            deployment_entry(deployment, known.get(deployment.name, ())) for deployment in overview.deployments
        ],
        week=week.as_entry(),
    )


OPERATIONS: Final = (_list,)


def check_window(window: str | None, config: Config) -> str:
    """Return the name of a window: ``window``, or the longest where it is None.

    Raises
    ------
    ApiError
        400: no such window is configured.
    """
    names = window_names(config)
    if window is not None and window not in names:
        raise ApiError(400, f"window must be one of {', '.join(names)}.", "invalid_value", "window")
    return window or names[0]


def deployment_entry(overview: DeploymentOverview, signals: Sequence[EstimateRow]) -> DeploymentEntry:
    """Return a deployment as the API shows it; ``signals`` are its rows about drift and peers."""
    declared = overview.deployment
    drift, peers = drift_state(signals), peer_verdicts(signals)
    return DeploymentEntry(
        name=overview.name,
        configured=declared is not None,
        model=or_unset(declared.model) if declared else UNSET,
        vendor=or_unset(declared.vendor) if declared else UNSET,
        weights=or_unset(declared.weights) if declared else UNSET,
        routes=overview.routes,
        planned=overview.progress.planned,
        answered=overview.progress.answered,
        origins={part.origin: _origin_entry(part) for part in overview.parts},
        estimates=[estimate_json(row) for row in overview.headlines],
        drift=DriftStateEntry(state=drift.text) if drift.text else Missing(missing=drift.reason),
        peers=PeerVerdictEntry(verdict=peers.text) if peers.text else Missing(missing=peers.reason),
        reasons=overview.reasons,
        next=overview.next_command,
    )


def _origin_entry(part: OriginOverview) -> OriginEntry:
    last = part.seen.last_at
    return OriginEntry(
        stored=part.seen.stored,
        complete=part.seen.complete,
        with_content=part.seen.with_content,
        coded=part.coded,
        uncoded=part.uncoded,
        waiting=part.waiting,
        last_at=last.isoformat() if last else None,
    )
