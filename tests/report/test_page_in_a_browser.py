"""``report.html`` in Chromium: on a phone, on paper, and under its own security policy."""

import shutil
from collections.abc import Iterator

import pytest
from coded_rows import coded_rows, oat_conditions, write_rows
from playwright.sync_api import Browser, Page, sync_playwright
from report_documents import completed
from written import typed, written

from auditor.documents.analysis import AnalysisDocument
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.report.analysis import render_analysis

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
LONG = "a-vendor/a-model-with-a-very-long-name-70B-Instruct-Turbo:" + 20 * "x"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("browser")
    rows = list(coded_rows(oat_conditions(), deployments=2, statements=16))
    for row in rows:
        row["deployment"] = LONG if row["deployment"] == "m2" else row["deployment"]
    options = Options(n_boot=20)
    document = completed(written(analyse(read_tallies(write_rows(folder / "coded.jsonl", rows), options), options)))
    (folder / "report.html").write_bytes(render_analysis(typed(document, AnalysisDocument)))
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 390, "height": 844})
    yield opened
    opened.close()


def test_a_phone_scrolls_tables_and_never_the_page(page: Page, report: str) -> None:
    page.goto(report)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    wide, left = page.evaluate(
        """() => {
          const box = document.querySelector('#decomposition .scroll');
          box.scrollLeft = 200;
          return [box.scrollWidth > box.clientWidth, box.querySelector('tbody th').getBoundingClientRect().left];
        }"""
    )
    assert wide
    assert left == pytest.approx(16)


def test_paper_shows_what_the_screen_keeps_closed(page: Page, report: str) -> None:
    page.goto(report)
    quoted = "[...document.querySelectorAll('.quotes blockquote')].map(quote => quote.checkVisibility())"
    assert set(page.evaluate(quoted)) == {False}
    page.emulate_media(media="print")
    assert set(page.evaluate(quoted)) == {True}


def test_nothing_on_the_page_breaks_its_policy(page: Page, report: str) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(report)
    assert said == []
