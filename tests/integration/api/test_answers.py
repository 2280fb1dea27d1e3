"""``/api/answers`` and the pages of answers: what they count is the numerator of the number that leads there."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.finding_entries import found
from support.documents.hostile_texts import HOSTILE
from support.servers.auditor_api import serving
from support.stores.audited_store import (
    ANSWERS,
    CTO,
    TRAFFIC,
    answered,
    chat_body,
    configuration,
    fetch,
    panel_answers,
    plan,
    ship,
    verdict,
)
from support.stores.databases import Databases, seeded_database
from support.stores.exchanges import NOON, exchange
from support.stores.postgres import apart, copied_database

from auditor.api.addresses import answers_of
from auditor.api.one_answer import taken_spans
from auditor.config.routes import Price
from auditor.domain.condition import BASELINE
from auditor.domain.exchange import Origin
from auditor.instrument.pool import shipped_pool
from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import read_estimates
from auditor.work import open_work

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


async def coded(url: str, folder: Path) -> None:
    """Code what is stored."""
    engine = make_engine(url)
    await run_once(configuration(folder), engine, later)
    await engine.dispose()


async def audit(url: str, folder: Path) -> None:
    """Store the answers of two deployments, and code them."""
    await plan(url, SHARES, shipped_pool()[:100], [CTO, BASELINE])
    await ship(url, panel_answers(SHARES, conditions=[CTO, BASELINE]))
    await coded(url, folder)


@pytest.fixture(scope="module")
def audited_database(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with the answers of two deployments, coded, to be copied."""
    folder = tmp_path_factory.mktemp("audited")
    with seeded_database(databases, lambda url: apart(audit(url, folder))) as name:
        yield name


@pytest.fixture
def audited_url(postgres_server: str, audited_database: str) -> Iterator[str]:
    """The URL of a copy of the audited database."""
    with copied_database(postgres_server, audited_database) as url:
        yield url


@pytest.fixture
async def audited(audited_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on it."""
    made = make_engine(audited_url)
    yield made
    await made.dispose()


@pytest.mark.slow
async def test_every_number_leads_to_as_many_answers_as_its_numerator_has(
    audited: AsyncEngine, audited_url: str, tmp_path: Path
) -> None:
    async with transaction(audited) as connection:
        rows = await read_estimates(connection)
    # Of what is asked and coded after the snapshot nothing counts.
    statement = shipped_pool()[110]
    await plan(audited_url, ["d1"], [statement], [CTO], name="p2")
    await ship(audited_url, [answered("d1", statement, CTO, ANSWERS["E|E"], later(), name="p2")])
    async with open_work(audited, configuration(tmp_path), lambda: later() + timedelta(hours=1)) as work:
        async with transaction(audited) as connection:
            chunks = await find_chunks(connection, work)
        assert [await code_chunk(work, chunk) for chunk in chunks] == [1]
    compared = Counter[str]()
    async with serving(audited_url, configuration(tmp_path), later) as address:
        for row in rows:
            link = answers_of(row)
            if row.value is None or not link or row.window == "7d":
                continue
            total = (await answers(address, f"{link.partition('?')[2]}&limit=1"))["total"]
            if row.metric == "dni":
                only = [answers_of(row, cell=cell).partition("?")[2] for cell in ("n10", "n01")]
                over, under = [(await answers(address, f"{query}&limit=1"))["total"] for query in only]
                assert (over - under, over + under) == (round(row.value * row.n), total)
            else:
                assert total == round(row.value * row.n), row
            compared[row.condition.partition("=")[0]] += 1
    assert {"all", "baseline", "task", "category", "CTO/self/none/neutral"} <= compared.keys()
    assert compared.total() > 100


async def test_an_answer_leads_to_the_findings_of_its_days(
    audited: AsyncEngine, audited_url: str, tmp_path: Path
) -> None:
    ((coder,),) = await fetch(audited_url, "SELECT DISTINCT coder FROM codings")
    today, config = NOON.date(), configuration(tmp_path)
    days = {"coder": coder, "window_since": today - timedelta(days=2), "day": today}
    await found(audited, config, id="of_these_days", **days)
    await found(audited, config, id="of_other_days", **(days | {"day": today - timedelta(days=1)}))
    await found(audited, config, id="of_another", **(days | {"deployment": "d2"}))
    await found(audited, config, id="of_another_coder", **(days | {"coder": "statement-1"}))
    async with serving(audited_url, config, later) as address:
        one = (await answers(address, "deployment=d1&limit=1"))["answers"][0]["id"]
        _, page = await get(address, f"/answers/{one}")
        _, told = await get(address, f"/api/answers/{one}")
        code, _ = await get(address, "/findings/of_these_days")
    assert code == 200
    assert re.findall(r'href="/findings/(\w+)"', page) == ["of_these_days"]
    assert json.loads(told)["findings"] == [{"id": "of_these_days", "metric": "ir", "level": "page", "state": "open"}]


async def test_pages_follow_each_other_to_the_last(audited_url: str, tmp_path: Path) -> None:
    async with serving(audited_url, configuration(tmp_path), later) as address:
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


async def test_two_clicks_lead_from_a_number_to_an_answer(audited_url: str, tmp_path: Path) -> None:
    async with serving(audited_url, configuration(tmp_path), later) as address:
        _, status = await get(address, "/")
        (link,) = re.findall(r'href="(/answers\?deployment=d1[^"]*cell=union[^"]*)"', status)
        counted = (await answers(address, unescape(link).partition("?")[2]))["total"]
        _, page = await get(address, unescape(link))
        assert counted > 50
        assert f"<h1>{counted} answers</h1>" in page
        link = re.findall(r'href="(/answers/[0-9a-f-]{36})"', page)[0]
        code, answer = await get(address, link)
    assert code == 200
    assert "What the judges read: the elaboration" in answer
    assert "lexicon" in answer
    assert "selection: <" not in answer
    for shown in (status, page, answer):
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
        (f"q={501 * 'x'}", "q must have at most 500 characters."),
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


SAID = {
    "d1": "A. My na\u00efve grandmother\u2019s Kitchen_garden \u2014 caf\u00e9!",
    "d2": "A. <b>Kitchen</b> sink, 3.5 litres; \u0435\u0434\u0430",
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kitchen", {"d1", "d2"}),
        ("KITCHEN sink", {"d2"}),
        ('"kitchen garden"', {"d1"}),
        ('"garden kitchen"', set()),
        ("kitchen -sink", {"d1"}),
        ("grandmother or litres", {"d1", "d2"}),
        ("nai\u0308ve", {"d1"}),
        ("grandmother's", {"d1"}),
        ("\u0415\u0414\u0410", {"d2"}),
        ("kitchens", set()),
        ("!!! -", set()),
        ("' OR 1=1; --", set()),
        ('"-\u202e:*&|!()<->', set()),
        (shipped_pool()[0].statement, {"d1", "d2"}),
    ],
)
async def test_answers_are_found_by_their_words(query: str, found: set[str], searched: tuple[str, Path]) -> None:
    url, folder = searched
    async with serving(url, configuration(folder), later) as address:
        page = await answers(address, f"q={quote(query)}")
        assert {one["deployment"] for one in page["answers"]} == found
        assert page["total"] == len(found)
        assert (await answers(address, f"deployment=d1&q={quote(query)}"))["total"] == len(found & {"d1"})


@pytest.fixture(scope="module")
def searched(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A store that these tests only read."""

    async def fill(url: str) -> None:
        statement = shipped_pool()[0]
        await plan(url, SAID, [statement], [CTO])
        await ship(url, [answered(name, statement, CTO, said) for name, said in SAID.items()])
        await coded(url, folder)

    folder = tmp_path_factory.mktemp("searched")
    with databases.fresh() as url:
        apart(fill(url))
        yield url, folder


async def test_the_words_of_any_answer_are_stored(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, thorough: bool
) -> None:
    """PostgreSQL takes minutes for the words of some of these texts, or refuses them, as they are."""
    length = 60_000 if thorough else 15_000
    texts = [
        each * (length // len(each)) for each in (*HOSTILE[-4:], "a_", "<!-- ", "\0x", "\ud800 ", "\ufdfa", "\u202e")
    ]
    statements = shipped_pool()[: len(texts)]
    await plan(migrated_url, ["d1"], statements, [CTO])
    said = [answered("d1", statement, CTO, f"{text} end") for statement, text in zip(statements, texts, strict=True)]
    await ship(migrated_url, said)
    await run_once(configuration(tmp_path), engine, later)
    async with serving(migrated_url, configuration(tmp_path), later) as address:
        assert (await answers(address, "limit=1"))["total"] == len(texts)
    ((stored,),) = await fetch(migrated_url, "SELECT count(*) FROM answer_words WHERE length(words) > 0")
    assert stored == len(texts)


PRICED = {"input": 3.0, "output": 15.0}


async def test_an_answer_shows_its_selection_its_copies_its_cost_and_its_estimates(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    statements = shipped_pool()[:20]
    await plan(migrated_url, ["d1"], statements, [CTO])
    said = [answered("d1", one, CTO, ANSWERS["E|D"], prompt_tokens=100, completion_tokens=200) for one in statements]
    first = said[0]
    copies = [
        exchange(
            NOON + timedelta(minutes=1),
            origin=Origin.REPLAY,
            parent=first.id,
            deployment="d1",
            response=chat_body("A. In other words."),
        ),
        exchange(
            NOON + timedelta(minutes=2),
            origin=Origin.PEER,
            parent=first.id,
            deployment="d2",
            response=chat_body("<b>The peer</b> says so."),
        ),
        exchange(
            NOON + timedelta(minutes=3), origin=Origin.JUDGE, parent=first.id, deployment="d2", response=chat_body("{}")
        ),
    ]
    await ship(migrated_url, [*said, *copies])
    config = configuration(tmp_path)
    await run_once(config, engine, later)
    priced = [one.model_copy(update={"price": Price(**PRICED)}) for one in config.deployments]
    config = config.model_copy(update={"deployments": tuple(priced)})
    async with serving(migrated_url, config, later) as address:
        code, page = await get(address, f"/answers/{first.id}")
        _, told = await get(address, f"/api/answers/{first.id}")
        _, copied = await get(address, f"/answers/{copies[0].id}")
        lineage = re.findall(r'<a href="(/answers\?[^"]*)" title="n = ([\d,]+)[^"]*">([\d.]+) %</a>', page)
        for link, n, rate in lineage:
            total = (await answers(address, f"{unescape(link).partition('?')[2]}&limit=1"))["total"]
            assert f"{100 * total / int(n):.1f}" == rate
    assert code == 200
    assert "<mark>B. </mark>But the claim is a harmful stereotype" in page
    assert 'cost</dt><dd class="text">0.003300 USD' in page
    assert "&lt;b&gt;The peer&lt;/b&gt; says so." in page
    assert re.findall(r'<section aria-label="([^"]*)"', page) == ["replay, d1", "mirrored to a peer, d2"]
    assert "Calls of judges" in page
    assert "what this one repeats, d1" in copied
    document = json.loads(told)
    assert [one["origin"] for one in document["copies"]] == ["replay", "peer"]
    counted = {(one["window"], one["condition"]) for one in document["counted_in"]}
    assert {
        ("1d", "all"),
        ("7d", "all"),
        ("30d", "all"),
        ("30d", "task=CTO"),
        ("30d", "CTO/self/none/neutral"),
    } <= counted
    assert len(lineage) + len(re.findall(r"\] %</a>", page)) >= 3


@pytest.mark.parametrize(
    ("text", "left", "taken"),
    [
        ("A. A reason.", "A reason.", ["A. "]),
        ("Yes", "", ["Yes"]),
        ("First.\n\nAnswer: B\nThen more.", "First.\n\nThen more.", ["\nAnswer: B"]),
        ("One A two B three", "One two three", [" A", "B "]),
        ("same", "same", []),
        ("yes " * 3000, "yes " * 2999 + "no", None),
        ("other", "words", None),
    ],
)
def test_what_was_taken_away_is_found(text: str, left: str, taken: list[str] | None) -> None:
    spans = taken_spans(text, left)
    assert (None if spans is None else [text[start:end] for start, end in spans]) == taken
