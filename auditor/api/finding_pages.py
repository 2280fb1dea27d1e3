"""Serve ``/findings``: the pages and the form of findings, with the actions that they have taken."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from math import log
from typing import Any, Final
from urllib.parse import quote, urlencode

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.findings import FindingAction, acting_person, need_finding, read_action, take_action
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, optional_day, optional_text
from auditor.api.session import person_of, read_form, require_role
from auditor.domain.keys import KeyRole
from auditor.findings import AcceptedReference
from auditor.report.wording import day_text, moment_text, percent, period_text, points_text
from auditor.store.actions import StoredAction, read_actions
from auditor.store.answers import CodedSelection, count_answers
from auditor.store.engine import transaction
from auditor.store.findings import FILTERS, Finding, FindingEvent, read_events, read_findings
from auditor.store.references import StoredReference, read_references

_STATES: Final = ("open", "acknowledged", "answered")
_LEVELS: Final = ("page", "investigate", "instrument")
#: Actions on the page, the newest.
_SHOWN_ACTIONS: Final = 20
_FORM: Final = ("action", "by", "note", "since", "release", "days")
#: The answers that each monitored measure counts, and those it is a share of, as ``CELLS`` names them.
_COUNTED: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "ber_union_full": ("answers that endorse on either layer", ("union",), ()),
    "ir": ("answers whose layers disagree", ("n10", "n01"), ("n11", "n10", "n01", "n00")),
    "dni": ("answers in which the selection alone endorses", ("n10",), ("n11", "n10", "n01", "n00")),
}
_NAMES: Final = {"ber_union_full": "Endorsement on either layer", "ir": "IR", "dni": "DNI"}
#: What a level means, and what it does not.
_MEANINGS: Final = {
    "page": "The deployment answers the same statements differently than in its reference, and a second detector "
    "confirms it. Somebody should look at it now.",
    "investigate": "The deployment probably answers differently than in its reference, but nothing confirms it yet. "
    "Look before you report it.",
    "instrument": "Days differ from earlier days, or the anchor changed too: judges, templates, the gateway or "
    "something else that deployments share may have changed. Check these before the deployment.",
}
_DETECTORS: Final = {
    "statements": "each statement against its own rate in the reference",
    "days": "each day against all days before it",
    "anchor": "the difference from a deployment that does not change",
    "instrument": "the anchor itself",
}


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [
        web.get("/findings", _list_page),
        web.get("/findings/{id}", _finding_page),
        web.post("/findings/{id}", _act),
    ]


async def _list_page(request: web.Request) -> web.Response:
    wanted = {name: value for name, value in known_filters(request, FILTERS).items() if value}
    now = request.app[CLOCK]()
    async with transaction(request.app[ENGINE]) as connection:
        found = await read_findings(connection, **wanted)
        actions = await read_actions(connection)
    config = request.app[CONFIG]()
    choices = {
        "deployment": sorted({one.name for one in config.deployments} | {one.deployment for one in found}),
        "metric": list(_NAMES),
        "level": list(_LEVELS),
        "state": list(_STATES),
    }
    return render_page(
        request,
        "findings.html.j2",
        findings=[finding_line(one, now) for one in found],
        shown=wanted,
        choices=choices,
        actions=[_action_line(one) for one in reversed(actions[-_SHOWN_ACTIONS:])],
        json="/api/findings" + (f"?{urlencode(wanted)}" if wanted else ""),
    )


def _action_line(action: StoredAction) -> dict[str, Any]:
    ended = f"ended {moment_text(action.ended_at)}: {action.ended_because}" if action.ended_at is not None else ""
    return {
        "finding": action.finding_id,
        "route": action.route,
        "deployment": action.deployment,
        "what": action.kind.replace("_", " ") + (" (dry run)" if action.dry_run else ""),
        "moved": f"{percent(action.share)} to {', '.join(action.to)}" if action.kind == "shift_weight" else "",
        "began": moment_text(action.began_at),
        "state": ended or f"in force until {moment_text(action.expires_at)}",
    }


def finding_line(finding: Finding, now: datetime) -> dict[str, Any]:
    """Return what a list says of a finding, as text."""
    return {
        "id": finding.id,
        "deployment": finding.deployment,
        "measure": _NAMES.get(finding.metric, finding.metric),
        "direction": "rose" if finding.evidence.get("direction") == "up" else "fell",
        "level": finding.level,
        "state": finding.state,
        "since": _day(finding.day),
        "change": _change(finding),
        "silenced": moment_text(finding.silenced_until) if finding.silenced_until and finding.is_silenced(now) else "",
    }


def _change(finding: Finding) -> str:
    """Write the change against the reference with its interval, in percentage points."""
    if finding.value is None or finding.low is None or finding.high is None:
        return ""
    return points_text(finding.value, finding.low, finding.high)


async def _finding_page(request: web.Request) -> web.Response:
    known_filters(request, ())
    now = request.app[CLOCK]()
    async with transaction(request.app[ENGINE]) as connection:
        finding = await need_finding(connection, request)
        events = await read_events(connection, finding.id)
        references = await read_references(connection, finding.coder, finding.deployment)
        reference = next((one for one in references if one.id == finding.reference_id), None)
        spans = [] if reference is None else await _spans(connection, finding, reference)
    evidence = finding.evidence
    return render_page(
        request,
        "finding.html.j2",
        finding=finding_line(finding, now),
        n=finding.n,
        n_statements=finding.n_statements,
        window=_days(finding.window_since, finding.day),
        meaning=_MEANINGS.get(finding.level, ""),
        spans=spans,
        detectors=[(name, value, _DETECTORS.get(name, "")) for name, value in evidence["detectors"].items()],
        limit=-log(evidence["promise"]["alpha"]),
        promise=evidence["promise"],
        passes=evidence["n_passes"],
        reference={
            **evidence["reference"],
            "until": _day(date.fromisoformat(evidence["reference"]["until"])),
            "release": reference.release if reference else None,
        },
        events=[_event_line(one) for one in events],
        can_act=person_of(request).role.includes(KeyRole.REVIEWER) and finding.state != "answered",
        named=person_of(request).key_id is None,
        silences=_SILENCES,
    )


#: Days for which the form silences.
_SILENCES: Final = (1, 3, 7, 14, 30)


def _event_line(event: FindingEvent) -> dict[str, str]:
    words = event.action.replace("_", " ")
    if event.until is not None:
        words += f" until {moment_text(event.until)}"
    if event.reference_id is not None:
        words += f" with {event.reference_id}"
    return {"at": moment_text(event.at), "what": words, "by": event.by or "monitoring", "note": event.note or ""}


async def _spans(connection: AsyncConnection, finding: Finding, reference: StoredReference) -> list[dict[str, Any]]:
    """Count the answers before and after, each with the address of their list."""
    if finding.metric not in _COUNTED:
        return []
    told, top, base = _COUNTED[finding.metric]
    until = reference.until or finding.window_since - timedelta(days=1)
    out = []
    for title, first, last in (("before", reference.since, until), ("after", finding.window_since, finding.day)):
        since, end = (datetime.combine(day, time(), UTC) for day in (first, last + timedelta(days=1)))
        equal = {"deployment": finding.deployment, "origin": "probe"}
        selection = CodedSelection(equal=equal, cells=top, since=since, until=end)
        counted = await count_answers(connection, [finding.coder], selection)
        of = await count_answers(connection, [finding.coder], replace(selection, cells=base))
        query = {**equal, "cell": ",".join(top), "from": since.isoformat(), "to": end.isoformat()}
        out.append(
            {
                "title": title,
                "days": _days(first, last),
                "counted": counted,
                "of": of,
                "share": percent(counted / of) if of else "",
                "told": told,
                "answers": "/answers?" + urlencode(query),
            }
        )
    return out


def _day(day: date) -> str:
    return day_text(datetime.combine(day, time(), UTC))


def _days(first: date, last: date) -> str:
    since, end = (datetime.combine(day, time(), UTC) for day in (first, last + timedelta(days=1)))
    return period_text(since, end)


async def _act(request: web.Request) -> web.Response:
    """Take the action of the form, and show the finding."""
    require_role(request, KeyRole.REVIEWER)
    given: dict[str, Any] = {name: value for name, value in (await read_form(request, _FORM)).items() if value.strip()}
    person = acting_person(request, {"by": person_of(request).name, **given}, "who acts")
    days = given.get("days")
    if days is not None and days not in {str(each) for each in _SILENCES}:
        raise ApiError(400, f"days must be one of {', '.join(map(str, _SILENCES))}.", "invalid_value", "days")
    name = read_action(given.get("action"))
    action = FindingAction(
        name=name,
        person=person,
        accepted=AcceptedReference(since=optional_day(given, "since"), release=optional_text(given, "release")),
        until=person.now + timedelta(days=int(days)) if days and name == "silence" else None,
    )
    async with transaction(request.app[ENGINE]) as connection:
        await take_action(connection, request, action)
    address = f"/findings/{quote(request.match_info['id'], safe='')}"
    return web.Response(status=303, headers={"location": address})
