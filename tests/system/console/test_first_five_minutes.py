"""From `biasmeter up` without a configuration to the first estimate, in a browser; commands are run as printed."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect
from support.clients.browsers import assert_accessible, assert_fits, opened
from support.servers.console import Console
from support.servers.ports import free_port
from support.servers.product import Product, Running, kill_all, marked_pids
from support.stores.postgres import remove_store

#: The browser waits for processes: as long as a loaded machine needs.
PATIENCE = 120_000


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[tuple[Product, Running]]:
    """An installation without a configuration, and the simulated server behind it."""
    upstream = free_port()
    gateway = free_port(further=1)  # the console takes the next one
    product = Product(tmp_path, {"gateway": {"listen": f"127.0.0.1:{gateway}"}}, None)
    product.environment |= {
        "HOME": str(tmp_path), "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}", "OPENAI_API_KEY": "sk-simulated",
    }  # fmt: skip
    data_dir = tmp_path / ".local" / "share" / "biasmeter"
    try:
        simulated = product.start_unconfigured("simulate", "--port", str(upstream), until="listening on")
        product.settings["port"] = gateway
        yield product, simulated
    finally:
        kill_all(marked_pids(product.mark))
        for process in product.started:
            process.kill()
            process.wait()
        remove_store(data_dir)


def run_printed(product: Product, command: str) -> str:
    """Run a command as it was printed, in a terminal that does not have the provider's key."""
    assert command.startswith("biasmeter "), command
    product.environment.pop("OPENAI_API_KEY", None)
    product.environment.pop("OPENAI_BASE_URL", None)
    return product.run(*shlex.split(command)[1:], timeout=300).stdout


def send_printed(command: str) -> dict[str, Any]:
    """Send a request of curl as it was printed."""
    program, address, *options = shlex.split(command)
    assert program == "curl"
    assert options[::2] == ["-H", "-d"]
    name, _, value = options[1].partition(": ")
    answer: dict[str, Any] = httpx2.post(address, headers={name: value}, content=options[3], timeout=60).json()
    return answer


def replay_some(product: Product, url: str, page: Page) -> None:
    """Estimate a replay, start it, and read its comparison."""
    page.get_by_role("link", name="Replays").click()
    page.get_by_label("Which exchanges").fill("origin=probe,limit=6")
    page.get_by_label("Formats").fill("again")
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator(".run")).to_contain_text("Nothing has been sent.", timeout=PATIENCE)
    assert "6 calls to" in page.locator(".run").inner_text()
    page.get_by_role("button", name="Start the replay").click()
    expect(page.locator(".run")).to_contain_text("It has ended: 6 of 6 calls answered.", timeout=PATIENCE)
    assert "6 of 6 calls answered" in page.locator("main").inner_text()
    assert_accessible(page)
    page.get_by_role("link", name="Comparison").click()
    assert page.title() == "Biasmeter: the same questions in other formats"
    assert run_printed(product, httpx2.get(f"{url}/api/replays").json()["runs"][0]["command"])


def health_names_a_server_that_is_gone(product: Product, url: str, page: Page) -> None:
    """After failures in a row the gateway sends nothing to a server that is gone, and the page of health says so."""
    ask = {"model": "sim", "messages": [{"role": "user", "content": "Hello"}]}
    for _ in range(6):
        httpx2.post(f"http://127.0.0.1:{product.settings['port']}/v1/chat/completions", json=ask, timeout=60)
    page.goto(url + "/health")
    expect(page.get_by_role("status")).to_contain_text("The gateway sends nothing to openai")
    expect(page.locator("dl").first).to_contain_text("gets no requests, because the last ones failed")
    assert_accessible(page)


def test_an_empty_installation_leads_to_the_first_estimate(
    installation: tuple[Product, Running], browser: Browser, thorough: bool
) -> None:
    empty, simulated = installation
    port = empty.settings["port"]
    running = empty.start_unconfigured("up", "--port", str(port), until=r"listening on http://\S+:\d+/\s")
    console = re.search(r"in the console \((http://\S+)/start\)", running.said())
    assert console is not None, running.said()
    url = console[1]
    with opened(browser) as page:
        page.goto(url + "/")
        assert page.url == url + "/start"
        if thorough:
            assert_accessible(page)
        printed = page.locator("pre").all_inner_texts()
        (plan,) = (one for one in printed if "audit plan" in one)
        assert "calls a deployment" in run_printed(empty, plan)
        (request,) = (one for one in printed if one.startswith("curl "))
        assert "MODEL" not in request
        assert send_printed(request)["choices"][0]["message"]["content"]
        page.get_by_role("link", name="Estimate it here").click()
        page.get_by_role("button", name="Start the audit").click()
        expect(page.locator(".lead")).to_contain_text("It has ended.", timeout=PATIENCE)
        row = page.get_by_role("row").nth(1).inner_text()
        assert re.search(r"(\d+) of \1\b", row.replace(",", "")), row
        page.goto(url + "/start")
        expect(page.get_by_role("status")).to_contain_text("Done.", timeout=PATIENCE)
        page.get_by_role("status").get_by_role("link", name="fleet").click()
        expect(page.locator("main")).to_contain_text("%")
        if thorough:
            audits = httpx2.get(url + "/api/audits").json()["audits"]
            again = run_printed(empty, httpx2.get(f"{url}/api/audits/{audits[0]['plan']}").json()["command"])
            assert f"{audits[0]['planned']} of {audits[0]['planned']} answered" in again
            replay_some(empty, url, page)
            simulated.stop()
            health_names_a_server_that_is_gone(empty, url, page)
    assert running.stop() == 0


def test_the_start_page_fits_a_phone(open_site: Console, browser: Browser, thorough: bool) -> None:
    for width, scheme in ((390, "light"), (1440, "dark")):
        with opened(browser, width, scheme) as page:
            page.goto(open_site.url + "/")
            assert page.url.endswith("/start")
            assert "no gateway has run" in page.locator("ol.steps").inner_text()
            assert_fits(page)
            if thorough or scheme == "light":
                assert_accessible(page)
    steps = httpx2.get(open_site.url + "/api/start").json()["steps"]
    assert [step["done"] for step in steps] == [True, False, False, False, False, False]
