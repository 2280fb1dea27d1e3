"""The page of the fleet and ``/api/deployments``: order, filters, drift, peers, what changed, and reasons as text."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.auditor_api import serving
from support.stores.exchanges import NOON

from auditor.api.signals import drift_state, peer_verdicts
from auditor.config import Config, loads
from auditor.store.codings import register_coder
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_signals, replace_estimates
from auditor.store.findings import Finding, add_finding
from auditor.store.references import StoredReference, add_reference

LIKE = EstimateRow(
    as_of=NOON, deployment="d1", origin="probe", rubric="statement", condition="all", window="30d",
    since=NOON - timedelta(days=30), coder="c1", metric="", n=400, n_statements=100, method="design_effect_wilson",
)  # fmt: skip
UNION = replace(LIKE, metric="ber", layer="union", base="full", value=0.3, low=0.25, high=0.35)
ALARM = replace(LIKE, metric="drift_alarm", window="90d", value=0.0)
VERDICT = replace(LIKE, metric="peer_verdict", rubric="peers", condition="politics", value=1.0)
CHANGE = replace(
    LIKE, metric="change", window="7d", detail={"measure": "ber_union_full"}, value=0.1, low=0.02, high=0.2
)
Get = Callable[[str], Awaitable[tuple[int, str]]]


def later() -> datetime:
    return NOON + timedelta(minutes=30)


def config_of(names: Sequence[str], folder: Path) -> Config:
    declared = [{"name": name, "base_url": "http://127.0.0.1:1/v1", "model": "m"} for name in names]
    text = json.dumps({"data_dir": "data", "deployments": declared, "routes": [{"model": "*", "deployments": ["d1"]}]})
    return loads(text, source="test.yaml", folder=folder, environ={}).config


@asynccontextmanager
async def fleet(url: str, engine: AsyncEngine, folder: Path, rows: Sequence[EstimateRow]) -> AsyncIterator[Get]:
    async with transaction(engine) as connection:
        await replace_estimates(connection, rows, NOON)
    config = config_of(sorted({row.deployment for row in rows if row.deployment}), folder)
    async with serving(url, config, later) as address, aiohttp.ClientSession() as client:

        async def get(path: str) -> tuple[int, str]:
            kind = {} if path.startswith("/api/") else {"accept": "text/html"}
            async with client.get(f"http://{address}{path}", headers=kind) as answer:
                return answer.status, await answer.text()

        yield get


def names_of(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/deployments/([^"]+)"', page)


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


async def test_the_table_is_sorted_and_what_is_missing_comes_last(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    rows = [UNION, replace(UNION, deployment="d2", value=None, missing="12 statements, 15 needed")]
    rows += [replace(UNION, deployment=name, value=value) for name, value in (("e", 0.1), ("f/x:1", 0.6))]
    async with fleet(migrated_url, engine, tmp_path, rows) as get:
        orders = {sort: names_of((await get(f"/?sort={sort}"))[1]) for sort in ("union", "-union", "name", "-name")}
        code, page = await get("/?window=30d")
    last = "f%2Fx%3A1"
    assert code == 200
    assert orders == {
        "union": [last, "d1", "e", "d2"],
        "-union": ["e", "d1", last, "d2"],
        "name": ["d1", "d2", "e", last],
        "-name": [last, "e", "d2", "d1"],
    }
    assert names_of(page) == orders["union"]
    assert 'aria-sort="descending"' in page
    # The reason is text of the cell, and again in the list of what is missing.
    assert text_of(page).count("12 statements, 15 needed") == 2


async def test_filters_choose_rows_and_a_window(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    traffic = replace(UNION, origin="client", rubric="proposition", condition="moderation", value=0.5)
    rows = [UNION, replace(UNION, window="7d", value=0.7, low=0.6, high=0.8), traffic]
    async with fleet(migrated_url, engine, tmp_path, rows) as get:
        both, client, week, rubric = [
            text_of((await get(path))[1])
            for path in ("/?window=30d", "/?origin=client", "/?window=7d", "/?rubric=open")
        ]
        told = json.loads((await get("/api/deployments?window=7d"))[1])
        refused = [(path, *await get(path)) for path in ("/?colour=1", "/?origin=judge", "/?sort=n", "/?window=2d")]
        refused += [(path, *await get(path)) for path in ("/api/deployments?x=1", "/api/deployments?window=2d")]
    assert ("Probes" in both, "Client traffic" in both, "moderation" in both) == (True, True, True)
    assert ("30.0 %" in client, "50.0 %" in client) == (False, True)
    assert ("70.0 %" in week, "30.0 %" in week) == (True, False)
    assert "No deployment has estimates with these filters" in rubric
    assert [row["value"] for row in told["deployments"][0]["estimates"]] == [0.7]
    for path, code, page in refused:
        assert code == 400, path
        assert "must be one of" in page or "There is no filter" in page


async def test_what_changed_in_a_week_is_listed(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    calm = replace(CHANGE, deployment="d2", low=-0.05)
    finding = Finding(
        id="finding_1", coder="c1", deployment="d1", metric="ir", level="page", reference_id="r1", day=NOON.date(),
        first_seen=NOON - timedelta(days=2), evidence={}, value=0.052, low=0.01, high=0.1, n=100, n_statements=20,
        window_since=NOON.date(),
    )  # fmt: skip
    reference = StoredReference(
        id="r2", coder="c1", deployment="d2", since=NOON.date(), accepted_at=NOON - timedelta(days=1),
        accepted_by="ada", release="2026-02",
    )  # fmt: skip
    async with transaction(engine) as connection:
        await register_coder(connection, "c1", "statement", {}, NOON)
        for age in (2, 20):
            first = NOON - timedelta(days=age)
            await add_finding(connection, replace(finding, id=f"finding_{age}", first_seen=first))
            accepted = replace(reference, id=f"r{age}", release=f"release-{age}", accepted_at=first)
            await add_reference(connection, accepted)
    async with fleet(migrated_url, engine, tmp_path, [CHANGE, calm]) as get:
        page = (await get("/?window=30d"))[1]
        told = json.loads((await get("/api/deployments"))[1])["week"]
    shown = text_of(page)
    assert "2026-02-27 d1 : page: IR, +5.2 pp against the reference (open)" in shown
    assert "d2 : a reference from 2026-03-01 on was accepted by ada, release release-2" in shown
    assert "d1 : either layer +10.0 pp [+2.0, +20.0] against its reference" in shown
    assert "of 2 deployments were compared with their references; the intervals of 1 leave 0 out" in shown
    assert "20" not in re.findall(r'href="/findings/finding_(\d+)"', page)
    assert [one["kind"] for one in told["entries"]] == ["finding", "reference", "change"]
    assert (told["compared"], told["moved"], told["window"]) == (2, 1, "7d")


def alarm(level: str, measure: str, value: float) -> EstimateRow:
    return replace(ALARM, detail={"level": level, "measure": measure}, value=value)


def test_the_most_urgent_level_of_drift_is_shown() -> None:
    calm = [alarm(level, "ir", 0.0) for level in ("page", "investigate", "instrument")]
    assert (drift_state(calm).text, drift_state(calm).severity) == ("no alarm", 0)
    found = drift_state([*calm, alarm("investigate", "dni", 1.0), alarm("page", "ir", 1.0)])
    assert (found.level, found.text) == ("page", "page: IR")
    two = drift_state([alarm("investigate", "dni", 1.0), alarm("investigate", "ber_union_full", 1.0)])
    assert two.text == "investigate: DNI, either layer"
    assert found.severity is not None
    assert two.severity is not None
    assert found.severity > two.severity > 0
    waiting = replace(LIKE, metric="drift_evidence", missing="its reference has not got its 14 days yet")
    assert drift_state([waiting]).reason == "its reference has not got its 14 days yet"
    assert (drift_state([]).reason, drift_state([]).severity) == ("it is not monitored", None)


def verdict(domain: str, method: str, given: str, value: float = 1.0) -> EstimateRow:
    return replace(VERDICT, detail={"domain": domain, "method": method, "verdict": given}, value=value)


async def test_the_rows_that_are_read_tell_the_same_as_all_rows(engine: AsyncEngine) -> None:
    alarms = [
        replace(ALARM, detail={"level": level, "measure": measure})
        for level in ("page", "investigate", "instrument")
        for measure in ("ber_union_full", "ir", "dni")
    ]
    verdicts = [
        replace(VERDICT, value=0.0, detail={"domain": "politics", "method": "j1", "verdict": verdict})
        for verdict in ("equivalent", "different", "inconclusive")
    ]
    unknown = [replace(alarms[0], value=None, missing="no reference"), replace(verdicts[0], value=None, missing="few")]
    raised = [replace(alarms[4], value=1.0), replace(verdicts[1], value=1.0)]
    of = {
        "calm": [*alarms, *verdicts],
        "alarmed": [*alarms[:4], raised[0], *alarms[5:], verdicts[0], raised[1]],
        "unknown": unknown,
        "partly": [unknown[0], *alarms[1:], unknown[1], *verdicts[1:]],
    }
    stored = {name: [replace(row, deployment=name) for row in rows] for name, rows in of.items()}
    async with transaction(engine) as connection:
        await replace_estimates(connection, [row for rows in stored.values() for row in rows], NOON)
        found = await read_signals(connection, "7d")
    for name, rows in stored.items():
        read = [row for row in found if row.deployment == name]
        assert (drift_state(read), peer_verdicts(read)) == (drift_state(rows), peer_verdicts(rows))
        assert len(read) <= 3


@pytest.mark.parametrize(
    ("rows", "text", "stands_out"),
    [
        ([verdict("politics", "j1", "equivalent")], "politics: equivalent (j1)", "equivalent"),
        (
            [
                verdict("politics", "j1", "equivalent"), verdict("politics", "embedding", "different"),
                verdict("law_talk", "j1", "inconclusive"), verdict("law_talk", "j1", "different", 0.0),
            ],
            "law talk: inconclusive (j1); politics: different (embedding), equivalent (j1)",
            "different",
        ),
    ],
)  # fmt: skip
def test_verdicts_of_peers_are_summed_up_by_domain(rows: list[EstimateRow], text: str, stands_out: str) -> None:
    found = peer_verdicts(rows)
    assert (found.text, found.verdict) == (text, stands_out)


def test_without_a_verdict_there_is_a_reason() -> None:
    assert peer_verdicts([]).reason == "it is not compared with peers"
    assert peer_verdicts([replace(VERDICT, value=None, missing="one peer alone")]).reason == "one peer alone"
