"""What replays and comparisons of stored traffic came to: how far the same deployment's rates can be moved."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # A row for each group and measure of a replay that was concluded. ``exposure`` is what comparison.json says of it.
    """
    CREATE TABLE exposures (
        replay_id text NOT NULL,
        concluded_at timestamptz NOT NULL,
        selection text NOT NULL,
        deployment text NOT NULL,
        origin text NOT NULL,
        route text,
        task text,
        rubric text NOT NULL,
        claim text,
        metric text NOT NULL,
        exposure jsonb NOT NULL,
        UNIQUE NULLS NOT DISTINCT (replay_id, deployment, origin, route, task, rubric, claim, metric)
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
