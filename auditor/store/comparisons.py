"""Store the newest comparison of each domain of peers: its document, and a digest of its inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    Column,
    DateTime,
    Select,
    Table,
    Text,
    cast,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.documents.codec import convert, json_object
from auditor.documents.peers import StoredPeersDocument
from auditor.store.engine import metadata
from auditor.store.peer_scores import peer_scores, peer_vectors

peer_comparisons = Table(
    "peer_comparisons",
    metadata,
    Column("domain", Text, primary_key=True),
    Column("as_of", DateTime(timezone=True), nullable=False),
    Column("inputs", Text, nullable=False),
    Column("document", JSONB, nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredComparison:
    """One domain's comparison. A route's mirrored prompts count as a domain."""

    domain: str
    as_of: datetime
    inputs: str  #: digest of everything that the document was made from
    document: StoredPeersDocument


async def inputs_digest(
    connection: AsyncConnection, answers: Sequence[Select[Any]], scorers: Sequence[str], settings: str
) -> str:
    """Return a digest of the answers that some queries select, of their scores by these scorers, and of the settings.

    Scores are never changed or removed, so their number identifies them.
    """
    parts = [settings, *scorers]
    for selection in answers:
        every = selection.subquery()
        ids = cast(every.c.exchange_id, Text)
        scored = [
            select(func.count())
            .select_from(table)
            .where(table.c.scorer.in_(scorers), table.c.exchange_id.in_(select(every.c.exchange_id)))
            .scalar_subquery()
            for table in (peer_vectors, peer_scores)
        ]
        query = select(func.count(), func.min(ids), func.max(ids), *scored).select_from(every)
        parts += map(str, (await connection.execute(query)).one())
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


async def read_inputs(connection: AsyncConnection, domain: str) -> str | None:
    """Read the digest of what a domain's newest comparison was made from; None: it was never compared."""
    query = select(peer_comparisons.c.inputs).where(peer_comparisons.c.domain == domain)
    inputs: str | None = (await connection.execute(query)).scalar()
    return inputs


async def read_comparison(connection: AsyncConnection, domain: str) -> StoredComparison | None:
    """Read a domain's newest comparison.

    Raises
    ------
    InputError
        What is stored is no such document.
    """
    query = select(peer_comparisons).where(peer_comparisons.c.domain == domain)
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        return None
    document = convert(row["document"], StoredPeersDocument, f"the comparison of {domain}")
    return StoredComparison(**{**row, "document": document})


async def write_comparison(connection: AsyncConnection, comparison: StoredComparison) -> None:
    """Replace a domain's older comparison; a newer one is kept."""
    row = {
        "domain": comparison.domain,
        "as_of": comparison.as_of,
        "inputs": comparison.inputs,
        "document": json_object(comparison.document),
    }
    new = insert(peer_comparisons).values(row)
    changed = {name: new.excluded[name] for name in ("as_of", "inputs", "document")}
    await connection.execute(
        new.on_conflict_do_update(
            index_elements=["domain"], set_=changed, where=peer_comparisons.c.as_of <= new.excluded.as_of
        )
    )
