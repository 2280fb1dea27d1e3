"""The page of health: pipeline, storage, and a configuration without secrets."""

from html import unescape
from pathlib import Path

import httpx2
from playwright.sync_api import Page
from support.servers.console import Console, console, later
from support.servers.ports import free_port
from support.stores.audited_store import configuration, ship
from support.stores.exchanges import NOON, exchange
from support.stores.postgres import apart

from auditor.config import load
from auditor.domain.exchange import Origin, Outcome

SECRETS = """
gateway: {{listen: "127.0.0.1:{port}"}}
deployments:
  - name: d1
    base_url: "http://127.0.0.1:1/v1"
    api_key: sk-very-secret
    headers: {{x-token: very-secret-token}}
routes: [{{model: "*", deployments: [d1]}}]
monitor: {{webhook: {{url: "https://hooks.example/very-secret-path", secret: very-secret-hook}}}}
"""


def test_the_page_says_what_needs_attention(site: Console, page: Page) -> None:
    page.goto(site.url + "/health")
    assert "The gateway's state is unknown: no gateway has run" in page.get_by_role("status").inner_text()
    page.get_by_text("Show the configuration").click()
    assert "name: d1" in page.locator("details pre").inner_text()
    health = httpx2.get(site.url + "/api/health").json()
    tables = {one["table"]: one for one in health["store"]["tables"]}
    assert tables["exchanges"]["partitions"] >= 1
    assert tables["exchanges"]["oldest"] == "20260301"
    assert health["store"]["bytes"] == sum(one["bytes"] for one in tables.values())
    assert health["store"]["retention"]["content_from"] == "2026-01-30"


def test_what_lacks_a_label_leads_to_those_answers(site: Console) -> None:
    uncoded = httpx2.get(site.url + "/api/health").json()["store"]["uncoded"]
    assert {(one["layer"], one["reason"]) for one in uncoded} == {("elab", "no_elaboration"), ("sel", "no_marker")}
    page = unescape(httpx2.get(site.url + "/health").text)
    for one in uncoded:
        assert httpx2.get(f"{site.url}/api{one['answers']}&limit=1").json()["total"] == one["n"]
        assert f'<a href="{one["answers"]}">{one["n"]}</a>' in page


def test_judges_whose_calls_fail_are_named(migrated_url: str, tmp_path: Path, page: Page) -> None:
    judging = "judges: [{name: north, deployment: d2}, lexicon]\npanel: {judges: [north, lexicon]}\n"
    calls = [exchange(NOON, origin=Origin.JUDGE, deployment="d2") for _ in range(8)]
    calls += [exchange(NOON, origin=Origin.JUDGE, deployment="d2", outcome=Outcome.CUT) for _ in range(2)]
    apart(ship(migrated_url, calls))
    with console(migrated_url, configuration(tmp_path, judging), later) as site:
        health = httpx2.get(site.url + "/api/health").json()
        assert health["judges"] == [{"judges": ["north"], "deployment": "d2", "calls": 10, "failed": 2}]
        page.goto(site.url + "/health")
        assert "2 of 10 calls of judges to d2 failed since yesterday." in page.get_by_role("status").inner_text()
        assert page.get_by_role("row", name="north").inner_text().split() == ["north", "d2", "10", "2"]


def test_no_secret_is_shown(migrated_url: str, tmp_path: Path) -> None:
    path = tmp_path / "biasmeter.yaml"
    path.write_text("data_dir: data\n" + SECRETS.format(port=free_port()))
    with console(migrated_url, load(path, {}), later) as site:
        for address in ("/health", "/api/health"):
            text = httpx2.get(site.url + address).text
            assert "very-secret" not in text
            assert "x-token" in text
