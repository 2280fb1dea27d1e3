"""Plans that ask until a rate is known, in the store: what they began with, and what their blocks say so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.plan_tables import plans

#: Union of both layers on the full base, as ``auditor.metrics.rates`` has it: every response that came counts.
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
    """Responses under one condition, and those of them that endorse on either layer."""

    events: int
    trials: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCount:
    """What one block of a deployment says under one condition."""

    block: int
    condition: str
    coded: int  #: of its calls
    events: int
    trials: int


async def read_settings(connection: AsyncConnection, plan_id: str) -> Mapping[str, Any] | None:
    """Read what a plan was made from; ``None`` where it is not stored."""
    query = select(plans.c.settings).where(plans.c.id == plan_id)
    found: Mapping[str, Any] | None = (await connection.execute(query)).scalar()
    return found


async def count_past(
    connection: AsyncConnection, coder: str, deployments: Iterable[str], since: datetime, until: datetime
) -> dict[str, PastCount]:
    """Count probes of the hours in [since, until), by condition."""
    given = {"coder": coder, "deployments": list(deployments), "since": since, "until": until}
    rows = await connection.execute(text(_PAST), given)
    return {row.condition: PastCount(events=row.events, trials=row.trials) for row in rows}


async def count_blocks(connection: AsyncConnection, coder: str, plan_id: str) -> dict[str, list[BlockCount]]:
    """Count what a plan's blocks say, by deployment; a plan's calls are as many as its budget allows."""
    found: dict[str, list[BlockCount]] = {}
    for row in await connection.execute(text(_BLOCKS), {"coder": coder, "plan_id": plan_id}):
        one = BlockCount(block=row.draw, condition=row.condition, coded=row.coded, events=row.events, trials=row.trials)
        found.setdefault(row.deployment, []).append(one)
    return found
