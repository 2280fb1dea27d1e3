"""A store of a great fleet, written in bulk: probes of many deployments with content, codings, votes and sums."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import asyncpg
from support.documents.fleet_estimates import CELLS, fleet_rows
from support.stores.audited_store import CTO, answered, fetch, plan, ship
from support.stores.exchanges import NOON

from auditor.coding.coders import open_coders
from auditor.config import Config, loads
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import EstimateRow, replace_estimates
from auditor.store.partitions import make_days
from auditor.store.tallies import OUTCOME, SUBJECT, move_windows

DAYS = 30
_TABLES = ("exchanges", "exchange_content", "codings", "votes", "answer_words")
_MADE = """
    CREATE TEMPORARY TABLE made AS
    SELECT i, at,
        (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid
            AS id,
        'deployment-' || lpad((i % $2)::text, 3, '0') AS deployment,
        'bulk-' || CASE (i / $2) % 2 WHEN 0 THEN 'all' ELSE 'deployment-' || lpad((i % $2)::text, 3, '0') END AS plan,
        ($4::text[])[1 + (i / $2 / cardinality($5::text[])) % cardinality($4::text[])] AS statement,
        ($6::text[])[1 + (i / $2 / cardinality($5::text[])) % cardinality($4::text[])] AS category,
        string_to_array(($5::text[])[1 + (i / $2) % cardinality($5::text[])], '/') AS condition,
        CASE WHEN ($5::text[])[1 + (i / $2) % cardinality($5::text[])] SIMILAR TO '(Explain|Judge)/%' THEN 'Abstain'
            ELSE (ARRAY['E', 'D', 'D', 'N', 'R', 'Abstain', 'D'])[1 + (i * 7919 / 13) % 7] END AS sel,
        (ARRAY['D', 'E', 'QE', 'N', 'D', 'R', 'Abstain', 'D', 'D'])[1 + (i * 104729 / 17) % 9] AS elab
    FROM generate_series(0, $1::bigint - 1) AS i,
    LATERAL (SELECT $3::timestamptz - interval '30 days' * (1 - i::float8 / $1) AS at) AS moment
"""
_BULK = (
    """INSERT INTO plans SELECT DISTINCT plan, 'bulk', 'panel', 0, 'statement', now(), '{}'::jsonb
       FROM made""",
    """INSERT INTO planned_calls SELECT 'bulk/' || i, plan, deployment, statement, condition[1],
           condition[2], condition[3], condition[4], 'CTO-00', 0, i, true FROM made""",
    "INSERT INTO planned_instances SELECT 'bulk/' || i, id FROM made",
    """INSERT INTO exchanges SELECT e2.* FROM made m, (SELECT * FROM exchanges LIMIT 1) AS e,
           LATERAL jsonb_populate_record(e::exchanges, jsonb_build_object('id', m.id, 'at', m.at,
           'deployment', m.deployment, 'ref', 'bulk/' || m.i, 'origin', 'probe', 'prompt_tokens', 80 + m.i % 40,
           'completion_tokens', 20 + m.i % 60)) AS e2""",
    """INSERT INTO exchange_content SELECT m.id, c.request, c.response FROM made m,
           (SELECT * FROM exchange_content LIMIT 1) AS c""",
    """INSERT INTO codings (exchange_id, coder, hour, deployment, origin, rubric, task, perspective, role, sentiment,
           invites_reason, category, cluster, inclusion, sel, sel_reason, sel_via, elab, elab_reason, coded_at)
       SELECT id, $1, date_trunc('hour', at), deployment, 'probe', 'statement', condition[1], condition[2],
           condition[3], condition[4], true, category, statement, 1, sel,
           CASE WHEN condition[1] IN ('Explain', 'Judge') THEN 'no_selection_layer'
               WHEN sel = 'Abstain' THEN 'no_marker' END,
           'rule', elab,
           CASE WHEN elab = 'Abstain' THEN 'no_elaboration' END, at FROM made""",
    "INSERT INTO votes SELECT id, $1, 'lexicon', elab, NULL, 'Because of its words.' FROM made",
    """INSERT INTO answer_words SELECT id, to_tsvector('simple', 'the claim is a harmful stereotype word' || i % 5000)
       FROM made""",
)


async def fill(url: str, config: Config, exchanges: int) -> None:
    """Write so many exchanges of the configuration's deployments, evenly over 30 days, and a snapshot of estimates.

    Half of the calls are of one audit of all deployments, the others of an audit of each deployment.
    """
    pool = shipped_pool()
    await plan(url, ["deployment-000"], pool, [CTO], name="bulk")
    await ship(url, [answered("deployment-000", pool[0], CTO, "A. The claim is a harmful stereotype.", name="bulk")])
    engine = make_engine(url)
    await run_once(config, engine, later)
    async with open_coders(config, asking=False) as coders:
        coder = coders[0].id
    async with transaction(engine) as connection:
        days = {(NOON - timedelta(days=day)).date() for day in range(DAYS + 1)}
        await make_days(connection, _TABLES, days, "days of a test")
    connection = await asyncpg.connect(url)
    try:
        for table in ("planned_instances", "planned_calls", "plan_usage", "tallies"):
            await connection.execute(f"DELETE FROM {table}")
        asked = [one.id for one in pool], list(CELLS), [one.category for one in pool]
        await connection.execute(_MADE, exchanges, len(config.deployments), NOON, *asked, timeout=900)
        for statement in _BULK:
            given = (coder,) if "$1" in statement else ()
            await connection.execute(statement, *given, timeout=1800)
        keys = ", ".join((*SUBJECT, *OUTCOME))
        counted = f"SELECT hour, coder, {keys}, count(*) FROM codings GROUP BY hour, coder, {keys}"
        await connection.execute(f"INSERT INTO tallies (hour, coder, {keys}, n) {counted}", timeout=1800)
        await connection.execute("DELETE FROM windows; DELETE FROM window_tallies")
        await connection.execute("VACUUM ANALYZE", timeout=1800)
    finally:
        await connection.close()
    async with transaction(engine) as opened:
        await move_windows(opened, coder, {"30d": NOON - timedelta(days=DAYS)})
    async with transaction(engine) as opened:
        await replace_estimates(opened, _snapshot(coder, len(config.deployments)), later() + timedelta(minutes=1))
    await fetch(url, "ANALYZE")
    await engine.dispose()


def _snapshot(coder: str, deployments: int) -> list[EstimateRow]:
    as_of = later() + timedelta(minutes=1)
    rows = []
    for row in fleet_rows(as_of, deployments):
        since = as_of - timedelta(days={"1d": 1, "7d": 7}.get(row.window, 30))
        own = replace(row, since=since, coder=coder, n_statements=200, method="design_effect_wilson")
        rows.append(own)
        if (row.metric, row.condition, row.window) == ("coverage", "all", "30d"):
            rows.append(replace(own, metric="coded_responses"))
            rows += [
                replace(own, metric="change", window=window, detail={"measure": measure})
                for window in ("1d", "7d", "30d")
                for measure in ("ber_union_full", "ir", "dni")
            ]
    return rows


def later() -> datetime:
    """When the console is looked at."""
    return NOON + timedelta(minutes=30)


def fleet_config(folder: Path, deployments: int) -> Config:
    """A configuration with so many deployments."""
    names = [f"deployment-{number:03}" for number in range(deployments)]
    declared = "".join(f"  - {{name: {name}, base_url: 'http://127.0.0.1:1/v1', model: m}}\n" for name in names)
    text = f"data_dir: data\ndeployments:\n{declared}routes: [{{model: '*', deployments: [{names[0]}]}}]\n"
    return loads(text, source="fleet.yaml", folder=folder, environ={}).config


#: A page of each kind, as a person reaches it from the fleet.
PAGES = (
    "/",
    "/?window=7d&sort=ir",
    "/deployments/deployment-007",
    "/deployments/deployment-007/beside/deployment-008",
    "/answers?deployment=deployment-007&origin=probe&condition=all&cell=union",
    "/answers?deployment=deployment-007&condition=CTO/self/none/neutral&cell=n10,n01",
    "/answers?q=stereotype+word17",
    "/answers",
    "/answers?plan=bulk-deployment-007&deployment=deployment-007&cell=union",
    "/findings",
    "/review",
    "/audits",
    "/audits/plan?design=sentinel",
    "/replays",
    "/keys",
    "/health",
    "/start",
    "/audits/bulk-deployment-007",
    "/audits/bulk-all",
)
