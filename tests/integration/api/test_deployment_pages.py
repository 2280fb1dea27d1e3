"""The pages of one deployment and of two side by side: every linked number counts what its list does."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.auditor_api import serving
from support.stores.audited_store import (
    ANSWERS,
    CTO,
    TRAFFIC,
    answered,
    configuration,
    panel_answers,
    plan,
    ship,
    verdict,
)
from support.stores.databases import Databases, seeded_database
from support.stores.exchanges import NOON
from support.stores.postgres import apart, copied_database

from auditor.domain.condition import BASELINE, Condition, Sentiment, Task
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.codings import register_coder
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import read_estimates
from auditor.store.references import StoredReference, add_reference

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}
SKEPTICAL = Condition(task=Task.CTO, sentiment=Sentiment.SKEPTICAL)
LINK = re.compile(r'<a href="(/answers\?[^"]*)"(?: title="([^"]*)")?>([^<]+)</a>')


def later():
    return NOON + timedelta(minutes=30)


async def seed(url: str, folder: Path) -> None:
    """Store that d1 was asked under one condition more than d2, on two days."""
    conditions = [CTO, BASELINE]
    await plan(url, SHARES, shipped_pool()[:100], conditions)
    await plan(url, ["d1"], shipped_pool()[:40], [SKEPTICAL], name="p2")
    await ship(url, panel_answers(SHARES, NOON - timedelta(days=1), conditions))
    kinds = ["D|E"] * 20 + ["D|D"] * 12 + ["E|E"] * 8
    said = zip(shipped_pool()[:40], kinds, strict=True)
    more = [answered("d1", one, SKEPTICAL, ANSWERS[kind].format(group="they"), NOON, "p2") for one, kind in said]
    await ship(url, more)
    await ship(url, [verdict("ED"[i % 2], "EDD"[i % 3], i) for i in range(60)])
    engine = make_engine(url)
    await run_once(configuration(folder, TRAFFIC), engine, later)
    await engine.dispose()


@pytest.fixture(scope="module")
def seeded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a seeded database, to be copied."""
    folder = tmp_path_factory.mktemp("seeded")
    with seeded_database(databases, lambda url: apart(seed(url, folder))) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, seeded: str) -> Iterator[str]:
    with copied_database(postgres_server, seeded) as url:
        yield url


@pytest.fixture
async def address(migrated_url: str, tmp_path: Path) -> AsyncIterator[str]:
    """A console on a copy of the seeded store."""
    async with serving(migrated_url, configuration(tmp_path, TRAFFIC), later) as served:
        yield served


async def get(address: str, path: str) -> tuple[int, str]:
    kind = {} if path.startswith("/api/") else {"accept": "text/html"}
    async with aiohttp.ClientSession() as client, client.get(f"http://{address}{path}", headers=kind) as answer:
        return answer.status, await answer.text()


async def total_of(address: str, link: str) -> int:
    code, text = await get(address, f"/api{link}&limit=1")
    assert code == 200, text
    return int(json.loads(text)["total"])


@pytest.mark.parametrize(
    ("path", "at_least"),
    [
        ("/", 6),
        ("/deployments/d1", 50),
        pytest.param("/deployments/d2", 30, marks=pytest.mark.slow),
        ("/deployments/d1?origin=client", 8),
        pytest.param("/deployments/d1?window=1d", 15, marks=pytest.mark.slow),
        ("/deployments/d1/beside/d2", 80),
    ],
)
async def test_every_linked_number_is_that_of_its_list(address: str, path: str, at_least: int) -> None:
    code, page = await get(address, path)
    assert code == 200, page
    kinds = Counter[str]()
    for link, title, shown in LINK.findall(page):
        kinds[await _checked(address, unescape(link), unescape(title), unescape(shown))] += 1
    assert kinds["number"] + kinds["share"] >= at_least, kinds
    for shown in re.findall(r">([^<>]*\d %)<", re.sub(r"(?s)<svg.*?</svg>", "", page)):
        assert any(shown == text for _, _, text in LINK.findall(page)), shown


async def _checked(address: str, link: str, title: str, shown: str) -> str:
    total = await total_of(address, link)
    if re.fullmatch(r"[\d,]+", shown):
        assert total == int(shown.replace(",", "")), (link, shown)
        return "number"
    base = re.match(r"n = ([\d,]+)|[\d,]+ of ([\d,]+) responses", title)
    rate = re.fullmatch(r"([\d.]+) %", shown)
    if base is None or rate is None:
        return "other"  # DNI, which is a difference; an interval without a value; shares of two deployments
    n = int((base[1] or base[2]).replace(",", ""))
    assert f"{100 * total / n:.{1 if '.' in shown else 0}f}" == rate[1], (link, title, shown)
    return "share"


async def test_two_deployments_are_compared_on_what_both_were_asked(address: str) -> None:
    code, text = await get(address, "/api/deployments/d1/beside/d2")
    told = json.loads(text)
    _, page = await get(address, "/deployments/d1/beside/d2")
    assert code == 200
    assert sorted(told["conditions"]) == ["BJ/self/none/neutral", "CTO/self/none/neutral"]
    assert told["n_statements"] == 100
    union = told["measures"]["ber_union_full"]
    assert (union["first"], union["second"]) == ({"events": 80, "n": 200}, {"events": 80, "n": 200})
    assert union["difference"] == pytest.approx(0)
    assert union["low"] < 0 < union["high"]
    selection = told["measures"]["ber_sel_full"]
    assert selection["high"] < 0
    # The rows of statements: their numbers are those of the lists.
    rows = re.findall(r'<a href="(/answers\?[^"]*statement_id[^"]*)"[^>]*>[^<]*</a><small>(\d+) of (\d+)</small>', page)
    assert len(rows) == 80
    for link, events, trials in rows[:12]:
        assert await total_of(address, unescape(link)) == int(events)
        assert int(trials) == 2
    swapped = json.loads((await get(address, "/api/deployments/d2/beside/d1"))[1])["measures"]["ber_sel_full"]
    assert swapped["difference"] == pytest.approx(-selection["difference"])


async def test_the_form_leads_to_the_comparison(address: str) -> None:
    async with aiohttp.ClientSession() as client:
        url = f"http://{address}/deployments/d1/beside?other=d2"
        async with client.get(url, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["location"]) == (303, "/deployments/d1/beside/d2")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/deployments/none", 404),
        ("/deployments/d1/beside/none", 404),
        ("/deployments/none/beside/d1", 404),
        ("/deployments/d1?window=2d", 400),
        ("/deployments/d1?origin=judge", 400),
        ("/deployments/d1?colour=red", 400),
        ("/deployments/d1/beside/d2?x=1", 400),
        ("/deployments/d1/beside", 400),
        ("/answers?condition=green", 400),
    ],
)
async def test_what_is_wrong_is_told(address: str, path: str, status: int) -> None:
    code, page = await get(address, path)
    assert code == status
    assert "This page cannot be shown" in page
    if not path.endswith("/beside"):
        code, text = await get(address, f"/api{path}")
        assert code == status
        assert json.loads(text)["error"]["message"]


async def test_a_deployment_shows_its_days_conditions_and_reference(
    address: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with transaction(engine) as connection:
        coder = next(row.coder for row in await read_estimates(connection, deployment="d1", origin="probe"))
        await register_coder(connection, coder, "statement", {}, NOON)
        day = (NOON - timedelta(days=1)).date()
        reference = StoredReference(
            id="0", coder=coder, deployment="d1", since=day, accepted_at=later(), accepted_by="ada", release="v<2>",
            until=day, content={},
        )  # fmt: skip
        await add_reference(connection, reference)
    _, page = await get(address, "/deployments/d1")
    told = json.loads((await get(address, "/api/deployments/d1"))[1])
    days = {one["day"]: one for one in told["days"]}
    assert {day: (one["value"], one["n"]) for day, one in days.items()} == {
        "2026-02-28": (0.4, 200), "2026-03-01": (0.7, 40)
    }  # fmt: skip
    assert ">40.0 %</a>, the rate over the reference (2026-02-28 to 2026-02-28)" in page
    assert "release v&lt;2&gt;" in page
    assert "v<2>" not in page
    assert 'class="event release"' in page
    # DNI is above 0 at the baseline of CTO and below 0 where the text alone endorses.
    assert "CTO · self · none · skeptical" in page
    assert {(one["sel"], one["elab"]): one["n"] for one in told["labels"]}[("D", "E")] == 20
