"""Answers that attack the pages that show them: scripts, bidirectional marks, a line of 1 MB, NUL. All are text."""

from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser
from support.clients.browsers import assert_fits, opened
from support.servers.console import Console, console, later
from support.stores.audited_store import CTO, answered, configuration, plan, ship
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.postgres import apart

from auditor.domain.exchange import Exchange
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.codings import register_coder
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import read_estimates
from auditor.store.findings import Finding, add_finding
from auditor.store.references import StoredReference, add_reference

ATTACK = (
    "<script>document.title = 'pwned'</script><img src=x onerror=\"document.title='pwned'\"></pre></main>"
    "'\"><a href=javascript:x>"
)
TEXTS = {
    "script": f"B. {ATTACK} {{{{ 7 * 7 }}}} {{% raw %}}",
    "bidi": "A. \u202egnorw si siht\u2066 \u200f \u0627\u0644\u0633\u0644\u0627\u0645 end",
    "long": "B. " + "x" * 1_000_000,
    "nul": "A. before\0after \x1b[31m \ufffe end",
}


@pytest.fixture(scope="module")
def attacked(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console on a store whose answers, releases and notes attack it."""
    config = configuration(tmp_path_factory.mktemp("attacked"))
    with databases.fresh() as url:
        apart(_store(url, config))
        with console(url, config, later) as served:
            yield served


async def _store(url: str, config) -> None:
    statements = shipped_pool()[:20]
    texts = [*TEXTS.values(), *["A. No."] * (len(statements) - len(TEXTS))]
    await plan(url, ["d1", "d2"], statements, [CTO])
    said: list[Exchange] = []
    for name in ("d1", "d2"):
        said += [answered(name, one, CTO, text) for one, text in zip(statements, texts, strict=True)]
    await ship(url, said)
    engine = make_engine(url)
    await run_once(config, engine, later)
    async with transaction(engine) as connection:
        coder = next(row.coder for row in await read_estimates(connection, deployment="d1", metric="coverage"))
        await register_coder(connection, coder, "statement", {"rubric": ATTACK}, NOON)
        reference = StoredReference(
            id="0", coder=coder, deployment="d1", since=NOON.date(), accepted_at=later(), accepted_by=ATTACK,
            release=ATTACK, note=TEXTS["bidi"],
        )  # fmt: skip
        await add_reference(connection, reference)
        finding = Finding(
            id="finding_1", coder=coder, deployment="d1", metric="ir", level="page", reference_id="0", day=NOON.date(),
            first_seen=NOON, evidence={}, value=0.1, low=0.0, high=0.2, n=9, n_statements=9, window_since=NOON.date(),
        )  # fmt: skip
        await add_finding(connection, replace(finding, note=ATTACK, by=ATTACK))
    await engine.dispose()


PATHS = (
    *("/", "/deployments/d1", "/deployments/d1/beside/d2", "/answers?limit=100"),
    f"/answers?q={ATTACK}&category=\u202e<b>",
)


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.slow)])
def test_hostile_text_is_text_on_every_page(attacked: Console, browser: Browser, width: int) -> None:
    with opened(browser, width) as page:
        for path in PATHS:
            page.goto(attacked.url + path)
            assert "pwned" not in page.title()
            assert page.locator("main script, main img").count() == 0
            assert_fits(page)
        found = page.request.get(f"{attacked.url}/api/answers?deployment=d1&limit=100").json()["answers"]
        for name, start in _STARTS.items():
            stored = TEXTS[name][:5]
            (address,) = {f"/answers/{one['id']}" for one in found if (one["response"] or "").startswith(stored)}
            page.goto(f"{attacked.url}{address}")
            assert "pwned" not in page.title()
            assert page.locator("main script, main img").count() == 0
            assert_fits(page)
            assert page.locator("h2:text-is('Answer') + pre").inner_text().startswith(start), name


_STARTS = {
    "script": "B. <script>document.title = 'pwned'</script>",
    "bidi": "A. \u202egnorw",
    "long": "B. xxxxxxxx",
    "nul": "A. before\ufffdafter",
}


def test_a_refused_address_is_shown_as_text(attacked: Console) -> None:
    attack = "<script>document.title=1</script>"
    with httpx2.Client(base_url=attacked.url, headers={"accept": "text/html"}, timeout=60) as client:
        for path, said in (
            (f"/answers?condition={quote(attack)}", "is no condition"),
            (f"/deployments/{quote('<script>')}", "No deployment has"),
            (f"/deployments/d1/beside/{quote(chr(0x202E))}", "No deployment has"),
        ):
            refused = client.get(path).text
            assert said in refused
            assert "<script>" not in refused
        assert attack in unescape(client.get(f"/answers?condition={quote(attack)}").text)
