"""Find answers that a report may quote: those where the panel agrees and the layers differ, and those to a statement.

``auditor.quotations.choice`` chooses among these few.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.period import Period

#: Number of smallest stored answers to read of each stratum. The shortest may not be the smallest once compressed.
CANDIDATES: Final = 20
_PERIOD: Final = "c.exchange_id >= :low AND c.exchange_id < :high AND c.coded_at <= :as_of AND c.coder = :coder"


async def find_divergent(connection: AsyncConnection, coder: str, period: Period) -> list[Mapping[str, Any]]:
    """Find the smallest stored answers of each stratum: those with a unanimous panel and layers that differ.

    Returns
    -------
    list of mapping
        ``exchange_id, deployment, sel, elab, stratum, n``: n is the stratum's size, with or without stored answers.
        Strata are ``over`` (the selection endorses alone), ``under`` and ``qualified`` (the elaboration alone;
        qualified: QE).
    """
    query = f"""
        WITH unanimous AS (
            SELECT v.exchange_id FROM votes v
            WHERE v.exchange_id >= :low AND v.exchange_id < :high AND v.coder = :coder
            GROUP BY v.exchange_id HAVING count(DISTINCT v.label) = 1
        ), divergent AS (
            SELECT c.exchange_id, c.deployment, c.sel, c.elab,
                   CASE WHEN c.sel = 'E' THEN 'over' WHEN c.elab = 'E' THEN 'under' ELSE 'qualified' END AS stratum
            FROM codings c JOIN unanimous USING (exchange_id)
            WHERE {_PERIOD} AND c.origin = 'probe' AND c.sel <> 'Abstain' AND c.elab <> 'Abstain'
              AND (c.sel = 'E') <> (c.elab IN ('E', 'QE'))
        ), ranked AS (
            SELECT d.*, count(*) OVER stratum AS n, row_number() OVER (
                PARTITION BY d.deployment, d.stratum ORDER BY octet_length(t.response) NULLS LAST, d.exchange_id
            ) AS place
            FROM divergent d LEFT JOIN exchange_content t ON t.id = d.exchange_id AND t.id >= :low AND t.id < :high
            WINDOW stratum AS (PARTITION BY d.deployment, d.stratum)
        )
        SELECT exchange_id, deployment, sel, elab, stratum, n FROM ranked WHERE place <= :most ORDER BY 1
    """  # noqa: S608 -- a constant
    rows = await connection.execute(text(query), {**period.bounds, "coder": coder, "most": CANDIDATES})
    return [dict(row) for row in rows.mappings()]


async def find_answers(
    connection: AsyncConnection,
    coder: str,
    period: Period,
    cells: Collection[tuple[str, str]],
    free: Collection[str] = (),
) -> list[Mapping[str, Any]]:
    """Find the smallest stored answer of each task in some cells, each a (deployment, statement).

    The answer has a label of the selection, or of the elaboration if the task is ``free``.

    Returns
    -------
    list of mapping
        ``exchange_id, deployment, cluster, task, sel, elab``.
    """
    query = f"""
        SELECT DISTINCT ON (c.deployment, c.cluster, c.task)
               c.exchange_id, c.deployment, c.cluster, c.task, c.sel, c.elab
        FROM codings c
        JOIN unnest(CAST(:deployments AS text[]), CAST(:clusters AS text[])) AS a (deployment, cluster)
          ON a.deployment = c.deployment AND a.cluster = c.cluster
        LEFT JOIN exchange_content t ON t.id = c.exchange_id AND t.id >= :low AND t.id < :high
        WHERE {_PERIOD} AND c.origin = 'probe' AND c.uncoded IS NULL
          AND CASE WHEN c.task = ANY(:free) THEN c.elab ELSE c.sel END <> 'Abstain'
        ORDER BY c.deployment, c.cluster, c.task, octet_length(t.response) NULLS LAST, c.exchange_id
    """  # noqa: S608 -- a constant
    pairs = sorted(cells)
    parameters = {
        "deployments": [deployment for deployment, _ in pairs],
        "clusters": [cluster for _, cluster in pairs],
        "free": list(free),
    }
    rows = await connection.execute(text(query), {**period.bounds, "coder": coder, **parameters})
    return [dict(row) for row in rows.mappings()]


async def read_votes(
    connection: AsyncConnection, coder: str, ids: Collection[UUID]
) -> dict[UUID, list[tuple[str, str]]]:
    """Read the votes of a coder's judges on some exchanges: (judge, label), by judge."""
    query = text("SELECT * FROM votes WHERE coder = :coder AND exchange_id = ANY(:ids) ORDER BY judge")
    out: dict[UUID, list[tuple[str, str]]] = {}
    for row in await connection.execute(query, {"coder": coder, "ids": list(ids)}):
        out.setdefault(row.exchange_id, []).append((row.judge, row.label))
    return out
