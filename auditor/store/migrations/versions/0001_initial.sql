-- The schema of the store. The tables of pgqueuer are added by 0001_initial.py.

-- ## Exchanges, one partition a day; their content apart; client keys

-- An id begins with its time, so a day is a range of ids. Ids are unique over all days, and old days are dropped as a
-- whole.
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
    response_hash bytea,
    redacted boolean NOT NULL DEFAULT false
) PARTITION BY RANGE (id);

CREATE INDEX exchanges_deployment ON exchanges (deployment, origin, id);

CREATE INDEX exchanges_ref ON exchanges (ref) WHERE ref IS NOT NULL;

CREATE INDEX exchanges_parent ON exchanges (parent) WHERE parent IS NOT NULL;

CREATE INDEX exchanges_trial ON exchanges ((tags ->> 'biasmeter_trial'), id) WHERE tags ? 'biasmeter_trial';

-- Not compressed with lz4, which is faster, because not every build of PostgreSQL has it.
CREATE TABLE exchange_content (
    id uuid NOT NULL PRIMARY KEY,
    request bytea,
    response bytea
) PARTITION BY RANGE (id);

-- The first complete exchange of a planned call counts as its answer.
CREATE TABLE planned_instances (
    ref text NOT NULL PRIMARY KEY,
    exchange_id uuid NOT NULL
);

-- Exchanges by day (UTC) of their ids, deployment and origin. Triggers keep it, so that no page counts exchanges.
CREATE TABLE exchange_counts (
    day date NOT NULL,
    deployment text NOT NULL,
    origin text NOT NULL,
    stored bigint NOT NULL,
    complete bigint NOT NULL,
    with_content bigint NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (day, deployment, origin)
);

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
);

-- The sessions of people in the console. The cookie has the token; this table has its SHA-256.
CREATE TABLE console_sessions (
    token_hash bytea NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    key_id text NOT NULL REFERENCES client_keys (id),
    made_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

-- ## Plans of probes

-- A statement never changes under its id: answers are coded against the text that was asked.
CREATE TABLE statements (
    id text NOT NULL PRIMARY KEY,
    record jsonb NOT NULL,
    added_at timestamptz NOT NULL
);

CREATE TABLE plans (
    id text NOT NULL PRIMARY KEY,
    name text NOT NULL,
    design text NOT NULL CHECK (design IN ('sentinel', 'oat', 'factorial', 'panel', 'replay', 'target')),
    seed bigint NOT NULL,
    rubric text NOT NULL,
    created_at timestamptz NOT NULL,
    settings jsonb NOT NULL
);

-- The ref is sent in x-biasmeter-ref; planned_instances maps it to the exchange that counts.
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
);

-- Calls of a plan by deployment, and how many are answered. Triggers keep it, as they keep exchange_counts.
CREATE TABLE plan_counts (
    plan_id text NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    deployment text NOT NULL,
    planned bigint NOT NULL,
    answered bigint NOT NULL,
    PRIMARY KEY (plan_id, deployment)
);

-- What a plan's calls have used, by the deployment that answered and the kind of question, with repeated and failed calls.
-- A trigger adds to it with every insertion into exchanges, so that neither a page nor a budget reads exchanges. The
-- columns of answers are sums over the answers that count and report their tokens. Removed exchanges stay in: they are
-- spent.
CREATE TABLE plan_usage (
    plan_id text NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    deployment text NOT NULL,
    task text NOT NULL,
    invites_reason boolean NOT NULL,
    calls bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    last_at timestamptz NOT NULL,
    complete_at timestamptz,
    answers bigint NOT NULL,
    answer_tokens bigint NOT NULL,
    answer_us bigint NOT NULL,
    PRIMARY KEY (plan_id, deployment, task, invites_reason)
);

-- All writers lock the rows in one order.
CREATE FUNCTION fn_biasmeter_calls_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO plan_counts AS c (plan_id, deployment, planned, answered)
    SELECT p.plan_id, p.deployment, sign * count(*), sign * count(i.ref)
    FROM changed p LEFT JOIN planned_instances i ON i.ref = p.ref
    GROUP BY p.plan_id, p.deployment ORDER BY p.plan_id, p.deployment
    ON CONFLICT (plan_id, deployment)
    DO UPDATE SET planned = c.planned + excluded.planned, answered = c.answered + excluded.answered;
    RETURN NULL;
END
$$;

CREATE TRIGGER tg_biasmeter_calls_planned AFTER INSERT ON planned_calls
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_calls_changed();

CREATE TRIGGER tg_biasmeter_calls_removed AFTER DELETE ON planned_calls
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_calls_changed();

CREATE FUNCTION fn_biasmeter_instances_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO plan_counts AS c (plan_id, deployment, planned, answered)
    SELECT p.plan_id, p.deployment, 0, sign * count(*)
    FROM changed i JOIN planned_calls p ON p.ref = i.ref
    GROUP BY p.plan_id, p.deployment ORDER BY p.plan_id, p.deployment
    ON CONFLICT (plan_id, deployment) DO UPDATE SET answered = c.answered + excluded.answered;
    RETURN NULL;
END
$$;

CREATE TRIGGER tg_biasmeter_instances_added AFTER INSERT ON planned_instances
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_instances_changed();

CREATE TRIGGER tg_biasmeter_instances_removed AFTER DELETE ON planned_instances
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_instances_changed();

-- Audits and replays that people start in the console. `choice` holds their options, `result` how the run ended.
CREATE TABLE console_runs (
    kind text NOT NULL CHECK (kind IN ('audit', 'replay')),
    id text NOT NULL,
    choice jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('asked', 'running', 'stopping', 'stopped', 'ended')),
    asked_by text NOT NULL,
    asked_at timestamptz NOT NULL,
    result jsonb NOT NULL,
    PRIMARY KEY (kind, id)
);

-- ## Codings, tallies and estimates

-- A coder is the set of rules, judges and rubric that codes an answer; its id is a digest of them.
CREATE TABLE coders (
    id text NOT NULL PRIMARY KEY,
    rubric text NOT NULL CHECK (rubric IN ('statement', 'open', 'proposition')),
    description jsonb NOT NULL,
    first_used_at timestamptz NOT NULL
);

-- One exchange coded by one coder: both labels, or the reason why there are none. The condition is copied, so that
-- counting needs no other table and outlives plans and content.
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
    inclusion double precision NOT NULL CHECK (inclusion > 0 AND inclusion <= 1),
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
) PARTITION BY RANGE (exchange_id);

CREATE INDEX codings_tile ON codings (hour, coder);

-- The answers behind a number are those of one deployment.
CREATE INDEX codings_deployment ON codings (deployment, coder, exchange_id);

CREATE TABLE votes (
    exchange_id uuid NOT NULL,
    coder text NOT NULL,
    judge text NOT NULL,
    label text NOT NULL,
    reason text,
    rationale text NOT NULL,
    PRIMARY KEY (exchange_id, coder, judge)
) PARTITION BY RANGE (exchange_id);

-- Retention finds the rationales that are left in old days.
CREATE INDEX votes_rationale ON votes (exchange_id) WHERE rationale <> '';

-- The words of the statement and of the answer of a coded exchange, for searching. They are content, and kept as long.
CREATE TABLE answer_words (
    exchange_id uuid NOT NULL PRIMARY KEY,
    words tsvector NOT NULL
) PARTITION BY RANGE (exchange_id);

CREATE INDEX answer_words_words ON answer_words USING gin (words);

-- Hours to count again. Rows are only inserted, so that writers never wait for one another; a recount deletes those
-- that it has seen.
CREATE TABLE stale_tiles (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hour timestamptz NOT NULL,
    coder text NOT NULL
);

-- Codings that have not been sent to the OTLP collector. Rows are written only if the configuration names one.
CREATE TABLE unsent_codings (
    exchange_id uuid NOT NULL,
    coder text NOT NULL,
    PRIMARY KEY (exchange_id, coder)
);

-- Where the search for uncoded exchanges begins: every older exchange of these routes has a coding by the coder.
-- `routes` is empty for the coder of planned calls.
CREATE TABLE coding_marks (
    coder text NOT NULL,
    routes text[] NOT NULL,
    since uuid NOT NULL,
    searched_all_at timestamptz NOT NULL,
    PRIMARY KEY (coder, routes)
);

-- The oldest id of each insertion into exchanges. A search deletes the rows that it has seen and moves the marks back
-- to them, so that exchanges that arrive late are found.
CREATE TABLE arrivals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    since uuid NOT NULL
);

-- Every insertion into exchanges is a batch of the chain. An entry is an id and the SHA-256 of the facts; `newest` is the
-- newest exchange up to the batch. The digest of a batch is the SHA-256 of the digest and the newest exchange before it and
-- of its entries. auditor/store/chain.py reads it, and names the same columns in the same order: a column that is added
-- later changes no digest.
CREATE TABLE chain (
    position bigint NOT NULL PRIMARY KEY,
    entries bytea NOT NULL,
    newest uuid NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32)
);

-- Digests cannot be compressed, and parts of a value that is not compressed can be read alone.
ALTER TABLE chain ALTER COLUMN entries SET STORAGE EXTERNAL;

-- The batch before the oldest that is kept; older exchanges than `expired_before` are removed by retention.
CREATE TABLE chain_base (
    single smallint NOT NULL PRIMARY KEY CHECK (single = 1),
    position bigint NOT NULL,
    newest uuid NOT NULL,
    digest bytea NOT NULL,
    expired_before uuid NOT NULL
);

INSERT INTO chain_base VALUES (
    1, 0, '00000000-0000-0000-0000-000000000000', decode(repeat('00', 32), 'hex'),
    '00000000-0000-0000-0000-000000000000'
);

-- Batches follow one another: from the digest to the end of its transaction each writer holds a lock, and may not idle.
CREATE FUNCTION fn_biasmeter_exchanges_arrived() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    listed bytea;
    ids uuid[];
BEGIN
    SELECT array_agg(id ORDER BY id), string_agg(uuid_send(id) || sha256(record_send(ROW(
        id, at, origin, endpoint, route, deployment, model, status, outcome, stream, attempts, capture, inclusion,
        config_hash, request_id, key_id, ref, parent, tags, error_type, finish_reason, prompt_tokens, completion_tokens,
        total_us, upstream_us, first_byte_us, request_bytes, response_bytes, truncated, content_encoding, request_hash,
        response_hash, redacted
    ))), ''::bytea ORDER BY id)
    INTO ids, listed FROM arrived;
    IF ids IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO arrivals (since) VALUES (ids[1]);
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    PERFORM pg_advisory_xact_lock(hashtext('biasmeter chain'));
    INSERT INTO chain (position, entries, newest, digest)
    SELECT
        head.position + 1, listed, greatest(head.newest, ids[cardinality(ids)]),
        sha256(head.digest || uuid_send(head.newest) || listed)
    FROM (
        SELECT position, newest, digest FROM chain UNION ALL SELECT position, newest, digest FROM chain_base
        ORDER BY position DESC LIMIT 1
    ) AS head;
    RETURN NULL;
END
$$;

CREATE TRIGGER tg_biasmeter_exchanges_arrived AFTER INSERT ON exchanges
    REFERENCING NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_exchanges_arrived();

-- The first 12 hexadecimal digits of an id are its time in milliseconds. All writers lock the rows in one order.
CREATE FUNCTION fn_biasmeter_exchanges_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO exchange_counts AS c (day, deployment, origin, stored, complete, with_content, last_at)
    SELECT
        (to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint / 1000.0)
            AT TIME ZONE 'UTC')::date,
        deployment, origin, sign * count(*), sign * count(*) FILTER (WHERE outcome = 'complete'),
        sign * count(*) FILTER (WHERE capture = 'full'), max(at)
    FROM changed GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (day, deployment, origin) DO UPDATE SET
        stored = c.stored + excluded.stored, complete = c.complete + excluded.complete,
        with_content = c.with_content + excluded.with_content, last_at = greatest(c.last_at, excluded.last_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER tg_biasmeter_exchanges_counted AFTER INSERT ON exchanges
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_exchanges_counted();

CREATE TRIGGER tg_biasmeter_exchanges_removed AFTER DELETE ON exchanges
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_exchanges_counted();

-- An answer counts by its row in planned_instances, which is written before the exchange.
CREATE FUNCTION fn_biasmeter_calls_used() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO plan_usage AS u (
        plan_id, deployment, task, invites_reason, calls, prompt_tokens, completion_tokens, last_at, complete_at,
        answers, answer_tokens, answer_us
    )
    SELECT
        p.plan_id, e.deployment, p.task, p.invites_reason, count(*), coalesce(sum(e.prompt_tokens), 0),
        coalesce(sum(e.completion_tokens), 0), max(e.at), max(e.at) FILTER (WHERE e.outcome = 'complete'),
        count(i.ref), coalesce(sum(e.completion_tokens) FILTER (WHERE i.ref IS NOT NULL), 0),
        coalesce(sum(e.total_us) FILTER (WHERE i.ref IS NOT NULL), 0)
    FROM arrived e
    JOIN planned_calls p ON p.ref = e.ref
    LEFT JOIN planned_instances i ON i.ref = e.ref AND i.exchange_id = e.id AND e.completion_tokens IS NOT NULL
    WHERE e.ref IS NOT NULL
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (plan_id, deployment, task, invites_reason) DO UPDATE SET
        calls = u.calls + excluded.calls, prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = u.completion_tokens + excluded.completion_tokens,
        last_at = greatest(u.last_at, excluded.last_at), complete_at = greatest(u.complete_at, excluded.complete_at),
        answers = u.answers + excluded.answers, answer_tokens = u.answer_tokens + excluded.answer_tokens,
        answer_us = u.answer_us + excluded.answer_us;
    RETURN NULL;
END
$$;

CREATE TRIGGER tg_biasmeter_exchanges_used AFTER INSERT ON exchanges
    REFERENCING NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION fn_biasmeter_calls_used();

-- ## Erasures

-- `selector` is a digest of what was asked for, `counts` the number of removed rows by table.
CREATE TABLE erasures (
    id text NOT NULL PRIMARY KEY,
    at timestamptz NOT NULL,
    by text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('exchange', 'key', 'tag', 'user')),
    selector text NOT NULL,
    counts jsonb NOT NULL,
    complete boolean NOT NULL
);

-- `position` is the newest batch of the chain at that time.
CREATE TABLE erased_exchanges (
    exchange_id uuid NOT NULL,
    erasure_id text NOT NULL REFERENCES erasures (id),
    position bigint NOT NULL,
    PRIMARY KEY (exchange_id, erasure_id)
);

-- The joint table. A tile is one hour of one coder; it is counted again as a whole.
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
    inclusion double precision NOT NULL CHECK (inclusion > 0 AND inclusion <= 1),
    sel text,
    sel_reason text,
    elab text,
    elab_reason text,
    uncoded text,
    n bigint NOT NULL CHECK (n > 0)
);

CREATE INDEX tallies_tile ON tallies (coder, hour);

CREATE INDEX tallies_deployment ON tallies (deployment, coder, hour);

CREATE TABLE ballots (
    hour timestamptz NOT NULL,
    coder text NOT NULL,
    deployment text NOT NULL,
    origin text NOT NULL,
    rubric text NOT NULL,
    votes jsonb NOT NULL,
    n bigint NOT NULL CHECK (n > 0)
);

CREATE INDEX ballots_tile ON ballots (coder, hour);

-- The newest snapshot, replaced as a whole, so that all rows belong together.
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
    n_effective double precision,
    coverage double precision,
    method text,
    flags text[] NOT NULL DEFAULT '{}',
    missing text,
    seed bigint NOT NULL
);

CREATE INDEX estimates_deployment ON estimates (deployment, origin);

CREATE INDEX estimates_metric ON estimates (metric, condition, "window");

-- ## Spending of client keys

-- One row for each key and ledger (a host's file of counters). The total only grows, so writing it twice is harmless.
CREATE TABLE key_spending (
    key_id text NOT NULL REFERENCES client_keys (id),
    ledger uuid NOT NULL,
    nano_usd bigint NOT NULL CHECK (nano_usd >= 0),
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, ledger)
);

-- What a host holds of a key's limits per minute: its share, or what it has used, if that is more.
CREATE TABLE key_shares (
    key_id text NOT NULL REFERENCES client_keys (id),
    ledger uuid NOT NULL,
    requests bigint NOT NULL CHECK (requests >= 0),
    tokens bigint NOT NULL CHECK (tokens >= 0),
    needs_requests boolean NOT NULL,
    needs_tokens boolean NOT NULL,
    renewed_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, ledger)
);

-- ## Reviews by people

-- Rows are only inserted: the newest label of a reviewer for a layer and view counts. `view` is what the reviewer saw: the
-- part of the answer that the layer's coder reads (split), or the whole answer.
CREATE TABLE reviews (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    exchange_id uuid NOT NULL,
    layer text NOT NULL CHECK (layer IN ('sel', 'elab')),
    view text NOT NULL CHECK (view IN ('split', 'whole')),
    reviewer text NOT NULL,
    rubric text NOT NULL,
    label text NOT NULL CHECK (label IN ('E', 'QE', 'N', 'D', 'R', 'Abstain') AND (layer, label) <> ('sel', 'QE')),
    note text,
    at timestamptz NOT NULL,
    -- Whether the reviewer saw that others disagree, and settled it.
    adjudicates boolean NOT NULL DEFAULT false
);

CREATE INDEX reviews_exchange ON reviews (exchange_id, layer, reviewer, id);

-- A random sample of codings: those of one coder and origin, from `since` on, that existed at `drawn_at`.
CREATE TABLE review_draws (
    id text NOT NULL PRIMARY KEY,
    coder text NOT NULL REFERENCES coders (id),
    rubric text NOT NULL,
    origin text NOT NULL,
    deployments text[],
    since timestamptz NOT NULL,
    drawn_at timestamptz NOT NULL,
    settings jsonb NOT NULL
);

CREATE TABLE review_draw_items (
    draw_id text NOT NULL REFERENCES review_draws (id),
    exchange_id uuid NOT NULL,
    position integer NOT NULL CHECK (position >= 0),
    inclusion double precision NOT NULL CHECK (inclusion > 0 AND inclusion <= 1),
    PRIMARY KEY (draw_id, exchange_id)
);

CREATE INDEX review_draw_items_exchange ON review_draw_items (exchange_id);

-- Who is reading an answer of a draw's queue, until when.
CREATE TABLE review_locks (
    draw_id text NOT NULL REFERENCES review_draws (id),
    exchange_id uuid NOT NULL,
    layer text NOT NULL CHECK (layer IN ('sel', 'elab')),
    view text NOT NULL CHECK (view IN ('split', 'whole')),
    reviewer text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (draw_id, exchange_id, layer, view)
);

-- ## Runs of judges over anchors

CREATE TABLE anchor_runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    judge text NOT NULL,
    coder text NOT NULL,
    anchor_set text NOT NULL,
    at timestamptz NOT NULL,
    labels jsonb NOT NULL
);

CREATE INDEX anchor_runs_newest ON anchor_runs (anchor_set, judge, at);

-- ## Comparison with peers

-- A round is one pass over a domain's questions. Its id is a digest of them, so the same round can be resumed.
CREATE TABLE peer_rounds (
    id text NOT NULL PRIMARY KEY,
    domain text NOT NULL,
    created_at timestamptz NOT NULL,
    settings jsonb NOT NULL
);

CREATE INDEX peer_rounds_newest ON peer_rounds (domain, created_at);

CREATE TABLE peer_questions (
    round_id text NOT NULL REFERENCES peer_rounds (id),
    id text NOT NULL,
    theme text NOT NULL,
    question text NOT NULL,
    position integer NOT NULL CHECK (position >= 0),
    PRIMARY KEY (round_id, id)
);

-- The ref is sent in x-biasmeter-ref; planned_instances maps it to the exchange that counts. Mirrored prompts have no
-- row here: their exchange names the client's exchange as its parent, so that a client's text is stored once.
CREATE TABLE peer_calls (
    ref text NOT NULL PRIMARY KEY CHECK (length(ref) <= 64),
    round_id text NOT NULL,
    deployment text NOT NULL,
    question_id text NOT NULL,
    UNIQUE (round_id, deployment, question_id),
    FOREIGN KEY (round_id, question_id) REFERENCES peer_questions (round_id, id)
);

-- Client exchanges of a route with peers that are not mirrored, and the reason. They are not checked again.
CREATE TABLE peer_passed_over (
    exchange_id uuid NOT NULL PRIMARY KEY,
    route text NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL
);

-- A scorer's id is a digest of its description (an encoder's model, revision, instruction and pooling, or a judge's
-- model, prompt and rubric). Another description is another scorer, which scores everything again.
CREATE TABLE peer_scorers (
    id text NOT NULL PRIMARY KEY,
    method text NOT NULL,
    description jsonb NOT NULL,
    first_used_at timestamptz NOT NULL
);

-- Vectors are float32, little-endian. `missing` is the reason where there is no vector or score.
CREATE TABLE peer_vectors (
    exchange_id uuid NOT NULL,
    scorer text NOT NULL REFERENCES peer_scorers (id),
    vector bytea CHECK (length(vector) > 0 AND length(vector) % 4 = 0),
    missing text,
    truncated boolean NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (exchange_id, scorer),
    CHECK ((vector IS NULL) = (missing IS NOT NULL))
);

CREATE TABLE peer_scores (
    exchange_id uuid NOT NULL,
    scorer text NOT NULL REFERENCES peer_scorers (id),
    score smallint CHECK (score BETWEEN 1 AND 10),
    missing text,
    justification text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (exchange_id, scorer),
    CHECK ((score IS NULL) = (missing IS NOT NULL))
);

-- The newest comparison of a domain, or of a route's mirrored prompts, and the digest of its inputs.
CREATE TABLE peer_comparisons (
    domain text NOT NULL PRIMARY KEY,
    as_of timestamptz NOT NULL,
    inputs text NOT NULL,
    document jsonb NOT NULL
);

-- ## Drift monitoring

-- A day is tested as it was when it was closed. Codings made later are counted as late and change nothing.
CREATE TABLE monitor_days (
    coder text NOT NULL REFERENCES coders (id),
    day date NOT NULL,
    closed_at timestamptz NOT NULL,
    watched boolean NOT NULL,
    late bigint NOT NULL CHECK (late >= 0),
    PRIMARY KEY (coder, day)
);

-- `accepted_by` is NULL for the first reference, which nobody had to accept. `content` is what was fitted.
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
    note text,
    CHECK ((until IS NULL) = (content IS NULL))
);

CREATE INDEX monitor_references_newest ON monitor_references (coder, deployment, accepted_at);

-- Without a state nothing is tested, and `told` holds the reason.
CREATE TABLE monitor_watches (
    coder text NOT NULL REFERENCES coders (id),
    deployment text NOT NULL,
    metric text NOT NULL,
    reference_id text NOT NULL REFERENCES monitor_references (id),
    through date NOT NULL,
    state jsonb,
    told jsonb NOT NULL,
    PRIMARY KEY (coder, deployment, metric)
);

-- The id is a digest of the finding's subject, so the same facts never give two findings.
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
    by text,
    -- No alert and no post before this time; null where it is not silenced.
    silenced_until timestamptz
);

CREATE INDEX findings_newest ON findings (first_seen, id);

-- Rows are only inserted.
CREATE TABLE finding_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    finding_id text NOT NULL REFERENCES findings (id),
    at timestamptz NOT NULL,
    action text NOT NULL CHECK (action IN (
        'opened', 'acknowledged', 'answered', 'silenced', 'silence_ended',
        'action_began', 'action_renewed', 'action_ended'
    )),
    by text,
    note text,
    reference_id text,
    until timestamptz
);

CREATE INDEX finding_events_finding ON finding_events (finding_id, id);

-- What findings do to routes. The history of an action is in `finding_events`.
CREATE TABLE route_actions (
    id text NOT NULL PRIMARY KEY,
    finding_id text NOT NULL REFERENCES findings (id),
    route text NOT NULL,
    deployment text NOT NULL,
    level text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('shift_weight', 'stop_sampling', 'notify')),
    "to" text[] NOT NULL,
    share double precision NOT NULL CHECK (share >= 0 AND share < 1),
    dry_run boolean NOT NULL,
    began_at timestamptz NOT NULL,
    -- The newest day that shows the change.
    evidence_day date NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    ended_because text,
    CHECK ((ended_at IS NULL) = (ended_because IS NULL))
);

CREATE INDEX route_actions_newest ON route_actions (began_at, id);

CREATE INDEX route_actions_in_force ON route_actions (route) WHERE ended_at IS NULL;

-- Arms of trials that were stopped, by the rule or by a person. Rows are only inserted.
CREATE TABLE arm_stops (
    trial text NOT NULL,
    arm text NOT NULL,
    dry_run boolean NOT NULL,
    route text NOT NULL,
    at timestamptz NOT NULL,
    by text NOT NULL,
    because text NOT NULL,
    -- What the rule saw.
    detail jsonb NOT NULL,
    PRIMARY KEY (trial, arm, dry_run)
);

-- A finding is posted once in each of its states. `body` holds the bytes that are signed.
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
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE delivered_at IS NULL;

-- ## Rolling windows: running sums of tallies

-- A window of one coder sums the tiles from `since` on.
CREATE TABLE windows (
    coder text NOT NULL,
    "window" text NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (coder, "window")
);

-- One row for each statement under each condition. `counts` is by outcome, a JSON array of both labels with their
-- reasons. `digest` stands for the key, because a cluster's name may be too long for an index.
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
    inclusion double precision NOT NULL CHECK (inclusion > 0 AND inclusion <= 1),
    counts jsonb NOT NULL,
    PRIMARY KEY (coder, "window", digest)
);

CREATE INDEX window_tallies_deployment ON window_tallies (deployment, coder, "window");

CREATE TABLE window_ballots (
    coder text NOT NULL,
    "window" text NOT NULL,
    digest uuid NOT NULL,
    deployment text NOT NULL,
    origin text NOT NULL,
    rubric text NOT NULL,
    counts jsonb NOT NULL,
    PRIMARY KEY (coder, "window", digest)
);

-- ## Prompt exposure found by replays

-- One row for each group and measure of a finished replay. `exposure` is its entry in comparison.json.
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
);
