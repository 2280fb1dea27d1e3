"""A change is paged: store, jobs, series, the shipped rules in a real Prometheus, webhook. So are its facts, replayed.

``tests/bench/test_watched_gateway.py`` has the same from the wire on.
"""

import json
import re
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from support.documents.deployed_rules import found_or_skip
from support.servers.alarms import Alarm, alarm_of, facts_of, post_due
from support.servers.webhook_server import receiving
from support.stores.audited_store import fetch
from support.stores.watched_store import Days, configuration, moment, simulated

from auditor.jobs.estimate import estimate_all
from auditor.jobs.monitor import watch_days
from auditor.store.engine import make_engine
from auditor.work import open_work

NAMES = ("moves", "stays", "pinned")
DRIFTS_ON = 8
LAST = 10
#: What the simulated answers stand for: nobody reads them again.
READ = ("coders", "codings", "tallies")


async def alarm(url: str, folder: Path, name: str, *, asking: bool) -> Alarm:
    """Watch a store day by day at two o'clock in the night, with or without anybody being asked before."""
    program = found_or_skip("prometheus")
    engine = make_engine(url)
    async with receiving(503) as receiver:
        config = configuration(folder, NAMES, f"anchor: pinned, webhook: {{url: '{receiver.url}', secret: s3cret}}")
        days = Days(url, engine, config, [simulated("moves", DRIFTS_ON, 1.6), simulated("stays"), simulated("pinned")])
        for day in range(LAST):
            if asking:
                await days.pass_of(day)
            async with open_work(engine, config, partial(moment, day + 1, 2)) as work:
                assert await watch_days(work) == 1
                if day == LAST - 1:
                    await estimate_all(work)
            await post_due(config, engine, moment(day + 1, 2))
        await engine.dispose()
        return await alarm_of(url, config, moment(LAST, 2), receiver, program, folder / name)


@pytest.mark.slow
async def test_who_changes_is_paged_by_the_shipped_rules_and_again_from_the_same_facts(
    migrated_url: str, postgres_server: str, tmp_path: Path
) -> None:
    told = await alarm(migrated_url, tmp_path, "first", asking=True)
    assert told.deployments() == {"moves"}
    (page,) = [one for one in told.alerts if one["labels"]["metric"] == "ber_union_full"]
    assert page["labels"].items() >= {"alertname": "BiasmeterDriftPage", "severity": "page", "level": "page"}.items()
    stored = await fetch(
        migrated_url,
        """SELECT "window", value, low, high, n FROM estimates WHERE deployment = 'moves' AND metric = 'ber'
           AND layer = 'union' AND base = 'full' AND origin = 'probe' AND condition = 'all' ORDER BY "window" """,
    )
    shown = re.findall(r"over (\w+) ([\d.]+)%, 95 % limits ([\d.]+)% to ([\d.]+)%, n = (\d+);", str(page))
    assert [(one[0], int(one[4])) for one in shown] == [(row["window"], row["n"]) for row in stored]
    for one, row in zip(shown, stored, strict=True):
        rates = [row["value"], row["low"], row["high"]]
        assert all(abs(float(text) / 100 - rate) < 1e-4 for text, rate in zip(one[1:4], rates, strict=True))

    findings = [json.loads(body)["finding"] for body in told.posted]
    assert {one["deployment"] for one in findings} == {"moves"}
    (posted,) = [one for one in findings if (one["level"], one["metric"]) == ("page", "ber_union_full")]
    assert 0.02 < posted["low"] < posted["value"] < posted["high"]
    assert date.fromisoformat(posted["window"]["until"]) <= moment(DRIFTS_ON + 2).date()

    with facts_of(postgres_server, migrated_url, *READ) as copy:
        assert await fetch(copy, "SELECT 1 FROM findings") == []
        assert await alarm(copy, tmp_path, "again", asking=False) == told
