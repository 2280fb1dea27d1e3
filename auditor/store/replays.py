"""Read the progress of stored replays; ``replay`` stores and sends them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.plan import REPLAY


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayProgress:
    """A replay with the numbers of its calls. Calls on client traffic are in the settings of the plan only."""

    id: str
    created_at: datetime
    settings: dict[str, Any]
    planned: int
    answered: int
    concluded_at: datetime | None  #: time when its answers were compared last
    measures: int  #: measures of groups whose exposure is known


_QUERY: Final = text("""
    SELECT p.id, p.created_at, p.settings,
           (coalesce(c.planned, 0) + jsonb_array_length(p.settings -> 'traffic'))::bigint AS planned,
           (coalesce(c.answered, 0) + (
               SELECT count(*) FROM jsonb_array_elements(p.settings -> 'traffic') AS t
               JOIN planned_instances i ON i.ref = t ->> 1
           ))::bigint AS answered,
           (SELECT max(e.concluded_at) FROM exposures e WHERE e.replay_id = p.id) AS concluded_at,
           (SELECT count(*) FROM exposures e WHERE e.replay_id = p.id) AS measures
    FROM plans p
    LEFT JOIN (
        SELECT plan_id, sum(planned) AS planned, sum(answered) AS answered FROM plan_counts GROUP BY plan_id
    ) c ON c.plan_id = p.id
    WHERE p.design = :design
    ORDER BY p.created_at DESC, p.id
""")


async def read_replays(connection: AsyncConnection) -> list[ReplayProgress]:
    """Read all replays, the newest first."""
    return [ReplayProgress(**row) for row in (await connection.execute(_QUERY, {"design": REPLAY})).mappings()]
