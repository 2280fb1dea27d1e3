"""What the auditor makes of exchanges: codings and votes, tallies of them, estimates; and the queue of its jobs."""

from alembic import op

from auditor.store.queue import install_statements

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # A coder is the rules, the judges and the rubric that read an answer; its id is a digest of them.
    """
    CREATE TABLE coders (
        id text NOT NULL PRIMARY KEY,
        rubric text NOT NULL CHECK (rubric IN ('statement', 'open', 'proposition')),
        description jsonb NOT NULL,
        first_used_at timestamptz NOT NULL
    )
    """,
    # One exchange read by one coder: both labels, or why it could not be read at all. The condition is copied, so that
    # counting needs no other table and outlives plans and content.
    """
    CREATE TABLE codings (
        exchange_id uuid NOT NULL,
        coder text NOT NULL,
        hour timestamptz NOT NULL,
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
        sel text,
        sel_reason text,
        sel_via text,
        elab text,
        elab_reason text,
        remainder_hash bytea,
        uncoded text,
        coded_at timestamptz NOT NULL,
        PRIMARY KEY (exchange_id, coder),
        CHECK ((uncoded IS NULL) = (sel IS NOT NULL AND elab IS NOT NULL))
    ) PARTITION BY RANGE (exchange_id)
    """,
    "CREATE INDEX codings_tile ON codings (hour, coder)",
    """
    CREATE TABLE votes (
        exchange_id uuid NOT NULL,
        coder text NOT NULL,
        judge text NOT NULL,
        label text NOT NULL,
        reason text,
        rationale text NOT NULL,
        PRIMARY KEY (exchange_id, coder, judge)
    ) PARTITION BY RANGE (exchange_id)
    """,
    # Marks are only ever added, so that writers never wait for one another; a recount takes those it has seen.
    """
    CREATE TABLE stale_tiles (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        hour timestamptz NOT NULL,
        coder text NOT NULL
    )
    """,
    # The joint table: a tile is an hour of one coder, counted anew as a whole.
    """
    CREATE TABLE tallies (
        hour timestamptz NOT NULL,
        coder text NOT NULL,
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
        sel text,
        sel_reason text,
        elab text,
        elab_reason text,
        uncoded text,
        n bigint NOT NULL CHECK (n > 0)
    )
    """,
    "CREATE INDEX tallies_tile ON tallies (coder, hour)",
    """
    CREATE TABLE ballots (
        hour timestamptz NOT NULL,
        coder text NOT NULL,
        deployment text NOT NULL,
        origin text NOT NULL,
        rubric text NOT NULL,
        votes jsonb NOT NULL,
        n bigint NOT NULL CHECK (n > 0)
    )
    """,
    "CREATE INDEX ballots_tile ON ballots (coder, hour)",
    # The newest snapshot: replaced as a whole, so that all rows that are read together belong together.
    """
    CREATE TABLE estimates (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        as_of timestamptz NOT NULL,
        deployment text,
        origin text NOT NULL,
        rubric text NOT NULL,
        condition text NOT NULL,
        "window" text NOT NULL,
        since timestamptz NOT NULL,
        coder text NOT NULL,
        metric text NOT NULL,
        layer text,
        base text,
        detail jsonb NOT NULL DEFAULT '{}',
        value double precision,
        low double precision,
        high double precision,
        n bigint NOT NULL,
        n_statements bigint,
        n_eligible bigint,
        coverage double precision,
        method text,
        flags text[] NOT NULL DEFAULT '{}',
        missing text,
        seed bigint NOT NULL
    )
    """,
    "CREATE INDEX estimates_deployment ON estimates (deployment, origin)",
    *install_statements(),
)


def upgrade() -> None:
    """Bring the store to this revision."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: schema changes are additive, and going back means restoring a backup."""
    raise NotImplementedError
