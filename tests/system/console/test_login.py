"""Sign in and out: what opens a session, what ends it, and what it may do."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page
from support.servers.console import Console, console, later
from support.stores.audited_store import configuration
from support.stores.postgres import execute, fetch

from auditor.api.login import FailedAttempts
from auditor.domain.keys import KeyRole

BROWSER = {"accept": "text/html"}
SESSION = "biasmeter_session"
PUBLIC = "https://bias.example.org"


def sign_in(site: Console, key: str, headers: dict[str, str] | None = None, **fields: str) -> httpx2.Response:
    return httpx2.post(site.url + "/login", data={"key": key, **fields}, headers=headers or {})


def signed_in(site: Console, name: str, role: KeyRole) -> httpx2.Client:
    """A client with the session of a new key."""
    answer = sign_in(site, site.add_key(name, role=role))
    assert answer.status_code == 303
    return httpx2.Client(base_url=site.url, cookies={SESSION: answer.cookies[SESSION]})


def test_a_person_signs_in_sees_the_page_and_signs_out(guarded: Console, page: Page) -> None:
    key = guarded.add_key("ann", role=KeyRole.VIEWER)
    page.goto(guarded.url + "/answers?deployment=d1")
    assert page.url == guarded.url + "/login?next=%2Fanswers%3Fdeployment%3Dd1"
    page.get_by_label("Key").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("alert").inner_text() == "This key is not valid."
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    assert page.url == guarded.url + "/answers?deployment=d1"
    assert page.locator(".who .meta").inner_text() == "ann · viewer"
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (SESSION, True, "Strict")
    page.get_by_role("button", name="Sign out").click()
    assert page.url == guarded.url + "/login"
    page.goto(guarded.url + "/")
    assert page.url == guarded.url + "/login?next=%2F"


def test_programs_get_json_and_browsers_pages(guarded: Console) -> None:
    answer = httpx2.get(guarded.url + "/api/deployments", headers=BROWSER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert httpx2.get(guarded.url + "/answers").status_code == 401
    answer = httpx2.get(guarded.url + "/answers", headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fanswers")
    answer = sign_in(guarded, "nonsense")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    with signed_in(guarded, "ann", KeyRole.VIEWER) as client:
        answer = client.get("/nowhere", headers=BROWSER)
        assert (answer.status_code, "<h1>This page cannot be shown</h1>" in answer.text) == (404, True)
        assert client.get("/nowhere").json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("ending", ["revoked", "expired", "signed out", "key expired"])
def test_a_session_ends_at_once(guarded: Console, ending: str) -> None:
    with signed_in(guarded, "ann", KeyRole.ADMIN) as client:
        assert client.get("/api/deployments").status_code == 200
        if ending == "revoked":
            guarded.revoke_key("ann")
        elif ending == "expired":
            execute(guarded.database_url, f"UPDATE console_sessions SET expires_at = '{later().isoformat()}'")
        elif ending == "key expired":
            execute(guarded.database_url, f"UPDATE client_keys SET expires_at = '{later().isoformat()}'")
        else:
            token = client.cookies[SESSION]
            client.post("/logout")
            client.cookies.set(SESSION, token)  # a copy of the cookie is worth nothing
        assert client.get("/api/deployments").status_code == 401


def test_the_store_keeps_neither_tokens_nor_sessions_that_expired(guarded: Console) -> None:
    with signed_in(guarded, "ann", KeyRole.ADMIN) as client:
        token = client.cookies[SESSION]
    (row,) = fetch(guarded.database_url, "SELECT * FROM console_sessions")
    assert token.encode() not in row["token_hash"]
    assert row["expires_at"] == later() + timedelta(hours=12)
    execute(guarded.database_url, f"UPDATE console_sessions SET expires_at = '{later().isoformat()}'")
    sign_in(guarded, "ann")
    assert len(fetch(guarded.database_url, "SELECT * FROM console_sessions")) == 1


def test_a_key_without_a_role_opens_nothing(guarded: Console) -> None:
    answer = sign_in(guarded, guarded.add_key("app", role=None))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "right_missing")


def test_viewers_read_and_change_nothing(guarded: Console) -> None:
    with signed_in(guarded, "ann", KeyRole.VIEWER) as client:
        answer = client.post("/api/estimates")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "role_missing")
    with signed_in(guarded, "ben", KeyRole.REVIEWER) as client:
        assert client.post("/api/estimates").status_code == 202


def test_other_sites_can_neither_sign_in_nor_act(guarded: Console) -> None:
    key = guarded.add_key("ann", role=KeyRole.ADMIN)
    for origin in ("https://evil.example", "null"):
        answer = sign_in(guarded, key, {"origin": origin})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_origin")
    assert sign_in(guarded, key, {"origin": guarded.url}).status_code == 303


@pytest.mark.parametrize(
    "following",
    ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "/ok\r\nx: y", "evil", "", "/é"],
)
def test_nobody_is_led_elsewhere(guarded: Console, following: str) -> None:
    answer = sign_in(guarded, guarded.add_key("ann", role=KeyRole.VIEWER), next=following)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_guessing_is_limited_by_address(guarded: Console) -> None:
    key = guarded.add_key("ann", role=KeyRole.VIEWER)
    assert [sign_in(guarded, f"guess {n}").status_code for n in range(11)] == [*10 * [401], 429]
    refused = sign_in(guarded, key)
    assert refused.json()["error"]["code"] == "too_many_attempts"
    assert int(refused.headers["retry-after"]) == 301
    page = sign_in(guarded, key, BROWSER)
    assert page.status_code == 429
    assert "Try again in 5 minutes." in page.text


def test_a_key_of_ones_own_takes_no_failure_back(guarded: Console) -> None:
    own = guarded.add_key("ann", role=KeyRole.VIEWER)
    answers = [sign_in(guarded, f"guess {n // 2}" if n % 2 else own).status_code for n in range(22)]
    assert answers == [*10 * [303, 401], 429, 429]


def test_many_guesses_at_once_are_limited_too(guarded: Console) -> None:
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda n: sign_in(guarded, f"guess {n}").status_code, range(24)))
    assert sorted(answers) == [*10 * [401], *14 * [429]]


def test_failures_are_forgotten_in_time_and_take_bounded_memory() -> None:
    failures, now = FailedAttempts(), later()
    for _ in range(10):
        failures.add("2001:db8::1", now)
    assert failures.blocked("2001:db8::ffff", now) == timedelta(minutes=5)  # the same network
    assert failures.blocked("2001:db8:1::1", now) is None
    assert failures.blocked("2001:db8::1", now + timedelta(minutes=5)) is None
    for n in range(20_000):
        failures.add(f"10.0.{n // 256}.{n % 256}", now)
    assert len(failures) == 10_000


def test_a_key_is_not_sent_in_the_clear(guarded: Console, tmp_path: Path) -> None:
    key = guarded.add_key("ann", role=KeyRole.VIEWER)
    for answer in (
        sign_in(guarded, key, {"host": "bias.example.org"} | BROWSER),
        httpx2.get(guarded.url + "/login", headers={"host": "bias.example.org"} | BROWSER),
    ):
        assert answer.status_code == 403
        assert "this connection is not encrypted" in unescape(answer.text)
        assert SESSION not in answer.cookies


@pytest.mark.parametrize("loopback", [True, False])
def test_behind_a_tls_proxy_everybody_signs_in(migrated_url: str, tmp_path: Path, *, loopback: bool) -> None:
    config = configuration(tmp_path)
    with console(migrated_url, config, later, loopback=loopback, public_url=PUBLIC) as site:
        key = site.add_key("ann", role=KeyRole.VIEWER)
        through = {"host": "bias.example.org", "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1, 192.0.2.7"}
        assert httpx2.get(site.url + "/api/deployments").status_code == 401
        assert httpx2.get(site.url + "/login", headers=through).status_code == 200
        answer = sign_in(site, key, through | {"origin": PUBLIC})
        assert answer.status_code == 303
        assert "secure" in answer.headers["set-cookie"].lower()
        for origin in ("https://evil.example", PUBLIC.replace("https", "http")):
            assert sign_in(site, key, through | {"origin": origin}).status_code == 403
        assert sign_in(site, key, {"origin": site.url}).status_code == 303
        assert sign_in(site, key, {"host": "bias.example.org"}).status_code == 403
        for _ in range(10):
            sign_in(site, "guess", through)
        assert sign_in(site, key, through).status_code == 429
        assert sign_in(site, key, through | {"x-forwarded-for": "192.0.2.8"}).status_code == 303


def test_on_a_loopback_address_a_session_gives_its_own_role(site: Console) -> None:
    with httpx2.Client(base_url=site.url) as client:
        assert "local · admin" in client.get("/").text
    with signed_in(site, "ben", KeyRole.REVIEWER) as client:
        assert "ben · reviewer" in client.get("/").text


@pytest.mark.parametrize("fields", [{"colour": "red"}, {"key": "a\0b"}])
def test_a_wrong_field_is_told(guarded: Console, fields: dict[str, Any]) -> None:
    answer = httpx2.post(guarded.url + "/login", data=fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, next(iter(fields)))


def test_files_of_pages_are_served_and_nothing_beside_them(guarded: Console) -> None:
    answer = httpx2.get(guarded.url + "/static/icon.svg")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    for path in ("/static/..%2Fapp.py", "/static/none", "/static/"):
        assert httpx2.get(guarded.url + path).status_code in {401, 404}
