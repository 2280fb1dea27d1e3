"""Questions that peers are asked alike, prompts that are not mirrored, and what scorers make of the answers."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # A round is one pass of a domain's questions; its id is a digest of them, so that asking for it again resumes it.
    """
    CREATE TABLE peer_rounds (
        id text NOT NULL PRIMARY KEY,
        domain text NOT NULL,
        created_at timestamptz NOT NULL,
        settings jsonb NOT NULL
    )
    """,
    "CREATE INDEX peer_rounds_newest ON peer_rounds (domain, created_at)",
    """
    CREATE TABLE peer_questions (
        round_id text NOT NULL REFERENCES peer_rounds (id),
        id text NOT NULL,
        theme text NOT NULL,
        question text NOT NULL,
        position integer NOT NULL CHECK (position >= 0),
        PRIMARY KEY (round_id, id)
    )
    """,
    # The ref travels in x-tiltmeter-ref; planned_instances says which complete exchange counts for it. Mirrored prompts
    # have no row here: what they were made from is their exchange's parent, and a client's words stay with it.
    """
    CREATE TABLE peer_calls (
        ref text NOT NULL PRIMARY KEY CHECK (length(ref) <= 64),
        round_id text NOT NULL,
        deployment text NOT NULL,
        question_id text NOT NULL,
        UNIQUE (round_id, deployment, question_id),
        FOREIGN KEY (round_id, question_id) REFERENCES peer_questions (round_id, id)
    )
    """,
    # Clients' exchanges of a route with peers that are not mirrored, and why. They are not looked at again.
    """
    CREATE TABLE peer_passed_over (
        exchange_id uuid NOT NULL PRIMARY KEY,
        route text NOT NULL,
        reason text NOT NULL,
        at timestamptz NOT NULL
    )
    """,
    # A scorer's id is a digest of its description: an encoder's model, revision, instruction and pooling; a judge's
    # model, prompt and rubric. Another description is another scorer, which reads everything again.
    """
    CREATE TABLE peer_scorers (
        id text NOT NULL PRIMARY KEY,
        method text NOT NULL,
        description jsonb NOT NULL,
        first_used_at timestamptz NOT NULL
    )
    """,
    # Numbers are float32, little-endian. Without a vector or a score there is the reason.
    """
    CREATE TABLE peer_vectors (
        exchange_id uuid NOT NULL,
        scorer text NOT NULL REFERENCES peer_scorers (id),
        vector bytea CHECK (length(vector) > 0 AND length(vector) % 4 = 0),
        missing text,
        truncated boolean NOT NULL,
        at timestamptz NOT NULL,
        PRIMARY KEY (exchange_id, scorer),
        CHECK ((vector IS NULL) = (missing IS NOT NULL))
    )
    """,
    """
    CREATE TABLE peer_scores (
        exchange_id uuid NOT NULL,
        scorer text NOT NULL REFERENCES peer_scorers (id),
        score smallint CHECK (score BETWEEN 1 AND 10),
        missing text,
        justification text NOT NULL,
        at timestamptz NOT NULL,
        PRIMARY KEY (exchange_id, scorer),
        CHECK ((score IS NULL) = (missing IS NOT NULL))
    )
    """,
    # The newest comparison of a domain, or of a route's mirrored prompts: the document, and what it was made from.
    """
    CREATE TABLE peer_comparisons (
        domain text NOT NULL PRIMARY KEY,
        as_of timestamptz NOT NULL,
        inputs text NOT NULL,
        document jsonb NOT NULL
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
