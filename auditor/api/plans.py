"""Serve ``/api/audits/plan``: read what somebody plans to ask, and estimate it before anything is sent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from auditor.access import gateway_access, pinned_model
from auditor.api.context import CONFIG, ENGINE
from auditor.api.operations import get
from auditor.api.requests import ApiError, known_filters, optional_number, optional_text
from auditor.config import Config, Deployment
from auditor.documents.audits import PlanBody, PlanTotalEntry, Usd
from auditor.documents.base import Count, Document, one_of
from auditor.documents.codec import struct_fields
from auditor.errors import UsageError
from auditor.instrument.designs import FACTORS, Design
from auditor.probes.choice import PlanChoice, choose_deployments, command, plan_choice
from auditor.probes.forecast import SHARE, cost_entry, count_plan_tokens, forecast
from auditor.probes.plan import Planned
from auditor.store.engine import transaction
from auditor.store.plans import read_answer_stats

_MOST_DRAWS: Final = 1000
_Draws = Annotated[int, Meta(ge=1, le=_MOST_DRAWS)]
_Levels = Annotated[str, Meta(description="Separated by commas.")] | UnsetType


class PlanRequest(Document):
    """A plan that somebody asks for; its fields are those of ``PlanChoice``, with a field for each factor."""

    design: Annotated[str, one_of(Design)] | UnsetType = UNSET
    deployment: str | Sequence[str] | UnsetType = UNSET
    draws: _Draws | UnsetType = UNSET
    seed: Count | UnsetType = UNSET
    number: Count | UnsetType = UNSET
    templates: _Draws | UnsetType = UNSET
    orders: Literal["both", "one"] | UnsetType = UNSET
    share: Annotated[float, Meta(ge=0.001, le=1)] | UnsetType = UNSET
    budget_calls: Count | UnsetType = UNSET
    budget_usd: Usd | UnsetType = UNSET
    task: _Levels = UNSET
    perspective: _Levels = UNSET
    role: _Levels = UNSET
    sentiment: _Levels = UNSET


#: The fields of a plan in an address, where the names of deployments are separated by commas.
PLAN_FILTERS: Final[Mapping[str, Any]] = {
    **{name: kind for name, (kind, _) in struct_fields(PlanRequest).items()},
    "deployment": str,
}
assert set(FACTORS) <= set(PLAN_FILTERS)


def read_choice(fields: Mapping[str, Any]) -> PlanChoice:
    """Read a plan from the fields of a form, an address or a JSON object.

    Raises
    ------
    ApiError
        400.
    """
    filled = {name: value for name, value in fields.items() if value not in (None, "")}
    default = PlanChoice()
    named = filled.get("deployment", ())
    listed = named.split(",") if isinstance(named, str) else named
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise ApiError(400, "deployment must be a list of names.", "invalid_value", "deployment")
    levels = {factor: text for factor in FACTORS if (text := optional_text(filled, factor)) is not None}
    choice = PlanChoice(
        design=optional_text(filled, "design") or default.design,
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


def _whole(fields: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    number: int | None = optional_number(fields, name, whole=True)
    if number is not None and not least <= number <= most:
        raise ApiError(400, f"{name} must be from {least} to {most}.", "invalid_value", name)
    return number


def make_plan(config: Config, choice: PlanChoice) -> tuple[Planned, tuple[Deployment, ...]]:
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


async def estimate_choice(request: web.Request, choice: PlanChoice) -> PlanBody:
    """Return what a plan takes and what it can show."""
    config = request.app[CONFIG]()
    async with transaction(request.app[ENGINE]) as connection:
        stats = await read_answer_stats(connection)
    planned, deployments = await asyncio.to_thread(make_plan, config, choice)
    tokens = await asyncio.to_thread(count_plan_tokens, planned, stats)
    costs = [cost_entry(entry) for entry in forecast(planned, tokens, deployments, choice.share)]
    prices = [cost.usd for cost in costs if cost.usd is not UNSET]
    return PlanBody(
        plan=planned.plan.id,
        design=planned.plan.design,
        statements=len(planned.statements),
        conditions=len(planned.cells),
        deployments=costs,
        total=PlanTotalEntry(
            calls=sum(cost.calls for cost in costs),
            prompt_tokens=sum(cost.prompt_tokens for cost in costs),
            completion_tokens=sum(cost.completion_tokens for cost in costs),
            usd=sum(prices) if len(prices) == len(costs) else UNSET,
        ),
        missing=what_is_missing(config, deployments),
        command=command("run", choice, config.file_argument),
    )


def what_is_missing(config: Config, deployments: Sequence[Deployment]) -> list[str]:
    """Return a sentence for each thing that the auditor lacks to send a plan."""
    sentences = []
    try:
        gateway_access(config)
    except UsageError as error:
        sentences.append(f"The auditor does not reach a gateway: {error}.")
    for deployment in deployments:
        try:
            pinned_model(config, deployment)
        except UsageError as error:
            sentences.append(f"{error}.")
    return sentences


@get("/api/audits/plan", "Estimate a plan: calls, tokens, cost, detectable shift; sends nothing", filters=PLAN_FILTERS)
async def _plan(request: web.Request) -> PlanBody:
    return await estimate_choice(request, read_choice(known_filters(request, PLAN_FILTERS)))


OPERATIONS: Final = (_plan,)
