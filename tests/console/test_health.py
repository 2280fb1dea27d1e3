"""The page of health: pipeline, storage, and a configuration without secrets."""

from pathlib import Path

import httpx2
from console_server import Console, console, later
from playwright.sync_api import Page
from product import free_port

from auditor.config import load

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


def test_no_secret_is_shown(migrated_url: str, tmp_path: Path) -> None:
    path = tmp_path / "biasmeter.yaml"
    path.write_text("data_dir: data\n" + SECRETS.format(port=free_port()))
    with console(migrated_url, load(path, {}), later) as site:
        for address in ("/health", "/api/health"):
            text = httpx2.get(site.url + address).text
            assert "very-secret" not in text
            assert "x-token" in text
