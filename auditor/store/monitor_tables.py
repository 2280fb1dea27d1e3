"""What is watched and what was found, as SQLAlchemy sees it. The migrations are the truth; a test holds both together.

Registered with the metadata of ``tables`` (neighbour module), which has the exchanges that are watched.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from auditor.store.coding_tables import coders
from auditor.store.tables import metadata

monitor_days = Table(
    "monitor_days",
    metadata,
    Column("coder", Text, ForeignKey(coders.c.id), primary_key=True),
    Column("day", Date, primary_key=True),
    Column("closed_at", DateTime(timezone=True), nullable=False),
    Column("watched", Boolean, nullable=False),
    Column("late", BigInteger, nullable=False),
)

monitor_references = Table(
    "monitor_references",
    metadata,
    Column("id", Text, primary_key=True),
    Column("coder", Text, ForeignKey(coders.c.id), nullable=False),
    Column("deployment", Text, nullable=False),
    Column("since", Date, nullable=False),
    Column("release", Text),
    Column("accepted_at", DateTime(timezone=True), nullable=False),
    Column("accepted_by", Text),
    Column("note", Text),
    Column("until", Date),
    Column("content", JSONB(none_as_null=True)),
)

monitor_watches = Table(
    "monitor_watches",
    metadata,
    Column("coder", Text, ForeignKey(coders.c.id), primary_key=True),
    Column("deployment", Text, primary_key=True),
    Column("metric", Text, primary_key=True),
    Column("reference_id", Text, ForeignKey(monitor_references.c.id), nullable=False),
    Column("through", Date, nullable=False),
    Column("state", JSONB(none_as_null=True)),
    Column("told", JSONB, nullable=False),
)

findings = Table(
    "findings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("coder", Text, ForeignKey(coders.c.id), nullable=False),
    Column("deployment", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("reference_id", Text, nullable=False),
    Column("day", Date, nullable=False),
    Column("first_seen", DateTime(timezone=True), nullable=False),
    Column("evidence", JSONB, nullable=False),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("n", BigInteger, nullable=False),
    Column("n_statements", BigInteger, nullable=False),
    Column("window_since", Date, nullable=False),
    Column("state", Text, nullable=False),
    Column("note", Text),
    Column("by", Text),
)

finding_events = Table(
    "finding_events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("finding_id", Text, ForeignKey(findings.c.id), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("action", Text, nullable=False),
    Column("by", Text),
    Column("note", Text),
    Column("reference_id", Text),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("finding_id", Text, ForeignKey(findings.c.id), primary_key=True),
    Column("state", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("next_at", DateTime(timezone=True), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("delivered_at", DateTime(timezone=True)),
    Column("error", Text),
)
