"""Store client keys and what they have spent."""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.keys import Key
from auditor.store.engine import metadata

client_keys = Table(
    "client_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("models", ARRAY(Text), nullable=False),
    Column("rights", ARRAY(Text), nullable=False),
    Column("rpm", Integer),
    Column("tpm", Integer),
    Column("budget", Double),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)


key_spending = Table(
    "key_spending",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("ledger", Uuid, primary_key=True),
    Column("nano_usd", BigInteger, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
)

key_shares = Table(
    "key_shares",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("ledger", Uuid, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("needs_requests", Boolean, nullable=False),
    Column("needs_tokens", Boolean, nullable=False),
    Column("renewed_at", DateTime(timezone=True), nullable=False),
)


async def add_key(connection: AsyncConnection, key: Key, created_at: datetime) -> None:
    """Store a new key."""
    await connection.execute(
        insert(client_keys).values(
            id=key.id,
            name=key.name,
            hash=key.hash,
            models=list(key.models),
            rights=sorted(key.rights),
            rpm=key.rpm,
            tpm=key.tpm,
            budget=key.budget,
            created_at=created_at,
            expires_at=key.expires_at,
        )
    )


async def list_keys(connection: AsyncConnection) -> list[tuple[Key, datetime]]:
    """Return all keys, also revoked ones, with their times of creation, oldest first."""
    rows = await connection.execute(select(client_keys).order_by(client_keys.c.created_at, client_keys.c.id))
    return [(Key.of_row(row, revoked=row["revoked_at"] is not None), row["created_at"]) for row in rows.mappings()]


async def find_key(connection: AsyncConnection, hashed: bytes) -> Key | None:
    """Return the key of a SHA-256, also a revoked one, or None."""
    row = (await connection.execute(select(client_keys).where(client_keys.c.hash == hashed))).mappings().first()
    return None if row is None else Key.of_row(row, revoked=row["revoked_at"] is not None)


async def spent_by_keys(connection: AsyncConnection) -> dict[str, int]:
    """Return what keys have spent on all hosts, in nano-USD; a key that never had a budget is absent."""
    spent = func.sum(key_spending.c.nano_usd)
    rows = await connection.execute(select(key_spending.c.key_id, spent).group_by(key_spending.c.key_id))
    return {key_id: int(nano_usd) for key_id, nano_usd in rows}


async def revoke_key(connection: AsyncConnection, key_id: str, now: datetime) -> bool:
    """Revoke a key, and return whether it exists. Revoking it again keeps the first time."""
    stored = await connection.execute(select(client_keys.c.id).where(client_keys.c.id == key_id))
    if stored.first() is None:
        return False
    unrevoked = (client_keys.c.id == key_id) & client_keys.c.revoked_at.is_(None)
    await connection.execute(update(client_keys).where(unrevoked).values(revoked_at=now))
    return True
