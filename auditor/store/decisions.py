"""Read the decisions that answers to clients contain: the label of the selection, with the tags of the request."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import ABSTAIN
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id
from auditor.store.codings import codings
from auditor.store.exchanges import exchanges


async def read_decisions(
    connection: AsyncConnection,
    coders: Collection[str],
    audit: str,
    fields: Sequence[str],
    favourable: str,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[dict[str, Any]]:
    """Read one row for each coded answer of an audit.

    Parameters
    ----------
    coders
        Coders of the configuration.
    fields
        Names of tags.
    favourable
        The label of the selection that is the favourable decision.
    since, until
        Exchanges that began in [since, until).

    Returns
    -------
    list of dict
        ``exchange``, ``decision`` (yes, no, or absent without a label), ``cluster``, ``inclusion`` and the tags.
    """
    query = (
        select(codings.c.exchange_id, codings.c.sel, codings.c.cluster, codings.c.inclusion, exchanges.c.tags)
        .join(exchanges, exchanges.c.id == codings.c.exchange_id)
        .where(codings.c.audit == audit, codings.c.origin == Origin.CLIENT, codings.c.coder.in_(sorted(coders)))
        .order_by(codings.c.exchange_id)
    )
    for column in (codings.c.exchange_id, exchanges.c.id):  # so that both tables read only their days
        if since is not None:
            query = query.where(column >= floor_id(since))
        if until is not None:
            query = query.where(column < floor_id(until))
    rows = []
    for row in await connection.execute(query):
        tags = row.tags or {}
        decided = {} if row.sel in {None, ABSTAIN} else {"decision": "yes" if row.sel == favourable else "no"}
        fields_of_tags = {name: tags[name] for name in fields if name in tags}
        facts = {"exchange": row.exchange_id, "cluster": row.cluster, "inclusion": row.inclusion}
        rows.append({**decided, **fields_of_tags, **facts})
    return rows
