"""Plans of probes as SQLAlchemy sees them. The migrations are the truth; a test holds the two against each other.

Registered with the metadata of ``tables`` (neighbour module), which has the exchanges that answer planned calls.
"""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKey, Integer, Table, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB

from auditor.store.tables import metadata

statements = Table(
    "statements",
    metadata,
    Column("id", Text, primary_key=True),
    Column("record", JSONB, nullable=False),
    Column("added_at", DateTime(timezone=True), nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("design", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("settings", JSONB, nullable=False),
)

planned_calls = Table(
    "planned_calls",
    metadata,
    Column("ref", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.id"), nullable=False),
    Column("deployment", Text, nullable=False),
    Column("statement_id", Text, ForeignKey("statements.id"), nullable=False),
    Column("task", Text, nullable=False),
    Column("perspective", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sentiment", Text, nullable=False),
    Column("template_id", Text, nullable=False),
    Column("draw", Integer, nullable=False),
    Column("position", Integer, nullable=False),  #: in the order of sending, within the plan and deployment
    Column("invites_reason", Boolean, nullable=False),
    UniqueConstraint("plan_id", "deployment", "position"),
)
