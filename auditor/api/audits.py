"""Serve ``/api/audits``: plan audits, start, watch, stop, resume and compare them; ``audit_pages`` has the pages.

A started plan is sent by a job of the auditor (``auditor.jobs.console_runs``).
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.access import gateway_access, pinned_model
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.requests import ApiError, known_filters, optional_number, optional_text, read_object
from auditor.api.session import person_of, require_role
from auditor.coding.coders import open_coders
from auditor.config import Config, Deployment
from auditor.domain.keys import KeyRole
from auditor.domain.plan import REPLAY
from auditor.errors import UsageError
from auditor.estimation.plans import compare_plans, estimate_plan, headline_entries
from auditor.instrument.designs import FACTORS
from auditor.probes.choice import PlanChoice, choose_deployments, command, plan_choice
from auditor.probes.estimate import SHARE, estimate, estimate_fields, forecast
from auditor.probes.plan import Planned
from auditor.probes.run import usd_of
from auditor.store.console_runs import RunKind, ask_run, read_runs, stop_run
from auditor.store.engine import transaction
from auditor.store.overview import PlanProgress, PlanStatus, read_plans, read_status
from auditor.store.plan_rows import count_plan
from auditor.store.plans import read_answer_stats, read_spent

#: The fields of a plan, by form, JSON and address alike.
PLAN_FIELDS: Final = (
    *("design", "deployment", "draws", "seed", "number", "templates", "orders", "share", "budget_calls", "budget_usd"),
    *FACTORS,
)
_MOST_DRAWS: Final = 1000
#: Calls of an audit that are counted and estimated whenever it is opened; of more only where ``count=all`` asks for it.
MOST_COUNTED: Final = 20_000
COUNT_ALL: Final = "all"
_dumps: Final = partial(json.dumps, default=headline_entries)  #: writes groups as their headline measures


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [
        web.get("/api/audits", _list_json),
        web.get("/api/audits/plan", _plan_json),
        web.post("/api/audits", _start_json),
        web.get("/api/audits/{id}", _status_json),
        web.post("/api/audits/{id}/stop", _stop_json),
        web.post("/api/audits/{id}/resume", _resume_json),
        web.get("/api/audits/{id}/beside/{other}", _compare_json),
    ]


# -- what is read and done -------------------------------------------------------------------------------------------


def read_choice(given: Mapping[str, Any]) -> PlanChoice:
    """Read a plan from the fields of a form, an address or a JSON object.

    Raises
    ------
    ApiError
        400.
    """
    filled = {name: value for name, value in given.items() if value not in (None, "")}
    usual = PlanChoice()
    named = filled.get("deployment", ())
    listed = named.split(",") if isinstance(named, str) else named
    if not isinstance(listed, Sequence) or not all(isinstance(one, str) for one in listed):
        raise ApiError(400, "deployment must be a list of names.", "invalid_value", "deployment")
    levels = {factor: text for factor in FACTORS if (text := optional_text(filled, factor)) is not None}
    choice = PlanChoice(
        design=optional_text(filled, "design") or usual.design,
        deployments=tuple(name.strip() for name in listed if name.strip()),
        draws=_whole(filled, "draws", 1, _MOST_DRAWS) or 1,
        seed=optional_number(filled, "seed", whole=True),
        number=optional_number(filled, "number", whole=True) or 0,
        levels=levels,
        templates=_whole(filled, "templates", 1, _MOST_DRAWS),
        orders=optional_text(filled, "orders"),
        share=SHARE if (share := optional_number(filled, "share")) is None else share,
        budget_calls=optional_number(filled, "budget_calls", whole=True),
        budget_usd=optional_number(filled, "budget_usd"),
    )
    if not 0.001 <= choice.share <= 1:
        raise ApiError(400, "share must be from 0.001 to 1.", "invalid_value", "share")
    return choice


def _whole(given: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    number: int | None = optional_number(given, name, whole=True)
    if number is not None and not least <= number <= most:
        raise ApiError(400, f"{name} must be from {least} to {most}.", "invalid_value", name)
    return number


def _planned(config: Config, choice: PlanChoice) -> tuple[Planned, tuple[Deployment, ...]]:
    """Make the plan and find its deployments.

    Raises
    ------
    ApiError
        400.
    """
    try:
        return plan_choice(config, choice), choose_deployments(config, choice.deployments)
    except UsageError as error:
        field = str(error).partition(":")[0]
        raise ApiError(400, f"{error}.", "invalid_value", field if field.isidentifier() else None) from None


async def estimate_choice(request: web.Request, choice: PlanChoice) -> dict[str, Any]:
    """Return what a plan takes and what it can show, as JSON."""
    config = request.app[CONFIG]()
    async with transaction(request.app[ENGINE]) as connection:
        stats = await read_answer_stats(connection)
    planned, deployments = await asyncio.to_thread(_planned, config, choice)
    taken = await asyncio.to_thread(forecast, planned, stats)
    estimates = [estimate_fields(one) for one in estimate(planned, taken, deployments, choice.share)]
    prices = [one.get("usd") for one in estimates]
    total = {name: sum(one[name] for one in estimates) for name in ("calls", "prompt_tokens", "completion_tokens")}
    return {
        "plan": planned.plan.id,
        "design": planned.plan.design,
        "statements": len(planned.statements),
        "conditions": len(planned.cells),
        "deployments": estimates,
        "total": {**total, **({} if None in prices else {"usd": sum(price for price in prices if price is not None)})},
        "missing": _missing(config, deployments),
        "command": command("run", choice, config.file_argument),
    }


def _missing(config: Config, deployments: Sequence[Deployment]) -> list[str]:
    """Say in a sentence each what the auditor lacks to send a plan."""
    found = []
    try:
        gateway_access(config)
    except UsageError as error:
        found.append(f"The auditor does not reach a gateway: {error}.")
    for one in deployments:
        try:
            pinned_model(config, one)
        except UsageError as error:
            found.append(f"{error}.")
    return found


async def start_audit(request: web.Request, choice: PlanChoice) -> str:
    """Start a plan, and return its id.

    Raises
    ------
    ApiError
        400, or 409 with what is missing to send it.
    """
    config = request.app[CONFIG]()
    planned, deployments = await asyncio.to_thread(_planned, config, choice)
    missing = _missing(config, deployments)
    if missing:
        raise ApiError(409, " ".join(missing), "audit_not_possible")
    async with transaction(request.app[ENGINE]) as connection:
        person = person_of(request)
        now = request.app[CLOCK]()
        await ask_run(connection, RunKind.AUDIT, planned.plan.id, choice.to_json(), person.name, now)
    return planned.plan.id


async def stop_audit(request: web.Request) -> str:
    """Stop the audit of the address, and return its id.

    Raises
    ------
    ApiError
        409: the auditor does not send it.
    """
    plan_id = request.match_info["id"]
    async with transaction(request.app[ENGINE]) as connection:
        if not await stop_run(connection, RunKind.AUDIT, plan_id):
            message = "The auditor does not send this audit. Stop a command where it runs, with Ctrl-C."
            raise ApiError(409, message, "audit_not_running")
    return plan_id


async def resume_audit(request: web.Request) -> str:
    """Start the audit of the address again, and return its id.

    Raises
    ------
    ApiError
        409: it was not started in the console, or something is missing to send it.
    """
    async with transaction(request.app[ENGINE]) as connection:
        run = (await read_runs(connection, RunKind.AUDIT)).get(request.match_info["id"])
    if run is None:
        raise ApiError(409, "This audit was not started here. Resume it with the same command.", "audit_not_started")
    return await start_audit(request, PlanChoice.of_json(run.choice))


async def read_audits(request: web.Request) -> list[dict[str, Any]]:
    """Return all audits as JSON, the newest first; replays are none."""
    async with transaction(request.app[ENGINE]) as connection:
        runs = await read_runs(connection, RunKind.AUDIT)
        plans = [one for one in await read_plans(connection) if one.design != REPLAY]
    found: dict[str, dict[str, Any]] = {
        plan_id: {"plan": plan_id, "name": plan_id, "design": run.choice["design"], "deployments": []}
        for plan_id, run in reversed(runs.items())
        if run.is_open and plan_id not in {one.plan_id for one in plans}
    }
    for one in plans:
        entry = found.setdefault(
            one.plan_id,
            {
                "plan": one.plan_id,
                "name": one.name,
                "design": one.design,
                "created_at": one.created_at.isoformat(),
                "deployments": [],
            },
        )
        entry["deployments"].append({"deployment": one.deployment, "planned": one.planned, "answered": one.answered})
    for plan_id, entry in found.items():
        entry["planned"] = sum(one["planned"] for one in entry["deployments"])
        entry["answered"] = sum(one["answered"] for one in entry["deployments"])
        entry["run"] = run.to_json() if (run := runs.get(plan_id)) else None
    return list(found.values())


async def read_audit(request: web.Request) -> dict[str, Any]:
    """Return one plan with its progress, its cost and the group of each deployment.

    Of more than ``MOST_COUNTED`` calls only those numbers that are stored are read, unless ``count=all`` is given.

    Raises
    ------
    ApiError
        400 for a wrong filter, 404.
    """
    config, plan_id = request.app[CONFIG](), request.match_info["id"]
    count = known_filters(request, ("count",)).get("count")
    if count not in {None, COUNT_ALL}:
        raise ApiError(400, f"count must be {COUNT_ALL}.", "invalid_value", "count")
    async with transaction(request.app[ENGINE]) as connection:
        run = (await read_runs(connection, RunKind.AUDIT)).get(plan_id)
        progress = [one for one in await read_plans(connection, plan_id) if one.design != REPLAY]
    if run is None and not progress:
        raise ApiError(404, "No audit has this id.", "audit_not_found", "id")
    choice = None if run is None else PlanChoice.of_json(run.choice)
    planned = sum(one.planned for one in progress)
    is_counted = planned <= MOST_COUNTED or count == COUNT_ALL
    return {
        "plan": plan_id,
        "design": progress[0].design if progress else run.choice["design"] if run else None,
        "planned": planned,
        "is_counted": is_counted,
        "budget": {"calls": choice.budget_calls, "usd": choice.budget_usd} if choice else None,
        "run": run.to_json() if run else None,
        "command": command("run", choice, config.file_argument) if choice else None,
        **(await _count(request, config, plan_id) if is_counted else _stored_counts(progress)),
    }


async def _count(request: web.Request, config: Config, plan_id: str) -> dict[str, Any]:
    """Count and estimate the calls of a plan."""
    async with open_coders(config, asking=False) as coders:
        ids = [coder.id for coder in coders]
    async with transaction(request.app[ENGINE]) as connection:
        status = [one for one in await read_status(connection, plan_id) if one.design != REPLAY]
        spent = await read_spent(connection, plan_id)
        rows = await count_plan(connection, ids, plan_id)
    groups = await asyncio.to_thread(estimate_plan, rows, config.seed)
    declared = {one.name: one for one in config.deployments}
    return {
        "deployments": [_status_entry(one) for one in status],
        "spent": {
            name: {
                "calls": one.calls,
                "prompt_tokens": one.prompt_tokens,
                "completion_tokens": one.completion_tokens,
                **({"usd": usd_of(declared[name], one)} if name in declared and declared[name].price else {}),
            }
            for name, one in sorted(spent.items())
        },
        "estimates": dict(sorted(groups.items())),
    }


def _stored_counts(progress: Sequence[PlanProgress]) -> dict[str, Any]:
    """Return what is known of a plan's calls without counting them."""
    return {
        "deployments": [
            {
                "deployment": one.deployment,
                "planned": one.planned,
                "answered": one.answered,
                "remaining": one.planned - one.answered,
            }
            for one in progress
        ],
        "spent": {},
        "estimates": {},
    }


def _status_entry(one: PlanStatus) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("deployment", "planned", "answered", "failed", "remaining", "coded")}


async def compare_audits(request: web.Request) -> dict[str, Any]:
    """Compare two plans, with their groups, at each deployment that both asked; at two, if each asked one only."""
    config = request.app[CONFIG]()
    known_filters(request, ())
    async with open_coders(config, asking=False) as coders:
        ids = [coder.id for coder in coders]
    async with transaction(request.app[ENGINE]) as connection:
        first, second = [await _need_rows(connection, ids, request.match_info[name], name) for name in ("id", "other")]
    return await asyncio.to_thread(
        _compare, request.match_info["id"], request.match_info["other"], first, second, config
    )


async def _need_rows(
    connection: AsyncConnection, coders: Sequence[str], plan_id: str, name: str
) -> list[Mapping[str, Any]]:
    if not await read_plans(connection, plan_id):
        raise ApiError(404, "No audit has this id.", "audit_not_found", name)
    return await count_plan(connection, coders, plan_id)


def _compare(
    plan: str, other: str, first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], config: Config
) -> dict[str, Any]:
    own, beside = (sorted({row["deployment"] for row in rows}) for rows in (first, second))
    pairs = [(name, name) for name in own if name in beside]
    if not pairs and len(own) == len(beside) == 1:
        pairs = [(own[0], beside[0])]
    groups = [estimate_plan(rows, config.seed) for rows in (first, second)]
    return {
        "plan": plan,
        "other": other,
        "pairs": [
            {
                "deployment": name,
                "other_deployment": against,
                "estimates": groups[0].get(name),
                "other_estimates": groups[1].get(against),
                "ber_union_full_difference": compare_plans(first, second, name, against),
            }
            for name, against in pairs
        ],
    }


# -- JSON ------------------------------------------------------------------------------------------------------------


async def _list_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    return web.json_response({"audits": await read_audits(request)})


async def _plan_json(request: web.Request) -> web.Response:
    return web.json_response(await estimate_choice(request, read_choice(known_filters(request, PLAN_FIELDS))))


async def _start_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    return web.json_response(
        {"plan": await start_audit(request, read_choice(await read_object(request, PLAN_FIELDS)))}, status=202
    )


async def _status_json(request: web.Request) -> web.Response:
    return web.json_response(await read_audit(request), dumps=_dumps)


async def _stop_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    return web.json_response({"plan": await stop_audit(request)}, status=202)


async def _resume_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    return web.json_response({"plan": await resume_audit(request)}, status=202)


async def _compare_json(request: web.Request) -> web.Response:
    return web.json_response(await compare_audits(request), dumps=_dumps)
