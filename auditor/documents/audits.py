"""Define what the API shows of audits and replays: plans, their progress and cost, and their estimates."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Missing, Share, Timestamp
from auditor.documents.estimates import EstimateEntry

#: In USD; absent where a deployment declares no price.
Usd = Annotated[float, Meta(ge=0)]


class RunEntry(Document):
    """Who started a run in the console, and how far it is."""

    state: str
    asked_by: str
    asked_at: Timestamp
    result: Annotated[Mapping[str, Any], Meta(description="Of its end; under error why it could not be run.")]


class PlanProgressEntry(Document):
    """The calls of a plan to one deployment."""

    deployment: str
    planned: Count
    answered: Count


class AuditEntry(Document):
    """What a list shows of an audit."""

    plan: str
    name: str
    design: str
    created_at: Timestamp | UnsetType = UNSET
    deployments: Sequence[PlanProgressEntry]
    planned: Count
    answered: Count
    run: Annotated[RunEntry | None, Meta(description="null: it was not started in the console.")]


class AuditsBody(Document):
    """All audits, the newest first."""

    audits: Sequence[AuditEntry]


class PlanCostEntry(Document):
    """What a plan takes of one deployment, and what it can show."""

    deployment: str
    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    seconds: float
    in_flight: Count
    observed: Annotated[Share, Meta(description="Of the calls whose answers are estimated from earlier ones.")]
    usd: Usd | UnsetType = UNSET
    smallest_shift: (
        Annotated[float, Meta(description="The smallest detectable change of the rate between two passes.")] | UnsetType
    ) = UNSET
    smallest_shift_condition: (
        Annotated[float, Meta(description="The same for the condition with the fewest answers.")] | UnsetType
    ) = UNSET
    half_width: Annotated[float, Meta(description="Of the interval of one pass.")] | UnsetType = UNSET
    unknown: Annotated[Mapping[str, str], Meta(description="Why a value is absent.")]


class PlanTotalEntry(Document):
    """What a plan takes of all its deployments."""

    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    usd: Usd | UnsetType = UNSET


class PlanBody(Document):
    """What a plan takes; nothing has been sent."""

    plan: str
    design: str
    statements: Count
    conditions: Count
    deployments: Sequence[PlanCostEntry]
    total: PlanTotalEntry
    missing: Annotated[Sequence[str], Meta(description="What the auditor lacks to send it, a sentence each.")]
    command: str


class StartedPlanBody(Document):
    """The id of a plan that was started or stopped."""

    plan: str


class BudgetEntry(Document):
    """Where a run stops; null: no limit."""

    calls: int | None
    usd: float | None


class PlanCallsEntry(PlanProgressEntry):
    """The calls of a plan to one deployment; of a large audit some are counted on request only."""

    failed: Count | UnsetType = UNSET
    remaining: Count
    coded: Count | UnsetType = UNSET


class PlanSpentEntry(Document):
    """What a plan has used at one deployment."""

    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    usd: Usd | UnsetType = UNSET


class PlanHeadlinesEntry(Document):
    """The headline measures of one deployment's answers to a plan."""

    n: Count
    n_eligible: Count
    n_statements: Count
    coverage: Share
    ber_union_full: EstimateEntry | Missing
    ir: EstimateEntry | Missing
    dni: EstimateEntry | Missing


class AuditBody(Document):
    """One audit: progress, cost, budget, and the estimates of its answers alone."""

    plan: str
    design: str | None
    planned: Count
    is_counted: bool
    budget: BudgetEntry | None
    run: RunEntry | None
    command: Annotated[str | None, Meta(description="null: it was not started in the console.")]
    deployments: Sequence[PlanCallsEntry]
    spent: Annotated[Mapping[str, PlanSpentEntry], Meta(description="By deployment.")]
    estimates: Annotated[Mapping[str, PlanHeadlinesEntry], Meta(description="By deployment.")]


class PlanDifferenceEntry(Document):
    """How much more often one plan's answers endorse on either layer than another's, in [-1, 1]."""

    value: float
    low: float
    high: float
    n_statements: Count
    method: str


class MissingPlanDifference(Document):
    """Two plans that are not compared, and why."""

    missing: str
    n_statements: Count


class AuditPairEntry(Document):
    """Two audits at a deployment, or at two."""

    deployment: str
    other_deployment: str
    estimates: PlanHeadlinesEntry | None
    other_estimates: PlanHeadlinesEntry | None
    ber_union_full_difference: PlanDifferenceEntry | MissingPlanDifference


class AuditPairsBody(Document):
    """Two audits compared on the statements that both asked."""

    plan: str
    other: str
    pairs: Sequence[AuditPairEntry]


class ReplayEntry(Document):
    """A replay with its progress, and the command that resumes it."""

    id: str
    select: str
    formats: Sequence[str]
    to: str | None
    created_at: Timestamp
    planned: Count
    answered: Count
    concluded_at: Timestamp | None
    measures: Count
    command: str


class ReplayRunEntry(RunEntry):
    """A replay that was planned or started in the console."""

    id: str
    select: str
    formats: str
    swap: Sequence[str]
    to: str | None
    name: str
    budget_calls: int | None
    budget_usd: float | None
    send: Annotated[bool, Meta(description="false: it is only estimated.")]
    command: str


class ReplaysBody(Document):
    """All replays, and those that were planned or started in the console."""

    replays: Sequence[ReplayEntry]
    runs: Sequence[ReplayRunEntry]


class StartedReplayBody(Document):
    """The id of a replay that was started or stopped."""

    run: str
