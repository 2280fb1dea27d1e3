"""The frame of the console's pages: every page fits a phone and a desktop, is accessible, and loads nothing foreign."""

import re
import shlex
import time
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Route, expect
from support.clients.browsers import LOOKS, assert_accessible, assert_fits, opened
from support.clients.pages import texts
from support.servers.console import Console, console, later

PAGES = [
    "/",
    "/deployments/d1",
    "/deployments/d1/beside/d2",
    "/answers",
    "/login",
    "/answers/none",
    "/audits",
    "/audits/plan",
    "/audits/p1",
    "/audits/p1/beside/p1",
    "/replays",
    "/keys",
    "/health",
    "/start",
]

#: The pages with most kinds of parts: the colours of both schemes are always looked at here.
RICH = {"/", "/deployments/d1"}
#: What `test_audits.py`, `test_keys.py`, `test_replays.py` and `test_first_five_minutes.py` look at, too.
ELSEWHERE = {"/audits/plan", "/audits/p1/beside/p1", "/keys", "/replays", "/start"}
COMMAND = re.compile(r"^biasmeter .* -c .*$", re.MULTILINE)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_fits_and_is_accessible(
    site: Console, browser: Browser, width: int, scheme: str, thorough: bool
) -> None:
    (one,) = httpx2.get(site.url + "/api/answers?deployment=d1&limit=1").json()["answers"]
    with opened(browser, width, scheme) as page:
        for path in (*PAGES, f"/answers/{one['id']}"):
            page.goto(site.url + path)
            assert_fits(page)
            if thorough or path in RICH or (scheme == "light" and path not in ELSEWHERE):
                assert_accessible(page)


def test_every_printed_command_names_the_configuration_in_use(site: Console, tmp_path: Path) -> None:
    file = tmp_path / "my own.yaml"
    printed = 0
    with (
        console(site.database_url, site.config.from_file(file), later) as named,
        httpx2.Client(base_url=named.url, headers={"accept": "text/html"}, timeout=60) as client,
    ):
        for path in (*PAGES, "/review", "/audits/plan?design=sentinel&deployment=d1"):
            shown = client.get(path).text
            for command in COMMAND.findall("\n".join(texts(shown, "pre") + texts(shown, "code"))):
                printed += 1
                words = shlex.split(command, comments=True)
                # `init` and `up` begin with another configuration; before a login no path is told.
                if words[1] not in {"init", "up"} and path != "/login":
                    assert words[words.index("-c") + 1] == str(file), (path, command)
    assert printed >= 10


def test_every_response_is_kept_from_caches_frames_and_guesses(site: Console) -> None:
    for path in ("/", "/api/deployments", "/api/none", "/metrics", "/login"):
        headers = httpx2.get(site.url + path).headers
        assert headers["cache-control"] == "no-store", path
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY"), path
    assert httpx2.get(site.url + "/static/review.js").headers["cache-control"] == "no-cache"


def test_a_page_that_lets_its_host_name_lead_here_reads_nothing(site: Console) -> None:
    for path in ("/", "/api/deployments", "/metrics", "/login"):
        answer = httpx2.get(site.url + path, headers={"host": "rebound.example"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_host"), path


def test_the_navigation_names_the_page_that_is_open(site: Console, page: Page) -> None:
    page.goto(site.url + "/")
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Answers").click()
    assert page.title() == "Answers · Biasmeter"
    assert page.locator("[aria-current=page]").inner_text() == "Answers"
    assert page.locator(".who").inner_text() == "local · admin"


def test_an_answer_is_found_by_the_keyboard_alone(site: Console, page: Page) -> None:
    page.goto(site.url + "/answers?deployment=d1")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.locator("ol.answers a").first.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("heading", level=1).inner_text() == "One answer"


def test_the_refresh_of_a_page_can_be_paused(site: Console, page: Page) -> None:
    page.clock.install()
    page.goto(site.url + "/")
    page.evaluate("document.querySelector('main').dataset.before = ''")
    page.get_by_role("button", name="Pause refresh").click()
    page.clock.run_for(60_000)
    assert page.locator("main[data-before]").count() == 1
    page.get_by_role("button", name="Refresh again").click()
    page.clock.run_for(31_000)
    expect(page.locator("main[data-before]")).to_have_count(0)
    assert page.get_by_role("button", name="Pause refresh").count() == 1


def test_a_refresh_keeps_what_is_unfolded_and_focused_and_says_when_it_fails(site: Console, page: Page) -> None:
    page.clock.install()
    page.goto(site.url + "/")
    page.locator("details summary").first.click()
    page.locator("table.fleet tbody th a").last.focus()
    page.evaluate("document.querySelector('main').dataset.before = ''")
    page.clock.run_for(31_000)
    expect(page.locator("main[data-before]")).to_have_count(0)
    assert page.locator("details").first.get_attribute("open") is not None
    assert page.evaluate("document.activeElement.matches('table.fleet tbody th a')")
    page.route("**/*", lambda route: route.fulfill(status=503, body="away"))
    page.clock.run_for(31_000)
    expect(page.get_by_role("button", name="Not refreshed")).to_be_visible()


def test_a_refresh_does_not_undo_a_click_on_a_slow_link(open_site: Console, page: Page) -> None:
    def often(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('data-refresh="5"', 'data-refresh="0.2"'))

    def late(route: Route) -> None:
        time.sleep(1)
        route.continue_()

    page.route("**/start", often)
    page.route("**/audits/plan*", late)
    page.goto(open_site.url + "/start")
    page.get_by_role("link", name="Estimate it here").click()
    page.wait_for_url("**/audits/plan*")
