"""Exposures as SQLAlchemy sees them. The migrations are the truth; a test holds both together."""

from sqlalchemy import Column, DateTime, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from auditor.store.tables import metadata

exposures = Table(
    "exposures",
    metadata,
    Column("replay_id", Text, nullable=False),
    Column("concluded_at", DateTime(timezone=True), nullable=False),
    Column("selection", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("route", Text),
    Column("task", Text),
    Column("rubric", Text, nullable=False),
    Column("claim", Text),
    Column("metric", Text, nullable=False),
    Column("exposure", JSONB, nullable=False),
)
