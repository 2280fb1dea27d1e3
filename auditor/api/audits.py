"""Serve ``/api/audits``: start, watch, stop, resume and compare audits; ``audit_pages`` has the pages.

A started plan is sent by a job of the auditor (``auditor.jobs.console_runs``).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from aiohttp import web
from msgspec import UNSET, convert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get, post
from auditor.api.plans import PlanRequest, make_plan, read_choice, what_is_missing
from auditor.api.requests import ApiError, known_filters, read_object
from auditor.api.session import person_of
from auditor.coding.coders import open_coders
from auditor.config import Config, Deployment
from auditor.documents.audits import (
    AuditBody,
    AuditEntry,
    AuditPairEntry,
    AuditPairsBody,
    AuditsBody,
    BudgetEntry,
    PlanCallsEntry,
    PlanHeadlinesEntry,
    PlanProgressEntry,
    PlanSpentEntry,
    RunEntry,
    StartedPlanBody,
)
from auditor.documents.base import one_of
from auditor.domain.keys import KeyRole
from auditor.domain.plan import REPLAY
from auditor.estimation.plans import compare_plans, estimate_plan, headlines_entry
from auditor.probes.choice import PlanChoice, command
from auditor.probes.run import usd_of
from auditor.store.console_runs import ConsoleRun, RunKind, ask_run, read_runs, stop_run
from auditor.store.engine import transaction
from auditor.store.overview import PlanProgress, read_plans, read_status
from auditor.store.plan_rows import count_plan
from auditor.store.plans import Spent, read_spent

#: Calls of an audit that are counted and estimated whenever it is opened; of more only where ``count=all`` asks for it.
MOST_COUNTED: Final = 20_000
_COUNT_ALL: Final = "all"


async def start_audit(request: web.Request, choice: PlanChoice) -> str:
    """Start a plan, and return its id.

    Raises
    ------
    ApiError
        400, or 409 with what is missing to send it.
    """
    config = request.app[CONFIG]()
    planned, deployments = await asyncio.to_thread(make_plan, config, choice)
    missing = what_is_missing(config, deployments)
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


async def read_audits(request: web.Request) -> list[AuditEntry]:
    """Return all audits, the newest first; replays are none."""
    async with transaction(request.app[ENGINE]) as connection:
        runs = await read_runs(connection, RunKind.AUDIT)
        plans = [plan for plan in await read_plans(connection) if plan.design != REPLAY]
    by_plan: dict[str, list[PlanProgress]] = {}
    for plan in plans:
        by_plan.setdefault(plan.plan_id, []).append(plan)
    waiting = [run for run in reversed(runs.values()) if run.is_open and run.id not in by_plan]
    return [_waiting_entry(run) for run in waiting] + [
        _audit_entry(parts, runs.get(plan_id)) for plan_id, parts in by_plan.items()
    ]


def _waiting_entry(run: ConsoleRun) -> AuditEntry:
    """Return an audit that has no calls yet."""
    return AuditEntry(
        plan=run.id, name=run.id, design=run.choice["design"], deployments=(), planned=0, answered=0,
        run=run_entry(run),
    )  # fmt: skip


def _audit_entry(parts: Sequence[PlanProgress], run: ConsoleRun | None) -> AuditEntry:
    """Return an audit; ``parts`` are its deployments."""
    return AuditEntry(
        plan=parts[0].plan_id,
        name=parts[0].name,
        design=parts[0].design,
        created_at=parts[0].created_at.isoformat(),
        deployments=[convert(part, PlanProgressEntry, from_attributes=True) for part in parts],
        planned=sum(part.planned for part in parts),
        answered=sum(part.answered for part in parts),
        run=run_entry(run) if run else None,
    )


def run_entry(run: ConsoleRun) -> RunEntry:
    """Return who started a run and how far it is, as the API and the pages show it."""
    return RunEntry(state=run.state, asked_by=run.asked_by, asked_at=run.asked_at.isoformat(), result=run.result)


async def read_audit(request: web.Request) -> AuditBody:
    """Return one plan with its progress, cost and estimates.

    Of more than ``MOST_COUNTED`` calls only those numbers that are stored are read, unless ``count=all`` is given.

    Raises
    ------
    ApiError
        400 for a wrong filter, 404.
    """
    config, plan_id = request.app[CONFIG](), request.match_info["id"]
    count = known_filters(request, ("count",)).get("count")
    if count not in {None, _COUNT_ALL}:
        raise ApiError(400, f"count must be {_COUNT_ALL}.", "invalid_value", "count")
    async with transaction(request.app[ENGINE]) as connection:
        run = (await read_runs(connection, RunKind.AUDIT)).get(plan_id)
        progress = [part for part in await read_plans(connection, plan_id) if part.design != REPLAY]
    if run is None and not progress:
        raise ApiError(404, "No audit has this id.", "audit_not_found", "id")
    choice = None if run is None else PlanChoice.of_json(run.choice)
    planned = sum(part.planned for part in progress)
    is_counted = planned <= MOST_COUNTED or count == _COUNT_ALL
    counts = await _count(request, config, plan_id) if is_counted else _stored_counts(progress)
    return AuditBody(
        plan=plan_id,
        design=progress[0].design if progress else run.choice["design"] if run else None,
        planned=planned,
        is_counted=is_counted,
        budget=BudgetEntry(calls=choice.budget_calls, usd=choice.budget_usd) if choice else None,
        run=run_entry(run) if run else None,
        command=command("run", choice, config.file_argument) if choice else None,
        deployments=counts.deployments,
        spent=counts.spent,
        estimates=counts.estimates,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _PlanCounts:
    """What is known of a plan's calls, by deployment."""

    deployments: Sequence[PlanCallsEntry]
    spent: Mapping[str, PlanSpentEntry] = field(default_factory=dict)
    estimates: Mapping[str, PlanHeadlinesEntry] = field(default_factory=dict)


async def _count(request: web.Request, config: Config, plan_id: str) -> _PlanCounts:
    """Count and estimate the calls of a plan."""
    async with open_coders(config, asking=False) as coders:
        ids = [coder.id for coder in coders]
    async with transaction(request.app[ENGINE]) as connection:
        status = [calls for calls in await read_status(connection, plan_id) if calls.design != REPLAY]
        spent = await read_spent(connection, plan_id)
        rows = await count_plan(connection, ids, plan_id)
    groups = await asyncio.to_thread(estimate_plan, rows, config.seed)
    declared = {deployment.name: deployment for deployment in config.deployments}
    return _PlanCounts(
        deployments=[convert(calls, PlanCallsEntry, from_attributes=True) for calls in status],
        spent={name: _spent_entry(used, declared.get(name)) for name, used in sorted(spent.items())},
        estimates={name: headlines_entry(group) for name, group in sorted(groups.items())},
    )


def _spent_entry(used: Spent, deployment: Deployment | None) -> PlanSpentEntry:
    return PlanSpentEntry(
        calls=used.calls,
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        usd=usd_of(deployment, used) if deployment is not None and deployment.price else UNSET,
    )


def _stored_counts(progress: Sequence[PlanProgress]) -> _PlanCounts:
    """Return what is known of a plan's calls without counting them."""
    return _PlanCounts(
        deployments=[
            PlanCallsEntry(
                deployment=part.deployment,
                planned=part.planned,
                answered=part.answered,
                remaining=part.planned - part.answered,
            )
            for part in progress
        ]
    )


async def compare_audits(request: web.Request) -> AuditPairsBody:
    """Compare two plans at each deployment that both asked; at two, if each asked one only."""
    config = request.app[CONFIG]()
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
) -> AuditPairsBody:
    names, other_names = (sorted({row["deployment"] for row in rows}) for rows in (first, second))
    pairs = [(name, name) for name in names if name in other_names]
    if not pairs and len(names) == len(other_names) == 1:
        pairs = [(names[0], other_names[0])]
    groups = [estimate_plan(rows, config.seed) for rows in (first, second)]
    return AuditPairsBody(
        plan=plan,
        other=other,
        pairs=[
            AuditPairEntry(
                deployment=name,
                other_deployment=against,
                estimates=headlines_entry(groups[0][name]) if name in groups[0] else None,
                other_estimates=headlines_entry(groups[1][against]) if against in groups[1] else None,
                ber_union_full_difference=compare_plans(first, second, name, against),
            )
            for name, against in pairs
        ],
    )


# -- operations ------------------------------------------------------------------------------------------------------


@get("/api/audits", "All audits with their progress")
async def _list(request: web.Request) -> AuditsBody:
    return AuditsBody(audits=await read_audits(request))


@post("/api/audits", "Start an audit", takes=PlanRequest, role=KeyRole.ADMIN, statuses=(202,))
async def _start(request: web.Request) -> StartedPlanBody:
    return StartedPlanBody(plan=await start_audit(request, read_choice(await read_object(request, PlanRequest))))


@get(
    "/api/audits/{id}",
    "One audit: progress, cost, budget, and estimates of its answers alone; of a large one with count=all",
    filters={"count": Annotated[str, one_of([_COUNT_ALL])]},
)
async def _show(request: web.Request) -> AuditBody:
    return await read_audit(request)


@post("/api/audits/{id}/stop", "Stop an audit after the calls under way", role=KeyRole.ADMIN, statuses=(202,))
async def _stop(request: web.Request) -> StartedPlanBody:
    return StartedPlanBody(plan=await stop_audit(request))


@post("/api/audits/{id}/resume", "Send the calls without an answer", role=KeyRole.ADMIN, statuses=(202,))
async def _resume(request: web.Request) -> StartedPlanBody:
    return StartedPlanBody(plan=await resume_audit(request))


@get("/api/audits/{id}/beside/{other}", "Two audits compared on the statements that both asked")
async def _compare_two(request: web.Request) -> AuditPairsBody:
    return await compare_audits(request)


OPERATIONS: Final = (_list, _start, _show, _stop, _resume, _compare_two)
