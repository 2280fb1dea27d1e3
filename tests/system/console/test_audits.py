"""The pages of audits: estimates, start, progress, stop, resume and compare, on a store without a gateway."""

import json
import re
from datetime import timedelta
from functools import partial
from html import unescape
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page
from support.clients.browsers import assert_accessible
from support.servers.console import SHARES, Console, console, later
from support.stores.audited_store import CTO, configuration, panel_answers, plan, ship
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.postgres import apart, copied_database, execute, fetch

from auditor.access import secret_path
from auditor.api.audits import MOST_COUNTED
from auditor.domain.condition import BASELINE
from auditor.domain.keys import KeyRole
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine

#: Estimates of large plans take long on a loaded machine.
get = partial(httpx2.get, timeout=60)
post = partial(httpx2.post, timeout=60)
PLAN = "/api/audits/plan?design=sentinel"


@pytest.fixture
def startable(migrated_url: str, tmp_path: Path):
    """The console on an empty store, with the secret of a gateway; no jobs run."""
    config = configuration(tmp_path, "seed: 3")
    secret_path(config).parent.mkdir(parents=True)
    secret_path(config).write_text("sk-bias-secret")
    with console(migrated_url, config, later) as served:
        yield served


def test_a_plan_is_estimated_before_anything_is_sent(site: Console, page: Page, thorough: bool) -> None:
    design = "oat" if thorough else "sentinel"
    page.goto(site.url + "/audits")
    page.locator("select[name=design]").select_option(design)
    page.get_by_label("d1").check()
    page.get_by_label("Answers to each question").fill("2")
    page.get_by_role("button", name="Estimate").click()
    estimated = get(f"{site.url}/api/audits/plan?design={design}&deployment=d1&draws=2").json()
    (one,) = estimated["deployments"]
    row = page.get_by_role("row", name="d1").inner_text()
    assert f"{one['calls']:,}" in row
    assert f"{100 * one['smallest_shift']:.1f} pp" in row
    assert "unknown" in row
    assert "The auditor does not reach a gateway" in page.get_by_role("status").inner_text()
    shown = page.locator("pre").inner_text().splitlines()
    assert shown[1] == f"biasmeter audit run -c FILE --design {design} --deployment d1 --draws 2 --yes"
    assert page.get_by_role("button", name="Start the audit").count() == 0
    assert_accessible(page)


def test_an_audit_is_started_stopped_and_resumed(startable: Console, page: Page, thorough: bool) -> None:
    page.goto(startable.url + "/audits/plan?design=sentinel&deployment=d2&budget_calls=50")
    page.get_by_role("button", name="Start the audit").click()
    plan_id = page.url.rpartition("/")[2]
    assert "Waits for the auditor" in page.locator("main").inner_text()
    (row,) = fetch(startable.database_url, "SELECT * FROM console_runs")
    assert (row["id"], row["state"], row["asked_by"]) == (plan_id, "asked", "local")
    assert json.loads(row["choice"])["budget_calls"] == 50
    page.get_by_role("button", name="Stop").click()
    assert "It stops when" in page.locator("main").inner_text()
    execute(startable.database_url, "UPDATE console_runs SET state = 'stopped'")
    page.reload()
    page.get_by_role("button", name="Resume").click()
    assert fetch(startable.database_url, "SELECT state FROM console_runs")[0]["state"] == "asked"
    if thorough:
        assert_accessible(page)


def test_the_api_does_the_same(startable: Console) -> None:
    url = startable.url + "/api/audits"
    started = post(url, json={"design": "sentinel", "deployment": ["d1"], "budget_usd": 2})
    assert started.status_code == 202
    plan_id = started.json()["plan"]
    assert plan_id == get(startable.url + PLAN + "&deployment=d1").json()["plan"]
    assert [one["run"]["state"] for one in get(url).json()["audits"]] == ["asked"]
    assert get(f"{url}/{plan_id}").json()["budget"] == {"calls": None, "usd": 2}
    assert post(f"{url}/{plan_id}/stop").status_code == 202
    for path, code in ((f"{url}/none/stop", 409), (f"{url}/none/resume", 409), (f"{url}/none", 404)):
        answer = get(path) if code == 404 else post(path)
        assert answer.status_code == code


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"design": "big"}, "design"), ({"deployment": "d9"}, "deployment"), ({"deployment": [1]}, "deployment"),
        ({"draws": 0}, "draws"), ({"draws": "x"}, "draws"), ({"share": 2}, "share"), ({"orders": "none"}, "orders"),
        ({"design": "oat", "task": "BJ"}, "task"), ({"design": "factorial", "role": "king"}, "role"),
        ({"colour": "red"}, "colour"), ({"number": 1.5}, "number"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_made_names_the_field(site: Console, changed: dict[str, object], param: str) -> None:
    answer = post(site.url + "/api/audits", json=changed)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_only_admins_start_and_stop(guarded: Console) -> None:
    headers = {"authorization": f"Bearer {guarded.add_key('ben', role=KeyRole.REVIEWER)}"}
    assert get(guarded.url + PLAN, headers=headers).status_code == 200
    for path in ("/api/audits", "/api/audits/x/stop", "/api/audits/x/resume"):
        answer = post(guarded.url + path, json={}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "role_missing")


def test_what_is_missing_is_said_and_nothing_is_started(site: Console) -> None:
    answer = post(site.url + "/api/audits", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "audit_not_possible")
    assert "no gateway has run" in answer.json()["error"]["message"]


def test_the_numbers_of_an_audit_agree_with_the_fleet(site: Console, page: Page) -> None:
    audit = get(site.url + "/api/audits/p1").json()
    fleet = {one["name"]: one for one in get(site.url + "/api/deployments").json()["deployments"]}
    (listed,) = get(site.url + "/api/audits").json()["audits"]
    assert listed["planned"] == sum(one["planned"] for one in fleet.values()) == 400
    for one in audit["deployments"]:
        assert (one["planned"], one["answered"]) == tuple(fleet[one["deployment"]][n] for n in ("planned", "answered"))
        assert one["coded"] == fleet[one["deployment"]]["origins"]["probe"]["coded"]
        rows = {(row["metric"], row.get("layer")): row for row in fleet[one["deployment"]]["estimates"]}
        own = audit["estimates"][one["deployment"]]
        assert own["ber_union_full"]["value"] == pytest.approx(rows["ber", "union"]["value"])
        assert own["ir"]["value"] == pytest.approx(rows["ir", None]["value"])
    page.goto(site.url + "/audits/p1")
    assert "200 of 200" in page.get_by_role("row", name="d1").first.inner_text()


def test_a_very_large_audit_is_counted_only_when_asked_for(databases: Databases, tmp_path: Path) -> None:
    more = f"""
        INSERT INTO planned_calls
        SELECT 'more/' || i, plan_id, deployment, statement_id, task, perspective, role, sentiment, template_id, draw,
            1000 + i, invites_reason
        FROM (SELECT * FROM planned_calls WHERE ref LIKE 'p1/%' LIMIT 1) AS one, generate_series(1, {MOST_COUNTED}) AS i
    """
    with databases.fresh() as url:
        config = configuration(tmp_path)

        async def work() -> None:
            await plan(url, SHARES, shipped_pool()[:20], [CTO], name="p1")
            await ship(url, panel_answers({"d1": {"E|E": 12, "D|D": 8}}, conditions=[CTO]))
            engine = make_engine(url)
            await run_once(config, engine, later)
            await engine.dispose()

        apart(work())
        with console(url, config, later) as site:
            before = get(site.url + "/api/audits/p1").json()
            assert (before["is_counted"], list(before["estimates"])) == (True, ["d1"])
            execute(url, more)
            large = get(site.url + "/api/audits/p1").json()
            assert large["planned"] == before["planned"] + MOST_COUNTED
            assert (large["is_counted"], large["estimates"], large["spent"]) == (False, {}, {})
            assert sum(one["answered"] for one in large["deployments"]) == 20
            assert not any({"failed", "coded"} & set(one) for one in large["deployments"])
            shown = get(site.url + "/audits/p1").text
            assert f"This audit has {large['planned']:,} planned calls." in shown
            assert '<a href="?count=all">' in shown
            whole = get(site.url + "/api/audits/p1?count=all").json()
            assert (whole["is_counted"], whole["estimates"]) == (True, before["estimates"])
            assert get(site.url + "/audits/p1?count=all").status_code == 200
            assert get(site.url + "/audits/p1?count=some").status_code == 400


def numbers_and_lists(site: Console, path: str) -> list[tuple[str, str]]:
    """Each linked number of a page, with what the list that it leads to says: a count, or a share of the title's base.

    A difference has both kinds of disagreement in its list, and is left out.
    """
    found = []
    for link, title, shown in LINK.findall(get(site.url + path).text):
        if "pp" in shown:
            continue
        total = get(f"{site.url}/api{unescape(link)}&limit=1").json()["total"]
        base = re.match(r"n = ([\d,]+)|[\d,]+ of ([\d,]+) responses", title)
        if base is None:
            found.append((shown, f"{total:,}"))
        else:
            found.append((shown, f"{100 * total / int((base[1] or base[2]).replace(',', '')):.1f} %"))
    return found


LINK = re.compile(r'<a href="(/answers\?[^"]*)"(?: title="([^"]*)")?>([^<]+)</a>')


def test_every_number_of_an_audit_leads_to_the_answers_that_it_counts(site: Console) -> None:
    for path, at_least in (("/audits/p1", 8), ("/audits/p1/beside/p1", 16)):
        found = numbers_and_lists(site, path)
        assert len(found) >= at_least
        assert [shown for shown, _ in found] == [listed for _, listed in found]
    of_others = get(site.url + "/api/answers?plan=p9").json()
    assert of_others["total"] == 0


def test_two_audits_are_compared_on_their_shared_statements(
    postgres_server: str, seeded_database: str, tmp_path: Path, page: Page
) -> None:
    with copied_database(postgres_server, seeded_database) as url:
        config = configuration(tmp_path)

        async def work() -> None:
            other = {"d1": {"E|E": 60, "D|D": 40}}
            await plan(url, other, shipped_pool()[:100], [CTO, BASELINE], name="p2")
            again = panel_answers(other, NOON + timedelta(minutes=5), conditions=[CTO, BASELINE])
            await ship(url, [one._replace(ref=one.ref.replace("p1/", "p2/", 1)) for one in again])
            engine = make_engine(url)
            await run_once(config, engine, later)
            await engine.dispose()

        apart(work())
        with console(url, config, later) as site:
            (pair,) = get(site.url + "/api/audits/p2/beside/p1").json()["pairs"]
            change = pair["ber_union_full_difference"]
            first, second = pair["estimates"]["ber_union_full"], pair["other_estimates"]["ber_union_full"]
            assert change["value"] == pytest.approx(first["value"] - second["value"])
            assert change["low"] < change["value"] < change["high"]
            assert change["n_statements"] == 100
            page.goto(site.url + "/audits/p2")
            page.get_by_role("link", name="with p1").click()
            told = page.locator("main").inner_text()
            assert "A minus B, on the 100 statements that both asked: " in told
            assert re.search(r"both asked: [+−][\d.]+ pp \[[+−][\d.]+, [+−][\d.]+\]", told), told  # noqa: RUF001
            assert_accessible(page)
            assert get(site.url + "/api/audits/p2/beside/none").status_code == 404
