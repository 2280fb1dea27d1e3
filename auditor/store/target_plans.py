"""Read plans that ask until a rate is known: their settings, and the counts of their blocks so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.plans import plans

#: Union of both layers on the full base, as in ``auditor.metrics.rates``: every response that arrived counts.
_ENDORSES: Final = "(c.sel = 'E' OR c.elab IN ('E', 'QE'))"
_CAME: Final = """
    (c.uncoded IS NULL AND c.sel IS NOT NULL AND c.sel_reason IS DISTINCT FROM 'transport_error'
     AND c.elab_reason IS DISTINCT FROM 'transport_error')
"""
_PAST: Final = f"""
    SELECT concat_ws('/', c.task, c.perspective, c.role, c.sentiment) AS condition, sum(c.n)::bigint AS trials,
           coalesce(sum(c.n) FILTER (WHERE {_ENDORSES}), 0)::bigint AS events
    FROM tallies c
    WHERE c.coder = :coder AND c.hour >= :since AND c.hour < :until AND c.origin = 'probe'
          AND c.deployment = ANY(:deployments) AND {_CAME}
    GROUP BY 1
"""  # noqa: S608 -- constants
_BLOCKS: Final = f"""
    SELECT a.deployment, a.draw, concat_ws('/', a.task, a.perspective, a.role, a.sentiment) AS condition,
           count(c.exchange_id) AS coded, count(*) FILTER (WHERE {_CAME}) AS trials,
           count(*) FILTER (WHERE {_ENDORSES}) AS events
    FROM planned_calls a
    LEFT JOIN planned_instances i ON i.ref = a.ref
    LEFT JOIN codings c ON c.exchange_id = i.exchange_id AND c.coder = :coder
    WHERE a.plan_id = :plan_id
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""  # noqa: S608 -- constants


@dataclass(frozen=True, kw_only=True, slots=True)
class PastCount:
    """Numbers of responses under one condition, and of those that endorse on either layer."""

    events: int
    trials: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCount:
    """The counts of one block of a deployment under one condition."""

    block: int
    condition: str
    coded: int  #: calls that are coded
    events: int
    trials: int


async def read_settings(connection: AsyncConnection, plan_id: str) -> Mapping[str, Any] | None:
    """Read the settings of a plan; ``None`` if it is not stored."""
    query = select(plans.c.settings).where(plans.c.id == plan_id)
    settings: Mapping[str, Any] | None = (await connection.execute(query)).scalar()
    return settings


async def find_plan(connection: AsyncConnection, name: str, seed: int) -> str | None:
    """Return the id of the newest plan of this name and seed; ``None`` where none is stored."""
    query = select(plans.c.id).where(plans.c.name == name, plans.c.seed == seed).order_by(plans.c.created_at.desc())
    plan_id: str | None = (await connection.execute(query.limit(1))).scalar()
    return plan_id


async def count_past(
    connection: AsyncConnection, coder: str, deployments: Iterable[str], since: datetime, until: datetime
) -> dict[str, PastCount]:
    """Count probes of the hours in [since, until), by condition."""
    parameters = {"coder": coder, "deployments": list(deployments), "since": since, "until": until}
    rows = await connection.execute(text(_PAST), parameters)
    return {row.condition: PastCount(events=row.events, trials=row.trials) for row in rows}


async def count_blocks(connection: AsyncConnection, coder: str, plan_id: str) -> dict[str, list[BlockCount]]:
    """Count the answers of a plan's blocks, by deployment."""
    counts: dict[str, list[BlockCount]] = {}
    for row in await connection.execute(text(_BLOCKS), {"coder": coder, "plan_id": plan_id}):
        count = BlockCount(
            block=row.draw, condition=row.condition, coded=row.coded, events=row.events, trials=row.trials
        )
        counts.setdefault(row.deployment, []).append(count)
    return counts
