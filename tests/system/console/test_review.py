"""People label answers in the console: by keyboard alone, two for each answer, blind, with locks and adjudication."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect
from support.clients.browsers import LOOKS, assert_accessible, assert_fits, opened
from support.clients.pages import send, texts
from support.servers.console import Console, console, later
from support.stores.audited_store import configuration, fetch
from support.stores.postgres import apart, copied_database

from auditor.domain.keys import KeyRole


@dataclass
class Clock:
    """A clock that a test moves."""

    now: datetime = field(default_factory=later)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def desk(
    postgres_server: str, seeded_database: str, tmp_path_factory: pytest.TempPathFactory, clock: Clock
) -> Iterator[Console]:
    """The console of a loopback address with 400 coded answers, for the reviews of this module."""
    config = configuration(tmp_path_factory.mktemp("desk"))
    with copied_database(postgres_server, seeded_database) as url, console(url, config, clock) as served:
        yield served


@dataclass
class Reviewer:
    """A person whose pages are read and whose forms are sent without a browser."""

    client: httpx2.Client
    name: str
    address: str = ""
    page: str = ""

    def draw(self, n: int, seed: int) -> str:
        """Draw a sample: the address of its queue."""
        drawn = send(self.client, self.client.get("/review").text, "/review", n=str(n), seed=str(seed))
        return str(drawn.url)

    def begin(self, address: str, **query: str) -> None:
        self.address = urlsplit(address).path
        asked = {"layer": "elab", "view": "split", "reviewer": self.name, **query}
        self.page = self.client.get(self.address, params=asked).raise_for_status().text

    def statement(self) -> str:
        (item,) = re.findall(r'name="item" value="([^"]*)"', self.page)
        return texts(self.page, 'p class="statement')[0] + item

    def own(self) -> int:
        return int(texts(self.page, 'span id="own')[0])

    def label(self, label: str) -> None:
        """Label the answer that is shown."""
        before = self.own()
        self.page = send(self.client, self.page, self.address, label=label).text
        assert self.own() == before + 1

    def settle(self) -> None:
        """Follow the link to the one disagreement."""
        (address,) = re.findall(r'<a href="([^"]*)">settle 1 disagreements</a>', self.page)
        self.page = self.client.get(unescape(address)).raise_for_status().text


@pytest.fixture
def person(desk: Console) -> Iterator[Callable[[str], Reviewer]]:
    """Make people who review."""
    with ExitStack() as clients:
        yield lambda name: Reviewer(clients.enter_context(httpx2.Client(base_url=desk.url, timeout=60)), name)


def draw(page: Page, desk: Console, n: int, seed: int) -> str:
    """Draw a sample on the page: the address of its queue."""
    page.goto(desk.url + "/review")
    page.get_by_label("answers").fill(str(n))
    page.get_by_label("seed").fill(str(seed))
    page.get_by_role("button", name="Draw").click()
    page.wait_for_url("**/review/draw_*")
    return page.url


def begin(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}?layer=elab&view=split&reviewer={name}")


def statement(page: Page) -> str:
    return page.locator("p.statement").inner_text() + page.locator("input[name=item]").get_attribute("value")  # type: ignore[operator]


def label(page: Page, key: str) -> None:
    """Press a key, and wait for the next answer."""
    page.wait_for_load_state()  # before that no script listens
    before = int(page.locator("#own").inner_text())
    page.keyboard.press(key)
    expect(page.locator("#own")).to_have_text(str(before + 1))


_SEND_LABELS = """async ([address, count]) => {
  for (let sent = 0; sent < count; sent++) {
    const shown = new DOMParser().parseFromString(await (await fetch(address)).text(), 'text/html');
    const form = new FormData(shown.querySelector('form[method=post]'));
    form.set('label', shown.querySelector('pre.text').textContent.includes('true') ? 'E' : 'D');
    await fetch(new URL(address).pathname, {method: 'POST', body: new URLSearchParams(form)});
  }
}"""


def label_by_text(page: Page, count: int) -> None:
    """Label answers by whether their text says "true": all but the last without drawing a page for each."""
    before = int(page.locator("#own").inner_text())
    page.evaluate(_SEND_LABELS, [page.url, count - 1])
    page.reload()
    expect(page.locator("#own")).to_have_text(str(before + count - 1))
    label(page, "e" if "true" in page.locator("pre.text").inner_text() else "d")


def press(page: Page, key: str, said: str) -> None:
    """Press a key, and wait for what the next page says."""
    page.wait_for_load_state()
    page.keyboard.press(key)
    expect(page.get_by_text(said)).to_be_visible()


def progress(desk: Console, address: str, **query: str) -> dict:
    draw_id = urlsplit(address).path.rpartition("/")[2]
    asked = "&".join(f"{name}={value}" for name, value in {"reviewer": "x", **query}.items())
    with urlopen(f"{desk.url}/api/review/{draw_id}?{asked}") as answer:
        return json.loads(answer.read())


def test_the_keyboard_alone_labels_answers(desk: Console, page: Page) -> None:
    address = draw(page, desk, 8, 1)
    page.get_by_label("your name").focus()
    page.keyboard.type("anna")
    page.keyboard.press("Enter")
    page.wait_for_url("**reviewer=anna**")
    seen = []
    for place in range(8):
        seen.append(statement(page))
        label(page, "eqndra"[place % 6])
    assert len(set(seen)) == 8
    expect(page.get_by_text("Nothing is left for you here")).to_be_visible()
    kept = apart(fetch(desk.database_url, "SELECT label FROM reviews WHERE reviewer = 'anna' ORDER BY id"))
    assert [row["label"] for row in kept] == [["E", "QE", "N", "D", "R", "Abstain"][place % 6] for place in range(8)]
    # Back twice, forward once, and another label for the last answer.
    press(page, "ArrowLeft", "Your label is QE.")
    press(page, "u", "Your label is E.")
    press(page, "ArrowRight", "Your label is QE.")
    press(page, "n", "Nothing is left for you here")
    assert progress(desk, address, reviewer="anna")["progress"]["own"] == 8
    press(page, "ArrowLeft", "Your label is N.")


def test_two_reviewers_read_different_answers_a_lock_ends_and_a_third_settles(
    desk: Console, person: Callable[[str], Reviewer], clock: Clock
) -> None:
    ann, bob, eve = (person(name) for name in ("ann", "bob", "eve"))
    address = ann.draw(3, 2)
    ann.begin(address)
    bob.begin(address)
    first, second = ann.statement(), bob.statement()
    assert first != second
    # Each keeps the answer that they are reading.
    ann.begin(address)
    assert ann.statement() == first
    # Ann goes away: after ten minutes her answer is Bob's.
    clock.now += timedelta(minutes=9)
    bob.begin(address)
    assert bob.statement() == second
    clock.now += timedelta(minutes=2)
    bob.begin(address)
    assert bob.statement() == first
    # A late label counts, because the answer needs two.
    ann.label("E")
    bob.label("D")
    assert ann.statement() != first
    ann.label("E")
    bob.label("E")
    for _ in range(2):
        for one in (ann, bob):
            one.begin(address)
            if texts(one.page, 'p class="statement'):
                one.label("E")
    counted = progress(desk, address)["progress"]
    assert (counted["complete"], counted["disputed"], counted["items"]) == (3, 1, 3)
    # Nobody needs a third label, and those who labelled cannot settle.
    eve.begin(address)
    assert "Nothing is left for you here" in eve.page
    ann.begin(address)
    ann.settle()
    assert "No labels differ that you could settle" in ann.page
    eve.settle()
    assert eve.statement() == first
    assert sorted(texts(eve.page, 'span class="label')) == ["D", "E"]
    eve.label("D")
    counted = progress(desk, address)["progress"]
    assert (counted["disputed"], counted["adjudicated"]) == (0, 1)
    (row,) = apart(fetch(desk.database_url, "SELECT reviewer, label FROM reviews WHERE adjudicates"))
    assert tuple(row) == ("eve", "D")


@pytest.mark.slow
def test_agreement_and_the_corrected_estimate_move_with_the_labels(desk: Console, browser: Browser) -> None:
    with opened(browser) as ann, opened(browser) as bob:
        address = draw(ann, desk, 60, 3)
        begin(ann, address, "ann")
        live = ann.locator("[data-live]")
        expect(live).to_contain_text("no answer has two labels yet")
        told = []
        for count, labelled in ((40, 40), (10, 50)):
            label_by_text(ann, count)
            expect(live).to_contain_text("Texts that endorse, of all answers, corrected: ")
            expect(live).to_contain_text(f"{labelled} answers labelled")
            told.append(live.inner_text())
        assert told[0] != told[1]
        begin(bob, address, "bob")
        label_by_text(bob, 30)
        expect(bob.locator("[data-live]")).to_contain_text("Agreement (alpha): 1.00")
        # The same without a script.
        bob.goto(f"{address}?reviewer=bob&numbers=yes")
        expect(bob.get_by_text("Agreement (alpha): 1.00")).to_be_visible()


def test_no_response_names_a_judge_or_a_deployment(desk: Console, person: Callable[[str], Reviewer]) -> None:
    cleo = person("cleo")
    address = cleo.draw(12, 4)
    cleo.begin(address)
    seen = [cleo.page]
    for _ in range(5):
        cleo.label("N")
        seen.append(cleo.page)
    draw_id = urlsplit(address).path.rpartition("/")[2]
    for path in (
        f"/review/{draw_id}?layer=sel&reviewer=cleo",
        f"/review/{draw_id}?view=whole&reviewer=cleo",
        f"/review/{draw_id}?reviewer=cleo&numbers=yes",
        f"/api/review/{draw_id}?reviewer=cleo",
        f"/api/review/{draw_id}?layer=sel&reviewer=cleo",
        "/review",
        "/api/review",
    ):
        with urlopen(desk.url + path) as answer:
            seen.append(f"{answer.headers}{answer.read().decode()}")
    for said in seen:
        assert not re.search(r"\b(d1|d2|m1|m2|lexicon)\b", said), said


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_fit_and_are_accessible(
    desk: Console, person: Callable[[str], Reviewer], browser: Browser, width: int, scheme: str, thorough: bool
) -> None:
    address = person("dora").draw(5, 5)
    item = f"{address}?layer=sel&reviewer=dora"
    with opened(browser, width, scheme) as page:
        for path in (desk.url + "/review", address, f"{address}?reviewer=dora", item):
            page.goto(path)
            assert_fits(page)
            if thorough or scheme == "light" or path == item:
                assert_accessible(page)


def test_the_buttons_work_without_a_script(desk: Console, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    address = draw(page, desk, 2, 6)
    page.goto(f"{address}?reviewer=finn")
    page.get_by_role("button", name="rejects it").click()
    expect(page.locator("#own")).to_have_text("1")
    context.close()


def test_a_viewer_sees_how_far_samples_are_and_labels_nothing(guarded: Console) -> None:
    key = guarded.add_key("vera", role=KeyRole.VIEWER)
    bearer = {"authorization": f"Bearer {key}"}
    assert httpx2.get(guarded.url + "/api/review", headers=bearer).json() == {"draws": []}
    assert "you need a key with the role reviewer" in httpx2.get(guarded.url + "/review", headers=bearer).text
    assert httpx2.get(guarded.url + "/review/draw_x", headers=bearer).status_code == 403


def test_what_is_wrong_is_named(desk: Console, person: Callable[[str], Reviewer]) -> None:
    address = person("gus").draw(2, 7)
    shown = {"accept": "text/html"}
    for query, said in (
        ("layer=top", "layer must be one of sel, elab"),
        ("view=half", "view must be one of split, whole"),
        ("adjudicate=no", "adjudicate must be yes"),
        ("item=7", "'item' is not the id of an exchange"),
        ("deployment=d1", "There is no filter 'deployment'"),
        ("reviewer=a%09b", "reviewer must be a name"),
        ("reviewer=gus&item=01890a5d-ac96-774b-bcce-b302099a8057", "You have not labelled this answer"),
    ):
        answer = httpx2.get(f"{address}?{query}", headers=shown)
        assert answer.status_code in {400, 404}
        assert said in unescape(answer.text)
    assert httpx2.get(desk.url + "/review/draw_nowhere", headers=shown).status_code == 404
    assert parse_qs(urlsplit(address).query) == {}
