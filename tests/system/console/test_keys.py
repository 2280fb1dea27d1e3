"""The page of keys: create, show once, limits, revoke; and the same over the API."""

import httpx2
import pytest
from playwright.sync_api import Browser, Page
from support.clients.browsers import LOOKS, assert_accessible, assert_fits, opened
from support.servers.console import Console, later
from support.stores.postgres import execute, fetch

from auditor.domain.keys import KeyRole


def test_a_key_is_made_shown_once_and_revoked(open_site: Console, page: Page) -> None:
    page.goto(open_site.url + "/keys")
    assert page.get_by_text("There are no keys yet.").is_visible()
    page.get_by_label("Name").fill("desk <b>")
    page.get_by_label("Requests a minute").fill("60")
    page.get_by_label("Budget in USD").fill("5")
    page.get_by_label("Lifetime").fill("30d")
    page.get_by_label("pin").check()
    page.get_by_role("button", name="Create", exact=True).click()
    assert "from now on the gateway" in page.get_by_role("alert").inner_text()
    page.get_by_label("The gateway refuses requests without a key").check()
    page.get_by_role("button", name="Create", exact=True).click()
    secret = page.get_by_role("status").locator("pre").inner_text()
    assert secret.startswith("sk-bias-")
    (row,) = fetch(open_site.database_url, "SELECT * FROM client_keys")
    assert (row["rpm"], row["budget"], row["rights"]) == (60, 5.0, ["pin"])
    assert (row["expires_at"] - later()).days == 30
    page.goto(open_site.url + "/keys")
    assert secret not in page.content()
    assert "0.00 of 5.00" in page.get_by_role("row", name="desk <b>").inner_text()
    page.get_by_role("button", name="Revoke desk <b>").click()
    assert "revoked" in page.get_by_role("row", name="desk <b>").inner_text()
    assert page.get_by_role("button", name="Revoke desk <b>").count() == 0


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_made_key_can_be_read_as_a_whole(
    open_site: Console, browser: Browser, width: int, scheme: str, thorough: bool
) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(open_site.url + "/keys")
        page.get_by_label("Name").fill("desk of the editors in Hamburg")
        page.get_by_role("button", name="Create", exact=True).click()
        page.get_by_label("The gateway refuses requests without a key").check()
        page.get_by_role("button", name="Create", exact=True).click()
        secret = page.get_by_role("status").locator("pre")
        assert secret.evaluate("one => one.scrollWidth <= one.clientWidth")
        assert_fits(page)
        if thorough or scheme == "light":
            assert_accessible(page)


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"role": "boss"}, "role"),
        ({"allow": "everything"}, "allow"),
        ({"rpm": "many"}, "rpm"),
        ({"rpm": 0}, "rpm"),
        ({"budget": -1}, "budget"),
        ({"tpm": True}, "tpm"),
        ({"expires": "soon"}, "expires"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_key_that_cannot_be_made_names_the_field(site: Console, changed: dict[str, object], param: str) -> None:
    answer = httpx2.post(site.url + "/api/keys", json={"name": "x", "role": "viewer"} | changed)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert fetch(site.database_url, "SELECT * FROM client_keys") == []


def test_the_api_makes_lists_and_revokes_keys(open_site: Console) -> None:
    made = httpx2.post(open_site.url + "/api/keys", json={"name": "ann", "role": "viewer"})
    assert made.status_code == 201
    first = httpx2.post(open_site.url + "/api/keys", json={"name": "app", "allow": "pin", "rpm": 5})
    assert (first.status_code, first.json()["error"]["code"]) == (409, "first_key")
    assert httpx2.post(open_site.url + "/api/keys", json={"name": "app", "first": True}).status_code == 201
    listed = httpx2.get(open_site.url + "/api/keys").json()["keys"]
    found = {(key["name"], key["role"], key["revoked"]) for key in listed}
    assert found == {("ann", "viewer", False), ("app", None, False)}
    assert httpx2.post(f"{open_site.url}/api/keys/{made.json()['id']}/revoke").json()["revoked"]
    assert httpx2.post(f"{open_site.url}/api/keys/none/revoke").status_code == 404
    assert httpx2.get(open_site.url + "/api/keys?name=ann").status_code == 400


def test_only_admins_see_and_change_keys(guarded: Console) -> None:
    for name, role, status in (("ben", KeyRole.REVIEWER, 403), ("ann", KeyRole.ADMIN, 200)):
        headers = {"authorization": f"Bearer {guarded.add_key(name, role=role)}"}
        assert httpx2.get(guarded.url + "/api/keys", headers=headers).status_code == status
        assert httpx2.get(guarded.url + "/keys", headers=headers).status_code == status
        posted = httpx2.post(f"{guarded.url}/api/keys/ben/revoke", headers=headers)
        assert posted.status_code == status
    own = httpx2.post(f"{guarded.url}/api/keys/ann/revoke", headers=headers)
    assert (own.status_code, own.json()["error"]["code"]) == (409, "own_key")


def test_a_form_without_its_token_changes_nothing(open_site: Console) -> None:
    for token in ({}, {"csrf": "x"}):
        answer = httpx2.post(open_site.url + "/keys", data={"name": "x", "role": "viewer", **token})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf_token")
    assert fetch(open_site.database_url, "SELECT * FROM client_keys") == []


def test_spending_is_shown(open_site: Console) -> None:
    open_site.add_key("app", role=None)
    execute(open_site.database_url, "UPDATE client_keys SET budget = 2")
    execute(
        open_site.database_url,
        "INSERT INTO key_spending VALUES ('app', gen_random_uuid(), 1500000000, now())",
    )
    assert "1.50 of 2.00" in httpx2.get(open_site.url + "/keys").text
    assert httpx2.get(open_site.url + "/api/keys").json()["keys"][0]["spent_usd"] == 1.5
