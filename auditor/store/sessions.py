"""Store the sessions of people in the console. Each belongs to a key, and ends with it."""

from datetime import datetime

from sqlalchemy import Column, DateTime, LargeBinary, Table, Text, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.keys import Key
from auditor.store.engine import metadata
from auditor.store.keys import client_keys

console_sessions = Table(
    "console_sessions",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("made_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)


async def add_session(
    connection: AsyncConnection, token_hash: bytes, key_id: str, *, now: datetime, expires_at: datetime
) -> None:
    """Store a new session, and remove those that have expired."""
    await connection.execute(delete(console_sessions).where(console_sessions.c.expires_at <= now))
    await connection.execute(
        insert(console_sessions).values(token_hash=token_hash, key_id=key_id, made_at=now, expires_at=expires_at)
    )


async def find_session(connection: AsyncConnection, token_hash: bytes, now: datetime) -> Key | None:
    """Return the key of a session that has not expired, also a revoked key, or None."""
    held = client_keys.join(console_sessions, console_sessions.c.key_id == client_keys.c.id)
    is_valid = (console_sessions.c.token_hash == token_hash) & (console_sessions.c.expires_at > now)
    row = (await connection.execute(select(client_keys).select_from(held).where(is_valid))).mappings().first()
    return None if row is None else Key.of_row(row, revoked=row["revoked_at"] is not None)


async def end_session(connection: AsyncConnection, token_hash: bytes) -> None:
    """Remove a session, if it exists."""
    await connection.execute(delete(console_sessions).where(console_sessions.c.token_hash == token_hash))
