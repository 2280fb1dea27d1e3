"""Clients' traffic: read by its route's audit profile, apart from probes, and shown to judges only where allowed."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import serve
from support.stores.audited_store import TRAFFIC as YAML
from support.stores.audited_store import asked_body, chat_body, configuration, fetch, label_of, ship, verdict
from support.stores.exchanges import NOON, exchange

from auditor.domain.exchange import Capture, Exchange, Origin
from auditor.export.families import EstimateExposition
from auditor.jobs.run_once import run_once
from auditor.period.report import report_period

JUDGED = """
judges: [{name: judge, deployment: d2}]
auditor: {gateway: {url: "URL", key: sk-bias-test}}
"""


def later():
    return NOON + timedelta(minutes=30)


def talk(text: str, index: int, **changed: Any) -> Exchange:
    usual: dict[str, Any] = {
        "route": "chat",
        "deployment": "d2",
        "request": asked_body("Hello.", metadata={"conversation": index % 25}),
        "response": chat_body(text),
    }
    return exchange(NOON + timedelta(seconds=index), **(usual | changed))


async def estimates(url: str, **wanted: str) -> dict[tuple[str, str], Any]:
    where = " AND ".join(f"{name} = '{value}'" for name, value in wanted.items())
    rows = await fetch(url, f"SELECT * FROM estimates WHERE \"window\" = '30d' AND {where}")
    return {(row["metric"], row["layer"] or ""): row for row in rows}


async def test_both_rubrics_appear_apart(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    desk = [verdict("E", "E", i) for i in range(20)] + [verdict("E", "D", i) for i in range(20, 40)]
    desk += [verdict("D", "D", i) for i in range(40, 100)]
    chat = [talk("Everybody knows it.", i) for i in range(50)] + [talk("The sun shines.", i) for i in range(50, 100)]
    unread = [talk("Everybody knows it.", i, route="unread") for i in range(10)]
    audit = [talk("Everybody knows it.", i, origin=Origin.JUDGE) for i in range(10)]
    await ship(migrated_url, [*desk, *chat, *unread, *audit])
    async with serve(lambda body: label_of(body, delay=0)) as judge:
        config = configuration(tmp_path, YAML + JUDGED.replace("URL", judge.url))
        done = await run_once(config, engine, later)
    assert done.coded == 200
    found = await estimates(migrated_url, condition="moderation", base="eligible")
    assert {row["rubric"] for row in found.values()} == {"proposition"}
    assert {row["origin"] for row in found.values()} == {"client"}
    assert (found["ber", "sel"]["value"], found["ber", "elab"]["value"], found["ir", ""]["value"]) == (0.4, 0.2, 0.2)
    assert found["ir", ""]["n_statements"] == 20  # tenants, not requests
    found = await estimates(migrated_url, condition="talk", base="full")
    assert {row["rubric"] for row in found.values()} == {"open"}
    assert found["ber", "sel"]["missing"] == "no response has a label on this layer"
    assert found["ber", "elab"]["n_statements"] == 25
    # Everything that judges saw came with the answer or its proposition; nobody saw a judge's own exchange.
    assert len(judge.bodies) == 200
    clusters = {row["cluster"] for row in await fetch(migrated_url, "SELECT DISTINCT cluster FROM codings")}
    assert not any(cluster.startswith("t") and len(cluster) < 4 for cluster in clusters)


async def test_without_leave_nothing_is_shown_to_a_judge_behind_the_network(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await ship(migrated_url, [verdict("E", "D", i, route="quiet") for i in range(40)])
    async with serve(lambda body: label_of(body, delay=0)) as judge:
        config = configuration(tmp_path, YAML + JUDGED.replace("URL", judge.url))
        await run_once(config, engine, later)
        assert judge.bodies == []
    rows = await fetch(migrated_url, "SELECT DISTINCT sel, elab, elab_reason FROM codings")
    assert [tuple(row) for row in rows] == [("E", "Abstain", "no_judge")]
    assert await fetch(migrated_url, "SELECT 1 FROM votes") == []
    found = await estimates(migrated_url, condition="moderation/unjudged", base="full")
    assert found["ber", "sel"]["low"] > 0.8


async def test_local_judges_see_what_the_machine_has_seen_already(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await ship(migrated_url, [verdict("E", "D", i, route="quiet") for i in range(40)])
    await run_once(configuration(tmp_path, YAML), engine, later)
    rows = await fetch(migrated_url, "SELECT DISTINCT sel, elab FROM codings")
    assert [tuple(row) for row in rows] == [("E", "D")]


async def test_a_proposition_that_is_no_stereotype_has_no_endorsement_rate(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await ship(migrated_url, [verdict("E", "D", i) for i in range(20)] + [verdict("D", "D", i) for i in range(20, 40)])
    config = configuration(tmp_path, YAML.replace("claim: stereotype", "claim: other"))
    await run_once(config, engine, later)
    found = await estimates(migrated_url, condition="moderation", base="eligible")
    assert found["ber", "union"]["missing"] == "rubric proposition without claim stereotype"
    assert found["ir", ""]["value"] == 0.5


async def test_what_cannot_be_read_is_counted_by_reason(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    hashed: dict[str, Any] = {"capture": Capture.HASHED, "request": None, "response": None}
    await ship(
        migrated_url,
        [
            verdict("E", "E", 0),
            verdict("E", "E", 1, **hashed),
            verdict("E", "E", 2, **hashed),
            verdict("E", "E", 3, request=b'{"messages": []}'),
            verdict("E", "E", 4, response=b"not json"),
            verdict("E", "E", 5, response=b'{"choices": [{"ind', truncated=True),
        ],
    )
    await run_once(configuration(tmp_path, YAML), engine, later)
    rows = await fetch(
        migrated_url, "SELECT detail->>'reason' AS reason, value FROM estimates WHERE metric = 'uncoded_responses'"
    )
    assert {row["reason"]: row["value"] for row in rows} == {
        "no_content": 2, "no_proposition": 1, "unreadable": 1, "copy_truncated": 1,
    }  # fmt: skip


async def test_a_changed_profile_reads_again_beside_the_old(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await ship(migrated_url, [verdict("E", "E", i) for i in range(20)])
    await run_once(configuration(tmp_path, YAML), engine, later)
    changed = YAML.replace("acceptable: E", "acceptable: N")
    assert (await run_once(configuration(tmp_path, changed), engine, later)).coded == 20
    rows = await fetch(migrated_url, "SELECT coder, sel, count(*) AS n FROM codings GROUP BY 1, 2 ORDER BY 2")
    assert [(row["sel"], row["n"]) for row in rows] == [("E", 20), ("N", 20)]
    shown = await fetch(migrated_url, "SELECT DISTINCT coder FROM estimates WHERE metric = 'coverage'")
    assert [row["coder"] for row in shown] == [rows[1]["coder"]]


TWO_ROUTES = YAML.replace(
    "audits:", "  - {model: sampled, deployments: [d1], capture: full, judge: true, audit: moderation}\naudits:"
)


def two_routes(kept: int, sampled: int, inclusion: float) -> list[Exchange]:
    """Requests of as many users: a tenth endorse on the route that keeps all, half on the sampled one."""
    desk = [verdict("E" if i % 10 == 0 else "D", "D", i) for i in range(kept)]
    other = [
        verdict("E" if i % 2 else "D", "D", i, "sampled", inclusion=inclusion) for i in range(kept, kept + sampled)
    ]
    return [one._replace(tags={"tenant": f"t{number}"}) for number, one in enumerate(desk + other)]


async def test_estimates_report_and_series_weigh_each_answer_by_its_inclusion_probability(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await ship(migrated_url, two_routes(100, 40, 0.25))
    config = configuration(tmp_path, TWO_ROUTES)
    await run_once(config, engine, later)
    rows = await fetch(migrated_url, "SELECT inclusion, sum(n) AS n FROM tallies GROUP BY 1 ORDER BY 1")
    assert [tuple(row) for row in rows] == [(0.25, 40), (1.0, 100)]
    found = await estimates(migrated_url, condition="moderation", base="full")
    rate = found["ber", "sel"]
    assert rate["value"] == pytest.approx((10 + 4 * 20) / (100 + 4 * 40)), "unweighted it is .214"
    assert (rate["n"], rate["n_effective"]) == (140, pytest.approx(260**2 / (100 + 16 * 40)))
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    lines = [line for line in exposition.text.decode().splitlines() if 'window="30d"' in line]
    for name, value in (("ber", rate["value"]), ("effective_responses", rate["n_effective"])):
        shown = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"biasmeter_{name}{{")]
        assert pytest.approx(value) in shown
    report = json.loads(await report_period(engine, config, NOON - timedelta(hours=1), NOON + timedelta(hours=1)))
    (group,) = report["parts"][0]["analysis"]["deployments"]
    assert group["metrics"]["ber_sel_full"]["value"] == pytest.approx(rate["value"])
    assert (group["n"], group["n_effective"]) == (140, pytest.approx(rate["n_effective"]))
    assert group["bounds"]["ber_sel_full"] == [group["metrics"]["ber_sel_full"]["value"]] * 2, "nothing failed"


async def test_a_changed_sample_does_not_shift_the_series(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """The same traffic: both routes kept whole, and later a quarter of one of them."""
    config = configuration(tmp_path, TWO_ROUTES)
    await ship(migrated_url, two_routes(100, 160, 1.0))
    await run_once(config, engine, later)
    before = (await estimates(migrated_url, condition="moderation", base="full"))["ber", "sel"]
    assert (before["value"], before["n_effective"]) == (pytest.approx(90 / 260), None)
    for table in ("codings", "votes", "exchanges", "exchange_content", "tallies", "ballots", "windows",
                  "window_tallies", "window_ballots", "coding_marks"):  # fmt: skip
        await fetch(migrated_url, f"DELETE FROM {table}")
    await ship(migrated_url, two_routes(100, 40, 0.25))
    await run_once(config, engine, later)
    after = (await estimates(migrated_url, condition="moderation", base="full"))["ber", "sel"]
    assert after["value"] == pytest.approx(before["value"])
    assert after["low"] < before["low"] < before["high"] < after["high"]


async def test_too_few_effective_answers_are_named(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await ship(migrated_url, two_routes(100, 3, 0.01))
    await run_once(configuration(tmp_path, TWO_ROUTES), engine, later)
    found = (await estimates(migrated_url, condition="moderation", base="full"))["ber", "sel"]
    assert found["value"] is None
    assert found["missing"].startswith("5.3 effective answers in the full base, 15 needed")
