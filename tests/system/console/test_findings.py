"""Findings in the console: what they say, and what people do with them."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect
from support.clients.browsers import LOOKS, assert_accessible, assert_fits, opened
from support.clients.pages import texts
from support.documents.finding_entries import SEEN, found
from support.servers.console import Console, console
from support.stores.audited_store import configuration, fetch
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.postgres import apart, copied_database

from auditor.config import Config
from auditor.domain.keys import KeyRole
from auditor.store.engine import make_engine


def store_findings(database_url: str, config: Config) -> None:
    async def work() -> None:
        engine = make_engine(database_url)
        await found(engine, config)
        await found(
            engine,
            config,
            id="finding_2",
            metric="ber_union_full",
            level="investigate",
            value=None,
            low=None,
            high=None,
        )
        await found(engine, config, id="finding_3", deployment="d2", level="instrument")
        await engine.dispose()

    apart(work())


@pytest.fixture(scope="module")
def watch(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with databases.fresh() as url:
        config = configuration(tmp_path_factory.mktemp("watch"))
        store_findings(url, config)
        with console(url, config, lambda: SEEN + timedelta(hours=6)) as served:
            yield served


def test_findings_are_filtered_and_lead_to_one(watch: Console, page: Page) -> None:
    page.goto(watch.url + "/findings")
    assert page.locator("tbody tr").count() == 3
    page.get_by_label("level").select_option("page")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="d1: IR rose").click()
    expect(page.get_by_text("Change against the reference: +8.0 pp [+5.0, +11.0]")).to_be_visible()
    expect(page.get_by_text("A detector alarms at 3.00.")).to_be_visible()
    expect(page.get_by_text("a second detector confirms it")).to_be_visible()
    expect(page.get_by_text("That the model has changed")).to_be_visible()
    assert "biasmeter findings acknowledge -c FILE finding_1" in page.locator("pre").inner_text()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_fit_and_are_accessible(
    watch: Console, browser: Browser, width: int, scheme: str, thorough: bool
) -> None:
    with opened(browser, width, scheme) as page:
        for path in ("/findings", "/findings/finding_1", "/findings/finding_2", "/findings?deployment=none"):
            page.goto(watch.url + path)
            assert_fits(page)
            if thorough or scheme == "light" or path == "/findings/finding_1":
                assert_accessible(page)


def test_every_action_is_kept_with_its_person(guarded: Console, page: Page) -> None:
    store_findings(guarded.database_url, guarded.config)
    page.set_extra_http_headers({"authorization": f"Bearer {guarded.add_key('rita', role=KeyRole.REVIEWER)}"})
    page.goto(guarded.url + "/findings/finding_3")
    assert page.get_by_label("your name").count() == 0
    forms = page.locator("form.panel")
    forms.nth(0).get_by_label("note").fill("looking")
    page.get_by_role("button", name="Acknowledge").click()
    forms.nth(1).get_by_label("note").fill("<b>until</b> Monday")
    page.locator("select[name=days]").select_option("3")
    page.get_by_role("button", name="Silence").click()
    page.get_by_role("button", name="End the silence").click()
    page.locator("input[name=since]").fill("2026-03-01")
    page.get_by_role("button", name="Accept").click()
    said = page.locator("main ol li").all_inner_texts()
    assert said[0].endswith(": opened by monitoring")
    assert "acknowledged by rita: looking" in said[1]
    assert "silenced until 4 March 2026, 12:30 UTC by rita: <b>until</b> Monday" in said[2]
    assert "silence ended by rita" in said[3]
    assert "by rita" in said[4]
    assert "answered" in said[4]
    assert page.get_by_role("button", name="Acknowledge").count() == 0
    rows = apart(
        fetch(guarded.database_url, "SELECT by FROM finding_events WHERE finding_id = 'finding_3' ORDER BY id")
    )
    assert [row["by"] for row in rows] == [None, "rita", "rita", "rita", "rita"]


def test_nobody_acts_in_the_name_of_somebody_else(guarded: Console) -> None:
    store_findings(guarded.database_url, guarded.config)
    keys = {
        role: {"authorization": f"Bearer {guarded.add_key(f'key of {role}', role=role)}"}
        for role in (KeyRole.REVIEWER, KeyRole.ADMIN)
    }
    address = guarded.url + "/api/findings/finding_3"
    for path, body in (
        ("/api/findings/finding_3", {"action": "acknowledge", "by": "eve"}),
        ("/api/references", {"deployment": "d1", "by": "eve"}),
        ("/api/reviews", {"exchange": str(UUID(int=1)), "layer": "elab", "label": "E", "reviewer": "eve"}),
    ):
        answer = httpx2.post(guarded.url + path, json=body, headers=keys[KeyRole.REVIEWER])
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_name"), path
    for role, given, kept in (
        (KeyRole.REVIEWER, {}, "key of reviewer"),
        (KeyRole.REVIEWER, {"by": "key of reviewer"}, "key of reviewer"),
        (KeyRole.ADMIN, {}, "key of admin"),
        (KeyRole.ADMIN, {"by": "anna"}, "anna"),  # as an import does
    ):
        answer = httpx2.post(address, json={"action": "acknowledge", **given}, headers=keys[role])
        assert answer.json()["events"][-1]["by"] == kept


def test_a_viewer_reads_and_does_not_act(guarded: Console) -> None:
    store_findings(guarded.database_url, guarded.config)
    buttons = {}
    for role in (KeyRole.VIEWER, KeyRole.REVIEWER):
        bearer = {"authorization": f"Bearer {guarded.add_key(f'key of {role}', role=role)}"}
        shown = httpx2.get(guarded.url + "/findings/finding_1", headers=bearer).raise_for_status().text
        assert "d1: IR rose" in texts(shown, "h1")[0]
        buttons[role] = "Acknowledge" in texts(shown, "button")
    assert buttons == {KeyRole.VIEWER: False, KeyRole.REVIEWER: True}


def store_changed_finding(database_url: str, config: Config) -> None:
    """Store a finding whose days have answers."""
    (coded,) = apart(fetch(database_url, "SELECT DISTINCT coder FROM codings"))
    accepted = (
        "INSERT INTO monitor_references (id, coder, deployment, since, until, accepted_at, content)"
        " VALUES ('reference_9', $1, 'd1', '2026-02-20', '2026-02-28', '2026-02-20', '{}')"
    )
    apart(fetch(database_url, accepted, coded["coder"]))

    async def find() -> None:
        engine = make_engine(database_url)
        day = NOON.date()
        changed = {"reference_id": "reference_9", "day": day, "window_since": day}
        await found(engine, config, id="finding_9", coder=coded["coder"], **changed)
        await engine.dispose()

    apart(find())


def test_the_answers_before_and_after_are_those_that_are_counted(
    postgres_server: str, seeded_database: str, tmp_path: Path, page: Page
) -> None:
    """The list behind each number has as many answers as the number says."""
    config = configuration(tmp_path)
    with copied_database(postgres_server, seeded_database) as url:
        store_changed_finding(url, config)
        with console(url, config, lambda: SEEN) as served:
            page.goto(served.url + "/findings/finding_9")
            cells = page.locator("table").first.locator("tbody tr").nth(1)
            counted, share = cells.get_by_role("link").all_inner_texts()
            number, of = counted.partition(" ")[0], cells.get_by_role("cell").nth(2).inner_text()
            assert int(number) > 0
            assert share == f"{100 * int(number) / int(of):.1f} %"
            cells.get_by_role("link", name=share).click()
            expect(page.get_by_text(f"{number} answers").first).to_be_visible()
