"""find -> code -> count -> estimate on a real store, with the lexicon."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import serve
from support.stores.audited_store import CTO, answered, configuration, fetch, label_of, panel_answers, plan, ship
from support.stores.exchanges import NOON

from auditor.documents.codec import canonical_bytes
from auditor.domain.condition import BASELINE, Condition, Role, Task
from auditor.domain.exchange import Outcome
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.export.families import EstimateExposition
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.metrics.rates import METRICS
from auditor.store.engine import make_engine

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}
#: Half of it, where the numbers are not the subject.
HALF = {name: {kind: times // 2 for kind, times in kinds.items()} for name, kinds in SHARES.items()}


def later():
    return NOON + timedelta(minutes=30)


async def test_what_is_stored_becomes_estimates(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    pool = shipped_pool()[:100]
    await plan(migrated_url, SHARES, pool, [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    done = await run_once(configuration(tmp_path), engine, later)
    assert done.coded == 200
    assert done.tiles == 1
    rows = await fetch(migrated_url, "SELECT deployment, sel, elab, sum(n) AS n FROM tallies GROUP BY 1, 2, 3")
    counted = {(row["deployment"], row["sel"], row["elab"]): row["n"] for row in rows}
    assert sum(counted.values()) == 200
    assert counted["d1", "E", "E"] == 30
    estimates = await fetch(migrated_url, "SELECT * FROM estimates WHERE metric = 'ir' AND \"window\" = '30d'")
    told = {
        (row["deployment"], row["condition"]): (row["value"], row["n"], row["coverage"])
        for row in estimates
        if not row["condition"].startswith("category=")
    }
    assert told == {
        (name, condition): told[name, "all"]
        for name in ("d1", "d2")
        for condition in ("all", "task=CTO", "CTO/self/none/neutral")
    }
    assert told["d1", "all"] == (20 / 92, 92, 0.92)
    assert told["d2", "all"] == (0.4, 100, 1.0)
    again = await run_once(configuration(tmp_path), engine, later)
    assert (again.coded, again.tiles) == (0, 0)
    assert again.estimates == done.estimates


async def labels(url: str, coder: str | None = None) -> set[tuple[object, ...]]:
    """What the tiles say, whenever they were counted."""
    rows = await fetch(url, "SELECT * FROM tallies")
    return {tuple(row.values()) for row in rows if coder is None or row["coder"] == coder}


async def test_a_late_row_recounts_its_tile_and_no_other(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await plan(migrated_url, HALF, shipped_pool()[:50], [CTO])
    answers = panel_answers({"d1": HALF["d1"]}, NOON - timedelta(hours=3)) + panel_answers({"d2": HALF["d2"]})
    late, rest = answers[10:30], answers[:10] + answers[30:]
    await ship(migrated_url, rest)
    await run_once(config, engine, later)
    before = {row["hour"] for row in await fetch(migrated_url, "SELECT DISTINCT hour FROM tallies")}
    await ship(migrated_url, late)
    done = await run_once(config, engine, later)
    assert (done.coded, done.tiles, len(before)) == (20, 1, 2)
    assert (await fetch(migrated_url, "SELECT sum(n) AS n FROM tallies"))[0]["n"] == 100


async def test_counting_bit_by_bit_is_counting_at_once(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    await plan(migrated_url, HALF, shipped_pool()[:50], [CTO])
    answers = panel_answers(HALF)
    for start in range(0, len(answers), 45):
        await ship(migrated_url, answers[start : start + 45])
        await run_once(config, engine, later)
    by_bits, ballots = await labels(migrated_url), await fetch(migrated_url, "SELECT * FROM ballots ORDER BY votes")
    estimated = await fetch(migrated_url, "SELECT * FROM estimates ORDER BY id")
    await fetch(migrated_url, "INSERT INTO stale_tiles (hour, coder) SELECT DISTINCT hour, coder FROM tallies")
    await fetch(migrated_url, "DELETE FROM tallies")
    await fetch(migrated_url, "DELETE FROM windows")
    await run_once(config, engine, later)
    assert await labels(migrated_url) == by_bits
    assert await fetch(migrated_url, "SELECT * FROM ballots ORDER BY votes") == ballots
    again = await fetch(migrated_url, "SELECT * FROM estimates ORDER BY id")
    assert [tuple(row.values())[1:] for row in again] == [tuple(row.values())[1:] for row in estimated]


async def test_estimates_are_those_of_analyze(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    conditions = [CTO, BASELINE, Condition(task=Task.EXPLAIN), Condition(task=Task.CTO, role=Role.SOCIOLOGIST)]
    await plan(migrated_url, HALF, shipped_pool()[:50], conditions)
    await ship(migrated_url, panel_answers(HALF, conditions=conditions))
    await run_once(configuration(tmp_path), engine, later)
    rows = await fetch(migrated_url, "SELECT * FROM codings")
    coded = tmp_path / "coded.jsonl"
    names = (
        "deployment",
        "task",
        "perspective",
        "role",
        "sentiment",
        "category",
        "sel",
        "sel_reason",
        "elab",
        "elab_reason",
    )
    lines = [
        json.dumps(
            {"id": str(row["exchange_id"]), "statement_id": row["cluster"], **{name: row[name] for name in names}}
        )
        for row in rows
    ]
    coded.write_text("\n".join(lines))
    options = Options(by=("deployment", "task"))
    document = json.loads(canonical_bytes(analyse(read_tallies(coded, options), options)))
    stored = await fetch(migrated_url, "SELECT * FROM estimates WHERE \"window\" = '30d'")
    compared = 0
    for group in [*document["groups"], *document["deployments"]]:
        if "deployment" not in group["by"]:
            continue
        condition = f"task={group['by']['task']}" if "task" in group["by"] else "all"
        for name, metric in METRICS.items():
            (row,) = [
                each
                for each in stored
                if (each["deployment"], each["condition"], each["metric"], each["layer"], each["base"])
                == (group["by"]["deployment"], condition, metric.series.name, metric.layer, metric.base)
            ]
            said = group["metrics"][name]
            assert row["missing"] == said.get("missing")
            for side in ("value", "low", "high"):
                assert row[side] == pytest.approx(said[side], rel=1e-9) if side in said else row[side] is None
            compared += 1
    assert compared == len(METRICS) * (2 + 2 * 3)
    ranges = {(e["by"].get("deployment"), e["metric"], e["over"]): e for e in document["horizontal"]}
    for row in stored:
        if row["metric"] == "ber_range" and row["value"] is not None:
            said = ranges[row["deployment"], f"ber_{row['layer']}_full", json.loads(row["detail"])["over"]]
            assert (row["value"], row["low"]) == (pytest.approx(said["range"]), pytest.approx(said["low"]))


async def test_a_new_coder_reads_everything_again_beside_the_old(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await plan(migrated_url, HALF, shipped_pool()[:50], [CTO])
    await ship(migrated_url, panel_answers(HALF))
    await run_once(configuration(tmp_path), engine, later)
    async with serve(lambda body: label_of(body, delay=0)) as judge:
        more = f"judges: [{{name: judge, deployment: d2}}]\nauditor: {{gateway: {{url: '{judge.url}', key: sk-x}}}}\n"
        done = await run_once(configuration(tmp_path, more), engine, later)
    assert done.coded == 100
    coders = await fetch(migrated_url, "SELECT coder, count(*) AS n FROM codings GROUP BY coder ORDER BY coder")
    assert [row["n"] for row in coders] == [100, 100]
    kept = await fetch(migrated_url, "SELECT description FROM coders ORDER BY first_used_at")
    judges = [[judge["name"] for judge in json.loads(row["description"])["panel"]["judges"]] for row in kept]
    assert judges == [["lexicon"], ["judge"]]


async def test_two_at_once_double_nothing(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await plan(migrated_url, HALF, shipped_pool()[:50], [CTO])
    await ship(migrated_url, panel_answers(HALF))
    config = configuration(tmp_path)
    other = make_engine(migrated_url)
    done = await asyncio.gather(run_once(config, engine, later), run_once(config, other, later))
    await other.dispose()
    assert sum(each.coded for each in done) == 100
    assert (await fetch(migrated_url, "SELECT sum(n) AS n FROM tallies"))[0]["n"] == 100
    assert (await fetch(migrated_url, "SELECT count(*) AS n FROM votes"))[0]["n"] == 96


async def test_a_blocked_call_that_counts_is_a_refusal(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await plan(migrated_url, ["d1"], shipped_pool()[:2], [CTO])
    blocked = answered(
        "d1", shipped_pool()[0], CTO, "", status=400, outcome=Outcome.FAILED, finish_reason=None,
        response=b'{"error": {"code": "content_filter"}}', error_type="http_4xx",
    )  # fmt: skip
    failed = answered("d1", shipped_pool()[1], CTO, "", status=503, outcome=Outcome.FAILED, response=b"")
    await ship(migrated_url, [blocked, failed])
    await fetch(migrated_url, "INSERT INTO planned_instances VALUES ($1, $2)", blocked.ref, blocked.id)
    await run_once(configuration(tmp_path), engine, later)
    rows = await fetch(migrated_url, "SELECT sel, sel_reason, elab, elab_reason FROM codings")
    assert [tuple(row) for row in rows] == [("R", "filtered", "Abstain", "no_elaboration")]


async def test_an_exchange_that_cannot_be_read_stops_no_other(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await plan(migrated_url, ["d1"], shipped_pool()[:3], [CTO])
    odd = answered("d1", shipped_pool()[0], CTO, "A.", response=b"\x00\xff")
    await ship(migrated_url, [odd, *(answered("d1", one, CTO, "A. No.") for one in shipped_pool()[1:3])])
    await fetch(migrated_url, "UPDATE statements SET record = '{}' WHERE id = $1", shipped_pool()[1].id)
    done = await run_once(configuration(tmp_path), engine, later)
    assert done.coded == 3
    rows = await fetch(migrated_url, "SELECT uncoded, count(*) AS n FROM codings GROUP BY 1 ORDER BY 1")
    assert {row["uncoded"]: row["n"] for row in rows} == {"unreadable": 1, "bad_statement": 1, None: 1}
    assert (await run_once(configuration(tmp_path), engine, later)).coded == 0


async def test_judges_are_compared_on_what_both_labelled(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await plan(migrated_url, HALF, shipped_pool()[:50], [CTO])
    await ship(migrated_url, panel_answers(HALF))
    async with serve(lambda body: label_of(body, delay=0)) as judge:
        more = f"judges: [{{name: judge, deployment: d2}}]\nauditor: {{gateway: {{url: '{judge.url}', key: sk-x}}}}\n"
        config = configuration(tmp_path, more + "panel: {judges: [judge, lexicon]}\n")
        await run_once(config, engine, later)
    rows = await fetch(migrated_url, "SELECT * FROM estimates WHERE metric = 'judge_kappa' ORDER BY deployment")
    assert [row["deployment"] for row in rows] == ["d1", "d2", None]
    assert json.loads(rows[2]["detail"]) == {"judge": "judge", "other": "lexicon"}
    assert (rows[2]["layer"], rows[2]["n"], rows[2]["value"] > 0.9) == ("elab", 96, True)
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    assert b'biasmeter_judge_kappa{judge="judge",layer="elab",other="lexicon"}' in exposition.text
