"""The page of the fleet in a browser: what a phone shows without scrolling, and how 200 deployments are read."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from playwright.sync_api import Browser, Page
from support.clients.browsers import LOOKS, assert_accessible, assert_fits, opened
from support.documents.fleet_estimates import fleet_rows
from support.servers.console import Console, console, later
from support.stores.databases import Databases
from support.stores.postgres import apart

from auditor.api.charts import ChartInterval, Point, divergence_plane
from auditor.config import loads
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import EstimateRow, replace_estimates


@pytest.fixture(scope="module")
def size(thorough: bool) -> int:
    """How many deployments the fleet has."""
    return 200 if thorough else 60


@pytest.fixture(scope="module")
def fleet(size: int, databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console with the estimates of many deployments, whose names are as long as names get."""
    rows = [_varied(row) for row in fleet_rows(later(), size) if row.window == "30d" and row.condition == "all"]
    names = sorted({row.deployment for row in rows if row.deployment})
    declared = "".join(f"  - {{name: {name}, base_url: 'http://127.0.0.1:1/v1', model: m}}\n" for name in names)
    text = f"data_dir: data\ndeployments:\n{declared}routes: [{{model: '*', deployments: [{names[0]}]}}]\n"
    config = loads(text, source="fleet.yaml", folder=tmp_path_factory.mktemp("fleet"), environ={}).config
    with databases.fresh() as url:
        apart(_store(url, rows))
        with console(url, config, later) as served:
            yield served


def _varied(row: EstimateRow) -> EstimateRow:
    """Give each deployment numbers of its own, and a long name."""
    name = f"vendor-{row.deployment}-instruct-eu-central"
    value = random.Random(f"{name} {row.metric}").uniform(0.05, 0.6) - (0.3 if row.metric == "dni" else 0)
    own = replace(row, deployment=name)
    if row.metric not in {"ber", "ir", "dni", "coverage"}:
        return own
    return replace(own, value=value, low=value - 0.04, high=value + 0.05, n_statements=200, method="wilson")


async def _store(url: str, rows: list[EstimateRow]) -> None:
    engine = make_engine(url)
    async with transaction(engine) as connection:
        await replace_estimates(connection, rows, rows[0].as_of)
    await engine.dispose()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_great_fleet_fits(fleet: Console, size: int, browser: Browser, width: int, scheme: str) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(f"{fleet.url}/?window=30d")
        assert page.locator("table.fleet tbody tr").count() == size
        assert page.locator(".plane a:visible").count() == size
        assert page.locator(".plane:visible").bounding_box()["width"] <= width - 2 * 16  # type: ignore[index]
        assert_fits(page)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_great_fleet_is_accessible(fleet: Console, browser: Browser, width: int, scheme: str) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(f"{fleet.url}/?window=30d")
        assert_accessible(page)


def test_a_phone_shows_name_rate_and_interval_without_scrolling_sideways(fleet: Console, browser: Browser) -> None:
    with opened(browser, 390) as page:
        page.goto(f"{fleet.url}/?window=30d")
        row = page.locator("table.fleet tbody tr").first
        for part in (row.locator("th a"), row.locator(".number a").first, row.locator(".number small").first):
            box = part.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            assert part.inner_text().strip()


def test_a_column_sorts_by_keyboard_and_the_form_keeps_the_order(fleet: Console, page: Page) -> None:
    page.goto(f"{fleet.url}/?window=30d")
    before = page.locator("table.fleet tbody th a").first.inner_text()
    page.get_by_role("columnheader", name="either layer").get_by_role("link").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**sort=-union*")
    assert page.locator("table.fleet tbody th a").last.inner_text() == before
    page.get_by_label("window").select_option("30d")
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()
    assert "sort=-union" in page.url
    assert page.locator("table.fleet tbody th a").last.inner_text() == before


def test_a_mark_of_the_map_leads_to_its_deployment(site: Console, page: Page) -> None:
    page.goto(f"{site.url}/")
    assert {link.get_attribute("href") for link in page.locator(".desktop .plane a").all()} == {
        "/deployments/d1", "/deployments/d2"
    }  # fmt: skip


def test_names_of_near_marks_do_not_cover_each_other(page: Page) -> None:
    def around(value: float) -> ChartInterval:
        return ChartInterval(value=value, low=value - 0.04, high=value + 0.04)

    found = {"a-rather-long-name": (0.10, 0.09), "near": (0.09, 0.06), "nearer": (0.092, 0.058), "far": (0.3, 0.2)}
    points = [Point(name=name, x=around(x), y=around(y), text=name, address="/") for name, (x, y) in found.items()]
    page.set_content(f"<style>.chart {{ font: 11px sans-serif }}</style>{divergence_plane(points, 'map')}")
    for screen in (".desktop", ".phone"):
        names = page.locator(f"{screen} text.name").filter(has_text=re.compile("|".join(found)))
        boxes = [box for name in names.all() if (box := name.bounding_box())]
        assert len(boxes) == len(found)
        for one, other in combinations(boxes, 2):
            beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert beside or abs(one["y"] - other["y"]) >= 10


def test_an_interval_is_drawn_where_it_is(fleet: Console, size: int, page: Page) -> None:
    page.goto(f"{fleet.url}/?sort=union")
    lines = page.locator("table.fleet tbody .bar .interval")
    ends = lines.evaluate_all("all => all.map(line => [+line.getAttribute('x1'), +line.getAttribute('x2')])")
    assert len(ends) == size
    assert ends == sorted(ends, reverse=True)
    assert all(4 <= low < high <= 166 for low, high in ends)
