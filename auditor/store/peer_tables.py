"""What peers are asked and how their answers are scored, as SQLAlchemy sees it. The migrations are the truth.

Registered with the metadata of ``tables`` (neighbour module), which has the exchanges that answer. A test holds this
and the migrations together.
"""

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from auditor.store.tables import metadata

peer_rounds = Table(
    "peer_rounds",
    metadata,
    Column("id", Text, primary_key=True),
    Column("domain", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("settings", JSONB, nullable=False),
)

peer_questions = Table(
    "peer_questions",
    metadata,
    Column("round_id", Text, ForeignKey(peer_rounds.c.id), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("theme", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("position", Integer, nullable=False),
)

peer_calls = Table(
    "peer_calls",
    metadata,
    Column("ref", Text, primary_key=True),
    Column("round_id", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("question_id", Text, nullable=False),
    UniqueConstraint("round_id", "deployment", "question_id"),
    ForeignKeyConstraint(["round_id", "question_id"], [peer_questions.c.round_id, peer_questions.c.id]),
)

peer_passed_over = Table(
    "peer_passed_over",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("route", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)

peer_scorers = Table(
    "peer_scorers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("method", Text, nullable=False),
    Column("description", JSONB, nullable=False),
    Column("first_used_at", DateTime(timezone=True), nullable=False),
)

peer_vectors = Table(
    "peer_vectors",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("scorer", Text, ForeignKey(peer_scorers.c.id), primary_key=True),
    Column("vector", LargeBinary),
    Column("missing", Text),
    Column("truncated", Boolean, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)

peer_scores = Table(
    "peer_scores",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("scorer", Text, ForeignKey(peer_scorers.c.id), primary_key=True),
    Column("score", SmallInteger),
    Column("missing", Text),
    Column("justification", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)

peer_comparisons = Table(
    "peer_comparisons",
    metadata,
    Column("domain", Text, primary_key=True),
    Column("as_of", DateTime(timezone=True), nullable=False),
    Column("inputs", Text, nullable=False),
    Column("document", JSONB, nullable=False),
)
