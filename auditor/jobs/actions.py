"""Let findings act on routes as the configuration's policies say, repeatedly. The gateway applies what is stored."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import orjson
from msgspec import UNSET, to_builtins
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, Route
from auditor.documents.findings import RouteActionEntry
from auditor.domain.actions import effective_weights
from auditor.domain.estimate import Insufficient
from auditor.errors import AuditError
from auditor.findings import watching_coder
from auditor.monitor.drift import Change, change_since
from auditor.monitor.policy import Begin, ChangeState, End, FindingEvidence, Held, Renew, Step, decide
from auditor.monitor.references import Reference, references_of
from auditor.store.actions import (
    StoredAction,
    add_action,
    end_action,
    lock_deciding,
    read_actions,
    read_coverage,
    renew_action,
    watched_through,
)
from auditor.store.engine import transaction
from auditor.store.findings import Delivery, Finding, FindingEvent, add_delivery, add_events, read_all_unanswered
from auditor.store.monitor import count_passes
from auditor.store.references import references_in_force
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two decisions.
EVERY: Final = 10.0
_DAY: Final = timedelta(days=1)


async def repeat_acting(work: Work) -> None:
    """Decide and write down what findings do to routes, repeatedly, until cancelled. One process at a time does so."""
    complaint = ""
    while True:
        try:
            await act_once(work)
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("actions: %s", error)
            complaint = str(error)
        except Exception:
            # A failure here must not stop the coding of answers.
            log.exception("actions failed and are tried again")
        await asyncio.sleep(EVERY)


async def act_once(work: Work) -> list[Step]:
    """Decide once, write down what begins, is renewed and ends, and return it.

    Raises
    ------
    StoreUnavailable
        The store does not answer; nothing has changed.
    """
    now = work.clock()
    async with transaction(work.engine) as connection:
        if not await lock_deciding(connection):
            return []
        steps = await preview(connection, work.config, now)
        for step in steps:
            if not isinstance(step, Held):
                await _write(connection, work.config, step, now)
    for step in steps:
        if not isinstance(step, Held | Renew):
            log.warning("%s", step_line(work.config.routes, step))
    return steps


async def preview(connection: AsyncConnection, config: Config, now: datetime) -> list[Step]:
    """Return what would be done now, and what is not done and why."""
    routes = [route for route in config.routes if route.on_finding]
    actions = await read_actions(connection, now - _DAY)
    if not routes and all(action.ended_at is not None for action in actions):
        return []
    coder = await watching_coder(config)
    findings = await read_all_unanswered(connection, coder)
    actions = await read_actions(connection, now - _DAY, [finding.id for finding in findings])
    spans = sorted({policy.recovered_after for route in routes for policy in route.on_finding})
    concerned = {entry.name for route in routes for entry in route.deployments} | {
        action.deployment for action in actions
    }
    reader = _Reader(connection=connection, coder=coder, now=now, through=await watched_through(connection, coder))
    evidence = [await reader.evidence(finding, spans) for finding in findings if finding.deployment in concerned]
    return decide(config.routes, evidence, actions, now)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """Reads what the newest days say about findings."""

    connection: AsyncConnection
    coder: str
    now: datetime
    through: Mapping[tuple[str, str], date]

    async def evidence(self, finding: Finding, spans: Sequence[int]) -> FindingEvidence:
        """Return the evidence of a finding: that of the finding itself, or of the days after it."""
        day = max(finding.day, self.through.get((finding.deployment, finding.metric), finding.day))
        states: dict[int, ChangeState] = dict.fromkeys(spans, "present")
        first, n = finding.window_since, finding.n if finding.value is not None else 0
        if day > finding.day:
            for span in spans:
                first = max(finding.day + _DAY, day - (span - 1) * _DAY)
                change = await self._change(finding, first, day)
                states[span] = _state(finding, change, enough=(day - first).days + 1 >= span)
                n = 0 if isinstance(change, Insufficient) else change.n
        return FindingEvidence(
            finding_id=finding.id,
            deployment=finding.deployment,
            level=finding.level,
            silenced=finding.is_silenced(self.now),
            day=day,
            states=states,
            n=n,
            coverage=await read_coverage(self.connection, self.coder, finding.deployment, first, day),
        )

    async def _change(self, finding: Finding, first: date, last: date) -> Change | Insufficient:
        references = await references_in_force(self.connection, self.coder, self.now)
        reference = references.get(finding.deployment)
        if reference is None or reference.content is None or reference.id != finding.reference_id:
            return Insufficient(reason="the reference is another one")
        fitted = references_of(reference.content)
        fitted_reference = fitted.references[finding.metric]
        if not isinstance(fitted_reference, Reference):
            return fitted_reference
        rows = await count_passes(self.connection, self.coder, first, last, [finding.deployment])
        return change_since(fitted_reference, fitted.grid.read(rows, finding.metric), finding.metric)


def _state(finding: Finding, change: Change | Insufficient, *, enough: bool) -> ChangeState:
    if isinstance(change, Insufficient):
        return "unknown"
    shown = change.low > 0 if finding.evidence["direction"] == "up" else change.high < 0
    if shown:
        return "present"
    return "recovered" if enough else "unknown"


async def _write(connection: AsyncConnection, config: Config, step: Begin | Renew | End, now: datetime) -> None:
    action = step.action
    if isinstance(step, Begin):
        await add_action(connection, action)
        name = "action_began"
    elif isinstance(step, Renew):
        await renew_action(connection, action.id, action.evidence_day, action.expires_at)
        name = "action_renewed"
    else:
        await end_action(connection, action.id, now, step.because)
        name = "action_ended"
    until = None if isinstance(step, End) else action.expires_at
    event = FindingEvent(at=now, action=name, by="policy", note=step_line(config.routes, step), until=until)
    await add_events(connection, [action.finding_id], event)
    if config.monitor.webhook is not None and not isinstance(step, Renew):
        entry: dict[str, Any] = to_builtins(action_entry(action))
        if isinstance(step, End):
            entry |= {"ended": now.isoformat(), "because": step.because}
        body = {"schema": "biasmeter.action/1", "at": now.isoformat(), "event": name, "action": entry}
        content = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        delivery = Delivery(finding_id=action.finding_id, state=f"{name}:{action.id}", body=content, created_at=now)
        await add_delivery(connection, delivery)


def step_line(routes: Sequence[Route], step: Step) -> str:
    """Describe a step in one line: what, on which route, for which deployment, and why."""
    if isinstance(step, Held):
        return f"{step.finding_id}: {step.policy.action} on route {step.route} is held back: {step.because}"
    action = step.action
    dry = " (dry run)" if action.dry_run else ""
    what = f"{action.id}{dry}: {_what(routes, action)}"
    if isinstance(step, Begin):
        return f"{what} begins for {action.finding_id} ({action.level})"
    if isinstance(step, Renew):
        return f"{what} goes on: the change was there on {action.evidence_day}"
    return f"{what} ends: {step.because}"


def _what(routes: Sequence[Route], action: StoredAction) -> str:
    if action.kind == "stop_sampling":
        return f"stop sampling on route {action.route}"
    if action.kind == "notify":
        return f"notify about {action.deployment} on route {action.route}"
    peers = ", ".join(action.to)
    moved = f"move {100 * action.share:.1f} % of route {action.route} from {action.deployment} to {peers}"
    route = next((candidate for candidate in routes if candidate.model == action.route), None)
    if route is None:
        return moved
    weights = {entry.name: entry.weight for entry in route.deployments}
    after = effective_weights(weights, [action.on_route()])
    shown = ", ".join(f"{name} {weights[name]:g} -> {after[name]:.3g}" for name in weights)
    return f"{moved} (weights: {shown})"


def action_entry(action: StoredAction) -> RouteActionEntry:
    """Return an action as the API shows it, without unknown values."""
    moves = action.kind == "shift_weight"
    return RouteActionEntry(
        id=action.id,
        finding=action.finding_id,
        route=action.route,
        deployment=action.deployment,
        level=action.level,
        action=action.kind,
        to=action.to if moves else UNSET,
        share=action.share if moves else UNSET,
        dry_run=action.dry_run,
        began=action.began_at.isoformat(),
        evidence_day=action.evidence_day.isoformat(),
        expires=action.expires_at.isoformat(),
        ended=UNSET if action.ended_at is None else action.ended_at.isoformat(),
        because=UNSET if action.ended_at is None else action.ended_because,
    )
