"""Chromium for tests of pages: what a page loads and says, and whether it is accessible."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from support.clients.sdk_clients import NODE, install_for_node
from support.costs import add_cpu_seconds, session_seconds
from support.waiting import wait_until

#: The shell has no windows, and takes half the time; it is Debian's chromium-headless-shell.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
#: Widths and colour schemes that every page must suit: a phone and a desktop, each in light and in dark colours.
LOOKS = [
    (390, "light"),
    (1440, "dark"),
    pytest.param(390, "dark", marks=pytest.mark.slow),
    pytest.param(1440, "light", marks=pytest.mark.slow),
]
#: Without the rules whose faults are never serious, and without what only they need: a third of the time.
_SERIOUS = """async () => {
  const minor = axe._audit.rules.filter(one => ['minor', 'moderate'].includes(one.impact));
  const rules = Object.fromEntries(minor.map(one => [one.id, {enabled: false}]));
  const found = await axe.run(document, {resultTypes: ['violations'], preload: false, rules});
  return found.violations.filter(one => ['serious', 'critical'].includes(one.impact)).map(
    one => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(' | ')}`);
}"""

_BEYOND_FORMS = """[...document.querySelectorAll('form :is(input, select, textarea, button)')].filter(
  one => one.getBoundingClientRect().right > one.closest('form').getBoundingClientRect().right).map(
  one => one.outerHTML)"""


#: As Playwright starts it, where that matters to tests: nothing is loaded that no page asks for.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding", "--disable-ipc-flooding-protection", "--force-color-profile=srgb",
    "--hide-scrollbars", "--metrics-recording-only", "--mute-audio", "--no-first-run", "--remote-debugging-port=0",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """A connection to the one browser of this process, for the tests of a module.

    The connection ends with the module, because the driver's event loop must not meet that of asynchronous tests.
    """
    with sync_playwright() as playwright:
        process, address = _browser()
        before = session_seconds(process.pid)
        connected = playwright.chromium.connect_over_cdp(address)
        yield connected
        connected.close()
        add_cpu_seconds(session_seconds(process.pid) - before)


@cache
def _browser() -> "tuple[subprocess.Popen[bytes], str]":
    """Start the browser that all tests of this process use, each in contexts of its own; return it and its address."""
    assert CHROMIUM is not None
    folder = Path(tempfile.mkdtemp(prefix="chromium-"))
    process = subprocess.Popen(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def stop() -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    port = folder / "DevToolsActivePort"
    wait_until(lambda: port.exists() and port.read_text().count("\n") > 0)
    return process, f"http://127.0.0.1:{port.read_text().split()[0]}"


@contextmanager
def opened(browser: Browser, width: int = 1440, scheme: str = "light") -> Iterator[Page]:
    """A page in a context of its own. It fails the test if it loads anything from elsewhere or says an error."""
    height = 844 if width < 600 else 900
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(str(error)))

    # Chromium also writes a line for every answer that is an error, which tests ask for on purpose.
    def listen(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and "status of" not in message.text:
            said.append(message.text)

    page.on("console", listen)
    yield page
    context.close()
    foreign = [url for url in asked if not url.startswith(("http://127.0.0.1:", "data:", "file:"))]
    assert not foreign, foreign
    assert not said, said


def assert_accessible(page: Page) -> None:
    """Fail if axe-core finds a serious or critical fault on the page as it is."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    faults = page.evaluate(_SERIOUS)
    assert not faults, "\n".join(faults)


def assert_fits(page: Page) -> None:
    """Fail if the page as a whole scrolls sideways, or a field reaches beyond its form."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_BEYOND_FORMS) == []


@cache
def _axe() -> str:
    install_for_node()
    return (NODE / "node_modules" / "axe-core" / "axe.min.js").read_text()
