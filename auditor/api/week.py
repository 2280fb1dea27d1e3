"""Collect what changed in the last seven days: findings, accepted references, and rates that moved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import UNSET
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.addresses import deployment_address
from auditor.api.cells import entry_of
from auditor.api.signals import MEASURES
from auditor.config import Config, format_duration
from auditor.documents.deployments import WeekChangeEntry, WeekChangesEntry
from auditor.report.wording import bounds_text, points
from auditor.store.estimates import EstimateRow
from auditor.store.findings import Finding, read_new_findings
from auditor.store.references import StoredReference, read_accepted

_WEEK: Final = timedelta(days=7)
#: Entries of each kind that are shown.
_MOST: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class WeekEntry:
    """One thing that changed."""

    kind: Literal["finding", "reference", "change"]
    at: datetime | None
    deployment: str
    text: str
    address: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Week:
    """What changed, the findings first."""

    entries: Sequence[WeekEntry]
    left_out: int  #: entries that are not shown
    window: str  #: over which rates are compared with the reference
    compared: int  #: deployments whose rate was compared
    moved: int  #: of these, those whose interval leaves 0 out

    def as_entry(self) -> WeekChangesEntry:
        """Return it as the API shows it."""
        return WeekChangesEntry(
            window=self.window,
            compared=self.compared,
            moved=self.moved,
            entries=[
                WeekChangeEntry(
                    kind=entry.kind,
                    at=UNSET if entry.at is None else entry.at.isoformat(),
                    deployment=entry.deployment,
                    text=entry.text,
                    page=entry.address,
                )
                for entry in self.entries
            ],
        )


def week_window(config: Config) -> str:
    """Return the name of the configured window that is nearest to a week."""
    return format_duration(min(config.monitor.windows, key=lambda span: abs(span - _WEEK.total_seconds())))


async def changes_of_week(
    connection: AsyncConnection, window: str, signals: Sequence[EstimateRow], now: datetime
) -> Week:
    """Collect what changed.

    Parameters
    ----------
    connection, now
        Connection to the store, and the time.
    window
        Window over which rates are compared with the reference.
    signals
        The rows of all deployments, as ``auditor.store.estimates.read_signals`` reads them.
    """
    since = now - _WEEK
    opened = [_of_finding(finding) for finding in await read_new_findings(connection, since)]
    accepted = [_of_reference(reference) for reference in await read_accepted(connection, since)]
    changes = [row for row in signals if row.metric == "change" and row.value is not None]
    moved = sorted(_moved(changes), key=lambda row: -abs(row.value or 0.0))
    groups = (opened, accepted, [_of_change(row) for row in moved])
    return Week(
        entries=[entry for group in groups for entry in group[:_MOST]],
        left_out=sum(max(0, len(group) - _MOST) for group in groups),
        window=window,
        compared=len(changes),
        moved=len(moved),
    )


def _moved(rows: Sequence[EstimateRow]) -> Iterator[EstimateRow]:
    for row in rows:
        if row.low is not None and row.high is not None and (row.low > 0 or row.high < 0):
            yield row


def _of_finding(finding: Finding) -> WeekEntry:
    measure = MEASURES.get(finding.metric, finding.metric)
    change = "" if finding.value is None else f", {points(finding.value)} against the reference"
    return WeekEntry(
        kind="finding",
        at=finding.first_seen,
        deployment=finding.deployment,
        text=f"{finding.level}: {measure}{change} ({finding.state})",
        address=f"/findings/{finding.id}",
    )


def _of_reference(reference: StoredReference) -> WeekEntry:
    release = f", release {reference.release}" if reference.release else ""
    by = f" by {reference.accepted_by}" if reference.accepted_by else ""
    return WeekEntry(
        kind="reference",
        at=reference.accepted_at,
        deployment=reference.deployment,
        text=f"a reference from {reference.since} on was accepted{by}{release}",
        address=deployment_address(reference.deployment),
    )


def _of_change(row: EstimateRow) -> WeekEntry:
    assert row.value is not None
    return WeekEntry(
        kind="change",
        at=None,
        deployment=row.deployment or "",
        text=f"either layer {points(row.value)} {bounds_text('dni', entry_of(row))} against its reference",
        address=f"{deployment_address(row.deployment or '')}#course",
    )
