"""Findings: opened by the watch, acknowledged by people or answered; what happens to one goes to the webhook.

The answer is a new reference: ``acceptance`` (neighbour module).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.domain.estimate import Insufficient
from auditor.errors import UsageError
from auditor.monitor.account import Change, on_one_scale
from auditor.monitor.watch import Watch
from auditor.store.deliveries import Delivery, add_delivery
from auditor.store.findings import (
    ACKNOWLEDGED,
    ANSWERED,
    Finding,
    FindingEvent,
    add_finding,
    change_state,
    read_unanswered,
)
from auditor.store.monitor import ClosedDay
from auditor.store.references import StoredReference


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A series that has reached a level for the first time since its reference."""

    reference: StoredReference
    metric: str
    level: str
    closed: ClosedDay
    window_since: date
    change: Change | Insufficient
    watch: Watch


def finding_id(reference: StoredReference, metric: str, level: str) -> str:
    """Name a finding by what it is about: the same facts replayed give the same name."""
    return f"finding_{_digest(reference.id, metric, level)}"


def reference_id(coder: str, deployment: str, since: date, accepted_at: str) -> str:
    """Name a reference by what it is, likewise."""
    return f"reference_{_digest(coder, deployment, since.isoformat(), accepted_at)}"


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


async def open_finding(connection: AsyncConnection, config: Config, found: Found) -> None:
    """Keep what was found and have it posted, in the watch's transaction."""
    reference, change = found.reference, found.change
    known = (
        {"value": None, "low": None, "high": None, "n": 0, "n_statements": 0}
        if isinstance(change, Insufficient)
        else {name: getattr(change, name) for name in Change.__dataclass_fields__}
    )
    finding = Finding(
        id=finding_id(reference, found.metric, found.level),
        coder=reference.coder,
        deployment=reference.deployment,
        metric=found.metric,
        level=found.level,
        reference_id=reference.id,
        day=found.closed.day,
        first_seen=found.closed.closed_at,
        evidence=_evidence(found),
        window_since=found.window_since,
        **known,
    )
    if await add_finding(connection, finding):
        await _post(connection, config, [finding], found.closed.closed_at)


def _evidence(found: Found) -> dict[str, Any]:
    watch, reference = found.watch, found.reference
    assert reference.until is not None  # it is fitted
    promise = watch.promise
    return {
        "detectors": dict(on_one_scale(watch.highest, promise)),
        "direction": "up" if watch.shift.side > 0 else "down",
        "n_passes": watch.n_passes,
        "promise": {"alpha": promise.alpha, "horizon": promise.horizon, "series": promise.series},
        "reference": {
            "n_passes": watch.reference.n_passes,
            "until": reference.until.isoformat(),
            "overdispersion": watch.reference.overdispersion,
            "shaken": watch.reference.shaken,
        },
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """Who says something to a finding or accepts a reference, with which words, and when."""

    by: str
    note: str | None
    now: datetime


async def acknowledge(connection: AsyncConnection, config: Config, finding: Finding, person: Person) -> Finding:
    """Say that somebody looks into a finding.

    Parameters
    ----------
    connection, config
        The finding was read with ``changing`` on this connection.
    finding, person
        What is acknowledged, and by whom.

    Raises
    ------
    UsageError
        It has been answered already.
    """
    need_unanswered(finding)
    event = FindingEvent(at=person.now, action=ACKNOWLEDGED, by=person.by, note=person.note)
    (changed,) = await _change(connection, config, [finding], event)
    return changed


async def answer_with(connection: AsyncConnection, config: Config, reference: StoredReference, person: Person) -> None:
    """Answer all that is found of a deployment with its new reference."""
    found = await read_unanswered(connection, reference.coder, reference.deployment)
    event = FindingEvent(at=person.now, action=ANSWERED, by=person.by, note=person.note, reference_id=reference.id)
    if found:
        await _change(connection, config, found, event)


def need_unanswered(finding: Finding) -> None:
    """Refuse what has been answered.

    Raises
    ------
    UsageError
        It has, and by whom.
    """
    if finding.state == ANSWERED:
        raise UsageError(f"{finding.id} has been answered already, by {finding.by}")


async def _change(
    connection: AsyncConnection, config: Config, changing: Sequence[Finding], event: FindingEvent
) -> list[Finding]:
    await change_state(connection, [one.id for one in changing], event)
    changed = [replace(one, state=event.action, by=event.by, note=event.note) for one in changing]
    await _post(connection, config, changed, event.at)
    return changed


async def _post(connection: AsyncConnection, config: Config, told: Sequence[Finding], at: datetime) -> None:
    if config.monitor.webhook is None:
        return
    for one in told:
        body = {"schema": "tiltmeter.finding/1", "at": at.isoformat(), "finding": finding_json(one)}
        content = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        await add_delivery(connection, Delivery(finding_id=one.id, state=one.state, body=content, created_at=at))


def finding_json(finding: Finding) -> dict[str, Any]:
    """Write a finding as the API and the webhook show it; what is unknown is absent."""
    known = {
        name: value for name in ("value", "low", "high", "note", "by") if (value := getattr(finding, name)) is not None
    }
    names = ("id", "deployment", "metric", "level", "state", "n", "n_statements", "coder")
    return {
        **{name: getattr(finding, name) for name in names},
        **known,
        "window": {"since": finding.window_since.isoformat(), "until": finding.day.isoformat()},
        "first_seen": finding.first_seen.isoformat(),
        "reference": finding.reference_id,
        "evidence": dict(finding.evidence),
    }


def event_json(event: FindingEvent) -> dict[str, Any]:
    """Write what happened to a finding; what is unknown is absent."""
    given = {"by": event.by, "note": event.note, "reference": event.reference_id}
    known = {name: value for name, value in given.items() if value is not None}
    return {"at": event.at.isoformat(), "action": event.action, **known}
