"""The page of replays: progress and commands; a replay's calls are no planned probes."""

import json

import httpx2
from browsers import LOOKS, assert_accessible, assert_fits, opened
from console_server import Console
from playwright.sync_api import Browser
from postgres import execute

SETTINGS = {
    "select": "origin=client,tag.team=<b>", "formats": ["again", "gender:male<>female"], "to": "d2", "name": "",
    "seed": 0, "traffic": [[0, "r1"], [1, "r2"]],
}  # fmt: skip


def test_replays_are_listed_and_count_in_no_audit(open_site: Console, browser: Browser) -> None:
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
    for width, scheme in LOOKS[1:3]:
        with opened(browser, width, scheme) as page:
            page.goto(open_site.url + "/replays")
            assert "1 of 2 calls answered" in page.locator("main").inner_text()
            assert page.locator("main b").count() == 0
            assert_fits(page)
            assert_accessible(page)
