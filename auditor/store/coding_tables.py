"""Codings, tallies and estimates as SQLAlchemy sees them. The migrations are the truth; a test holds them together.

Registered with the metadata of ``tables`` (neighbour module), which has the exchanges they are made from.
"""

from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    Identity,
    LargeBinary,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from auditor.store.tables import metadata

coders = Table(
    "coders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("rubric", Text, nullable=False),
    Column("description", JSONB, nullable=False),
    Column("first_used_at", DateTime(timezone=True), nullable=False),
)


def _subject() -> list[Column[Any]]:
    """Give the columns that say what was asked and read: those of the joint table's key."""
    required = ("deployment", "origin", "rubric")
    optional = ("audit", "claim", "task", "perspective", "role", "sentiment")
    return [
        *(Column(name, Text, nullable=False) for name in required),
        *(Column(name, Text) for name in optional),
        Column("invites_reason", Boolean),
        Column("category", Text),
        Column("cluster", Text, nullable=False),
    ]


codings = Table(
    "codings",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("coder", Text, primary_key=True),
    Column("hour", DateTime(timezone=True), nullable=False),
    *_subject(),
    Column("sel", Text),
    Column("sel_reason", Text),
    Column("sel_via", Text),
    Column("elab", Text),
    Column("elab_reason", Text),
    Column("remainder_hash", LargeBinary),
    Column("uncoded", Text),
    Column("coded_at", DateTime(timezone=True), nullable=False),
)

votes = Table(
    "votes",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("coder", Text, primary_key=True),
    Column("judge", Text, primary_key=True),
    Column("label", Text, nullable=False),
    Column("reason", Text),
    Column("rationale", Text, nullable=False),
)

stale_tiles = Table(
    "stale_tiles",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
)

read_marks = Table(
    "read_marks",
    metadata,
    Column("coder", Text, primary_key=True),
    Column("since", Uuid, nullable=False),
)

tallies = Table(
    "tallies",
    metadata,
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
    *_subject(),
    Column("sel", Text),
    Column("sel_reason", Text),
    Column("elab", Text),
    Column("elab_reason", Text),
    Column("uncoded", Text),
    Column("n", BigInteger, CheckConstraint("n > 0"), nullable=False),
)

ballots = Table(
    "ballots",
    metadata,
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("votes", JSONB, nullable=False),
    Column("n", BigInteger, CheckConstraint("n > 0"), nullable=False),
)

estimates = Table(
    "estimates",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("as_of", DateTime(timezone=True), nullable=False),
    Column("deployment", Text),
    Column("origin", Text, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("window", Text, nullable=False),
    Column("since", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("layer", Text),
    Column("base", Text),
    Column("detail", JSONB, nullable=False),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("n", BigInteger, nullable=False),
    Column("n_statements", BigInteger),
    Column("n_eligible", BigInteger),
    Column("coverage", Double),
    Column("method", Text),
    Column("flags", ARRAY(Text), nullable=False),
    Column("missing", Text),
    Column("seed", BigInteger, nullable=False),
)
