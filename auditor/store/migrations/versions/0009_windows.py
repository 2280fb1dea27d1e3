"""Rolling windows: running sums of tallies, moved on by what has changed."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # A window of one coder holds the tiles from ``since`` on. Sums of other names are of times that are over.
    """
    CREATE TABLE windows (
        coder text NOT NULL,
        "window" text NOT NULL,
        since timestamptz NOT NULL,
        PRIMARY KEY (coder, "window")
    )
    """,
    # A row for each statement under each condition; ``counts`` by outcome, a JSON array of both labels with their
    # reasons. ``digest`` stands for the key: PostgreSQL indexes no rows as long as a cluster's name may be.
    """
    CREATE TABLE window_tallies (
        coder text NOT NULL,
        "window" text NOT NULL,
        digest uuid NOT NULL,
        deployment text NOT NULL,
        origin text NOT NULL,
        rubric text NOT NULL,
        audit text,
        claim text,
        task text,
        perspective text,
        role text,
        sentiment text,
        invites_reason boolean,
        category text,
        cluster text NOT NULL,
        counts jsonb NOT NULL,
        PRIMARY KEY (coder, "window", digest)
    )
    """,
    """
    CREATE TABLE window_ballots (
        coder text NOT NULL,
        "window" text NOT NULL,
        digest uuid NOT NULL,
        deployment text NOT NULL,
        origin text NOT NULL,
        rubric text NOT NULL,
        counts jsonb NOT NULL,
        PRIMARY KEY (coder, "window", digest)
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
