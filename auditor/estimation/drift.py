"""Read the state of drift monitoring as rows of estimates, and the reference windows that changes are measured from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from math import ceil, log
from typing import Any, Final, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.coders import Coder
from auditor.config import Config, format_duration
from auditor.domain.exchange import Origin
from auditor.estimation.changes import ReferenceWindow
from auditor.estimation.snapshots import ALL, Snapshot
from auditor.monitor.decision import Level
from auditor.monitor.drift import DAYS, STATEMENTS
from auditor.monitor.passes import PAGING, WATCHED
from auditor.store.estimates import EstimateRow
from auditor.store.monitor import DriftSummaryRow, read_summaries
from auditor.store.references import StoredReference, references_in_force
from auditor.store.tallies import freeze_window, read_windows

_METHODS: Final[Mapping[str, str]] = {DAYS: "conformal_sr"}
_METHOD: Final = "paired_e_sr"
#: Also shown over all deployments together; docs/monitoring.md states their guarantee.
_OF_FLEET: Final = (STATEMENTS, DAYS)
_DAY: Final = 86_400.0


def reference_days(config: Config) -> int:
    """Return the number of days whose passes make a reference."""
    return max(1, ceil(config.monitor.reference / _DAY))


async def drift_rows(
    connection: AsyncConnection, config: Config, coder: Coder, snapshot: Snapshot
) -> list[EstimateRow]:
    """Read the rows of all declared deployments that are monitored by one coder's codings."""
    references = await references_in_force(connection, coder.id, snapshot.as_of, content=False)
    stored = await read_summaries(connection, coder.id)
    rows: list[EstimateRow] = []
    for name in (deployment.name for deployment in config.deployments if deployment.name in references):
        template = EstimateRow(
            as_of=snapshot.as_of, deployment=name, origin=Origin.PROBE.value, rubric=coder.rubric, condition=ALL,
            window=format_duration(config.monitor.horizon), since=snapshot.as_of, coder=coder.id, metric="",
            method=_METHOD, seed=snapshot.seed,
        )  # fmt: skip
        current = [watch for watch in stored if watch.deployment == name and watch.reference_id == references[name].id]
        rows += _of_deployment(template, references[name], current, config)
    return [*rows, *_fleet(rows)]


def _of_deployment(
    template: EstimateRow, reference: StoredReference, watches: Sequence[DriftSummaryRow], config: Config
) -> Iterator[EstimateRow]:
    first = datetime(reference.since.year, reference.since.month, reference.since.day, tzinfo=UTC)
    yield replace(template, metric="reference_since_seconds", value=first.timestamp())
    if reference.until is None:
        days = reference_days(config)
        why = f"its reference has not got its {days} days since {reference.since.isoformat()} yet"
        for metric in WATCHED:
            yield replace(template, metric="drift_evidence", detail={"measure": metric}, missing=why)
        return
    began = reference.until + timedelta(days=1)
    monitored = replace(template, since=datetime(began.year, began.month, began.day, tzinfo=UTC))
    for watch in watches:
        yield from _of_series(replace(monitored, detail={"measure": watch.metric}), watch.summary)


def _of_series(template: EstimateRow, summary: Mapping[str, Any]) -> Iterator[EstimateRow]:
    if "missing" in summary:
        yield replace(template, metric="drift_evidence", missing=summary["missing"])
        return
    row = replace(template, n=summary["n_passes"], n_statements=summary["n_statements"])
    yield from _evidence(replace(row, detail={**row.detail, "shaken": summary["shaken"]}), summary["evidence"])
    if summary.get("refused"):  # absent in what an earlier version stored
        yield replace(row, metric="drift_alarm", missing=summary["refused"])
    for level in () if summary.get("refused") else get_args(Level):
        detail = {**row.detail, "level": level}
        yield replace(row, metric="drift_alarm", detail=detail, value=float(level == summary["level"]))
    yield replace(row, metric="minimal_detectable_shift", **summary["shift"])


def _evidence(template: EstimateRow, evidence: Mapping[str, float]) -> Iterator[EstimateRow]:
    if not evidence:
        yield replace(template, metric="drift_evidence", missing="no pass since its reference yet")
    for detector, value in sorted(evidence.items()):
        yield replace(
            template, metric="drift_evidence", detail={**template.detail, "detector": detector}, value=value,
            method=_METHODS.get(detector, _METHOD),
        )  # fmt: skip


def _fleet(rows: Sequence[EstimateRow]) -> Iterator[EstimateRow]:
    """Compute the highest evidence of all deployments, minus the logarithm of their number."""
    known = [row for row in rows if row.metric == "drift_evidence" and row.value is not None]
    watched = len({row.deployment for row in known})
    for metric in PAGING:
        for detector in _OF_FLEET:
            same_series = [
                row for row in known if (row.detail["measure"], row.detail["detector"]) == (metric, detector)
            ]
            if same_series:
                top = max(same_series, key=lambda row: row.value or 0.0)
                assert top.value is not None
                detail = {"measure": metric, "detector": detector, "deployments": watched}
                yield replace(
                    top, deployment=None, detail=detail, value=top.value - log(watched), n=0, n_statements=None
                )


async def reference_windows(
    connection: AsyncConnection, config: Config, coder: str, as_of: datetime
) -> dict[str, ReferenceWindow]:
    """Read the reference window of each declared deployment whose reference is complete; sum it up the first time."""
    stored = await references_in_force(connection, coder, as_of)
    bounds: dict[str, tuple[date, date]] = {}
    for name in (deployment.name for deployment in config.deployments if deployment.name in stored):
        reference = stored[name]
        if reference.until is not None:
            first = reference.until - timedelta(days=reference_days(config) - 1)
            bounds[name] = max(reference.since, first), reference.until
    windows = {name: f"reference {stored[name].id}" for name in bounds}
    for name, (since, until) in bounds.items():
        days = (_midnight(since), _midnight(until + timedelta(days=1)))
        await freeze_window(connection, coder, windows[name], name, *days)
    counted = await read_windows(connection, coder, windows.values())
    return {
        name: ReferenceWindow(
            since=since, until=until, rows=[row for row in counted[windows[name]] if row["origin"] == Origin.PROBE]
        )
        for name, (since, until) in bounds.items()
    }


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
