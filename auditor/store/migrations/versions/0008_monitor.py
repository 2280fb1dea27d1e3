"""Watching: days that are closed, references, states of the detectors, findings, and what is posted of these."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # A day is watched as it was when it closed: codings that were made later are counted as late, and change nothing.
    """
    CREATE TABLE monitor_days (
        coder text NOT NULL REFERENCES coders (id),
        day date NOT NULL,
        closed_at timestamptz NOT NULL,
        watched boolean NOT NULL,
        late bigint NOT NULL CHECK (late >= 0),
        PRIMARY KEY (coder, day)
    )
    """,
    # Who accepted it from when on is a fact; what was fitted follows from the codings. Without anybody it is the first.
    """
    CREATE TABLE monitor_references (
        id text NOT NULL PRIMARY KEY,
        coder text NOT NULL REFERENCES coders (id),
        deployment text NOT NULL,
        since date NOT NULL,
        release text,
        accepted_at timestamptz NOT NULL,
        accepted_by text,
        until date,
        content jsonb,
        CHECK ((until IS NULL) = (content IS NULL))
    )
    """,
    "CREATE INDEX monitor_references_newest ON monitor_references (coder, deployment, accepted_at)",
    # Without a state nothing is watched, and what is told is why.
    """
    CREATE TABLE monitor_watches (
        coder text NOT NULL REFERENCES coders (id),
        deployment text NOT NULL,
        metric text NOT NULL,
        reference_id text NOT NULL REFERENCES monitor_references (id),
        through date NOT NULL,
        state jsonb,
        told jsonb NOT NULL,
        PRIMARY KEY (coder, deployment, metric)
    )
    """,
    # Its id is a digest of what it is about, so that the same facts replayed find it there already.
    """
    CREATE TABLE findings (
        id text NOT NULL PRIMARY KEY,
        coder text NOT NULL REFERENCES coders (id),
        deployment text NOT NULL,
        metric text NOT NULL,
        level text NOT NULL CHECK (level IN ('page', 'investigate', 'instrument')),
        reference_id text NOT NULL,
        day date NOT NULL,
        first_seen timestamptz NOT NULL,
        evidence jsonb NOT NULL,
        value double precision,
        low double precision,
        high double precision,
        n bigint NOT NULL,
        n_statements bigint NOT NULL,
        window_since date NOT NULL,
        state text NOT NULL CHECK (state IN ('open', 'acknowledged', 'answered')),
        note text,
        by text
    )
    """,
    "CREATE INDEX findings_newest ON findings (first_seen, id)",
    # Only ever added to.
    """
    CREATE TABLE finding_events (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        finding_id text NOT NULL REFERENCES findings (id),
        at timestamptz NOT NULL,
        action text NOT NULL CHECK (action IN ('opened', 'acknowledged', 'answered')),
        by text,
        note text,
        reference_id text
    )
    """,
    "CREATE INDEX finding_events_finding ON finding_events (finding_id, id)",
    # A finding is posted once in each of its states; the bytes are those that are signed.
    """
    CREATE TABLE webhook_deliveries (
        finding_id text NOT NULL REFERENCES findings (id),
        state text NOT NULL,
        body bytea NOT NULL,
        created_at timestamptz NOT NULL,
        next_at timestamptz NOT NULL,
        attempts integer NOT NULL CHECK (attempts >= 0),
        delivered_at timestamptz,
        error text,
        PRIMARY KEY (finding_id, state)
    )
    """,
    "CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE delivered_at IS NULL",
)


def upgrade() -> None:
    """Bring the store to this revision."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: schema changes are additive, and going back means restoring a backup."""
    raise NotImplementedError
