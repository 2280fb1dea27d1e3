"""Read the exchanges of a route's trial with their codings, and store which arms were stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Boolean, Column, DateTime, Table, Text, func, select, text
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import floor_id
from auditor.store.engine import metadata
from auditor.trials.assignment import ARM_TAG, STOPPED, TRIAL_TAG, UNASSIGNED, UNTOUCHED_TAG

arm_stops = Table(
    "arm_stops",
    metadata,
    Column("trial", Text, primary_key=True),
    Column("arm", Text, primary_key=True),
    Column("dry_run", Boolean, primary_key=True),
    Column("route", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("by", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmStop:
    """An arm was stopped, or would have been in a dry run."""

    trial: str
    arm: str
    dry_run: bool
    route: str
    at: datetime
    by: str  #: ``rule``, or who it was
    because: str
    detail: Mapping[str, Any] = field(default_factory=dict)  #: evidence of the rule


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSpan:
    """The exchanges of a trial that are read: those that began in [since, until) and were coded up to ``as_of``."""

    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None

    @property
    def bounds(self) -> dict[str, Any]:
        """The parameters of queries."""
        return {
            "low": UUID(int=0) if self.since is None else floor_id(self.since),
            "high": UUID(int=(1 << 128) - 1) if self.until is None else floor_id(self.until),
            "as_of": self.as_of,
        }


#: Conditions on exchanges ``e`` and their codings ``c``. Both name the days that are read.
_JOINED: Final = """
    exchanges e JOIN codings c ON c.exchange_id = e.id
    WHERE e.id >= :low AND e.id < :high AND c.exchange_id >= :low AND c.exchange_id < :high AND c.coder = :coder
          AND (CAST(:as_of AS timestamptz) IS NULL OR c.coded_at <= :as_of)
"""
#: The first condition is that of the index.
_OF_TRIAL: Final = f"AND e.tags ? '{TRIAL_TAG}' AND e.tags ->> '{TRIAL_TAG}' = :trial"
_KEY: Final = ", ".join(
    f"c.{name}"
    for name in (
        *("deployment", "rubric", "claim", "category", "task", "perspective", "role", "sentiment", "cluster"),
        *("inclusion", "sel", "sel_reason", "elab", "elab_reason", "uncoded"),
    )
)
_ARM: Final = f"e.tags ->> '{ARM_TAG}' AS arm"
_COUNTED: Final = f"""
    SELECT {_ARM}, e.tags ->> '{UNTOUCHED_TAG}' AS untouched, {_KEY}, count(*) AS n,
           count(e.prompt_tokens) AS n_prompt, coalesce(sum(e.prompt_tokens), 0)::bigint AS prompt,
           count(e.completion_tokens) AS n_completion, coalesce(sum(e.completion_tokens), 0)::bigint AS completion
    FROM {_JOINED} {_OF_TRIAL} GROUP BY 1, 2, {_KEY}
"""  # noqa: S608 -- names of our own
_FOUND: Final = f"""
    SELECT DISTINCT e.tags ->> '{TRIAL_TAG}' AS trial, e.route FROM {_JOINED} AND e.tags ? '{TRIAL_TAG}' ORDER BY 2, 1
"""  # noqa: S608 -- names of our own
_UNITS: Final = f"""
    SELECT arm, sel, elab FROM (
        SELECT DISTINCT ON (c.cluster) e.id, {_ARM}, c.sel, c.elab FROM {_JOINED} {_OF_TRIAL}
               AND c.uncoded IS NULL AND e.tags ->> '{ARM_TAG}' <> '{UNASSIGNED}'
               AND (e.tags ->> '{UNTOUCHED_TAG}') IS DISTINCT FROM '{STOPPED}'
        ORDER BY c.cluster, e.id
    ) AS first_answers ORDER BY id
"""  # noqa: S608 -- names of our own


async def count_trial(
    connection: AsyncConnection, coder: str, trial: str, span: TrialSpan | None = None
) -> list[Mapping[str, Any]]:
    """Count the coded exchanges of a trial.

    Returns
    -------
    list of mapping
        ``arm``, ``untouched`` (why the body of a request of an arm was left as it is), the columns of codings that
        ``auditor.counting.stored.tallies_of`` needs, ``n``, and of those with token counts the number and the sum:
        ``n_prompt``, ``prompt``, ``n_completion`` and ``completion``.
    """
    parameters = {**(span or TrialSpan()).bounds, "coder": coder, "trial": trial}
    return [dict(row) for row in (await connection.execute(text(_COUNTED), parameters)).mappings()]


async def find_trials(connection: AsyncConnection, coder: str, span: TrialSpan) -> list[tuple[str, str]]:
    """Return the trials that the coder has read something of, each with its route."""
    rows = await connection.execute(text(_FOUND), {**span.bounds, "coder": coder})
    return [(row.trial, row.route) for row in rows]


async def read_first_answers(connection: AsyncConnection, coder: str, trial: str) -> list[tuple[str, str, str]]:
    """Return arm, selection and elaboration of the first coded answer to each unit, in the order of the answers."""
    rows = await connection.execute(text(_UNITS), {**TrialSpan().bounds, "coder": coder, "trial": trial})
    return [(row.arm, row.sel, row.elab) for row in rows]


async def read_stops(connection: AsyncConnection, trials: Sequence[str]) -> list[ArmStop]:
    """Read what was stopped in some trials, the oldest first."""
    query = select(arm_stops).where(arm_stops.c.trial.in_(trials)).order_by(arm_stops.c.at, arm_stops.c.arm)
    return [ArmStop(**row) for row in (await connection.execute(query)).mappings()]


async def newest_stop(connection: AsyncConnection, since: datetime, until: datetime) -> datetime | None:
    """Return when an arm was last stopped in a period."""
    query = select(func.max(arm_stops.c.at)).where(arm_stops.c.at >= since, arm_stops.c.at < until)
    newest: datetime | None = (await connection.execute(query)).scalar()
    return newest


async def add_stop(connection: AsyncConnection, stop: ArmStop) -> bool:
    """Store that an arm was stopped; return False if it was stopped already."""
    query = insert(arm_stops).values({**asdict(stop), "detail": dict(stop.detail)}).on_conflict_do_nothing()
    return (await connection.execute(query.returning(arm_stops.c.arm))).first() is not None
