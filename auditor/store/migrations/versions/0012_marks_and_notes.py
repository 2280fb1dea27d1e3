"""From where on exchanges may wait to be read, why references were accepted, tallies of what was drawn from."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE monitor_references ADD COLUMN note text",
    # Everything before it was read when it was last looked at; what comes late is found, and waits in the queue.
    "CREATE TABLE read_marks (coder text NOT NULL PRIMARY KEY, since uuid NOT NULL)",
    # A draw's frame is tallied under the draw's name, so that its windows move on like a coder's.
    """
    INSERT INTO tallies (hour, coder, deployment, origin, rubric, audit, claim, task, perspective, role, sentiment,
                         invites_reason, category, cluster, sel, sel_reason, elab, elab_reason, uncoded, n)
    SELECT c.hour, d.id, c.deployment, c.origin, c.rubric, c.audit, c.claim, c.task, c.perspective, c.role, c.sentiment,
           c.invites_reason, c.category, c.cluster, c.sel, c.sel_reason, c.elab, c.elab_reason, c.uncoded, count(*)
    FROM review_draws d JOIN codings c
        ON c.coder = d.coder AND c.origin = d.origin AND c.hour >= d.since AND c.coded_at <= d.drawn_at
    WHERE c.uncoded IS NULL AND c.elab <> 'Abstain' AND (d.deployments IS NULL OR c.deployment = ANY(d.deployments))
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
    """,
)


def upgrade() -> None:
    """Bring the store to this revision."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: schema changes are additive, and going back means restoring a backup."""
    raise NotImplementedError
