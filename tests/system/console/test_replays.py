"""The page of replays: progress and commands; a replay's calls are no planned probes."""

import json
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page
from support.clients.browsers import assert_accessible, assert_fits, opened
from support.servers.console import Console
from support.stores.postgres import execute

from auditor.domain.keys import KeyRole

SETTINGS = {
    "select": "origin=client,tag.team=<b>", "formats": ["again", "gender:male<>female"], "to": "d2", "name": "",
    "seed": 0, "traffic": [[0, "r1"], [1, "r2"]],
}  # fmt: skip


def test_replays_are_listed_and_count_in_no_audit(open_site: Console, browser: Browser, thorough: bool) -> None:
    execute(
        open_site.database_url,
        f"INSERT INTO plans VALUES ('replay-1', 'x', 'replay', 0, 'statement', now(), '{json.dumps(SETTINGS)}')",
    )
    execute(open_site.database_url, "INSERT INTO planned_instances VALUES ('r1', gen_random_uuid())")
    (one,) = httpx2.get(open_site.url + "/api/replays").json()["replays"]
    assert (one["planned"], one["answered"], one["concluded_at"]) == (2, 1, None)
    assert one["command"] == (
        "biasmeter replay -c FILE --select 'origin=client,tag.team=<b>' --formats again "
        "--swap 'gender:male<>female' --to d2 --yes"
    )
    assert httpx2.get(open_site.url + "/api/audits").json()["audits"] == []
    for width, scheme in ((390, "dark"), (1440, "light")):
        with opened(browser, width, scheme) as page:
            page.goto(open_site.url + "/replays")
            assert "1 of 2 calls answered" in page.locator("main").inner_text()
            assert page.locator("main b").count() == 0
            assert_fits(page)
            if thorough or scheme == "dark":
                assert_accessible(page)


def test_a_replay_is_estimated_started_stopped_and_resumed(open_site: Console, page: Page) -> None:
    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx2.get(open_site.url + "/api/replays").json()["runs"]
        return found

    def ends(state: str, **result: object) -> None:
        execute(open_site.database_url, f"UPDATE console_runs SET state = '{state}', result = '{json.dumps(result)}'")
        page.reload()

    page.goto(open_site.url + "/replays")
    page.get_by_label("Which exchanges").fill("origin=client,tag.team=<b>")
    page.get_by_label("Formats").fill("again")
    page.get_by_label("Swaps of groups").fill("gender:male<>female, age:old<>young")
    page.get_by_label("Budget, calls").fill("50")
    page.get_by_role("button", name="Estimate").click()
    (run,) = runs()
    assert (run["state"], run["send"], run["budget_calls"]) == ("asked", False, 50)
    assert page.locator(".run pre").inner_text() == run["command"] == (
        "biasmeter replay -c FILE --select 'origin=client,tag.team=<b>' --formats again --swap 'gender:male<>female' "
        "--swap 'age:old<>young' --budget-calls 50"
    )  # fmt: skip
    use = {"deployment": "d1", "calls": 4, "prompt_tokens": 400, "completion_tokens": 80, "usd": None}
    ends("ended", replay="r", calls=4, parents=2, to_send=[use], to_judge=[], left_out={"no_content": 3})
    shown = page.locator(".run").inner_text()
    assert "4 calls to d1: about 400 + 80 tokens, unknown" in shown
    assert "not asked again: no content 3" in shown
    page.get_by_role("button", name="Start the replay").click()
    (run,) = runs()
    assert (run["state"], run["send"], run["budget_calls"], run["result"]) == ("asked", True, 50, {})
    page.get_by_role("button", name="Stop").click()
    assert runs()[0]["state"] == "stopping"
    ends("stopped")
    page.get_by_role("button", name="Resume").click()
    ends(
        "ended", calls={"planned": 4, "answered": 3, "failed": {"HTTP 500": 1}}, parents=2, report="/x/comparison.html"
    )
    assert "It has ended: 3 of 4 calls answered." in page.locator(".run").inner_text()
    assert page.get_by_role("link", name="Comparison").get_attribute("href") == f"/replays/{run['id']}/comparison"
    ends("ended", error="--formats: x is no format")
    assert page.get_by_role("alert").inner_text() == "--formats: x is no format"
    assert_fits(page)
    assert_accessible(page)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400), ({"select": ""}, 400), ({"select": "--yes"}, 400), ({"select": "all\nx"}, 400),
        ({"select": "all", "send": "yes"}, 400), ({"select": "all", "budget_calls": -1}, 400),
        ({"select": "all", "sent": True}, 400), ({"select": "all", "formats": "again"}, 202),
    ],
)  # fmt: skip
def test_what_cannot_be_a_replay_is_refused(site: Console, body: dict[str, Any], status: int) -> None:
    answer = httpx2.post(site.url + "/api/replays", json=body)
    assert answer.status_code == status, answer.text


def test_a_viewer_starts_no_replay(guarded: Console) -> None:
    guarded.add_key("looks", role=KeyRole.VIEWER)
    bearer = {"authorization": "Bearer looks"}
    assert httpx2.post(guarded.url + "/api/replays", json={"select": "all"}, headers=bearer).status_code == 403
    assert httpx2.post(guarded.url + "/api/replays/x/stop", headers=bearer).status_code == 403
    assert httpx2.get(guarded.url + "/replays/x/comparison", headers=bearer).status_code == 404
