"""Exchanges by day, their content apart, planned instances, client keys."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # An id begins with the time, so a day is a range of ids: unique over all days, and dropped with its partition.
    """
    CREATE TABLE exchanges (
        id uuid NOT NULL PRIMARY KEY,
        at timestamptz NOT NULL,
        origin text NOT NULL CHECK (origin IN ('client', 'probe', 'replay', 'judge', 'peer')),
        endpoint text NOT NULL,
        route text NOT NULL,
        deployment text NOT NULL,
        model text NOT NULL,
        status smallint NOT NULL,
        outcome text NOT NULL CHECK (outcome IN ('complete', 'cut', 'failed', 'client_gone')),
        stream boolean NOT NULL,
        attempts smallint NOT NULL,
        capture text NOT NULL CHECK (capture IN ('hashed', 'full')),
        inclusion double precision NOT NULL CHECK (inclusion > 0 AND inclusion <= 1),
        config_hash text NOT NULL,
        request_id text NOT NULL,
        key_id text,
        ref text,
        parent uuid,
        tags jsonb,
        error_type text,
        finish_reason text,
        prompt_tokens bigint,
        completion_tokens bigint,
        total_us bigint NOT NULL,
        upstream_us bigint NOT NULL,
        first_byte_us bigint,
        request_bytes bigint NOT NULL,
        response_bytes bigint NOT NULL,
        truncated boolean NOT NULL,
        content_encoding text,
        request_hash bytea,
        response_hash bytea
    ) PARTITION BY RANGE (id)
    """,
    "CREATE INDEX exchanges_deployment ON exchanges (deployment, origin, id)",
    "CREATE INDEX exchanges_ref ON exchanges (ref) WHERE ref IS NOT NULL",
    "CREATE INDEX exchanges_parent ON exchanges (parent) WHERE parent IS NOT NULL",
    """
    CREATE TABLE exchange_content (
        id uuid NOT NULL PRIMARY KEY,
        request bytea,
        response bytea
    ) PARTITION BY RANGE (id)
    """,
    # Answers are read whole and seldom: lz4 would be faster, but not every build of PostgreSQL has it.
    """
    CREATE TABLE planned_instances (
        ref text NOT NULL PRIMARY KEY,
        exchange_id uuid NOT NULL
    )
    """,
    """
    CREATE TABLE client_keys (
        id text NOT NULL PRIMARY KEY,
        name text NOT NULL,
        hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
        models text[] NOT NULL DEFAULT '{}',
        rights text[] NOT NULL DEFAULT '{}',
        rpm integer CHECK (rpm > 0),
        tpm integer CHECK (tpm > 0),
        budget double precision CHECK (budget > 0),
        created_at timestamptz NOT NULL,
        expires_at timestamptz,
        revoked_at timestamptz
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
