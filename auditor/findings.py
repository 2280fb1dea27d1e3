"""Open, answer and return the findings of drift monitoring, and the references of deployments.

A finding is opened when the level of a metric rises. Accepting a new reference answers all findings of a deployment;
nothing new is reported about it until that reference has its days.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

import orjson
from msgspec import UNSET, to_builtins
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.coders import open_coders
from auditor.config import Config
from auditor.documents.base import or_unset
from auditor.documents.findings import FindingEntry, FindingEventEntry, FindingWindowEntry, ReferenceEntry
from auditor.domain.estimate import Insufficient
from auditor.errors import UsageError
from auditor.monitor.drift import Change, DriftState, scaled_evidence
from auditor.store.findings import (
    ACKNOWLEDGED,
    ANSWERED,
    Delivery,
    Finding,
    FindingEvent,
    add_delivery,
    add_finding,
    change_state,
    read_unanswered,
    set_silence,
)
from auditor.store.monitor import ClosedDay
from auditor.store.references import StoredReference, add_reference, read_references, references_in_force

#: How far ahead a silence may end.
LONGEST_SILENCE: Final = timedelta(days=90)


@dataclass(frozen=True, kw_only=True, slots=True)
class DetectedChange:
    """A series that has reached a level for the first time since its reference."""

    reference: StoredReference
    metric: str
    level: str
    closed: ClosedDay
    window_since: date
    change: Change | Insufficient
    watch: DriftState


def finding_id(reference: StoredReference, metric: str, level: str) -> str:
    """Return the id of a finding. The same facts give the same id."""
    return f"finding_{_short_hash(reference.id, metric, level)}"


def reference_id(coder: str, deployment: str, since: date, accepted_at: str) -> str:
    """Return the id of a reference. The same facts give the same id."""
    return f"reference_{_short_hash(coder, deployment, since.isoformat(), accepted_at)}"


def _short_hash(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


async def open_finding(connection: AsyncConnection, config: Config, detected: DetectedChange) -> None:
    """Store a finding and its webhook delivery in one transaction."""
    reference, change = detected.reference, detected.change
    known = (
        {"value": None, "low": None, "high": None, "n": 0, "n_statements": 0}
        if isinstance(change, Insufficient)
        else {name: getattr(change, name) for name in Change.__dataclass_fields__}
    )
    finding = Finding(
        id=finding_id(reference, detected.metric, detected.level),
        coder=reference.coder,
        deployment=reference.deployment,
        metric=detected.metric,
        level=detected.level,
        reference_id=reference.id,
        day=detected.closed.day,
        first_seen=detected.closed.closed_at,
        evidence=_evidence(detected),
        window_since=detected.window_since,
        **known,
    )
    if await add_finding(connection, finding):
        await _post(connection, config, [finding], detected.closed.closed_at)


def _evidence(detected: DetectedChange) -> dict[str, Any]:
    watch, reference = detected.watch, detected.reference
    assert reference.until is not None  # it is fitted
    promise = watch.promise
    return {
        "detectors": dict(scaled_evidence(watch.highest, promise)),
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
    """The person who answers a finding or accepts a reference, with a note and the time."""

    by: str
    note: str | None
    now: datetime


async def acknowledge(connection: AsyncConnection, config: Config, finding: Finding, person: Person) -> Finding:
    """Record that somebody looks into a finding.

    Parameters
    ----------
    connection, config
        The finding was read with ``changing`` on this connection.
    finding, person
        The finding, and the person who acknowledges it.

    Raises
    ------
    UsageError
        It has been answered already.
    """
    need_unanswered(finding)
    event = FindingEvent(at=person.now, action=ACKNOWLEDGED, by=person.by, note=person.note)
    (changed,) = await _change(connection, config, [finding], event)
    return changed


async def silence(connection: AsyncConnection, finding: Finding, until: datetime | None, person: Person) -> None:
    """Let alerts and posts of a finding wait until a time; without a time, end its silence.

    Parameters
    ----------
    connection
        The finding was read with ``changing`` on it.
    finding, until, person
        The finding, when its silence ends, and who decides it.

    Raises
    ------
    UsageError
        It has been answered already, or is not silenced; the time is over, or more than ``LONGEST_SILENCE`` ahead.
    """
    need_unanswered(finding)
    if until is None and not finding.is_silenced(person.now):
        raise UsageError(f"{finding.id} is not silenced")
    if until is not None and not person.now < until <= person.now + LONGEST_SILENCE:
        raise UsageError(f"a silence must end in the future, within {LONGEST_SILENCE.days} days")
    action = "silence_ended" if until is None else "silenced"
    event = FindingEvent(at=person.now, action=action, by=person.by, note=person.note, until=until)
    await set_silence(connection, finding.id, event)


async def answer_with(connection: AsyncConnection, config: Config, reference: StoredReference, person: Person) -> None:
    """Answer all findings of a deployment with its new reference."""
    unanswered = await read_unanswered(connection, reference.coder, reference.deployment)
    event = FindingEvent(at=person.now, action=ANSWERED, by=person.by, note=person.note, reference_id=reference.id)
    if unanswered:
        await _change(connection, config, unanswered, event)


def need_unanswered(finding: Finding) -> None:
    """Check that a finding has not been answered.

    Raises
    ------
    UsageError
        It has been answered; the message names the person.
    """
    if finding.state == ANSWERED:
        raise UsageError(f"{finding.id} has been answered already, by {finding.by}")


async def _change(
    connection: AsyncConnection, config: Config, changing: Sequence[Finding], event: FindingEvent
) -> list[Finding]:
    await change_state(connection, [finding.id for finding in changing], event)
    changed = [replace(finding, state=event.action, by=event.by, note=event.note) for finding in changing]
    await _post(connection, config, changed, event.at)
    return changed


async def _post(connection: AsyncConnection, config: Config, findings: Sequence[Finding], at: datetime) -> None:
    if config.monitor.webhook is None:
        return
    for finding in findings:
        body = {"schema": "biasmeter.finding/1", "at": at.isoformat(), "finding": to_builtins(finding_entry(finding))}
        content = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        await add_delivery(
            connection, Delivery(finding_id=finding.id, state=finding.state, body=content, created_at=at)
        )


def finding_entry(finding: Finding) -> FindingEntry:
    """Return a finding as the API shows it, without unknown values."""
    return FindingEntry(
        id=finding.id,
        deployment=finding.deployment,
        metric=finding.metric,
        level=finding.level,
        state=finding.state,
        n=finding.n,
        n_statements=finding.n_statements,
        coder=finding.coder,
        value=or_unset(finding.value),
        low=or_unset(finding.low),
        high=or_unset(finding.high),
        note=or_unset(finding.note),
        by=or_unset(finding.by),
        silenced_until=UNSET if finding.silenced_until is None else finding.silenced_until.isoformat(),
        window=FindingWindowEntry(since=finding.window_since.isoformat(), until=finding.day.isoformat()),
        first_seen=finding.first_seen.isoformat(),
        reference=finding.reference_id,
        evidence=finding.evidence,
    )


def event_entry(event: FindingEvent) -> FindingEventEntry:
    """Return an event of a finding as the API shows it, without unknown values."""
    return FindingEventEntry(
        at=event.at.isoformat(),
        action=event.action,
        by=or_unset(event.by),
        note=or_unset(event.note),
        reference=or_unset(event.reference_id),
        until=UNSET if event.until is None else event.until.isoformat(),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptedReference:
    """The reference that a person accepts."""

    since: date | None = None  #: the first day; by default that of the finding, otherwise today
    release: str | None = None  #: a name for it


async def accept_reference(
    connection: AsyncConnection, config: Config, finding: Finding, accepted: AcceptedReference, person: Person
) -> StoredReference:
    """Answer a finding with a new reference.

    Parameters
    ----------
    connection, config
        The finding was read with ``changing`` on this connection.
    finding, accepted, person
        The finding, the accepted reference, and the person.

    Raises
    ------
    UsageError
        It has been answered already, or the day is in the future.
    """
    need_unanswered(finding)
    since = accepted.since or finding.day
    return await _begin(connection, config, (finding.coder, finding.deployment), since, accepted.release, person)


async def accept_unasked(
    connection: AsyncConnection, config: Config, deployment: str, accepted: AcceptedReference, person: Person
) -> StoredReference:
    """Begin a new reference of a deployment, with or without a finding.

    Raises
    ------
    UsageError
        The deployment is not monitored, or the day is in the future.
    """
    coder = await watching_coder(config)
    if deployment not in await references_in_force(connection, coder, person.now, content=False):
        raise UsageError(
            f"{deployment} is not monitored yet: its first reference begins with the first day on which it is probed"
        )
    since = accepted.since or person.now.date()
    return await _begin(connection, config, (coder, deployment), since, accepted.release, person)


async def watching_coder(config: Config) -> str:
    """Return the id of the coder of planned calls, whose codings are monitored."""
    async with open_coders(config, asking=False) as coders:
        return next(coder.id for coder in coders if coder.routes is None)


async def _begin(
    connection: AsyncConnection,
    config: Config,
    watched: tuple[str, str],
    since: date,
    release: str | None,
    person: Person,
) -> StoredReference:
    if since > person.now.date():
        raise UsageError(f"a reference cannot begin on {since.isoformat()}: that day is in the future")
    coder, deployment = watched
    reference = StoredReference(
        id=reference_id(coder, deployment, since, person.now.isoformat()), coder=coder, deployment=deployment,
        since=since, release=release, accepted_at=person.now, accepted_by=person.by, note=person.note,
    )  # fmt: skip
    await add_reference(connection, reference)
    await answer_with(connection, config, reference, person)
    return reference


async def reference_entries(
    connection: AsyncConnection, config: Config, deployment: str | None = None
) -> list[ReferenceEntry]:
    """Return the references of the configuration's coder as the API shows them, each deployment's newest first."""
    references = await read_references(connection, await watching_coder(config), deployment)
    return [
        reference_entry(reference, in_force=place == 0 or references[place - 1].deployment != reference.deployment)
        for place, reference in enumerate(references)
    ]


def reference_entry(reference: StoredReference, *, in_force: bool) -> ReferenceEntry:
    """Return a reference as the API shows it, without unknown values; ``until`` follows with its last day."""
    return ReferenceEntry(
        id=reference.id,
        deployment=reference.deployment,
        since=reference.since.isoformat(),
        accepted_at=reference.accepted_at.isoformat(),
        in_force=in_force,
        coder=reference.coder,
        by=or_unset(reference.accepted_by),
        note=or_unset(reference.note),
        release=or_unset(reference.release),
        until=UNSET if reference.until is None else reference.until.isoformat(),
    )
