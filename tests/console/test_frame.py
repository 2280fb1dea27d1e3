"""The frame of the console's pages: every page fits a phone and a desktop, is accessible, and loads nothing foreign."""

import pytest
from browsers import LOOKS, assert_accessible, assert_fits, opened
from console_server import Console
from playwright.sync_api import Browser, Page

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
    page.evaluate("window.before = true")
    page.get_by_role("button", name="Pause refresh").click()
    page.clock.run_for(60_000)
    assert page.evaluate("window.before")
    page.get_by_role("button", name="Refresh again").click()
    with page.expect_navigation():
        page.clock.run_for(16_000)
    assert page.evaluate("window.before") is None
