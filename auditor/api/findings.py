"""Serve ``/api/findings``, ``/api/actions`` and ``/api/references``: what the monitoring finds, and what follows.

``finding_pages`` has the pages of the findings.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from aiohttp import web
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get, post
from auditor.api.requests import ApiError, known_filters, optional_day, optional_text, read_object, required_text
from auditor.api.session import acting_name
from auditor.documents.base import Day, Document, Timestamp
from auditor.documents.findings import FindingBody, FindingsBody, ReferenceEntry, ReferencesBody, RouteActionsBody
from auditor.domain.keys import KeyRole
from auditor.domain.moments import read_time
from auditor.errors import UsageError
from auditor.findings import (
    AcceptedReference,
    Person,
    accept_reference,
    accept_unasked,
    acknowledge,
    event_entry,
    finding_entry,
    reference_entries,
    reference_entry,
    silence,
)
from auditor.jobs.actions import action_entry
from auditor.store.actions import read_actions
from auditor.store.engine import transaction
from auditor.store.findings import FILTERS, Finding, read_events, read_finding, read_findings
from auditor.store.queue import ESTIMATE, ask_for

_ACTIONS: Final = ("acknowledge", "accept_reference", "silence", "end_silence")


class FindingActionRequest(Document):
    """What a person does with a finding."""

    action: str
    by: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    since: Day | UnsetType = UNSET
    release: str | UnsetType = UNSET
    until: Timestamp | UnsetType = UNSET


class ReferenceRequest(Document):
    """A reference that a person accepts."""

    deployment: str
    by: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    since: Day | UnsetType = UNSET
    release: str | UnsetType = UNSET


@get("/api/findings", "Findings of the monitoring", filters=dict.fromkeys(FILTERS, str))
async def _list(request: web.Request) -> FindingsBody:
    wanted = known_filters(request, FILTERS)
    async with transaction(request.app[ENGINE]) as connection:
        findings = await read_findings(connection, **wanted)
    return FindingsBody(findings=[finding_entry(finding) for finding in findings])


@get("/api/findings/{id}", "One finding with its events")
async def _show(request: web.Request) -> FindingBody:
    async with transaction(request.app[ENGINE]) as connection:
        return await _shown(connection, await need_finding(connection, request))


@post(
    "/api/findings/{id}",
    "Act on a finding: acknowledge it, or accept a new reference",
    takes=FindingActionRequest,
    role=KeyRole.REVIEWER,
)
async def _answer(request: web.Request) -> FindingBody:
    fields = await read_object(request, FindingActionRequest)
    action = FindingAction(
        name=read_action(fields.get("action")),
        person=acting_person(request, fields, "who takes this action"),
        accepted=AcceptedReference(since=optional_day(fields, "since"), release=optional_text(fields, "release")),
        until=_until(fields),
    )
    async with transaction(request.app[ENGINE]) as connection:
        await take_action(connection, request, action)
        return await _shown(connection, await need_finding(connection, request))


def acting_person(request: web.Request, fields: dict[str, Any], meaning: str) -> Person:
    """Return who acts, with a note; ``meaning`` is what an error says about a missing name.

    Raises
    ------
    ApiError
        400 or 403.
    """
    by = acting_name(request, optional_text(fields, "by"), "by")
    return Person(
        by=required_text({"by": by}, "by", meaning), note=optional_text(fields, "note"), now=request.app[CLOCK]()
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingAction:
    """What a person does with a finding."""

    name: str
    person: Person
    accepted: AcceptedReference
    until: datetime | None


def read_action(name: object) -> str:
    """Return the name of an action.

    Raises
    ------
    ApiError
        400: there is no such action.
    """
    if not isinstance(name, str) or name not in _ACTIONS:
        raise ApiError(400, f"action must be one of {', '.join(_ACTIONS)}.", "invalid_value", "action")
    return name


def _until(fields: dict[str, Any]) -> datetime | None:
    text = optional_text(fields, "until")
    try:
        return None if text is None else read_time(text)
    except ValueError:
        raise ApiError(400, "until must be a time such as 2026-03-20T12:00:00Z.", "invalid_value", "until") from None


async def take_action(connection: AsyncConnection, request: web.Request, action: FindingAction) -> None:
    """Take an action, and request new estimates.

    Raises
    ------
    ApiError
        400: a member belongs to another action, or is missing; 409: the finding does not allow it.
    """
    if action.name != "accept_reference" and action.accepted != AcceptedReference():
        message = "since and release are only allowed with the action accept_reference."
        raise ApiError(400, message, "invalid_value", "since")
    if (action.name == "silence") != (action.until is not None):
        raise ApiError(400, "until belongs to the action silence, which needs it.", "invalid_value", "until")
    finding, config = await need_finding(connection, request, changing=True), request.app[CONFIG]()
    try:
        if action.name == "acknowledge":
            await acknowledge(connection, config, finding, action.person)
        elif action.name == "accept_reference":
            await accept_reference(connection, config, finding, action.accepted, action.person)
        else:
            await silence(connection, finding, action.until, action.person)
    except UsageError as error:
        raise ApiError(409, f"{error}.", "finding_answered") from None
    await ask_for(connection, ESTIMATE, "estimate:asked")


async def need_finding(connection: AsyncConnection, request: web.Request, *, changing: bool = False) -> Finding:
    """Read the finding of the address; with ``changing`` it is locked.

    Raises
    ------
    ApiError
        404.
    """
    finding = await read_finding(connection, request.match_info["id"], changing=changing)
    if finding is None:
        raise ApiError(404, "No finding has this id.", "finding_not_found", "id")
    return finding


async def _shown(connection: AsyncConnection, finding: Finding) -> FindingBody:
    events = await read_events(connection, finding.id)
    return FindingBody(**asdict(finding_entry(finding)), events=[event_entry(event) for event in events])


@get("/api/actions", "What findings have done to routes")
async def _list_actions(request: web.Request) -> RouteActionsBody:
    async with transaction(request.app[ENGINE]) as connection:
        actions = await read_actions(connection)
    return RouteActionsBody(actions=[action_entry(action) for action in reversed(actions)])


@get("/api/references", "What deployments are compared with", filters={"deployment": str})
async def _list_references(request: web.Request) -> ReferencesBody:
    wanted = known_filters(request, ("deployment",))
    async with transaction(request.app[ENGINE]) as connection:
        entries = await reference_entries(connection, request.app[CONFIG](), wanted.get("deployment"))
    return ReferencesBody(references=entries)


@post(
    "/api/references",
    "Accept a deployment's behaviour from a day on as its reference",
    takes=ReferenceRequest,
    role=KeyRole.REVIEWER,
    statuses=(201,),
)
async def _accept_unasked(request: web.Request) -> ReferenceEntry:
    """Accept a reference, and request new estimates."""
    fields = await read_object(request, ReferenceRequest)
    deployment = required_text(fields, "deployment", "whose reference it is")
    person = acting_person(request, fields, "who accepts it")
    accepted = AcceptedReference(since=optional_day(fields, "since"), release=optional_text(fields, "release"))
    async with transaction(request.app[ENGINE]) as connection:
        try:
            reference = await accept_unasked(connection, request.app[CONFIG](), deployment, accepted, person)
        except UsageError as error:
            raise ApiError(409, f"{error}.", "reference_refused") from None
        await ask_for(connection, ESTIMATE, "estimate:asked")
    return reference_entry(reference, in_force=True)


OPERATIONS: Final = (_list, _show, _answer, _list_actions, _list_references, _accept_unasked)
