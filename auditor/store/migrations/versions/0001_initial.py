"""Create the whole schema: the statements of ``0001_initial.sql``, and the queue's own tables."""

from pathlib import Path

from alembic import op

from auditor.store.queue import install_statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the store to this revision."""
    script = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    # asyncpg prepares statements, and takes one at a time.
    for statement in (*script.split(";\n\n"), *install_statements()):
        op.execute(statement)


def downgrade() -> None:
    """Refuse: schema changes are additive, and going back means restoring a backup."""
    raise NotImplementedError
