"""The frame of the console's pages: every page fits a phone and a desktop, is accessible, and loads nothing foreign."""

import time

import pytest
from browsers import LOOKS, assert_accessible, assert_fits, opened
from console_server import Console
from playwright.sync_api import Browser, Page, Route, expect

PAGES = [
    "/",
    "/deployments/d1",
    "/deployments/d1/beside/d2",
    "/answers",
    "/login",
    "/answers/none",
    "/keys",
    "/health",
]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_fits_and_is_accessible(site: Console, browser: Browser, width: int, scheme: str) -> None:
    with opened(browser, width, scheme) as page:
        for path in PAGES:
            page.goto(site.url + path)
            assert_fits(page)
            assert_accessible(page)


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
