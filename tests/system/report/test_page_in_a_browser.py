"""``report.html`` in Chromium: on a phone, on paper, and under its own security policy."""

from collections.abc import Iterator, Sequence
from io import BytesIO

import pytest
from playwright.sync_api import Browser, Page
from pypdf import PageObject, PdfReader
from support.clients.browsers import CHROMIUM, LOOKS, assert_accessible, assert_fits, chromium, opened
from support.documents.json_entries import typed, written
from support.documents.report_documents import completed
from support.worlds.coded_rows import coded_rows, oat_conditions, write_rows

from auditor.documents.analysis import AnalysisDocument
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.report.analysis import render_analysis

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
LONG = "a-vendor/a-model-with-a-very-long-name-70B-Instruct-Turbo:" + 20 * "x"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, thorough: bool) -> str:
    folder = tmp_path_factory.mktemp("browser")
    rows = list(coded_rows(oat_conditions()[: 21 if thorough else 9], deployments=2, statements=16))
    for row in rows:
        row["deployment"] = LONG if row["deployment"] == "m2" else row["deployment"]
    options = Options(n_boot=20)
    document = completed(written(analyse(read_tallies(write_rows(folder / "coded.jsonl", rows), options), options)))
    (folder / "report.html").write_bytes(render_analysis(typed(document, AnalysisDocument)))
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with opened(browser, 390) as made:
        yield made


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


def test_paper_shows_what_is_open_and_numbers_its_pages(page: Page, report: str, thorough: bool) -> None:
    page.goto(report)
    quoted = "[...document.querySelectorAll('.quotes blockquote')].map(quote => quote.checkVisibility())"
    closed = [one.extract_text() for one in printed(page)]
    assert [text.splitlines()[0].partition("Biasmeter")[0] for text in closed] == [
        f"{number} / {len(closed)}" for number in range(1, len(closed) + 1)
    ]
    assert len(closed) <= 14
    assert "What must not be claimed" in closed[0]
    assert "Contents" in closed[1]
    assert set(page.evaluate(quoted)) == {False}
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert set(page.evaluate(quoted)) == {True}
    if thorough:
        assert len(printed(page)) > len(closed)


def printed(page: Page) -> Sequence[PageObject]:
    """The pages of the PDF."""
    return PdfReader(BytesIO(page.pdf(prefer_css_page_size=True))).pages


def test_nothing_on_the_page_breaks_its_policy(page: Page, report: str) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(report)
    assert said == []


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_page_fits_and_is_accessible(
    browser: Browser, report: str, width: int, scheme: str, thorough: bool
) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(report)
        assert_fits(page)
        drawings = "[...document.querySelectorAll('.summary svg')].filter(one => one.checkVisibility())"
        widths = page.evaluate(f"{drawings}.map(one => one.getBoundingClientRect().width)")
        assert [each >= 600 if width > 600 else each <= width for each in widths] == [True]
        if not thorough and scheme == "dark":  # the colours of what is read first
            page.evaluate("[...document.querySelectorAll('main > section')].slice(3).forEach(one => one.remove())")
        # The page forbids scripts, and axe-core is one: it is put in from outside, as a debugger does.
        assert_accessible(page)
