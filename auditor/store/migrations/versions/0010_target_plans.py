"""Plans that ask until a rate is known well enough."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE plans DROP CONSTRAINT plans_design_check",
    """
    ALTER TABLE plans ADD CONSTRAINT plans_design_check
    CHECK (design IN ('sentinel', 'oat', 'factorial', 'panel', 'replay', 'target'))
    """,
)


def upgrade() -> None:
    """Bring the store to this revision."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: schema changes are additive, and going back means restoring a backup."""
    raise NotImplementedError
