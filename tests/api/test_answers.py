"""``/api/answers`` and the pages of answers: what they count is the numerator of the number that leads there."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from api_server import serving
from audited import CTO, TRAFFIC, answered, configuration, fetch, panel_answers, plan, ship, verdict
from exchanges import NOON
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.domain.condition import BASELINE
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}
HTML = {"accept": "text/html"}


def later():
    return NOON + timedelta(minutes=30)


async def get(address: str, path: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://{address}{path}", headers=headers) as answer:
        return answer.status, await answer.text()


async def answers(address: str, query: str) -> dict:
    async with aiohttp.ClientSession() as client, client.get(f"http://{address}/api/answers?{query}") as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.fixture
async def audited(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await plan(migrated_url, SHARES, shipped_pool()[:100], [CTO, BASELINE])
    await ship(migrated_url, panel_answers(SHARES, conditions=[CTO, BASELINE]))
    await run_once(configuration(tmp_path), engine, later)


async def test_the_total_is_the_numerator(audited: None, migrated_url: str, tmp_path: Path) -> None:
    rows = await fetch(
        migrated_url,
        "SELECT * FROM estimates WHERE \"window\" = '30d' AND condition IN ('all', 'task=CTO') AND value IS NOT NULL",
    )
    cells = {
        ("ber", "union", "full"): "union",
        ("ber", "sel", "full"): "sel_E",
        ("ber", "elab", "full"): "elab_E",
        ("ber", "union", "eligible"): "n11,n10,n01",
        ("ber", "sel", "eligible"): "n11,n10",
        ("ber", "elab", "eligible"): "n11,n01",
        ("ber", "cor", "eligible"): "n11",
        ("ir", None, "eligible"): "n10,n01",
    }
    compared = 0
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        for row in rows:
            cell = cells.get((row["metric"], row["layer"], row["base"]))
            if cell is None:
                continue
            task = "&task=CTO" if row["condition"] == "task=CTO" else ""
            since = quote(row["since"].isoformat())
            found = await answers(
                address, f"deployment={row['deployment']}&origin=probe&cell={cell}&from={since}{task}"
            )
            assert found["total"] == round(row["value"] * row["n"])
            compared += 1
    assert compared >= 2 * 2 * len(cells) - 4


async def test_pages_follow_each_other_to_the_last(audited: None, migrated_url: str, tmp_path: Path) -> None:
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        seen: list[str] = []
        after = ""
        while True:
            page = await answers(address, f"deployment=d1&limit=60{after}")
            assert page["total"] == 200
            seen += [one["id"] for one in page["answers"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        one = page["answers"][0]
    assert len(seen) == len(set(seen)) == 200
    assert seen == sorted(seen, reverse=True)
    assert set(one) >= {"statement", "response", "sel", "elab", "votes", "deployment", "at", "inclusion", "coder"}
    assert {vote["judge"] for vote in one["votes"]} <= {"lexicon"}


async def test_two_clicks_lead_from_a_number_to_an_answer(audited: None, migrated_url: str, tmp_path: Path) -> None:
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        _, status = await get(address, "/")
        (link,) = re.findall(r'href="(/answers\?deployment=d1[^"]*cell=union[^"]*)"', status)
        counted = (await answers(address, unescape(link).partition("?")[2]))["total"]
        _, page = await get(address, unescape(link))
        assert counted > 50
        assert f"<h1>{counted} answers</h1>" in page
        link = re.findall(r'href="(/answers/[0-9a-f-]{36})"', page)[0]
        code, answer = await get(address, link)
    assert code == 200
    assert "The judges read the elaboration" in answer
    assert "lexicon" in answer
    assert "selection: <" not in answer
    for shown in (status, page, answer):
        assert "<script" not in shown
        assert not re.search(r'(?:src|href)="(?:https?:)?//', shown)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("colour=red", "There is no filter 'colour'."),
        ("cell=n12", "cell must be some of n11"),
        ("reason=mood", "reason must be one of"),
        ("from=soon", "from must be a time such as"),
        ("limit=0", "'limit' must be a whole number from 1 to 200."),
        ("after=x", "'after' is not the id of an exchange."),
        ("deployment=a&deployment=b", "The filter deployment stands twice."),
        ("task=traffic", "Client traffic has no task"),
    ],
)
async def test_a_wrong_filter_is_told(query: str, message: str, migrated_url: str, tmp_path: Path) -> None:
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        code, text = await get(address, f"/api/answers?{query}")
        assert (code, message in text) == (400, True), text
        code, text = await get(address, f"/answers?{query}", **HTML)
        assert code == 400
        assert "<h1>This page cannot be shown</h1>" in text
        assert message in unescape(text)


async def test_an_unknown_answer(migrated_url: str, tmp_path: Path) -> None:
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        for path in ("/answers/none", "/answers/01970000-0000-7000-8000-000000000000"):
            code, text = await get(address, path, **HTML)
            assert code == 404
            assert "<h1>This page cannot be shown</h1>" in text


async def test_hostile_text_is_text(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    hostile = "A. <script>alert(1)</script> \u202e & <img src=//x onerror=y> \\ud800 " + "long" * 50_000
    statement = shipped_pool()[0]
    await plan(migrated_url, ["d1"], [statement], [CTO])
    await ship(migrated_url, [answered("d1", statement, CTO, hostile)])
    await run_once(configuration(tmp_path), engine, later)
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        (one,) = (await answers(address, ""))["answers"]
        pages = [await get(address, path) for path in ("/answers", f"/answers/{one['id']}")]
    assert one["response"].startswith("A. <script>")
    for code, page in pages:
        assert code == 200
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;" in page


async def test_client_traffic_has_answers_too(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await ship(migrated_url, [verdict("E", "D", i) for i in range(30)])
    config = configuration(tmp_path, TRAFFIC)
    await run_once(config, engine, later)
    async with serving(migrated_url, config, later) as address:
        assert (await answers(address, "origin=client&audit=moderation&sel=E"))["total"] == 30
        assert (await answers(address, "origin=client&cell=uncoded"))["total"] >= 0
        code, page = await get(address, "/answers?origin=client&audit=moderation")
    assert code == 200
    assert "<h1>30 answers</h1>" in page
