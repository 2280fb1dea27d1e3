"""Plans of probes: what is to be asked of whom, and the statements it is about, as they were when it was planned."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # A statement never changes under its id: answers are read against the words that were asked.
    """
    CREATE TABLE statements (
        id text NOT NULL PRIMARY KEY,
        record jsonb NOT NULL,
        added_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE plans (
        id text NOT NULL PRIMARY KEY,
        name text NOT NULL,
        design text NOT NULL CHECK (design IN ('sentinel', 'oat', 'factorial', 'panel', 'replay')),
        seed bigint NOT NULL,
        rubric text NOT NULL,
        created_at timestamptz NOT NULL,
        settings jsonb NOT NULL
    )
    """,
    # The ref travels in x-tiltmeter-ref; planned_instances says which complete exchange counts for it.
    """
    CREATE TABLE planned_calls (
        ref text NOT NULL PRIMARY KEY CHECK (length(ref) <= 64),
        plan_id text NOT NULL REFERENCES plans (id),
        deployment text NOT NULL,
        statement_id text NOT NULL REFERENCES statements (id),
        task text NOT NULL,
        perspective text NOT NULL,
        role text NOT NULL,
        sentiment text NOT NULL,
        template_id text NOT NULL,
        draw integer NOT NULL CHECK (draw >= 0),
        position integer NOT NULL CHECK (position >= 0),
        invites_reason boolean NOT NULL,
        UNIQUE (plan_id, deployment, position)
    )
    """,
)


def upgrade() -> None:
    """Bring the store to this revision."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: schema changes are additive, and going back means restoring a backup."""
    raise NotImplementedError
